//! Ranges of integers, and the effect of each operation on them.
//!
//! Ranges follow from the sizes of grids, blocks and loops, from constants and from types. No
//! assumption is made about how a value is used.

use crate::op::{BinaryOp, Op, UnaryOp};
use crate::types::Type;

/// The integers from `min` to `max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// The smallest value.
    pub min: i64,
    /// The largest value.
    pub max: i64,
}

impl Interval {
    /// From the smallest to the largest.
    pub fn new(min: i64, max: i64) -> Interval {
        Interval { min, max }
    }

    /// `0 .. count`.
    pub fn below(count: u32) -> Interval {
        Interval::new(0, i64::from(count).max(1) - 1)
    }

    /// Every value of a type; floats have no integers, and get all.
    pub fn of_type(ty: Type) -> Interval {
        let (min, max) = ty.int_range().unwrap_or((i64::MIN, i64::MAX));
        Interval { min, max }
    }

    /// Whether an end is so far away that sums and products of it may not fit in 64 bits. Such a range covers a 64-bit
    /// type, or a part of one that includes an end.
    pub fn is_far(self) -> bool {
        self.min < -FAR || self.max > FAR
    }

    /// Whether it is one known integer. A far end may stand for several.
    fn is_one(self) -> bool {
        self.min == self.max && !self.is_far()
    }

    /// Whether `other` lies within.
    pub fn covers(self, other: Interval) -> bool {
        self.min <= other.min && other.max <= self.max
    }

    /// All sums; those beyond 64 bits saturate.
    #[must_use]
    pub fn plus(self, other: Interval) -> Interval {
        Interval::new(self.min.saturating_add(other.min), self.max.saturating_add(other.max))
    }

    /// All multiples by a factor; those beyond 64 bits saturate.
    #[must_use]
    pub fn times(self, factor: i64) -> Interval {
        Interval::corners(self, Interval::new(factor, factor), i64::saturating_mul)
    }

    /// Whether no value is negative.
    pub fn is_non_negative(self) -> bool {
        self.min >= 0
    }

    fn union(self, other: Interval) -> Interval {
        Interval::new(self.min.min(other.min), self.max.max(other.max))
    }

    /// From the smallest to the largest of some values.
    fn hull(values: [i64; 4]) -> Interval {
        let [a, b, c, d] = values;
        Interval::new(a.min(b).min(c).min(d), a.max(b).max(c).max(d))
    }

    /// The hull of the four results at the ends: correct for functions that are monotone in each operand.
    fn corners(a: Interval, b: Interval, function: impl Fn(i64, i64) -> i64) -> Interval {
        Interval::hull([
            function(a.min, b.min),
            function(a.min, b.max),
            function(a.max, b.min),
            function(a.max, b.max),
        ])
    }

    /// The range itself if it fits in the type, otherwise the whole type.
    fn fit(self, ty: Type) -> Interval {
        let all = Interval::of_type(ty);
        if all.covers(self) && !self.is_far() { self } else { all }
    }
}

/// Beyond this, a range counts as far.
const FAR: i64 = 1 << 61;

/// An operand: its type and range.
pub type Operand = (Type, Interval);

/// The range of the result for unbounded integers; `None` where that is not simply determined.
pub fn unlimited(op: Op, operands: &[Operand]) -> Option<Interval> {
    if operands.iter().any(|(_, range)| range.is_far()) {
        return None;
    }
    match (op, operands) {
        (Op::Unary(UnaryOp::Neg), &[(_, a)]) => Some(Interval::new(-a.max, -a.min)),
        (Op::Unary(UnaryOp::Abs), &[(_, a)]) => {
            let largest = a.max.max(-a.min);
            let smallest = a.min.max(-a.max).max(0);
            Some(Interval::new(smallest, largest))
        }
        (Op::Binary(BinaryOp::Add), &[(_, a), (_, b)]) => Some(Interval::new(a.min + b.min, a.max + b.max)),
        (Op::Binary(BinaryOp::Sub), &[(_, a), (_, b)]) => Some(Interval::new(a.min - b.max, a.max - b.min)),
        (Op::Binary(BinaryOp::Mul), &[(_, a), (_, b)]) => Some(Interval::corners(a, b, i64::saturating_mul)),
        (Op::Binary(BinaryOp::Absd), &[(_, a), (_, b)]) => {
            Some(Interval::new(0, (a.max - b.min).max(b.max - a.min)))
        }
        (Op::Binary(BinaryOp::Average), &[(_, a), (_, b)]) => {
            Some(Interval::new((a.min + b.min + 1) >> 1, (a.max + b.max + 1) >> 1))
        }
        (Op::Binary(BinaryOp::Shl), &[(ty, a), (_, b)]) if b.min == b.max => {
            Some(a.times(1_i64.checked_shl(b.min.rem_euclid(bits(ty)) as u32)?.saturating_abs()))
        }
        (Op::Cast(_) | Op::Reinterpret(_), &[(from, a)]) if !from.is_float() => Some(a),
        _ => None,
    }
}

