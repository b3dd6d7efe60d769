//! Elementary functions in strict binary64, within 4 units in the last place. Each operation is
//! rounded and nothing is fused, so every machine computes the same bits.
//!
//! Where one `f64` is not enough, a number is the sum of two, the second below half a unit in the
//! last place of the first.

use super::mul_high;

/// The natural logarithm of 2 in three parts. Products of the first two with an exponent are exact.
const LN_2: [f64; 3] = [0.6931471803691238, 1.9082149292687043e-10, 1.8835029794789685e-22];

/// π/2 in four parts. Products of the first three with integers below 2^20 are exact.
const HALF_PI: [f64; 4] =
    [1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32];

/// π/2, and what its rounding lost.
const QUARTER: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17];

/// The digits of 2/π after the binary point, after one word of zeros.
const TWO_OVER_PI: [u64; 21] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
];

/// From here on, an angle is reduced with as many digits of 2/π as it needs.
const LARGE_ANGLE: f64 = 1_048_576.0;

/// Coefficients of `(e^x - 1 - x) / x^2`, highest power first: 1/14! to 1/2!.
const EXP_SERIES: [f64; 13] = [
    1.0 / 87_178_291_200.0,
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
];

/// Coefficients of `2 * (atanh(s) / s - 1)` in powers of `s^2`, highest power first: 2/25 to 2/3.
const LOG_SERIES: [f64; 12] = [
    2.0 / 25.0,
    2.0 / 23.0,
    2.0 / 21.0,
    2.0 / 19.0,
    2.0 / 17.0,
    2.0 / 15.0,
    2.0 / 13.0,
    2.0 / 11.0,
    2.0 / 9.0,
    2.0 / 7.0,
    2.0 / 5.0,
    2.0 / 3.0,
];

/// 2/3, rounded.
const TWO_THIRDS: f64 = 2.0 / 3.0;
/// What the rounding of 2/3 lost.
const TWO_THIRDS_REST: f64 = 3.700743415417188e-17;
/// What the rounding of 2/5 lost.
const TWO_FIFTHS_REST: f64 = -2.220446049250313e-17;

/// Coefficients of `(sin(x) / x - 1) / x^2` in powers of `x^2`, highest power first: 1/17! to -1/3!.
const SIN_SERIES: [f64; 8] = [
    1.0 / 355_687_428_096_000.0,
    -1.0 / 1_307_674_368_000.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    -1.0 / 5_040.0,
    1.0 / 120.0,
    -1.0 / 6.0,
];

/// Coefficients of `(cos(x) - 1 + x^2 / 2) / x^4` in powers of `x^2`, highest power first: -1/18! to 1/4!.
const COS_SERIES: [f64; 8] = [
    -1.0 / 6_402_373_705_728_000.0,
    1.0 / 20_922_789_888_000.0,
    -1.0 / 87_178_291_200.0,
    1.0 / 479_001_600.0,
    -1.0 / 3_628_800.0,
    1.0 / 40_320.0,
    -1.0 / 720.0,
    1.0 / 24.0,
];

/// A polynomial, highest power first.
#[inline]
fn horner(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().skip(1).fold(coefficients[0], |sum, c| sum * x + c)
}

/// `2^exponent`, for exponents of normal numbers.
#[inline]
fn double_power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A sum and its rounding error.
#[inline]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let other = sum - a;
    (sum, (a - (sum - other)) + (b - other))
}

/// The upper and the lower half of a number's digits.
#[inline]
fn halves(a: f64) -> (f64, f64) {
    let scaled = 134_217_729.0 * a;
    let upper = scaled - (scaled - a);
    (upper, a - upper)
}

/// A product and its rounding error.
#[inline]
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let (a1, a2) = halves(a);
    let (b1, b2) = halves(b);
    (product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2)
}

/// The product of two sums of two.
#[inline]
fn product(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let (high, low) = two_product(a.0, b.0);
    two_sum(high, low + (a.0 * b.1 + a.1 * b.0))
}

/// The sum of two sums of two.
#[inline]
fn sum(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let (high, low) = two_sum(a.0, b.0);
    two_sum(high, low + (a.1 + b.1))
}

