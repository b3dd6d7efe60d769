//! Operations that round as code built for speed may.
//!
//! How far depends on a hash of the run's seed and the operands, and for products, which are fused in some places and not in
//! others, of the place in the pipeline. So functions stay functions: equal operands give equal results, and a run is the
//! same however it is split into rows and threads.

use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::rounding::{Deviation, QUOTIENT_ULPS};

use crate::lanes::Lanes;

/// Where amounts come from.
#[derive(Clone, Copy, Debug)]
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise(mixed(!seed))
    }

    /// That of one thing among several.
    pub fn of(self, number: u64) -> Noise {
        Noise(mixed(self.0 ^ number))
    }

    /// One of `2 * most + 1` whole numbers around 0.
    fn around_zero(self, most: u32) -> i32 {
        let choices = 2 * u64::from(most) + 1;
        (mixed(self.0) % choices) as i32 - most as i32
    }

    fn coin(self) -> bool {
        mixed(self.0) & 1 == 0
    }
}

/// The finaliser of splitmix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// An operation on floats that rounds otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Perturbed {
    op: Op,
    deviation: Deviation,
    noise: Noise,
}

impl Perturbed {
    /// An operation at one place of a pipeline.
    pub fn new(op: Op, deviation: Deviation, noise: Noise, place: u64) -> Perturbed {
        let noise = if deviation == Deviation::Fused { noise.of(place) } else { noise };
        Perturbed { op, deviation, noise }
    }

    /// Computes the lanes of a row.
    pub fn apply(&self, result: &mut [u32], args: &[Lanes<'_>]) {
        let operand = |number: usize, lane: usize| match args.get(number) {
            Some(Lanes::Uniform(bits)) => f32::from_bits(*bits),
            Some(Lanes::Varying(lanes)) => f32::from_bits(lanes[lane]),
            None => 0.0,
        };
        for (lane, to) in result.iter_mut().enumerate() {
            let (a, b) = (operand(0, lane), operand(1, lane));
            let noise = self.noise.of(u64::from(a.to_bits()) << 32 | u64::from(b.to_bits()));
            *to = self.on(a, b, noise).to_bits();
        }
    }

    fn on(&self, a: f32, b: f32, noise: Noise) -> f32 {
        match self.deviation {
            Deviation::Fused => product(a, b, noise),
            Deviation::Ulps(most) => stepped(exact(self.op, a, b) as f32, noise.around_zero(most)),
            Deviation::FastExp => {
                let most = 2 + (1.173 * a.abs()).min(1000.0) as u32;
                stepped(exact(self.op, a, b) as f32, noise.around_zero(most))
            }
            Deviation::Remainder => {
                let quotient = stepped(a / b, noise.around_zero(QUOTIENT_ULPS));
                a - product(b, quotient.floor(), noise.of(1))
            }
        }
    }
}

/// One of the two floats around the exact product; itself if it is a float.
fn product(a: f32, b: f32, noise: Noise) -> f32 {
    let exact = f64::from(a) * f64::from(b);
    let rounded = exact as f32;
    let error = exact - f64::from(rounded);
    if error == 0.0 || !error.is_finite() || noise.coin() {
        return rounded;
    }
    // Ranks grow with magnitudes.
    let outwards = (error > 0.0) == (exact > 0.0);
    let other =
        f32::from_bits(if outwards { rounded.to_bits() + 1 } else { rounded.to_bits().wrapping_sub(1) });
    if other.is_finite() && (rounded != 0.0 || outwards) { other } else { rounded }
}

/// So many floats further; zeros, infinities and NaN stay.
fn stepped(value: f32, steps: i32) -> f32 {
    if !value.is_finite() || value == 0.0 {
        return value;
    }
    let magnitude = (value.to_bits() & 0x7fff_ffff).saturating_add_signed(steps);
    let magnitude = magnitude.min(f32::MAX.to_bits());
    f32::from_bits(magnitude | (value.to_bits() & 0x8000_0000))
}

/// The result before it is rounded. Where an operation has one at all, so do the language's own functions, which decide
/// what is NaN.
fn exact(op: Op, a: f32, b: f32) -> f64 {
    let (x, y) = (f64::from(a), f64::from(b));
    match op {
        Op::Binary(BinaryOp::Div) => x / y,
        Op::Binary(BinaryOp::Pow) => x.powf(y),
        Op::Unary(UnaryOp::Sqrt) => x.sqrt(),
        Op::Unary(UnaryOp::Exp | UnaryOp::FastExp) => x.exp(),
        Op::Unary(UnaryOp::Log) => x.ln(),
        Op::Unary(UnaryOp::Sin) => x.sin(),
        Op::Unary(UnaryOp::Cos) => x.cos(),
        Op::Unary(UnaryOp::Tanh) => x.tanh(),
        _ => unreachable!("{} rounds the same in both builds", op.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_one_of_the_two_floats_around() {
        let mut found = std::collections::BTreeSet::new();
        for seed in 0..50 {
            found.insert(product(0.1, 0.1, Noise::new(seed)).to_bits());
            assert_eq!(product(0.5, 0.3, Noise::new(seed)), 0.15);
            assert_eq!(product(f32::MAX, 2.0, Noise::new(seed)), f32::INFINITY);
        }
        let exact = f64::from(0.1_f32) * f64::from(0.1_f32);
        let found: Vec<f64> = found.into_iter().map(|bits| f64::from(f32::from_bits(bits))).collect();
        assert!(found.len() == 2 && found[0] < exact && exact < found[1], "{found:?}");
        let negative: Vec<f32> = (0..50).map(|seed| product(-0.1, 0.1, Noise::new(seed))).collect();
        assert!(negative.iter().all(|value| found.contains(&-f64::from(*value))));
    }

    #[test]
    fn steps_keep_signs_and_what_is_no_number() {
        assert_eq!(stepped(1.0, 2), 1.0 + 2.0 * f32::EPSILON);
        assert_eq!(stepped(-1.0, 2), -1.0 - 2.0 * f32::EPSILON);
        assert_eq!((stepped(0.0, 5), stepped(f32::INFINITY, -5)), (0.0, f32::INFINITY));
        assert_eq!((stepped(f32::from_bits(1), -5), stepped(f32::MAX, 3)), (0.0, f32::MAX));
        let steps: Vec<i32> = (0..200).map(|seed| Noise::new(seed).around_zero(2)).collect();
        assert!((-2..=2).all(|step| steps.contains(&step)) && steps.iter().all(|step| step.abs() <= 2));
    }
}
