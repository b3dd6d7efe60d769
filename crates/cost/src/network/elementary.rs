//! Logarithms and exponentials that the compiler can vectorise and that give the same bits on every
//! machine.

use std::f32::consts::{LN_2, LOG2_E};

/// Larger numbers are replaced by this one.
const LARGEST: f32 = 1e30;

/// Smaller numbers and NaN are replaced by this one before a logarithm.
const SMALLEST: f32 = 1e-9;

/// The bits of the square root of one half. Mantissas are normalised to lie between it and twice
/// it.
const SQRT_HALF: u32 = 0x3f35_04f3;

/// Adding this to a small number rounds it to an integer, which is then in the lowest bits of the
/// sum. Subtracting it again gives the rounded number.
const ROUNDING: f32 = 12_582_912.0;

/// The leading bits of `ln 2`, so that products with small integers are exact, and the rest.
const LN_2_PARTS: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);

/// `ln(1 + x)` of each number. Negative numbers and NaN count as 0.
///
/// The relative error is below 2e-7; the absolute error is below 2e-7 where the result is less than
/// 1, because `1 + x` is rounded.
pub(super) fn ln_1p<const COUNT: usize>(values: &[f64; COUNT]) -> [f32; COUNT] {
    let mut logarithms = narrow(values);
    for number in &mut logarithms {
        let positive = if *number > 0.0 { number.min(LARGEST) } else { 0.0 };
        *number = logarithm(1.0 + positive);
    }
    logarithms
}

/// `ln x` of each number. Numbers below 1e-9 and NaN count as 1e-9.
pub(super) fn ln<const COUNT: usize>(values: &[f64; COUNT]) -> [f32; COUNT] {
    let mut logarithms = narrow(values);
    for number in &mut logarithms {
        let positive = if *number > SMALLEST { number.min(LARGEST) } else { SMALLEST };
        *number = logarithm(positive);
    }
    logarithms
}

/// `e^x` of each number, clamped to -80..80.
///
/// The relative error is below 3e-7.
pub(super) fn exp<const COUNT: usize>(values: &[f32; COUNT]) -> [f32; COUNT] {
    values.map(exponential)
}

/// The hyperbolic tangent of each number.
pub(super) fn tanh<const COUNT: usize>(values: &[f32; COUNT]) -> [f32; COUNT] {
    exp(&values.map(|value| 2.0 * value)).map(|power| 1.0 - 2.0 / (power + 1.0))
}

/// A separate loop, because mixing both vector widths in one loop is twice as slow.
fn narrow<const COUNT: usize>(values: &[f64; COUNT]) -> [f32; COUNT] {
    let mut numbers = [0.0; COUNT];
    for (number, value) in numbers.iter_mut().zip(values) {
        *number = *value as f32;
    }
    numbers
}

/// With `x = k ln 2 + r` the result is `2^k e^r`. As `|r| < 0.35`, the terms omitted after `r^6`
/// are below 2e-7 of the sum.
#[inline(always)]
fn exponential(x: f32) -> f32 {
    let x = x.clamp(-80.0, 80.0);
    let shifted = x * LOG2_E + ROUNDING;
    let k = shifted - ROUNDING;
    let r = x - k * LN_2_PARTS.0 - k * LN_2_PARTS.1;
    let tail = 1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0));
    let series = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * tail)));
    f32::from_bits(series.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// The logarithm of a positive number.
///
/// With `x = m 2^e` and `s = (m - 1) / (m + 1)` it is `e ln 2 + 2 (s + s^3/3 + s^5/5 + ...)`. As
/// `|s| < 0.172`, the terms omitted after `s^9` are below 3e-9 of the sum.
#[inline(always)]
fn logarithm(x: f32) -> f32 {
    let above = x.to_bits().wrapping_sub(SQRT_HALF);
    let exponent = above as i32 >> 23;
    let mantissa = f32::from_bits((above & 0x007f_ffff).wrapping_add(SQRT_HALF));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = 1.0 + square * (1.0 / 3.0 + square * (0.2 + square * (1.0 / 7.0 + square * (1.0 / 9.0))));
    exponent as f32 * LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_exact_as_it_says() {
        let mut x = 1e-9;
        while x < 1e29 {
            let (exact, [found]) = (f64::ln_1p(x), ln_1p(&[x]));
            let error = (f64::from(found) - exact).abs();
            assert!(error <= 2e-7 * exact.max(1.0), "ln(1 + {x}) is {exact}, not {found}");
            x *= 1.000_37;
        }
    }

    #[test]
    fn small_numbers_have_logarithms() {
        let mut x = 1e-9;
        while x < 1e29 {
            let (exact, [found]) = (f64::ln(x), ln(&[x]));
            let error = (f64::from(found) - exact).abs();
            assert!(error <= 2e-7 * exact.abs().max(1.0), "ln {x} is {exact}, not {found}");
            x *= 1.000_37;
        }
        let [smallest] = ln(&[1e-9]);
        assert_eq!(ln(&[0.0, -1.0, f64::NAN]), [smallest; 3]);
    }

    #[test]
    fn powers_and_tangents_are_as_exact() {
        let mut x: f32 = -75.0;
        while x < 75.0 {
            let (exact, [found]) = (f64::from(x).exp(), exp(&[x]));
            let error = (f64::from(found) / exact - 1.0).abs();
            assert!(error <= 3e-7, "e^{x} is {exact}, not {found}");
            let (exact, [found]) = (f64::from(x).tanh(), tanh(&[x]));
            assert!((f64::from(found) - exact).abs() <= 3e-7, "tanh {x} is {exact}, not {found}");
            x += 0.003_7;
        }
        assert_eq!(exp(&[0.0]), [1.0]);
        assert_eq!(tanh(&[0.0, 1e9, -1e9]), [0.0, 1.0, -1.0]);
    }

    #[test]
    fn it_has_a_value_everywhere() {
        assert_eq!(ln_1p(&[0.0, -3.0, f64::NAN, f64::NEG_INFINITY]), [0.0; 4]);
        let [largest, infinite] = ln_1p(&[LARGEST.into(), f64::INFINITY]);
        assert_eq!(largest, infinite);
        assert!((largest - 69.077_55).abs() < 1e-4);
    }
}