/// The range of an operation's result of type `ty`.
pub fn result(op: Op, ty: Type, operands: &[Operand]) -> Interval {
    if ty.is_float() || operands.iter().any(|(from, _)| from.is_float()) {
        return Interval::of_type(ty);
    }
    if let Some(range) = chosen(op, operands) {
        return range;
    }
    let far = operands.iter().any(|(_, range)| range.is_far());
    let known = match (op, operands) {
        _ if far => None,
        (Op::Unary(UnaryOp::Not), &[(_, a)]) if ty.is_signed() => Some(Interval::new(-1 - a.max, -1 - a.min)),
        (Op::Unary(UnaryOp::Popcount), &[(ty, a)]) => Some(popcount(ty, a)),
        (Op::Unary(UnaryOp::LeadingZeros), &[(ty, a)]) => Some(leading_zeros(ty, a)),
        (Op::Cast(Type::Bool), _) => None,
        (Op::Binary(op), &[(operand, a), (_, b)]) => {
            binary(op, operand, a, b).or_else(|| unlimited(Op::Binary(op), operands))
        }
        _ => unlimited(op, operands),
    };
    known.map_or(Interval::of_type(ty), |range| range.fit(ty))
}

/// The results of operations that return one of their operands, or nothing larger: correct for ranges of any size.
fn chosen(op: Op, operands: &[Operand]) -> Option<Interval> {
    match (op, operands) {
        (Op::Const(value), _) => value.as_int().map(|int| Interval::new(int, int)),
        (Op::SaturatingCast(Type::Bool), _) => None,
        (Op::SaturatingCast(to), &[(_, a)]) => {
            let all = Interval::of_type(to);
            Some(Interval::new(a.min.clamp(all.min, all.max), a.max.clamp(all.min, all.max)))
        }
        (Op::Select, &[_, (_, a), (_, b)]) => Some(a.union(b)),
        (Op::Unary(UnaryOp::Popcount | UnaryOp::LeadingZeros), &[(ty, a)]) if a.is_far() => {
            Some(Interval::new(0, bits(ty)))
        }
        (Op::Binary(BinaryOp::Min), &[(_, a), (_, b)]) => {
            Some(Interval::new(a.min.min(b.min), a.max.min(b.max)))
        }
        (Op::Binary(BinaryOp::Max), &[(_, a), (_, b)]) => {
            Some(Interval::new(a.min.max(b.min), a.max.max(b.max)))
        }
        (Op::Binary(BinaryOp::Mod), &[(_, a), (_, b)]) if !b.is_far() => {
            let largest = (b.max.max(-b.min) - 1).max(0);
            Some(match a.is_non_negative() {
                true if a.max < b.min => a,
                true => Interval::new(0, largest.min(a.max)),
                false => Interval::new(0, largest),
            })
        }
        // A quotient of the largest `u64` by 2 or more fits in an `i64`.
        (Op::Binary(BinaryOp::Div), &[(ty, a), (_, b)]) if a.is_far() && b.is_one() && b.min >= 2 => {
            Some(Interval::new(a.min.div_euclid(b.min), quotient(ty, a.max, b.min as u64)))
        }
        (Op::Binary(BinaryOp::Shr), &[(ty, a), (_, b)]) if a.is_far() && b.is_one() => {
            match b.min.rem_euclid(bits(ty)) {
                0 => Some(a),
                amount => Some(Interval::new(a.min >> amount, quotient(ty, a.max, 1 << amount))),
            }
        }
        (Op::Binary(BinaryOp::And), &[(_, a), (_, b)]) => match (a.is_non_negative(), b.is_non_negative()) {
            (true, true) => Some(Interval::new(0, a.max.min(b.max))),
            (true, false) => Some(Interval::new(0, a.max)),
            (false, true) => Some(Interval::new(0, b.max)),
            (false, false) => None,
        },
        _ => None,
    }
}

/// The quotient of the largest value of a range, rounded down. For a `u64`, the largest `i64` stands for all larger
/// values.
fn quotient(ty: Type, largest: i64, divisor: u64) -> i64 {
    match (ty, largest) {
        (Type::U64, i64::MAX) => (u64::MAX / divisor) as i64,
        // A divisor of 2^63 exceeds every non-negative `i64`.
        _ => i64::try_from(divisor)
            .map_or(if largest < 0 { -1 } else { 0 }, |divisor| largest.div_euclid(divisor)),
    }
}

