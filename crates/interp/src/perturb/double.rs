//! Perturbed operations on `f64`.

use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::rounding::{Deviation, Product};
use warploom_lang::scalar::Float;

use super::{Noise, Perturbed, Side};
use crate::lanes::Lanes;

impl Perturbed {
    /// Computes the lanes of a row of 64-bit floats.
    pub(super) fn apply_double(&self, result: &mut [u64], args: &[Lanes<'_>]) {
        let operand = |number: usize, lane: usize| {
            args.get(number).map_or(0.0, |lanes| f64::from_bits(lanes.get(lane)))
        };
        for (lane, to) in result.iter_mut().enumerate() {
            let (a, b) = (operand(0, lane), operand(1, lane));
            let noise = self.noise.of(a.to_bits() ^ b.to_bits().rotate_left(31));
            let result = match self.deviation {
                Deviation::Fused { left, right } => {
                    let mut next = 2;
                    let mut lost = |product: Option<Product>, rounded: f64| match product? {
                        Product::Here(_, negated) => {
                            let (x, y) = (operand(next, lane), operand(next + 1, lane));
                            next += 2;
                            let x = if negated { -x } else { x };
                            Some(x.mul_add(y, -rounded))
                        }
                        Product::Inlined => Some(noise.of(2).lost(rounded)),
                    };
                    let (left, right) = (lost(left, a), lost(right, b));
                    self.double_sum((a, left), (b, right), noise)
                }
                Deviation::Ulps(most) => stepped(self.double_value(a, b), noise.around_zero(most)),
                _ => {
                    let quotient = (a / b).floor();
                    match noise.of(1).side() {
                        Some(Side::Left) => a - b * quotient,
                        _ => (-b).mul_add(quotient, a),
                    }
                }
            };
            *to = stepped(result, self.steps(noise)).to_bits();
        }
    }

    /// The reference's result.
    fn double_value(&self, a: f64, b: f64) -> f64 {
        match self.op {
            Op::Unary(op) => a.function(op),
            Op::Binary(BinaryOp::Add) => a + b,
            Op::Binary(BinaryOp::Sub) => a - b,
            Op::Binary(BinaryOp::Mul) => a * b,
            _ => a.power(b),
        }
    }

    /// A sum or difference. Each operand that is a product comes with its rounding error; one of these is added back.
    fn double_sum(&self, (a, left): (f64, Option<f64>), (b, right): (f64, Option<f64>), noise: Noise) -> f64 {
        let b_signed = if self.op == Op::Binary(BinaryOp::Add) { b } else { -b };
        let right = right.map(|lost| if self.op == Op::Binary(BinaryOp::Add) { lost } else { -lost });
        let lost = match self.fused_side(left.is_some(), right.is_some(), noise) {
            Some(Side::Left) => left.unwrap_or(0.0),
            Some(Side::Right) => right.unwrap_or(0.0),
            None => 0.0,
        };
        let sum = a + b_signed;
        let other = sum - a;
        let error = (a - (sum - other)) + (b_signed - other);
        let whole = if (error + lost).is_finite() { sum + (error + lost) } else { sum };
        if self.op == Op::Binary(BinaryOp::Absd) { whole.abs() } else { whole }
    }
}

impl Noise {
    /// A possible rounding error of a float: up to half a unit in the last place.
    fn lost(self, rounded: f64) -> f64 {
        let unit = rounded.next_up() - rounded;
        if unit.is_finite() && rounded != 0.0 { unit * self.fraction() } else { 0.0 }
    }
}

/// The float `steps` representable values away. Zeros, infinities and NaN stay unchanged.
fn stepped(value: f64, steps: i32) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return value;
    }
    let sign = 1_u64 << 63;
    let magnitude = (value.to_bits() & !sign).saturating_add_signed(steps.into());
    f64::from_bits(magnitude.min(f64::MAX.to_bits()) | (value.to_bits() & sign))
}
