//! Operations that round the way code built for speed may round.
//!
//! The amount of rounding is a hash of the run's seed and the operands. For sums, which may be
//! fused in some places and not in others, it also depends on the place in the pipeline. Operations
//! therefore stay functions: equal operands give equal results, and a run does not depend on how it
//! is split into rows and threads. The first two runs fuse wherever possible, as compilers do. If
//! both operands of a sum are products, one run fuses the left one and the other run fuses the
//! right one.

mod double;

use warploom_lang::math;
use warploom_lang::op::{BinaryOp, Op, Rounds, UnaryOp};
use warploom_lang::rounding::{Deviation, Product, Rounding};
use warploom_lang::{Type, Value};

use crate::lanes::{Lane, Lanes, Row};

/// The pseudo-random source of rounding differences.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    run: u64,
    state: u64,
    rounding: Rounding,
}

impl Noise {
    /// The source for one run.
    pub fn new(run: u64, rounding: Rounding) -> Noise {
        Noise { run, state: mixed(!run), rounding }
    }

    /// Whether the terms of reductions may be combined in another order.
    pub fn reorders(self) -> bool {
        self.rounding == Rounding::Reordered
    }

    /// An independent source derived from a number.
    fn of(self, number: u64) -> Noise {
        Noise { state: mixed(self.state ^ number), ..self }
    }

    /// An integer in `-most..=most`, that is, one of `2 * most + 1` values.
    fn around_zero(self, most: u32) -> i32 {
        let choices = 2 * u64::from(most) + 1;
        (mixed(self.state) % choices) as i32 - most as i32
    }

    /// The difference between two orders of terms in one step of a reduction, in units in the last place. Both
    /// round by up to half a unit; the variance of their difference is a sixth, as of -1, 0 and 1 here.
    fn step(self) -> i32 {
        match mixed(self.state) % 12 {
            0 => -1,
            1 => 1,
            _ => 0,
        }
    }

    /// The left side, the right side, or neither.
    fn side(self) -> Option<Side> {
        match mixed(self.state) % 3 {
            0 => None,
            1 => Some(Side::Left),
            _ => Some(Side::Right),
        }
    }

    /// A possible rounding error of a float: up to half a unit in the last place.
    fn residue(self, rounded: f32) -> f64 {
        let unit = f64::from(rounded.next_up()) - f64::from(rounded);
        if unit.is_finite() && rounded != 0.0 { unit * self.fraction() } else { 0.0 }
    }

    /// A number from -0.5 to 0.5.
    fn fraction(self) -> f64 {
        mixed(self.state) as f64 / u64::MAX as f64 - 0.5
    }
}

/// The finaliser of splitmix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A float operation with perturbed rounding.
#[derive(Clone, Copy, Debug)]
pub struct Perturbed {
    op: Op,
    ty: Type,
    deviation: Deviation,
    noise: Noise,
    /// Which of two products is fused; `None` if it is chosen at random.
    prefers: Option<Side>,
    /// Whether it is a step of a reduction in another order.
    reordered: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Left,
    Right,
}

impl Perturbed {
    /// An operation at one place of a pipeline.
    pub fn new(op: Op, ty: Type, deviation: Deviation, noise: Noise, place: u64) -> Perturbed {
        let prefers = match noise.run {
            0 => Some(Side::Left),
            1 => Some(Side::Right),
            _ => None,
        };
        let noise = if matches!(deviation, Deviation::Fused { .. }) { noise.of(place) } else { noise };
        Perturbed { op, ty, deviation, noise, prefers, reordered: false }
    }

    /// The same operation as a step of a reduction whose terms come in another order.
    pub fn reordered(self) -> Perturbed {
        Perturbed { reordered: true, ..self }
    }

    /// The distance of the reduction step from the reference's, in units in the last place.
    fn steps(&self, noise: Noise) -> i32 {
        if self.reordered { noise.of(4).step() } else { 0 }
    }

