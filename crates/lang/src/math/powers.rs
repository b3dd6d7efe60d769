//! Powers and logarithms to base 2 and near 1, the reciprocal root and the error function.

use super::{horner, power_of_two};

/// `(2^t - 1) / t` in powers of `t`, highest first, for `t` in -0.5..=0.5.
const EXP2_SERIES: [f32; 6] = [0.00015326463, 0.0013390806, 0.009618506, 0.0555036, 0.24022648, 0.6931472];

/// `(e^t - 1 - t) / t²` in powers of `t`, highest first, for `|t|` up to half of ln 2.
const EXPM1_SERIES: [f32; 6] = [0.00019761785, 0.0013932323, 0.008333546, 0.041666493, 0.16666666, 0.5];

/// `(log2(1 + t) - t) / t` in powers of `t`, highest first, for `1 + t` between √½ and √2.
const LOG2_SERIES: [f32; 10] = [
    -0.11639452,
    0.18686533,
    -0.18825443,
    0.20415677,
    -0.23995215,
    0.2886188,
    -0.36068258,
    0.4808965,
    -0.7213475,
    0.44269505,
];

/// `(ln(1 + t) - t + t²/2) / t³` in powers of `t`, highest first, for `1 + t` between √½ and √2.
const LOG1P_SERIES: [f32; 8] =
    [-0.07636439, 0.12762217, -0.1315961, 0.1420158, -0.16623409, 0.20001242, -0.2500082, 0.3333333];

/// `erf(x) / x - 1` in powers of `x²`, highest first, for `x` in 0..=1.
const ERF_SERIES: [f32; 7] =
    [7.806903e-05, -0.0007997853, 0.005187162, -0.026853347, 0.11283579, -0.37612626, 0.12837917];

/// `log2(1 - erf(x))` in powers of `x`, highest first, for `x` in 1..=4.
const ERFC_SERIES: [f32; 7] =
    [0.00026771898, -0.004240898, 0.031458244, -0.14865123, -0.9207652, -1.625975, -0.00051030976];

/// The upper 15 bits of ln 2: products with exponents are exact.
const LN_2_HIGH: f32 = 0.693_145_75;
/// What [`LN_2_HIGH`] lacks.
const LN_2_LOW: f32 = 1.428_606_8e-6;
/// The bits of √½.
const ROOT_HALF_BITS: i32 = 0x3f35_04f3;
/// Below this magnitude, 2^-25, `ln(1 + x)` and `e^x - 1` are `x`.
pub const TINY: f32 = 2.980_232_2e-8;

/// `1 / sqrt(x)`, both rounded: infinity for 0, with its sign, and NaN for negative numbers.
#[inline]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// `2^x`, with subnormal results; 0 on underflow, infinity on overflow.
#[inline]
pub fn exp2(x: f32) -> f32 {
    if x >= 128.0 {
        return f32::INFINITY;
    }
    if x < -150.0 {
        return 0.0;
    }
    let k = x.round_ties_even();
    let t = x - k;
    let mantissa = 1.0 + t * horner(t, EXP2_SERIES);
    // Two factors, so that neither overflows nor is subnormal.
    let k = k as i32;
    let half = k >> 1;
    mantissa * power_of_two(half) * power_of_two(k - half)
}

/// `e^x - 1`, accurate near 0; zeros keep their sign, and large numbers give infinity.
#[inline]
pub fn expm1(x: f32) -> f32 {
    if x.abs() < TINY {
        return x;
    }
    if x < -18.0 {
        return -1.0;
    }
    if x > 89.0 {
        return f32::INFINITY;
    }
    let k = (x * std::f32::consts::LOG2_E).round_ties_even();
    let (high, low) = (x - k * LN_2_HIGH, k * LN_2_LOW);
    let t = high - low;
    let lost = (high - t) - low;
    let near = t + (t * t * horner(t, EXPM1_SERIES) + lost);
    // Half of the result, because 2^k can overflow where the result does not.
    let half = power_of_two(k as i32 - 1);
    2.0 * ((half - 0.5) + half * near)
}

/// The exponent and the mantissa, between √½ and √2, of a positive normal number.
#[inline]
fn split(x: f32) -> (i32, f32) {
    let bits = x.to_bits() as i32;
    let exponent = (bits - ROOT_HALF_BITS) >> 23;
    (exponent, f32::from_bits(x.to_bits().wrapping_sub((exponent as u32) << 23)))
}

/// Logarithm to base 2, exact for powers of 2; -infinity for 0, NaN for negative numbers.
#[inline]
pub fn log2(x: f32) -> f32 {
    if x.is_nan() || x < 0.0 {
        return f32::NAN;
    }
    if x == 0.0 {
        return f32::NEG_INFINITY;
    }
    if x == f32::INFINITY {
        return x;
    }
    let (normal, shift) = if x < f32::MIN_POSITIVE { (x * 8_388_608.0, -23) } else { (x, 0) };
    let (exponent, mantissa) = split(normal);
    let t = mantissa - 1.0;
    (exponent + shift) as f32 + (t + t * horner(t, LOG2_SERIES))
}

/// `ln(1 + x)`, accurate near 0; zeros keep their sign; -infinity for -1, NaN below.
#[inline]
pub fn log1p(x: f32) -> f32 {
    if x.abs() < TINY {
        return x;
    }
    if x.is_nan() || x < -1.0 {
        return f32::NAN;
    }
    if x == -1.0 {
        return f32::NEG_INFINITY;
    }
    if x == f32::INFINITY {
        return x;
    }
    let sum = 1.0 + x;
    let (exponent, mantissa) = split(sum);
    // What the rounding of the sum lost.
    let lost = if x > 1.0 { 1.0 - (sum - x) } else { x - (sum - 1.0) };
    let (t, low) = if exponent == 0 { (x, 0.0) } else { (mantissa - 1.0, lost / sum) };
    let k = exponent as f32;
    let square = t * t;
    let tail = t * square * horner(t, LOG1P_SERIES) + (k * LN_2_LOW + low);
    k * LN_2_HIGH + (t - (0.5 * square - tail))
}

/// The error function, in -1..=1; zeros keep their sign.
#[inline]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    if a < 1.0 {
        return x + x * horner(x * x, ERF_SERIES);
    }
    let value = if a >= 4.0 { 1.0 } else { 1.0 - exp2(horner(a, ERFC_SERIES)) };
    value.copysign(x)
}
