//! What is known of a value while its variables run over a box that may sit anywhere.

use crate::bounds::congruence::{Congruence, gcd};
use crate::types::{Type, Value};

/// An integer over a box of loop variables.
///
/// `min` and `max` bound it wherever the box sits. At one place of the box the values lie between a lower
/// and an upper bound that are at most `width` apart; `lower` and `upper` say what their remainders are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntSpan {
    /// Smallest value anywhere.
    pub min: i64,
    /// Largest value anywhere.
    pub max: i64,
    /// Largest distance between the bounds at one place of the box.
    pub width: i64,
    /// Of the lower bound.
    pub lower: Congruence,
    /// Of the upper bound.
    pub upper: Congruence,
}

impl IntSpan {
    /// A known value.
    pub fn constant(value: i64) -> IntSpan {
        IntSpan::fixed(value, value)
    }

    /// The same bounds wherever the box sits.
    pub fn fixed(min: i64, max: i64) -> IntSpan {
        let (lower, upper) = (Congruence::exactly(min), Congruence::exactly(max));
        IntSpan { min, max, width: max - min, lower, upper }
    }

    /// A loop variable: a tile of `width + 1` values inside `min..=max`, whose first value is `lower`.
    pub fn tile(min: i64, max: i64, width: i64, lower: Congruence) -> IntSpan {
        IntSpan { min, max, width, lower, upper: lower.plus(Congruence::exactly(width)) }
    }

    /// All values of a type.
    pub fn of_type(ty: Type) -> IntSpan {
        let (min, max) = ty.int_range().unwrap_or((i64::from(i32::MIN), i64::from(i32::MAX)));
        IntSpan::fixed(min, max)
    }

    /// The value, if there is only one.
    pub fn singleton(&self) -> Option<i64> {
        (self.min == self.max).then_some(self.min)
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
        // A tile can reach into one more quotient than its width alone says, depending on where it starts.
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

    /// The smaller of two values; `half_sum` bounds half their sum from above.
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

    /// The larger of two values; `half_sum` bounds half their sum from below.
    pub fn max(&self, other: &IntSpan, half_sum: i64) -> IntSpan {
        self.scale(-1).min(&other.scale(-1), half_sum.saturating_neg()).scale(-1)
    }

    /// Either of two values.
    pub fn union(&self, other: &IntSpan) -> IntSpan {
        IntSpan::fixed(self.min.min(other.min), self.max.max(other.max))
    }

    /// The span of a type where this one leaves the type's range.
    pub fn within(self, ty: Type) -> IntSpan {
        match ty.int_range() {
            Some((min, max)) if self.min < min || max < self.max => IntSpan::fixed(min, max),
            _ => self,
        }
    }

    /// With a width no larger than the whole range. If that range is what limits it, the box does not move.
    fn tightened(self) -> IntSpan {
        if self.width < self.max - self.min { self } else { IntSpan::fixed(self.min, self.max) }
    }
}

/// A float over a box of loop variables.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FloatSpan {
    /// Smallest value anywhere.
    pub min: f32,
    /// Largest value anywhere.
    pub max: f32,
    /// Largest distance of two values at one place of the box; generous, to cover rounding.
    pub width: f32,
    /// Whether it can be NaN.
    pub nan: bool,
}

impl FloatSpan {
    /// Anything.
    pub const ANY: FloatSpan =
        FloatSpan { min: f32::NEG_INFINITY, max: f32::INFINITY, width: f32::INFINITY, nan: true };

    /// A known value.
    pub fn constant(value: f32) -> FloatSpan {
        if value.is_nan() {
            return FloatSpan::ANY;
        }
        FloatSpan { min: value, max: value, width: 0.0, nan: false }
    }

    /// Values from `min` to `max`, at most `width` apart at one place of the box before rounding.
    pub fn new(min: f32, max: f32, width: f32, nan: bool) -> FloatSpan {
        if min.is_nan() || max.is_nan() {
            return FloatSpan::ANY;
        }
        // Two roundings of the larger magnitude.
        let slack = min.abs().max(max.abs()) * 4.0 * f32::EPSILON;
        let width = if width.is_nan() { f32::INFINITY } else { width + slack };
        FloatSpan { min, max, width: width.min(max - min), nan }
    }

    /// Values from `min` to `max`, the same wherever the box sits.
    pub fn fixed(min: f32, max: f32, nan: bool) -> FloatSpan {
        FloatSpan::new(min, max, f32::INFINITY, nan)
    }

    /// The value, if there is only one.
    pub fn singleton(&self) -> Option<f32> {
        (self.min == self.max && !self.nan).then_some(self.min)
    }

    /// The hull of the four results at the corners of two ranges.
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

    /// A function that never decreases.
    pub fn monotone(&self, extra_width: f32, op: impl Fn(f32) -> f32) -> FloatSpan {
        FloatSpan::new(op(self.min), op(self.max), self.width + extra_width, self.nan)
    }

    /// Either of two values.
    pub fn union(&self, other: &FloatSpan) -> FloatSpan {
        FloatSpan::fixed(self.min.min(other.min), self.max.max(other.max), self.nan || other.nan)
    }
}

/// An integer (or truth value) or a float over a box of loop variables.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Span {
    /// An integer; truth values are 0 and 1.
    Int(IntSpan),
    /// A float.
    Float(FloatSpan),
}

impl Span {
    /// All values of a type.
    pub fn of_type(ty: Type) -> Span {
        match ty {
            Type::F32 => Span::Float(FloatSpan::ANY),
            ty => Span::Int(IntSpan::of_type(ty)),
        }
    }

    /// A known value.
    pub fn constant(value: Value) -> Span {
        match value.as_int() {
            Some(int) => Span::Int(IntSpan::constant(int)),
            None => Span::Float(FloatSpan::constant(f32::from_bits(value.bits()))),
        }
    }

    /// Either of two values of one type.
    pub fn union(&self, other: &Span) -> Span {
        match (self, other) {
            (Span::Int(a), Span::Int(b)) => Span::Int(a.union(b)),
            (Span::Float(a), Span::Float(b)) => Span::Float(a.union(b)),
            _ => Span::Float(FloatSpan::ANY),
        }
    }
}