/// `e^(x + rest)`; 0 on underflow, infinity on overflow.
#[inline]
fn exp_of(x: f64, rest: f64) -> f64 {
    if x > 709.8 {
        return f64::INFINITY;
    }
    if x < -745.2 {
        return 0.0;
    }
    let k = (x * std::f64::consts::LOG2_E).round_ties_even();
    let t = ((x - k * LN_2[0]) - k * LN_2[1]) + rest;
    let value = 1.0 + (t + t * t * horner(t, &EXP_SERIES));
    let k = k as i32;
    let first = k >> 1;
    value * double_power_of_two(first) * double_power_of_two(k - first)
}

/// `e^x`; 0 on underflow, infinity on overflow.
#[inline]
pub fn exp(x: f64) -> f64 {
    exp_of(x, 0.0)
}

/// A positive finite number as an exponent of 2 and a factor from √½ to √2.
#[inline]
fn split(x: f64) -> (f64, f64) {
    let (x, shift) = if x < f64::MIN_POSITIVE { (x * 18_014_398_509_481_984.0, -54) } else { (x, 0) };
    let bits = x.to_bits();
    let mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    let exponent = (bits >> 52) as i32 - 1023 + shift;
    let large = mantissa > std::f64::consts::SQRT_2;
    (f64::from(if large { exponent + 1 } else { exponent }), if large { mantissa * 0.5 } else { mantissa })
}

/// Natural logarithm; -infinity for 0, NaN for negative numbers.
#[inline]
pub fn log(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x.is_infinite() {
        return x;
    }
    let (k, mantissa) = split(x);
    let f = mantissa - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let half = 0.5 * f * f;
    let series = s * (half + z * horner(z, &LOG_SERIES));
    k * LN_2[0] - ((half - (series + k * LN_2[1])) - f)
}

/// The logarithm of a positive finite number as a sum of two, to about 2^-68 of its magnitude.
#[inline]
fn precise_log(x: f64) -> (f64, f64) {
    let (k, mantissa) = split(x);
    let f = mantissa - 1.0;
    let (sum_high, sum_low) = two_sum(2.0, f);
    let s = f / sum_high;
    let (back, error) = two_product(s, sum_high);
    let s = two_sum(s, ((f - back) - error - s * sum_low) / sum_high);
    let z = product(s, s);
    // 2/3 and 2/5 with their rounding errors; the rest of the series is small enough for one number.
    let tail = z.0 * horner(z.0, &LOG_SERIES[..10]);
    let series = sum((0.4, TWO_FIFTHS_REST), (tail, 0.0));
    let series = sum((TWO_THIRDS, TWO_THIRDS_REST), product(z, series));
    let series = product(product(s, z), series);
    let mantissa = sum((2.0 * s.0, 2.0 * s.1), series);
    let exponent = two_sum(k * LN_2[0], k * LN_2[1]);
    sum(sum(exponent, (k * LN_2[2], 0.0)), mantissa)
}

/// `x^y` for numbers that are none of the special cases of [`pow`], and a positive `x`.
#[inline]
fn power_of_magnitude(x: f64, y: f64) -> f64 {
    if x == 1.0 {
        return 1.0;
    }
    if x == 0.0 || x.is_infinite() || y.is_infinite() {
        return if (x > 1.0) == (y > 0.0) { f64::INFINITY } else { 0.0 };
    }
    let logarithm = precise_log(x);
    let rough = logarithm.0 * y;
    if rough > 710.0 {
        return f64::INFINITY;
    }
    if rough < -746.0 {
        return 0.0;
    }
    let (high, low) = two_product(logarithm.0, y);
    exp_of(high, low + logarithm.1 * y)
}

/// `x^y`; 1 for `y == 0` and for `x == 1`; NaN for a negative `x` with a non-integral `y`.
#[inline]
pub fn pow(x: f64, y: f64) -> f64 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let magnitude = power_of_magnitude(x.abs(), y);
    if x > 0.0 {
        return magnitude;
    }
    if y.floor() != y && !x.is_infinite() && x != 0.0 {
        return f64::NAN;
    }
    let odd = y - 2.0 * (y * 0.5).floor() == 1.0;
    if odd && x != 0.0 { -magnitude } else { magnitude }
}

/// 64 bits of 2/π, from a bit of a word on.
#[inline]
fn digits(word: i32, shift: i32) -> u64 {
    let next = if shift == 0 { 0 } else { TWO_OVER_PI[word as usize + 1] >> (64 - shift) };
    (TWO_OVER_PI[word as usize] << shift) | next
}

