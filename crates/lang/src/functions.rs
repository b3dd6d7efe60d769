//! Free functions on expressions, in mathematical notation.

use crate::expr::{Expr, Operand, adapt};
use crate::op::{BinaryOp, Op, UnaryOp};
use crate::types::{Type, Value};

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(a: impl Into<Expr>) -> Expr {
            Expr::unary(UnaryOp::$op, a)
        }
    )*};
}

unary! {
    /// Absolute value, in the operand's type; the most negative integer maps to itself.
    abs Abs;
    /// Square root.
    sqrt Sqrt;
    /// Exponential.
    exp Exp;
    /// Natural logarithm.
    log Log;
    /// Sine of an angle in radians.
    sin Sin;
    /// Cosine of an angle in radians.
    cos Cos;
    /// Hyperbolic tangent.
    tanh Tanh;
    /// The largest integer that is not above the operand, as a float.
    floor Floor;
    /// The smallest integer that is not below the operand, as a float.
    ceil Ceil;
    /// The nearest integer, with ties to even, as a float.
    round Round;
    /// A cheaper exponential, accurate to about 1e-5.
    fast_exp FastExp;
    /// Arc tangent, in -π/2..=π/2.
    atan Atan;
    /// Arc sine, in -π/2..=π/2; NaN outside -1..=1.
    asin Asin;
    /// Arc cosine, in 0..=π; NaN outside -1..=1.
    acos Acos;
    /// Tangent of an angle in radians, of any size.
    tan Tan;
    /// `1 / sqrt(a)`, both rounded.
    rsqrt Rsqrt;
    /// The error function, in -1..=1.
    erf Erf;
    /// `log(1 + a)`, accurate near 0.
    log1p Log1p;
    /// `exp(a) - 1`, accurate near 0.
    expm1 Expm1;
    /// `2^a`.
    exp2 Exp2;
    /// Logarithm to base 2, exact for powers of 2.
    log2 Log2;
    /// Whether a float is NaN, as a `bool`.
    is_nan IsNan;
    /// The number of set bits of an integer, in its type.
    popcount Popcount;
    /// The number of zeros above the highest set bit of an integer, in its type; its width for 0.
    leading_zeros LeadingZeros;
}

/// The angle of the point `(x, y)` in -π..=π: the arc tangent of `y / x` in the right quadrant.
#[track_caller]
pub fn atan2(y: impl Into<Expr>, x: impl Into<Expr>) -> Expr {
    Expr::binary(BinaryOp::Atan2, y, x)
}

/// The smaller of two values; NaN gives the other operand.
#[track_caller]
pub fn min(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    Expr::binary(BinaryOp::Min, a, b)
}

/// The larger of two values; NaN gives the other operand.
#[track_caller]
pub fn max(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    Expr::binary(BinaryOp::Max, a, b)
}

/// `value` clamped to `low..=high`: `max(min(value, high), low)`.
#[track_caller]
pub fn clamp(value: impl Into<Expr>, low: impl Into<Expr>, high: impl Into<Expr>) -> Expr {
    max(min(value, high), low)
}

/// `|a - b|`. For integers it is exact, in the unsigned type of the same width.
#[track_caller]
pub fn absd(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    Expr::binary(BinaryOp::Absd, a, b)
}

/// `(a + b + 1) / 2` of two integers, without overflow.
#[track_caller]
pub fn average(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    Expr::binary(BinaryOp::Average, a, b)
}

/// `a^b` of floats. A constant exponent of 2 becomes `a * a`.
#[track_caller]
pub fn pow(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    let (a, b) = (a.into(), b.into());
    match b.constant().map(Value::as_f64) {
        Some(2.0) => &a * &a,
        _ => Expr::binary(BinaryOp::Pow, a, b),
    }
}

/// Linear interpolation from `a` at `weight` 0 to `b` at `weight` 1:
/// `a * (1 - weight) + b * weight`.
#[track_caller]
pub fn lerp(a: impl Into<Expr>, b: impl Into<Expr>, weight: impl Into<Expr>) -> Expr {
    let (a, weight) = (a.into(), weight.into());
    // A constant weight takes the type of the operands, as it would in a product.
    let adapted = a.ty().and_then(|ty| adapt(&weight, ty).ok().flatten());
    let weight = adapted.unwrap_or(weight);
    a * (1.0f32 - &weight) + b.into() * weight
}

/// `a` where `condition` is true, otherwise `b`. Both sides are evaluated, so both must be in
/// bounds.
#[track_caller]
pub fn select(condition: impl Into<Expr>, a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    Expr::apply(Op::Select, vec![condition.into(), a.into(), b.into()])
}

/// Value number `index`; the last value if `index` is negative or too large.
///
/// ```
/// use warploom_lang::{Type, mux, vars};
/// let c = vars!(c);
/// assert_eq!(mux(c, [0.299, 0.587, 0.114]).ty(), Some(Type::F32));
/// ```
#[track_caller]
pub fn mux<E: Into<Expr>>(index: impl Into<Expr>, values: impl IntoIterator<Item = E>) -> Expr {
    let index = index.into();
    let mut values: Vec<Expr> = values.into_iter().map(Into::into).collect();
    let Some(mut result) = values.pop() else { return Expr::from(Value::zero(Type::I32)) };
    for (i, value) in values.into_iter().enumerate().rev() {
        result = select(index.eq(i as i32), value, result);
    }
    result
}

/// One round of the hash behind the random numbers: a polynomial that permutes the integers modulo
/// 2^32.
fn scramble(t: Expr) -> Expr {
    (Expr::from(1_040_796_640u32) * &t + 1_121_052_041u32) * t + 576_942_909u32
}

/// A pseudo-random `u32`: a fixed function of `seed` and of integer coordinates.
///
/// The coordinates are hashed in last first, so that the first one varies fastest.
#[track_caller]
pub fn random_u32<E: Into<Expr>>(seed: u32, coordinates: impl IntoIterator<Item = E>) -> Expr {
    let coordinates: Vec<Expr> = coordinates.into_iter().map(Into::into).collect();
    let mixed = coordinates
        .into_iter()
        .rev()
        .fold(Expr::from(seed), |hash, coordinate| scramble(hash + coordinate.u32()));
    &mixed ^ (&mixed >> 16)
}

/// A pseudo-random `f32` in 0..1: a fixed function of `seed` and of integer coordinates.
#[track_caller]
pub fn random_f32<E: Into<Expr>>(seed: u32, coordinates: impl IntoIterator<Item = E>) -> Expr {
    let bits = random_u32(seed, coordinates);
    // Put the upper 23 bits into the fraction of a number in 1..2.
    (Expr::from(127u32 << 23) | (bits >> 9)).reinterpret(Type::F32) - 1.0f32
}