    /// Computes the lanes of a row. The operands are followed by the factors of those operands that
    /// are products.
    pub fn apply(&self, result: Row<'_>, args: &[Lanes<'_>]) {
        if let Row::Wide(result) = result {
            return self.apply_double(result, args);
        }
        let value = |bits: u64| match self.ty {
            Type::F32 => f32::from_bits(bits as u32),
            half => Value::from_bits(half, bits).as_f64() as f32,
        };
        let operand =
            |number: usize, lane: usize| args.get(number).map_or(0.0, |lanes| value(lanes.get(lane)));
        for (lane, to) in u32::row(result).iter_mut().enumerate() {
            let (a, b) = (operand(0, lane), operand(1, lane));
            let noise = self.noise.of(u64::from(a.to_bits()) << 32 | u64::from(b.to_bits()));
            let result = match self.deviation {
                Deviation::Fused { left, right } => {
                    let mut next = 2;
                    let mut exact = |product: Option<Product>, rounded: f32| match product? {
                        Product::Here(_, negated) => {
                            let exact = f64::from(operand(next, lane)) * f64::from(operand(next + 1, lane));
                            next += 2;
                            Some(if negated { -exact } else { exact })
                        }
                        Product::Inlined => Some(f64::from(rounded) + noise.of(2).residue(rounded)),
                    };
                    let (left, right) = (exact(left, a), exact(right, b));
                    self.sum((a, left), (b, right), noise)
                }
                _ => self.on(a, b, noise),
            };
            let result = stepped(result, self.steps(noise) << narrower(self.ty));
            *to = match self.ty {
                Type::F32 => result.to_bits(),
                half => Value::rounded(half, result.into()).map_or(0, |value| value.bits() as u32),
            };
        }
    }

    /// A sum or difference of two floats. One operand is used unrounded if it is a product that is
    /// fused.
    fn sum(&self, (a, left): (f32, Option<f64>), (b, right): (f32, Option<f64>), noise: Noise) -> f32 {
        let (x, y) = match self.fused_side(left.is_some(), right.is_some(), noise) {
            Some(Side::Left) => (left.unwrap_or(f64::from(a)), f64::from(b)),
            Some(Side::Right) => (f64::from(a), right.unwrap_or(f64::from(b))),
            None => (f64::from(a), f64::from(b)),
        };
        match self.op {
            Op::Binary(BinaryOp::Add) => (x + y) as f32,
            Op::Binary(BinaryOp::Sub) => (x - y) as f32,
            _ => (x - y).abs() as f32,
        }
    }

    /// The operand to fuse, among those that are products.
    fn fused_side(&self, left: bool, right: bool, noise: Noise) -> Option<Side> {
        match (self.prefers, left, right) {
            (Some(Side::Right), true, true) => Some(Side::Right),
            (Some(_), true, _) => Some(Side::Left),
            (Some(_), false, _) => Some(Side::Right),
            (None, ..) => noise.side(),
        }
    }

    fn on(&self, a: f32, b: f32, noise: Noise) -> f32 {
        match self.deviation {
            Deviation::Ulps(most) => stepped(exact(self.op, a, b) as f32, noise.around_zero(most)),
            Deviation::FastExp => {
                let most = 2 + (1.173 * a.abs()).min(1000.0) as u32;
                stepped(exact(self.op, a, b) as f32, noise.around_zero(most))
            }
            Deviation::Remainder | Deviation::Fused { .. } => {
                let Rounds::Quotient(most) = Op::Binary(BinaryOp::Div).rounds() else {
                    unreachable!("a quotient rounds as one")
                };
                let quotient = stepped(a / b, noise.around_zero(most)).floor();
                match noise.of(1).side() {
                    Some(Side::Left) => a - b * quotient,
                    _ => (f64::from(a) - f64::from(b) * f64::from(quotient)) as f32,
                }
            }
        }
    }
}

/// The number of bits that the type lacks compared with `f32`.
fn narrower(ty: Type) -> u32 {
    match ty {
        Type::F16 => 13,
        Type::BF16 => 16,
        _ => 0,
    }
}

/// The float `steps` representable values away. Zeros, infinities and NaN stay unchanged.
fn stepped(value: f32, steps: i32) -> f32 {
    if !value.is_finite() || value == 0.0 {
        return value;
    }
    let magnitude = (value.to_bits() & 0x7fff_ffff).saturating_add_signed(steps);
    let magnitude = magnitude.min(f32::MAX.to_bits());
    f32::from_bits(magnitude | (value.to_bits() & 0x8000_0000))
}

