//! Abstract values: knowledge about a value while its variables range over a box at an unknown position.

use crate::affine::interval::Interval;
use crate::affine::{Congruence, gcd};
use crate::ir::ParamDecl;
use crate::types::{Type, Value};

/// An integer over a box of loop variables.
///
/// `min` and `max` bound it for every position of the box. For one fixed position, the values lie
/// between a lower and an upper bound that are at most `width` apart. `lower` and `upper` are the
/// congruences of those two bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntSpan {
    /// The smallest value over all positions of the box.
    pub min: i64,
    /// The largest value over all positions of the box.
    pub max: i64,
    /// The largest distance between the bounds at one position of the box.
    pub width: i64,
    /// The congruence of the lower bound.
    pub lower: Congruence,
    /// The congruence of the upper bound.
    pub upper: Congruence,
}

impl IntSpan {
    /// A single known value.
    pub fn constant(value: i64) -> IntSpan {
        IntSpan::fixed(value, value)
    }

    /// Bounds that do not depend on the position of the box.
    pub fn fixed(min: i64, max: i64) -> IntSpan {
        let far = Interval::new(min, max).is_far();
        let congruence = |value| if far { Congruence::ANY } else { Congruence::exactly(value) };
        let (lower, upper) = (congruence(min), congruence(max));
        IntSpan { min, max, width: max.saturating_sub(min), lower, upper }
    }

    /// Whether an end is so far away that arithmetic on it may not fit in 64 bits; see
    /// [`Interval::is_far`].
    pub fn is_far(&self) -> bool {
        self.interval().is_far()
    }

    /// From the smallest to the largest value over all positions of the box.
    pub fn interval(&self) -> Interval {
        Interval::new(self.min, self.max)
    }

    /// This span, or the full range of the type if its ends are far: a result that may have wrapped.
    pub fn unless_far(self, ty: Type) -> IntSpan {
        if self.is_far() { IntSpan::of_type(ty) } else { self }
    }

    /// A loop variable: a tile of `width + 1` values inside `min..=max`, whose first value
    /// satisfies `lower`.
    pub fn tile(min: i64, max: i64, width: i64, lower: Congruence) -> IntSpan {
        IntSpan { min, max, width, lower, upper: lower.plus(Congruence::exactly(width)) }
    }

    /// All values of a type.
    pub fn of_type(ty: Type) -> IntSpan {
        let (min, max) = ty.int_range().unwrap_or((i64::from(i32::MIN), i64::from(i32::MAX)));
        IntSpan::fixed(min, max)
    }

    /// The value, if there is exactly one. A far end may stand for more than one.
    pub fn singleton(&self) -> Option<i64> {
        (self.min == self.max && !self.is_far()).then_some(self.min)
    }

    /// The sum of two values that vary independently.
    pub fn add(&self, other: &IntSpan) -> IntSpan {
        IntSpan {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
            width: self.width.saturating_add(other.width),
            lower: self.lower.plus(other.lower),
            upper: self.upper.plus(other.upper),
        }
    }

    /// The product with a constant.
    pub fn scale(&self, factor: i64) -> IntSpan {
        let (low, high) = (self.min.saturating_mul(factor), self.max.saturating_mul(factor));
        let (lower, upper) = (self.lower.scale(factor), self.upper.scale(factor));
        let (lower, upper) = if factor < 0 { (upper, lower) } else { (lower, upper) };
        let width = self.width.saturating_mul(factor.saturating_abs());
        IntSpan { min: low.min(high), max: low.max(high), width, lower, upper }
    }

    /// The Euclidean quotient by a constant other than 0.
    pub fn div(&self, divisor: i64) -> IntSpan {
        if divisor < 0 {
            return self.div(-divisor).scale(-1);
        }
        // Depending on where it starts, a tile can reach one more quotient than its width alone
        // implies.
        let latest = |bound: Congruence| {
            let step = gcd(bound.modulus(), divisor);
            divisor - step + bound.remainder().rem_euclid(step)
        };
        let earliest = |bound: Congruence| bound.remainder().rem_euclid(gcd(bound.modulus(), divisor));
        let width = latest(self.lower).saturating_add(self.width) / divisor;
        let end = (self.width.saturating_add(divisor - 1 - earliest(self.upper))) / divisor;
        IntSpan {
            min: self.min.div_euclid(divisor),
            max: self.max.div_euclid(divisor),
            width: width.min(end),
            lower: self.lower.floor_div(divisor),
            upper: self.upper.floor_div(divisor),
        }
        .tightened()
    }

    /// The smaller of two values. `half_sum` is an upper bound on half their sum.
    pub fn min(&self, other: &IntSpan, half_sum: i64) -> IntSpan {
        if self.max <= other.min {
            return *self;
        }
        if other.max <= self.min {
            return *other;
        }
        IntSpan {
            min: self.min.min(other.min),
            max: self.max.min(other.max).min(half_sum),
            width: self.width.max(other.width),
            lower: Congruence::ANY,
            upper: Congruence::ANY,
        }
        .tightened()
    }

    /// The larger of two values. `half_sum` is a lower bound on half their sum.
    pub fn max(&self, other: &IntSpan, half_sum: i64) -> IntSpan {
        if self.min >= other.max {
            return *self;
        }
        if other.min >= self.max {
            return *other;
        }
        IntSpan {
            min: self.min.max(other.min).max(half_sum),
            max: self.max.max(other.max),
            width: self.width.max(other.width),
            lower: Congruence::ANY,
            upper: Congruence::ANY,
        }
        .tightened()
    }

