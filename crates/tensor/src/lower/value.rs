//! The values of expressions, some of which have no type yet.

use warploom_lang::{Expr, Operand, Type, Value};

use crate::types::meet;

/// The types that an open float can take.
const FLOATS: [Type; 4] = [Type::F16, Type::BF16, Type::F32, Type::F64];

/// The value of an expression.
#[derive(Clone)]
pub(super) enum Lowered {
    Typed(Expr),
    /// A float whose type follows from the first float that it meets, in every type of [`FLOATS`].
    Open(Box<[Expr; 4]>),
}

impl From<Expr> for Lowered {
    fn from(expr: Expr) -> Lowered {
        Lowered::Typed(expr)
    }
}

impl Lowered {
    /// A number as it is written.
    pub fn literal(number: f64) -> Lowered {
        let rounded = |ty| Expr::from(Value::rounded(ty, number).unwrap_or(Value::zero(ty)));
        Lowered::Open(Box::new(FLOATS.map(rounded)))
    }

    /// The value in a type.
    pub fn at(&self, ty: Type) -> Expr {
        match self {
            Lowered::Typed(expr) => convert(expr.clone(), ty),
            Lowered::Open(all) => match FLOATS.iter().position(|float| *float == ty) {
                Some(position) => all[position].clone(),
                None => convert(self.at(Type::F32), ty),
            },
        }
    }

    /// The value if it meets nothing else.
    pub fn alone(&self) -> Expr {
        match self {
            Lowered::Typed(expr) => expr.clone(),
            Lowered::Open(_) => self.at(Type::F32),
        }
    }

    /// A float of 16 bits as an `f32`; other values are unchanged.
    pub fn widened(self) -> Lowered {
        match self {
            Lowered::Typed(expr) if expr.ty().is_some_and(Type::is_half) => expr.cast(Type::F32).into(),
            other => other,
        }
    }

    /// An operation on one value.
    pub fn map(&self, operation: impl Fn(Expr) -> Expr) -> Lowered {
        match self {
            Lowered::Typed(expr) => operation(expr.clone()).into(),
            Lowered::Open(all) => Lowered::Open(Box::new([0, 1, 2, 3].map(|i| operation(all[i].clone())))),
        }
    }
}

/// The type in which numbers meet; `None` if they are open or integers, and a float is required.
pub(super) fn float_met(values: &[Lowered]) -> Option<Type> {
    let floats = values.iter().filter_map(|value| match value {
        Lowered::Typed(expr) => expr.ty().filter(|ty| ty.is_float()),
        Lowered::Open(_) => None,
    });
    floats.reduce(|a, b| meet(a, b).unwrap_or(a))
}

/// The type in which two values meet; `None` if it is open.
fn met(left: &Lowered, right: &Lowered) -> Option<Type> {
    match (left, right) {
        (Lowered::Typed(left), Lowered::Typed(right)) => meet(left.ty()?, right.ty()?),
        (Lowered::Open(_), Lowered::Typed(expr)) | (Lowered::Typed(expr), Lowered::Open(_)) => {
            expr.ty().filter(|ty| ty.is_float())
        }
        (Lowered::Open(_), Lowered::Open(_)) => None,
    }
}

/// A function of floats of one type, in every type that it can have.
pub(super) fn in_type(ty: Option<Type>, value: impl Fn(Type) -> Expr) -> Lowered {
    match ty {
        Some(ty) => value(ty).into(),
        None => Lowered::Open(Box::new(FLOATS.map(value))),
    }
}

/// An operation on two values in the type where they meet.
pub(super) fn combined(left: &Lowered, right: &Lowered, operation: impl Fn(Expr, Expr) -> Expr) -> Lowered {
    in_type(met(left, right), |ty| operation(left.at(ty), right.at(ty)))
}

/// A comparison of two values in the type where they meet.
pub(super) fn compared(left: &Lowered, right: &Lowered, operation: impl Fn(Expr, Expr) -> Expr) -> Lowered {
    let ty = met(left, right).unwrap_or(Type::F32);
    operation(left.at(ty), right.at(ty)).into()
}

/// An expression in another type. A constant is converted at once.
pub(crate) fn convert(expr: Expr, ty: Type) -> Expr {
    let constant = expr.constant().filter(|_| ty != Type::Bool);
    match constant.and_then(|value| Value::from_number(ty, value.as_f64())) {
        Some(value) if expr.ty() != Some(ty) => Expr::from(value),
        _ => expr.cast(ty),
    }
}
