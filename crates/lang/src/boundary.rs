//! Boundary conditions: Funcs that extend an input or another Func beyond its limits.
//!
//! They may be read anywhere, including at data-dependent indices:
//! `edge.at((x + flow.at((x, y)), y))`. No finite box covers all points that such an index can reach, so
//! [`Pipeline::new`](crate::Pipeline::new) inlines the boundary condition into the reader's
//! definition.
//!
//! The boundary condition of a Func with several values has as many:
//!
//! ```
//! use warploom_lang::*;
//! let (x, y) = vars!(x, y);
//! let pair = func("pair", (x, y), (x * y, x.f32() + 0.5));
//! let edge = pair.repeat_edge_in(limits([(0, 8), (0, 8)]));
//! let near = func("near", (x, y), edge.get(0, (x - 1, y)).f32() * edge.get(1, (x, y + 1)));
//! // Beyond the limits, one value for both, or one for each.
//! let other = pair.constant_exterior_in(limits([(0, 8), (0, 8)]), (-1, 0.25));
//! let far = func("far", (x, y), other.get(1, (x * 2, y)));
//! assert!(Pipeline::new("p", [near, far]).is_ok());
//! ```

use std::panic::Location;

use crate::error::{Diagnostic, Fault};
use crate::expr::{Expr, Operand, Var};
use crate::func::{Func, FuncName, Start, Values};
use crate::functions::{clamp, min, select};
use crate::input::Input;

/// The limits of one dimension as `(min, extent)`. `None`, or a list that ends before the dimension, leaves it
/// unextended.
pub type Limit = Option<(Expr, Expr)>;

/// A source that a boundary condition can extend: an input or a Func.
pub trait Bounded {
    /// The name that the names of its boundary Funcs start with.
    fn base_name(&self) -> String;
    /// The number of dimensions.
    fn rank(&self) -> usize;
    /// The source's values at a point: one, unless it is a Func with several.
    #[track_caller]
    fn values_at(&self, indices: Vec<Expr>) -> Vec<Expr>;

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

    /// Outside the limits, `value`: one for all values of the source, or one for each.
    #[track_caller]
    fn constant_exterior_in(&self, limits: impl Into<Vec<Limit>>, value: impl Values) -> Func {
        let what = "constant_exterior";
        let vars = variables(self.rank());
        let limits = limits.into();
        let inside = limits.iter().zip(&vars).filter_map(|(limit, &x)| {
            let (low, extent) = limit.clone()?;
            Some(x.ge(&low) & x.lt(low + extent))
        });
        let inside = inside.reduce(|a, b| a & b);
        let held = |x: Expr, low: Expr, extent: Expr| clamp(x, &low, &low + extent - 1);
        let place = Location::caller();
        let bodies = read(self, &limits, held, place).and_then(|nearest| {
            let outside = outside(self, value, nearest.len(), place)?;
            let chosen = |(nearest, outside): (Expr, Expr)| match &inside {
                Some(inside) => select(inside, nearest, outside),
                None => nearest,
            };
            Ok(nearest.into_iter().zip(outside).map(chosen).collect())
        });
        boundary(FuncName::Of(self.base_name(), what), vars, bodies, place)
    }
}

/// The values beyond the limits, one for each value of the source.
fn outside<B: Bounded + ?Sized>(
    source: &B,
    value: impl Values,
    expected: usize,
    place: &'static Location<'static>,
) -> Result<Vec<Expr>, Expr> {
    let given = match value.into_start() {
        Start::Values(values) => values,
        Start::Undefined(_) => Vec::new(),
    };
    match given.as_slice() {
        [one] => Ok(vec![one.clone(); expected]),
        _ if given.len() == expected => Ok(given),
        _ => {
            let fault = Fault::Outside { source_name: source.base_name(), got: given.len(), expected };
            Err(Expr::faulty(Diagnostic::at(fault, place)))
        }
    }
}

/// The variables of a boundary Func, one per dimension.
fn variables(rank: usize) -> Vec<Var> {
    let name = |d: usize| "xyzw".chars().nth(d).map_or_else(|| format!("d{d}"), String::from);
    (0..rank).map(|d| Var::new(name(d))).collect()
}

/// The source's values, with each limited coordinate mapped inside the limits by `inward`.
fn read<B: Bounded + ?Sized>(
    source: &B,
    limits: &[Limit],
    inward: impl Fn(Expr, Expr, Expr) -> Expr,
    place: &'static Location<'static>,
) -> Result<Vec<Expr>, Expr> {
    let rank = source.rank();
    if limits.len() > rank {
        let fault = Fault::Limits { source_name: source.base_name(), got: limits.len(), expected: rank };
        return Err(Expr::faulty(Diagnostic::at(fault, place)));
    }
    let indices = variables(rank).into_iter().enumerate().map(|(d, x)| match limits.get(d).cloned() {
        Some(Some((low, extent))) => inward(x.expr(), low, extent),
        _ => x.expr(),
    });
    Ok(source.values_at(indices.collect()))
}

#[track_caller]
fn moved<B: Bounded + ?Sized>(
    source: &B,
    what: &'static str,
    limits: Vec<Limit>,
    inward: impl Fn(Expr, Expr, Expr) -> Expr,
) -> Func {
    let place = Location::caller();
    let bodies = read(source, &limits, inward, place);
    let vars = variables(source.rank());
    boundary(FuncName::Of(source.base_name(), what), vars, bodies, place)
}

/// A boundary condition with these values, or with the mistake that was made.
fn boundary(
    name: FuncName,
    vars: Vec<Var>,
    bodies: Result<Vec<Expr>, Expr>,
    place: &'static Location<'static>,
) -> Func {
    let bodies = bodies.unwrap_or_else(|faulty| vec![faulty]);
    Func::define(name, vars, Start::Values(bodies), place).into_boundary()
}

impl Bounded for Input {
    fn base_name(&self) -> String {
        self.name().to_string()
    }
    fn rank(&self) -> usize {
        self.dimensions()
    }
    #[track_caller]
    fn values_at(&self, indices: Vec<Expr>) -> Vec<Expr> {
        vec![self.at(indices)]
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
    fn values_at(&self, indices: Vec<Expr>) -> Vec<Expr> {
        (0..self.types().len()).map(|value| self.get(value, indices.clone())).collect()
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
    pub fn constant_exterior(&self, value: impl Values) -> Func {
        self.constant_exterior_in(self.all_limits(), value)
    }
}