/// Splits an angle of any size into a number of quarter turns and a remainder in about -π/4..π/4, as a sum of two: the
/// product with 2/π modulo 4, in integers.
fn large_angle(x: f64) -> (i32, f64, f64) {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i32 & 0x7ff;
    if exponent == 0x7ff {
        return (0, f64::NAN, 0.0);
    }
    let mantissa = (bits & 0x000f_ffff_ffff_ffff) | 0x0010_0000_0000_0000;
    // Digits before this one contribute multiples of 4.
    let first = exponent - 1075 - 2 + 64;
    let (word, shift) = (first >> 6, first & 63);
    let last = digits(word + 2, shift);
    let low = mantissa.wrapping_mul(last);
    let middle = digits(word + 1, shift);
    let carried = mul_high(mantissa, last);
    let sum = carried.wrapping_add(mantissa.wrapping_mul(middle));
    let top = mantissa.wrapping_mul(digits(word, shift)).wrapping_add(mul_high(mantissa, middle));
    let top = top.wrapping_add(u64::from(sum < carried));
    let quarter = (top >> 62) as i32;
    let upper = (top << 2) | (sum >> 62);
    let lower = (sum << 2) | (low >> 62);
    // The nearest quarter turn: the fraction goes from -½ to ½.
    let negative = upper >> 63 != 0;
    let quarter = if negative { quarter + 1 } else { quarter };
    let lower = if negative { lower.wrapping_neg() } else { lower };
    let upper = if negative { (!upper).wrapping_add(u64::from(lower == 0)) } else { upper };
    let high = (upper & !2047) as f64 * double_power_of_two(-64);
    let rest = (upper & 2047) as f64 * double_power_of_two(-64) + lower as f64 * double_power_of_two(-128);
    let (t, low) = product(two_sum(high, rest), (QUARTER[0], QUARTER[1]));
    let opposite = negative != (x < 0.0);
    (
        if x < 0.0 { -quarter } else { quarter },
        if opposite { -t } else { t },
        if opposite { -low } else { low },
    )
}

/// Splits an angle into a number of quarter turns and a remainder in about -π/4..π/4, as a sum of two.
#[inline]
fn quarter_turns(x: f64) -> (i32, f64, f64) {
    if x.abs() >= LARGE_ANGLE {
        return large_angle(x);
    }
    let k = (x * std::f64::consts::FRAC_2_PI).round_ties_even();
    let (a, rest) = two_sum(x - k * HALF_PI[0], -(k * HALF_PI[1]));
    let (b, rest2) = two_sum(a, -(k * HALF_PI[2]));
    let (t, low) = two_sum(b, (rest + rest2) - k * HALF_PI[3]);
    (k as i32, t, low)
}

#[inline]
fn sin_series(t: f64, low: f64) -> f64 {
    let z = t * t;
    t + (t * z * horner(z, &SIN_SERIES) + low * (1.0 - 0.5 * z))
}

#[inline]
fn cos_series(t: f64, low: f64) -> f64 {
    let z = t * t;
    let half = 0.5 * z;
    let most = 1.0 - half;
    most + (((1.0 - most) - half) + (z * z * horner(z, &COS_SERIES) - t * low))
}

/// Sine of an angle in radians; NaN for infinities.
#[inline]
pub fn sin(x: f64) -> f64 {
    if x == 0.0 {
        return x;
    }
    let (quarter, t, low) = quarter_turns(x);
    let value = if quarter & 1 == 0 { sin_series(t, low) } else { cos_series(t, low) };
    if quarter & 2 == 0 { value } else { -value }
}

/// Cosine of an angle in radians; NaN for infinities.
#[inline]
pub fn cos(x: f64) -> f64 {
    let (quarter, t, low) = quarter_turns(x);
    let value = if quarter & 1 == 0 { cos_series(t, low) } else { sin_series(t, low) };
    if quarter.wrapping_add(1) & 2 == 0 { value } else { -value }
}

