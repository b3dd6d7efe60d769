//! What a growing pipeline can read: Funcs and inputs with a size.

use warploom_lang::{Expr, Func, Input, Operand, Type, Var, clamp};

use crate::term::Term;

/// The names of dimensions.
pub const VARS: [Var; 4] = [Var::new("x"), Var::new("y"), Var::new("c"), Var::new("k")];

/// How many points a dimension has: the number, and how the pipeline says it.
#[derive(Clone)]
pub struct Extent {
    pub points: i64,
    pub expr: Expr,
}

impl Extent {
    /// A constant.
    pub fn fixed(points: i64) -> Extent {
        Extent { points, expr: int(points) }
    }

    /// One for every `factor` of these, rounded up.
    pub fn divided(&self, factor: i64) -> Extent {
        let expr = (&self.expr + (factor - 1) as i32) / factor as i32;
        self.derived((self.points + factor - 1) / factor, expr)
    }

    /// `factor` for each of these.
    pub fn multiplied(&self, factor: i64) -> Extent {
        self.derived(self.points * factor, &self.expr * factor as i32)
    }

    /// A constant stays one.
    fn derived(&self, points: i64, expr: Expr) -> Extent {
        if self.expr.constant().is_some() { Extent::fixed(points) } else { Extent { points, expr } }
    }
}

/// An index or extent as an expression.
pub fn int(value: i64) -> Expr {
    Expr::from(value as i32)
}

/// An index moved by a constant.
pub fn shifted(index: Expr, by: i64) -> Expr {
    if by == 0 { index } else { index + by as i32 }
}

/// An index times a constant.
pub fn scaled(index: Expr, by: i64) -> Expr {
    if by == 1 { index } else { index * by as i32 }
}

/// Something that has a value at every point of a box.
#[derive(Clone)]
pub struct Image {
    pub body: Body,
    /// The box of interest, which starts at the origin.
    pub extents: Vec<Extent>,
    /// About how large values get, one number for each value of a point.
    pub reach: Vec<f32>,
    /// Whether it may be read outside its box.
    pub total: bool,
}

/// What an [`Image`] is read from.
#[derive(Clone)]
pub enum Body {
    Func(Func),
    Input(Input),
}

impl Image {
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// Points of the box.
    pub fn points(&self) -> i64 {
        points(&self.extents)
    }

    pub fn types(&self) -> Vec<Type> {
        match &self.body {
            Body::Func(func) => func.types().to_vec(),
            Body::Input(input) => vec![input.ty()],
        }
    }

    /// A value at a point, which is held inside the box where nothing is defined outside.
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

/// Points of a box.
pub fn points(extents: &[Extent]) -> i64 {
    extents.iter().map(|extent| extent.points).product()
}

/// The variables of a Func of this rank.
pub fn variables(rank: usize) -> Vec<Var> {
    VARS[..rank].to_vec()
}

/// The point that a Func's variables stand for.
pub fn here(rank: usize) -> Vec<Expr> {
    VARS[..rank].iter().map(|var| var.expr()).collect()
}

/// A point with one coordinate replaced.
pub fn with(mut at: Vec<Expr>, dimension: usize, index: impl Into<Expr>) -> Vec<Expr> {
    at[dimension] = index.into();
    at
}
