//! Boundary conditions: Funcs that extend an input or another Func beyond its limits.
//!
//! They may be read anywhere, including at data-dependent indices:
//! `edge.at((x + flow.at((x, y)), y))`. No finite box covers all points that such an index can reach, so
//! [`Pipeline::new`](crate::Pipeline::new) inlines the boundary condition into the reader's
//! definition.

use std::panic::Location;

use crate::error::{Diagnostic, Fault};
use crate::expr::{Expr, Operand, Var};
use crate::func::{Func, FuncName, Start};
use crate::functions::{clamp, min, select};
use crate::input::Input;

/// The limits of one dimension as `(min, extent)`. `None` leaves the dimension unextended; so does
/// a list that ends before it.
pub type Limit = Option<(Expr, Expr)>;

/// A source that a boundary condition can extend: an input or a Func.
pub trait Bounded {
    /// The name that the names of its boundary Funcs start with.
    fn base_name(&self) -> String;
    /// The number of dimensions.
    fn rank(&self) -> usize;
    /// The source's value at a point.
    #[track_caller]
    fn value_at(&self, indices: Vec<Expr>) -> Expr;

    /// Outside the limits, the nearest value inside.
    #[track_caller]
    fn repeat_edge_in(&self, limits: impl Into<Vec<Limit>>) -> Func {
        moved(self, "repeat_edge", limits.into(), |x, low, extent| clamp(x, &low, &low + extent - 1))
    }

    /// Outside the limits, the image tiled periodically.
    #[track_caller]
    fn repeat_image_in(&self, limits: impl Into<Vec<Limit>>) -> Func {
        moved(self, "repeat_image", limits.into(), |x, low, extent| (x - &low) % extent + low)
    }

    /// Outside the limits, the image mirrored, with the border value repeated.
    #[track_caller]
    fn mirror_image_in(&self, limits: impl Into<Vec<Limit>>) -> Func {
        moved(self, "mirror_image", limits.into(), |x, low, extent| {
            let m = (x - &low) % (2 * &extent);
            min(&m, 2 * extent - 1 - &m) + low
        })
    }

    /// Outside the limits, the image mirrored, with the border value not repeated.
    #[track_caller]
    fn mirror_interior_in(&self, limits: impl Into<Vec<Limit>>) -> Func {
        moved(self, "mirror_interior", limits.into(), |x, low, extent| {
            let period = 2 * (extent - 1);
            let m = (x - &low) % &period;
            min(&m, period - &m) + low
        })
    }

    /// Outside the limits, `value`.
    #[track_caller]
    fn constant_exterior_in(&self, limits: impl Into<Vec<Limit>>, value: impl Into<Expr>) -> Func {
        let what = "constant_exterior";
        let vars = variables(self.rank());
        let limits = limits.into();
        let inside = limits.iter().zip(&vars).filter_map(|(limit, &x)| {
            let (low, extent) = limit.clone()?;
            Some(x.ge(&low) & x.lt(low + extent))
        });
        let inside = inside.reduce(|a, b| a & b);
        let held = |x: Expr, low: Expr, extent: Expr| clamp(x, &low, &low + extent - 1);
        let body = match read(self, &limits, held, Location::caller()) {
            Ok(nearest) => match inside {
                Some(inside) => select(inside, nearest, value),
                None => nearest,
            },
            Err(faulty) => faulty,
        };
        boundary(FuncName::Of(self.base_name(), what), vars, body, Location::caller())
    }
}

/// The variables of a boundary Func, one per dimension.
fn variables(rank: usize) -> Vec<Var> {
    let name = |d: usize| "xyzw".chars().nth(d).map_or_else(|| format!("d{d}"), String::from);
    (0..rank).map(|d| Var::new(name(d))).collect()
}

/// The source's value, with each limited coordinate mapped inside the limits by `inward`.
fn read<B: Bounded + ?Sized>(
    source: &B,
    limits: &[Limit],
    inward: impl Fn(Expr, Expr, Expr) -> Expr,
    place: &'static Location<'static>,
) -> Result<Expr, Expr> {
    let rank = source.rank();
    if limits.len() > rank {
        let fault = Fault::Limits { source_name: source.base_name(), got: limits.len(), expected: rank };
        return Err(Expr::faulty(Diagnostic::at(fault, place)));
    }
    let indices = variables(rank).into_iter().enumerate().map(|(d, x)| match limits.get(d).cloned() {
        Some(Some((low, extent))) => inward(x.expr(), low, extent),
        _ => x.expr(),
    });
    Ok(source.value_at(indices.collect()))
}

#[track_caller]
fn moved<B: Bounded + ?Sized>(
    source: &B,
    what: &'static str,
    limits: Vec<Limit>,
    inward: impl Fn(Expr, Expr, Expr) -> Expr,
) -> Func {
    let place = Location::caller();
    let body = read(source, &limits, inward, place).unwrap_or_else(|faulty| faulty);
    let vars = variables(source.rank());
    boundary(FuncName::Of(source.base_name(), what), vars, body, place)
}

fn boundary(name: FuncName, vars: Vec<Var>, body: Expr, place: &'static Location<'static>) -> Func {
    Func::define(name, vars, Start::Values(vec![body]), place).into_boundary()
}

impl Bounded for Input {
    fn base_name(&self) -> String {
        self.name().to_string()
    }
    fn rank(&self) -> usize {
        self.dimensions()
    }
    #[track_caller]
    fn value_at(&self, indices: Vec<Expr>) -> Expr {
        self.at(indices)
    }
}

impl Bounded for Func {
    fn base_name(&self) -> String {
        self.label()
    }
    fn rank(&self) -> usize {
        self.dimensions()
    }
    #[track_caller]
    fn value_at(&self, indices: Vec<Expr>) -> Expr {
        self.at(indices)
    }
}

/// Limits from numbers or expressions: one `(min, extent)` pair for each of the first dimensions.
pub fn limits<M: Into<Expr>, E: Into<Expr>, const N: usize>(ranges: [(M, E); N]) -> Vec<Limit> {
    ranges.into_iter().map(|(low, extent)| Some((low.into(), extent.into()))).collect()
}

impl Input {
    /// The input's own limits in the listed dimensions, no limits in the others.
    pub fn limits(&self, dimensions: impl AsRef<[usize]>) -> Vec<Limit> {
        let own = |d| dimensions.as_ref().contains(&d).then(|| (self.min(d), self.extent(d)));
        (0..self.dimensions()).map(own).collect()
    }

    fn all_limits(&self) -> Vec<Limit> {
        (0..self.dimensions()).map(|d| Some((self.min(d), self.extent(d)))).collect()
    }

    /// Outside the input, the nearest value inside.
    #[track_caller]
    pub fn repeat_edge(&self) -> Func {
        self.repeat_edge_in(self.all_limits())
    }

    /// Outside the input, the image tiled periodically.
    #[track_caller]
    pub fn repeat_image(&self) -> Func {
        self.repeat_image_in(self.all_limits())
    }

    /// Outside the input, the image mirrored, with the border value repeated.
    #[track_caller]
    pub fn mirror_image(&self) -> Func {
        self.mirror_image_in(self.all_limits())
    }

    /// Outside the input, the image mirrored, with the border value not repeated.
    #[track_caller]
    pub fn mirror_interior(&self) -> Func {
        self.mirror_interior_in(self.all_limits())
    }

    /// Outside the input, `value`.
    #[track_caller]
    pub fn constant_exterior(&self, value: impl Into<Expr>) -> Func {
        self.constant_exterior_in(self.all_limits(), value)
    }
}
