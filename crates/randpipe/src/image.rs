//! The Funcs and inputs that a growing pipeline can read, with their sizes.

use warploom_lang::{Expr, Func, Input, Operand, Type, Var, clamp};

use crate::term::Term;

/// The variables of all Funcs, one per dimension.
pub const VARS: [Var; 4] = [Var::literal("x"), Var::literal("y"), Var::literal("c"), Var::literal("k")];

/// The extent of a dimension: as a number and as an expression.
#[derive(Clone)]
pub struct Extent {
    pub points: i64,
    pub expr: Expr,
}

impl Extent {
    /// A constant extent.
    pub fn fixed(points: i64) -> Extent {
        Extent { points, expr: int(points) }
    }

    /// The extent divided by `factor`, rounded up.
    pub fn divided(&self, factor: i64) -> Extent {
        let expr = (&self.expr + (factor - 1) as i32) / factor as i32;
        self.derived((self.points + factor - 1) / factor, expr)
    }

    /// The extent times `factor`.
    pub fn multiplied(&self, factor: i64) -> Extent {
        self.derived(self.points * factor, &self.expr * factor as i32)
    }

    /// An extent with this value; a constant extent stays a constant.
    fn derived(&self, points: i64, expr: Expr) -> Extent {
        if self.expr.constant().is_some() { Extent::fixed(points) } else { Extent { points, expr } }
    }
}

/// An index or extent as a constant expression.
pub fn int(value: i64) -> Expr {
    Expr::from(value as i32)
}

/// An index plus a constant.
pub fn shifted(index: Expr, by: i64) -> Expr {
    if by == 0 { index } else { index + by as i32 }
}

/// An index times a constant.
pub fn scaled(index: Expr, by: i64) -> Expr {
    if by == 1 { index } else { index * by as i32 }
}

/// A Func or input with a value at every point of a box.
#[derive(Clone)]
pub struct Image {
    pub body: Body,
    /// The extents of the box, which starts at the origin.
    pub extents: Vec<Extent>,
    /// The approximate largest magnitude, one entry per value.
    pub reach: Vec<f32>,
    /// Whether it may be read outside its box.
    pub total: bool,
}

/// The source of an [`Image`].
#[derive(Clone)]
pub enum Body {
    Func(Func),
    Input(Input),
}

impl Image {
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// The number of points in the box.
    pub fn points(&self) -> i64 {
        points(&self.extents)
    }

    pub fn types(&self) -> Vec<Type> {
        match &self.body {
            Body::Func(func) => func.types().to_vec(),
            Body::Input(input) => vec![input.ty()],
        }
    }

    /// A value at a point. The point is clamped to the box if the image is undefined outside.
    pub fn read(&self, value: usize, mut at: Vec<Expr>) -> Term {
        if !self.total {
            for (index, extent) in at.iter_mut().zip(&self.extents) {
                *index = clamp(&*index, 0, &extent.expr - 1);
            }
        }
        let expr = match &self.body {
            Body::Func(func) => func.get(value, at),
            Body::Input(input) => input.at(at),
        };
        Term { expr, ty: self.types()[value], reach: self.reach[value] }
    }
}

/// The number of points in a box.
pub fn points(extents: &[Extent]) -> i64 {
    extents.iter().map(|extent| extent.points).product()
}

/// The variables of a Func with this rank.
pub fn variables(rank: usize) -> Vec<Var> {
    VARS[..rank].to_vec()
}

/// The current point: the variables of a Func, as expressions.
pub fn here(rank: usize) -> Vec<Expr> {
    VARS[..rank].iter().map(|var| var.expr()).collect()
}

/// A point with one coordinate replaced.
pub fn with(mut at: Vec<Expr>, dimension: usize, index: impl Into<Expr>) -> Vec<Expr> {
    at[dimension] = index.into();
    at
}