fn binary(op: BinaryOp, ty: Type, a: Interval, b: Interval) -> Option<Interval> {
    let non_negative = a.is_non_negative() && b.is_non_negative();
    match op {
        BinaryOp::Div if b.min > 0 => Some(Interval::corners(a, b, i64::div_euclid)),
        BinaryOp::Div if non_negative => Some(Interval::new(0, a.max)),
        BinaryOp::Or | BinaryOp::Xor if non_negative => {
            let largest = a.max.max(b.max).unsigned_abs();
            Some(Interval::new(0, ((largest + 1).next_power_of_two() - 1) as i64))
        }
        BinaryOp::Shr if b.min == b.max => {
            let amount = b.min.rem_euclid(bits(ty));
            Some(Interval::new(a.min >> amount, a.max >> amount))
        }
        BinaryOp::Shr => Some(Interval::new(a.min.min(0), a.max.max(0))),
        _ => None,
    }
}

/// The range of the number of set bits in integers of a type and range.
pub fn popcount(ty: Type, a: Interval) -> Interval {
    let most = if a.is_non_negative() { used_bits(a.max) } else { bits(ty) };
    Interval::new(i64::from(a.min > 0 || a.max < 0), most)
}

/// The range of the number of leading zeros in integers of a type and range.
pub fn leading_zeros(ty: Type, a: Interval) -> Interval {
    let zeros = |value: i64| bits(ty) - used_bits(value);
    // Negative integers have no leading zeros. From 0 on, the number falls.
    let least = if a.is_non_negative() { zeros(a.max) } else { 0 };
    let most = if a.max < 0 { 0 } else { zeros(a.min.max(0)) };
    Interval::new(least, most)
}

/// The position of the highest set bit of a non-negative integer, counted from 1.
fn used_bits(value: i64) -> i64 {
    64 - i64::from(value.leading_zeros())
}

/// Width of a type.
pub fn bits(ty: Type) -> i64 {
    ty.bytes() as i64 * 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Value;

    /// Small ranges within a type, among them those at its ends.
    fn ranges(ty: Type) -> Vec<Interval> {
        let all = Interval::of_type(ty);
        let starts = [all.min, all.min + 1, -3, -1, 0, 1, 2, 7, all.max - 4, all.max - 1, all.max];
        let starts = starts.into_iter().filter(|start| (all.min..=all.max).contains(start));
        starts
            .flat_map(|min| [0, 1, 4].map(|width| Interval::new(min, min.saturating_add(width).min(all.max))))
            .collect()
    }

    /// The values of a range. The end that stands for the largest `u64`s includes some of those.
    fn values(ty: Type, range: Interval) -> Vec<Value> {
        let beyond = [1 << 63, u64::MAX - 1, u64::MAX].map(Value::from);
        let beyond = beyond.into_iter().filter(|_| ty == Type::U64 && range.max == i64::MAX);
        let ints = (range.min..=range.max).map(|int| Value::from_int(ty, int).unwrap());
        ints.chain(beyond).collect()
    }

    fn holds(range: Interval, value: Value) -> bool {
        match value.as_int() {
            Some(int) => (range.min..=range.max).contains(&int),
            None => range.max == i64::MAX,
        }
    }

    #[test]
    fn every_result_lies_in_its_range() {
        use BinaryOp::*;
        let ops = [Add, Sub, Mul, Div, Mod, Min, Max, Absd, Average, And, Or, Xor, Shl, Shr, Eq, Lt];
        for ty in Type::ALL.into_iter().filter(|ty| ty.is_int()) {
            for (op, a, b) in ops.iter().flat_map(|&op| {
                ranges(ty).into_iter().flat_map(move |a| ranges(ty).into_iter().map(move |b| (op, a, b)))
            }) {
                let op = Op::Binary(op);
                let result_type = op.result_type(&[ty, ty]).unwrap();
                let range = result(op, result_type, &[(ty, a), (ty, b)]);
                for x in values(ty, a) {
                    for y in values(ty, b) {
                        let value = op.eval(&[x, y]);
                        assert!(holds(range, value), "{op:?} {x:?} {y:?}: {range:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_conversion_lies_in_its_range() {
        use UnaryOp::*;
        let unary = [Neg, Not, Abs, Popcount, LeadingZeros].map(Op::Unary);
        let casts = Type::ALL.into_iter().flat_map(|to| [Op::Cast(to), Op::SaturatingCast(to)]);
        for op in unary.into_iter().chain(casts) {
            for ty in Type::ALL.into_iter().filter(|ty| ty.is_int()) {
                let result_type = op.result_type(&[ty]).unwrap();
                for a in ranges(ty).into_iter().filter(|_| !result_type.is_float()) {
                    let range = result(op, result_type, &[(ty, a)]);
                    for x in values(ty, a) {
                        assert!(holds(range, op.eval(&[x])), "{op:?} {x:?}: {range:?}");
                    }
                }
            }
        }
    }
}
