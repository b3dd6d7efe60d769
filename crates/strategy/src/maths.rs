//! Functions that the standard library leaves to the platform. These use only operations that round in the same way on
//! every machine.

use std::f64::consts::LOG2_E;

/// The natural logarithm of 2 in two parts: multiples of the first, which ends in zeros, are exact.
const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];

/// e to the power of `x`, within a few units in the last place; `x` is clamped to -700..=700.
pub(crate) fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let twos = (x * LOG2_E).round();
    let rest = x - twos * LN_2[0] - twos * LN_2[1];
    // The series of e^rest, where |rest| < 0.35, from its last term.
    let series = (1..=14).rev().fold(1.0, |sum, n| 1.0 + sum * rest / f64::from(n));
    series * f64::from_bits(((1023 + twos as i64) as u64) << 52)
}

/// The logarithm of `n` to base 2, to 30 bits after the point; 0 for 0.
pub(crate) fn log2(n: u64) -> f64 {
    let whole = n.max(1).ilog2();
    let mut rest = n.max(1) as f64 / (1u64 << whole) as f64;
    let mut sum = f64::from(whole);
    let mut bit = 0.5;
    for _ in 0..30 {
        rest *= rest;
        if rest >= 2.0 {
            rest /= 2.0;
            sum += bit;
        }
        bit /= 2.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_agrees_with_the_library() {
        for step in -7000..=7000 {
            let x = f64::from(step) * 0.0973;
            let (ours, theirs) = (exp(x), x.exp());
            assert!((ours - theirs).abs() <= 1e-14 * theirs, "{x}: {ours} {theirs}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f64::NEG_INFINITY) > 0.0);
    }

    #[test]
    fn log2_agrees_with_the_library() {
        for n in (1..5000).chain([u64::from(u32::MAX), u64::MAX / 3]) {
            assert!((log2(n) - (n as f64).log2()).abs() < 2e-9, "{n}");
        }
        assert_eq!(log2(1024), 10.0);
    }
}