    /// A value that may be either of two.
    pub fn union(&self, other: &IntSpan) -> IntSpan {
        IntSpan::fixed(self.min.min(other.min), self.max.max(other.max))
    }

    /// This span, or the full range of the type if this span exceeds it.
    pub fn within(self, ty: Type) -> IntSpan {
        match ty.int_range() {
            Some((min, max)) if self.min < min || max < self.max => IntSpan::fixed(min, max),
            _ => self,
        }
    }

    /// Limits the width to the whole range. If the range is the limit, the position of the box does not matter.
    fn tightened(self) -> IntSpan {
        if self.width < self.max.saturating_sub(self.min) { self } else { IntSpan::fixed(self.min, self.max) }
    }
}

/// A float over a box of loop variables.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FloatSpan {
    /// The smallest value over all positions of the box.
    pub min: f32,
    /// The largest value over all positions of the box.
    pub max: f32,
    /// The largest distance between two values at one position of the box, rounded up to cover
    /// rounding errors.
    pub width: f32,
    /// Whether the value can be NaN.
    pub nan: bool,
}

impl FloatSpan {
    /// Any float, including NaN.
    pub const ANY: FloatSpan =
        FloatSpan { min: f32::NEG_INFINITY, max: f32::INFINITY, width: f32::INFINITY, nan: true };

    /// A single known value; `FloatSpan::ANY` for NaN.
    pub fn constant(value: f32) -> FloatSpan {
        if value.is_nan() {
            return FloatSpan::ANY;
        }
        FloatSpan { min: value, max: value, width: 0.0, nan: false }
    }

    /// Values from `min` to `max`, at most `width` apart at one position of the box, before
    /// rounding.
    pub fn new(min: f32, max: f32, width: f32, nan: bool) -> FloatSpan {
        if min.is_nan() || max.is_nan() {
            return FloatSpan::ANY;
        }
        // Covers two roundings of the larger magnitude.
        let slack = min.abs().max(max.abs()) * 4.0 * f32::EPSILON;
        let width = if width.is_nan() { f32::INFINITY } else { width + slack };
        FloatSpan { min, max, width: width.min(max - min), nan }
    }

    /// Values from `min` to `max`, independent of the position of the box.
    pub fn fixed(min: f32, max: f32, nan: bool) -> FloatSpan {
        FloatSpan::new(min, max, f32::INFINITY, nan)
    }

    /// The value, if there is exactly one.
    pub fn singleton(&self) -> Option<f32> {
        (self.min == self.max && !self.nan).then_some(self.min)
    }

    /// The hull of the results at the four corners of two ranges.
    pub fn corners(&self, other: &FloatSpan, width: f32, op: impl Fn(f32, f32) -> f32) -> FloatSpan {
        let ends = [
            op(self.min, other.min),
            op(self.min, other.max),
            op(self.max, other.min),
            op(self.max, other.max),
        ];
        if ends.iter().any(|end| end.is_nan()) {
            return FloatSpan::ANY;
        }
        let min = ends.iter().copied().fold(f32::INFINITY, f32::min);
        let max = ends.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        FloatSpan::new(min, max, width, self.nan || other.nan)
    }

    /// The image under a non-decreasing function.
    pub fn monotone(&self, extra_width: f32, op: impl Fn(f32) -> f32) -> FloatSpan {
        FloatSpan::new(op(self.min), op(self.max), self.width + extra_width, self.nan)
    }

    /// A value that may be either of two.
    pub fn union(&self, other: &FloatSpan) -> FloatSpan {
        FloatSpan::fixed(self.min.min(other.min), self.max.max(other.max), self.nan || other.nan)
    }
}

/// An integer, boolean or float over a box of loop variables.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Span {
    /// An integer; booleans are 0 and 1.
    Int(IntSpan),
    /// A float; only `f32` has known bounds.
    Float(FloatSpan),
}

impl Span {
    /// All values of a type.
    pub fn of_type(ty: Type) -> Span {
        if ty.is_float() { Span::Float(FloatSpan::ANY) } else { Span::Int(IntSpan::of_type(ty)) }
    }

    /// The declared range of a Param; the whole range of its type if none is declared.
    pub(crate) fn declared(param: &ParamDecl) -> Span {
        match param.range {
            Some((low, high)) => Span::constant(low).union(&Span::constant(high)),
            None => Span::of_type(param.ty),
        }
    }

    /// A single known value.
    pub fn constant(value: Value) -> Span {
        match (value.as_int(), value.get::<f32>()) {
            (Some(int), _) => Span::Int(IntSpan::constant(int)),
            (None, Some(float)) => Span::Float(FloatSpan::constant(float)),
            (None, None) => Span::of_type(value.ty()),
        }
    }

    /// A value that may be either of two, of the same type.
    pub fn union(&self, other: &Span) -> Span {
        match (self, other) {
            (Span::Int(a), Span::Int(b)) => Span::Int(a.union(b)),
            (Span::Float(a), Span::Float(b)) => Span::Float(a.union(b)),
            _ => Span::Float(FloatSpan::ANY),
        }
    }
}