/// Hyperbolic tangent, in -1..=1.
#[inline]
pub fn tanh(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude < 0.55 {
        let square = x * x;
        let fraction = 15.0 + square / (17.0 + square / (19.0 + square / 21.0));
        let fraction = 9.0 + square / (11.0 + square / (13.0 + square / fraction));
        let fraction = 3.0 + square / (5.0 + square / (7.0 + square / fraction));
        return x / (1.0 + square / fraction);
    }
    let value = 1.0 - 2.0 / (exp(magnitude + magnitude) + 1.0);
    if x < 0.0 { -value } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance to the system's function, which rounds almost correctly, in units in the last
    /// place.
    fn ulps(found: f64, expected: f64) -> u64 {
        if found == expected || (found.is_nan() && expected.is_nan()) {
            return 0;
        }
        let rank = |x: f64| {
            let magnitude = (x.to_bits() & !(1 << 63)) as i64;
            if x.is_sign_negative() { -magnitude } else { magnitude }
        };
        rank(found).abs_diff(rank(expected))
    }

    /// Numbers that cover a range, and powers of many sizes around its ends.
    fn sweep(low: f64, high: f64) -> impl Iterator<Item = f64> {
        let steps = 40_000;
        let even = (0..=steps).map(move |i| low + (high - low) * (f64::from(i) + 0.37) / f64::from(steps));
        let sizes = (0..4000).map(move |i| high * (-f64::from(i) * 0.17).exp());
        even.chain(sizes.clone()).chain(sizes.map(|x| -x)).filter(move |x| (low..=high).contains(x))
    }

    fn worst(function: fn(f64) -> f64, truth: fn(f64) -> f64, low: f64, high: f64) -> u64 {
        sweep(low, high).map(|x| ulps(function(x), truth(x))).max().unwrap_or(0)
    }

    #[test]
    fn functions_are_within_four_units() {
        assert!(worst(exp, f64::exp, -745.0, 709.7) <= 2);
        assert!(worst(log, f64::ln, 1e-300, 1e300) <= 2);
        assert!(worst(log, f64::ln, 0.3, 3.0) <= 2);
        assert!(worst(sin, f64::sin, -1e6, 1e6) <= 2);
        assert!(worst(cos, f64::cos, -1e6, 1e6) <= 2);
        assert!(worst(sin, f64::sin, -7.0, 7.0) <= 2);
        assert!(worst(sin, f64::sin, -1e300, 1e300) <= 2);
        assert!(worst(cos, f64::cos, -1e300, 1e300) <= 2);
        assert!(worst(cos, f64::cos, 1e6, 1e10) <= 2);
        assert!(worst(tanh, f64::tanh, -25.0, 25.0) <= 3);
        for y in [0.45, 2.0, -3.5, 17.25, 1e-8, -100.3] {
            let most = sweep(1e-2, 1e3).map(|x| ulps(pow(x, y), x.powf(y))).max().unwrap();
            assert!(most <= 2, "{most} at power {y}");
        }
        let large = sweep(0.999, 1.001).map(|x| ulps(pow(x, 7e5), x.powf(7e5))).max().unwrap();
        assert!(large <= 2, "{large}");
    }

    #[test]
    fn multiples_of_a_quarter_turn_keep_their_digits() {
        for k in (1..1_000_000_u32).step_by(997) {
            let x = f64::from(k) * std::f64::consts::FRAC_PI_2;
            assert!(ulps(sin(x), x.sin()) <= 2 && ulps(cos(x), x.cos()) <= 2, "{x}");
        }
    }

    #[test]
    fn edges_are_as_documented() {
        assert_eq!((exp(-1000.0), exp(1000.0), exp(0.0)), (0.0, f64::INFINITY, 1.0));
        assert!(exp(f64::NAN).is_nan() && log(-1.0).is_nan() && sin(f64::INFINITY).is_nan());
        assert_eq!((log(0.0), log(f64::INFINITY), log(1.0)), (f64::NEG_INFINITY, f64::INFINITY, 0.0));
        assert_eq!((pow(0.0, 2.0), pow(0.0, -1.0), pow(5.0, 0.0)), (0.0, f64::INFINITY, 1.0));
        assert_eq!((pow(-2.0, 3.0), pow(-2.0, 2.0), pow(1e308, 1e300)), (-8.0, 4.0, f64::INFINITY));
        assert!(pow(-2.0, 0.5).is_nan() && pow(f64::NAN, 2.0).is_nan());
        assert_eq!((pow(0.5, f64::INFINITY), pow(f64::INFINITY, -1.0)), (0.0, 0.0));
        assert_eq!((tanh(40.0), tanh(-40.0), tanh(-0.0).to_bits()), (1.0, -1.0, (-0.0_f64).to_bits()));
        assert_eq!(sin(-0.0).to_bits(), (-0.0_f64).to_bits());
    }
}