/// The result in double precision, before it is rounded to `f32`.
fn exact(op: Op, a: f32, b: f32) -> f64 {
    let (x, y) = (f64::from(a), f64::from(b));
    match op {
        Op::Binary(BinaryOp::Add) => x + y,
        Op::Binary(BinaryOp::Sub) => x - y,
        Op::Binary(BinaryOp::Mul) => x * y,
        Op::Binary(BinaryOp::Div) => x / y,
        Op::Binary(BinaryOp::Pow) => x.powf(y),
        Op::Unary(UnaryOp::Sqrt) => x.sqrt(),
        Op::Unary(UnaryOp::Exp | UnaryOp::FastExp) => x.exp(),
        Op::Unary(UnaryOp::Log) => x.ln(),
        Op::Unary(UnaryOp::Sin) => x.sin(),
        Op::Unary(UnaryOp::Cos) => x.cos(),
        Op::Unary(UnaryOp::Tanh) => x.tanh(),
        Op::Unary(UnaryOp::Atan) => x.atan(),
        Op::Unary(UnaryOp::Asin) => x.asin(),
        Op::Unary(UnaryOp::Acos) => x.acos(),
        Op::Unary(UnaryOp::Tan) => x.tan(),
        Op::Unary(UnaryOp::Rsqrt) => 1.0 / x.sqrt(),
        Op::Unary(UnaryOp::Erf) => math::exact::erf(x),
        Op::Unary(UnaryOp::Log1p) => x.ln_1p(),
        Op::Unary(UnaryOp::Expm1) => x.exp_m1(),
        Op::Unary(UnaryOp::Exp2) => x.exp2(),
        Op::Unary(UnaryOp::Log2) => x.log2(),
        Op::Binary(BinaryOp::Atan2) => x.atan2(y),
        _ => unreachable!("{} rounds the same in both builds", op.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of two products in one run.
    fn sum_of_products(run: u64, [a, b, c, d]: [f32; 4]) -> f32 {
        let product = Some(Product::Here(warploom_lang::Id::new(0), false));
        let deviation = Deviation::Fused { left: product, right: product };
        let sum = Perturbed::new(
            Op::Binary(BinaryOp::Add),
            Type::F32,
            deviation,
            Noise::new(run, Rounding::Timing),
            7,
        );
        let args = [a * b, c * d, a, b, c, d].map(|value: f32| Lanes::Uniform(value.to_bits().into()));
        let mut result = [0];
        sum.apply(Row::Narrow(&mut result), &args);
        f32::from_bits(result[0])
    }

    #[test]
    fn sums_take_one_product_unrounded() {
        let factors = [0.1_f32, 0.1, -0.3, 0.7];
        let [a, b, c, d] = factors;
        let fused = [a.mul_add(b, c * d), c.mul_add(d, a * b)];
        assert_eq!([0, 1].map(|run| sum_of_products(run, factors)), fused);
        let drawn = (2..50).map(|run| sum_of_products(run, factors).to_bits());
        let all: std::collections::BTreeSet<u32> = drawn.collect();
        let known = [a * b + c * d, fused[0], fused[1]].map(f32::to_bits);
        assert_eq!(all, known.into_iter().collect());
        assert_eq!(sum_of_products(0, [0.5, 3.0, 2.0, 0.25]), 2.0);
        // The difference of equal products is the rounding error of one of them.
        assert!(sum_of_products(0, [0.1, 0.1, -0.1, 0.1]) != 0.0);
    }

    #[test]
    fn steps_keep_signs_and_what_is_no_number() {
        assert_eq!(stepped(1.0, 2), 1.0 + 2.0 * f32::EPSILON);
        assert_eq!(stepped(-1.0, 2), -1.0 - 2.0 * f32::EPSILON);
        assert_eq!((stepped(0.0, 5), stepped(f32::INFINITY, -5)), (0.0, f32::INFINITY));
        assert_eq!((stepped(f32::from_bits(1), -5), stepped(f32::MAX, 3)), (0.0, f32::MAX));
        let steps: Vec<i32> =
            (0..200).map(|seed| Noise::new(seed, Rounding::Timing).around_zero(2)).collect();
        assert!((-2..=2).all(|step| steps.contains(&step)) && steps.iter().all(|step| step.abs() <= 2));
    }
}
