//! Tangent and the inverse trigonometric functions.

use super::{horner, mul_high, power_of_two};

/// π.
const PI: f32 = 3.141_592_7;
/// What [`PI`] lacks.
const PI_LOW: f32 = -8.742_278e-8;
/// π/2.
const HALF_PI: f32 = 1.570_796_4;
/// What [`HALF_PI`] lacks.
const HALF_PI_LOW: f32 = -4.371_139e-8;

/// `(atan(t) / t - 1) / t²` in powers of `t²`, highest first, for `t` in 0..=1.
const ATAN_SERIES: [f32; 9] = [
    -0.0017821442,
    0.010866271,
    -0.031093534,
    0.05787887,
    -0.08399208,
    0.10950861,
    -0.14264014,
    0.19998531,
    -0.333333,
];

/// `(asin(t) / t - 1) / t²` in powers of `t²`, highest first, for `t` in 0..=0.5.
const ASIN_SERIES: [f32; 5] = [0.042158306, 0.024184778, 0.04546915, 0.074953094, 0.16666752];

/// `(tan(t) / t - 1) / t²` in powers of `t²`, highest first, for `t` in 0..=π/4.
const TAN_SERIES: [f32; 7] =
    [0.004372355, 9.880833e-05, 0.01082711, 0.021286292, 0.054058906, 0.13332675, 0.3333335];

/// The bits of 2/π after 32 zeros.
const TWO_OVER_PI: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// π/2 times 2^63.
const HALF_PI_FIXED: u64 = 0xc90f_daa2_2168_c235;

/// Angles up to this one, just below π/4, are their own remainder.
const QUARTER_PI: f32 = 0.785_398_1;

/// The arc tangent of a number in 0..=1.
#[inline]
fn atan_series(t: f32) -> f32 {
    let square = t * t;
    t + t * square * horner(square, ATAN_SERIES)
}

/// Arc tangent in -π/2..=π/2; zeros keep their sign.
#[inline]
pub fn atan(x: f32) -> f32 {
    let a = x.abs();
    let angle = if a > 1.0 { HALF_PI - (atan_series(1.0 / a) - HALF_PI_LOW) } else { atan_series(a) };
    angle.copysign(x)
}

/// The angle of the point `(x, y)` in -π..=π, with the sign of `y`. Zeros count by their signs:
/// `atan2(0, -0)` is π. Two infinities count as equal; NaN gives NaN.
#[inline]
pub fn atan2(y: f32, x: f32) -> f32 {
    if x.is_nan() || y.is_nan() {
        return f32::NAN;
    }
    let (a, b) = (y.abs(), x.abs());
    let steep = a > b;
    let (low, high) = if steep { (b, a) } else { (a, b) };
    let ratio = if high == 0.0 {
        0.0
    } else if low == f32::INFINITY {
        1.0
    } else {
        low / high
    };
    let angle = atan_series(ratio);
    let negative = x.is_sign_negative();
    let angle = if steep {
        if negative { HALF_PI + (angle + HALF_PI_LOW) } else { HALF_PI - (angle - HALF_PI_LOW) }
    } else if negative {
        PI - (angle - PI_LOW)
    } else {
        angle
    };
    angle.copysign(y)
}

/// What the series of the arc sine adds to `t`, from the square of `t`.
#[inline]
fn asin_tail(t: f32, square: f32) -> f32 {
    t * square * horner(square, ASIN_SERIES)
}

/// Arc sine in -π/2..=π/2; zeros keep their sign, and what is outside -1..=1 gives NaN.
#[inline]
pub fn asin(x: f32) -> f32 {
    let a = x.abs();
    if a <= 0.5 {
        return x + asin_tail(x, x * x);
    }
    let square = 0.5 * (1.0 - a);
    let root = square.sqrt();
    let angle = HALF_PI - (2.0 * (root + asin_tail(root, square)) - HALF_PI_LOW);
    angle.copysign(x)
}

/// Arc cosine in 0..=π; what is outside -1..=1 gives NaN.
#[inline]
pub fn acos(x: f32) -> f32 {
    let a = x.abs();
    if a <= 0.5 {
        return HALF_PI - (x + (asin_tail(x, x * x) - HALF_PI_LOW));
    }
    let square = 0.5 * (1.0 - a);
    let root = square.sqrt();
    let tail = asin_tail(root, square);
    if x > 0.0 { 2.0 * (root + tail) } else { PI - 2.0 * (root + (tail - HALF_PI_LOW)) }
}

/// 32 bits of 2/π, from a bit of a word on.
#[inline]
fn digits(word: u32, shift: u32) -> u64 {
    let pair = (u64::from(TWO_OVER_PI[word as usize]) << 32) | u64::from(TWO_OVER_PI[word as usize + 1]);
    (pair << shift) >> 32
}

/// Splits a finite angle above π/4 into a number of quarter turns, modulo 4, and a remainder in
/// about -π/4..=π/4 as a sum of two floats. Integers make it exact for angles of any size.
#[inline]
fn reduced(a: f32) -> (u32, f32, f32) {
    let bits = a.to_bits();
    let mantissa = u64::from((bits & 0x7f_ffff) | 0x80_0000);
    // Bits of 2/π before this one contribute whole turns.
    let start = (bits >> 23) - 120;
    let (word, shift) = (start >> 5, start & 31);
    let low = mantissa * digits(word + 2, shift);
    let middle = mantissa * digits(word + 1, shift) + (low >> 32);
    let high = mantissa * digits(word, shift) + (middle >> 32);
    // Quarter turns times 2^62, modulo 4.
    let turns = (high << 32) | (middle & 0xffff_ffff);
    let fraction = (turns << 2) | ((low >> 30) & 3);
    let negative = fraction >> 63 != 0;
    let magnitude = if negative { fraction.wrapping_neg() } else { fraction };
    let zeros = (magnitude | 1).leading_zeros();
    let product = mul_high(magnitude << zeros, HALF_PI_FIXED);
    // The upper 24 bits of 63, and the others.
    let first = product & !0xff_ffff_ffff;
    let scale = power_of_two(-63 - zeros as i32);
    let scale = if negative { -scale } else { scale };
    let quarter = (turns >> 62) as u32 + u32::from(negative);
    (quarter, first as f32 * scale, (product - first) as f32 * scale)
}

/// Tangent of an angle in radians, of any size; zeros keep their sign, and infinities give NaN.
#[inline]
pub fn tan(x: f32) -> f32 {
    let a = x.abs();
    if a.is_nan() || a == f32::INFINITY {
        return f32::NAN;
    }
    let (quarter, t, low) = if a <= QUARTER_PI { (0, a, 0.0) } else { reduced(a) };
    let square = t * t;
    let tail = t * square * horner(square, TAN_SERIES);
    let near = t + tail;
    let tangent = t + (tail + (low + low * (near * near)));
    let tangent = if quarter & 1 == 0 { tangent } else { -1.0 / tangent };
    if x.is_sign_negative() { -tangent } else { tangent }
}
