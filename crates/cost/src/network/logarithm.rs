//! A logarithm that the compiler can vectorise, the same on every machine.

use std::f32::consts::LN_2;

/// Larger numbers count as this one.
const LARGEST: f32 = 1e30;

/// The bits of the square root of a half: mantissas are brought between it and twice it.
const SQRT_HALF: u32 = 0x3f35_04f3;

/// `ln(1 + x)` of each; negative numbers and those that are none count as 0.
///
/// The error is below 2e-7 of the result, or 2e-7 where that is smaller than 1, because `1 + x` is rounded.
pub(super) fn ln_1p<const COUNT: usize>(values: &[f64; COUNT]) -> [f32; COUNT] {
    let mut logarithms = [0.0; COUNT];
    // Two loops, because vectors of both widths in one loop are twice as slow.
    for (number, value) in logarithms.iter_mut().zip(values) {
        *number = *value as f32;
    }
    for number in &mut logarithms {
        let positive = if *number > 0.0 { number.min(LARGEST) } else { 0.0 };
        *number = ln(1.0 + positive);
    }
    logarithms
}

/// The logarithm of a number from 1.
///
/// With `x = m 2^e` and `s = (m - 1) / (m + 1)` it is `e ln 2 + 2 (s + s^3/3 + s^5/5 + ...)`. As `|s| < 0.172`, what is
/// left out after `s^9` is below 3e-9 of the sum.
#[inline(always)]
fn ln(x: f32) -> f32 {
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
    fn it_has_a_value_everywhere() {
        assert_eq!(ln_1p(&[0.0, -3.0, f64::NAN, f64::NEG_INFINITY]), [0.0; 4]);
        let [largest, infinite] = ln_1p(&[LARGEST.into(), f64::INFINITY]);
        assert_eq!(largest, infinite);
        assert!((largest - 69.077_55).abs() < 1e-4);
    }
}
