//! Elementary functions in strict binary32. Each operation is rounded, so every machine computes
//! the same bits. Those of this file are accurate to about one unit in the last place in the ranges
//! that images need; those of [`angles`] and [`powers`] to 2.5 over the whole range.
//!
//! The evaluator, the simulator and the checking build of emitted kernels share these definitions.
#![allow(
    clippy::excessive_precision,
    clippy::approx_constant,
    reason = "coefficients are given with all their published digits"
)]

pub mod angles;
pub mod double;
pub mod exact;
pub mod powers;
mod sources;

pub use angles::{acos, asin, atan, atan2, tan};
pub use powers::{erf, exp2, expm1, log1p, log2, rsqrt};
pub use sources::SOURCES;

/// The natural logarithm of 2, as rounded for the functions here.
const LN_2: f32 = 0.69314718;

/// Coefficients for the reduced argument of the exponential, highest power first.
const EXP_SERIES: [f32; 8] = [
    0.00031965933071842413,
    0.00119156835564003744,
    0.00848988645943932717,
    0.04160188091348320655,
    0.16667983794100929562,
    0.49999899033463041098,
    1.0,
    1.0,
];

/// Coefficients for the logarithm of a mantissa, in powers of the mantissa minus 1, highest power
/// first.
const LOG_SERIES: [f32; 10] = [
    0.05111976432738144643,
    -0.11793923497136414580,
    0.14971993724699017569,
    -0.16862004708254804686,
    0.19980668101718729313,
    -0.24991211576292837737,
    0.33333435275479328386,
    -0.50000106292873236491,
    1.0,
    0.0,
];

/// Coefficients for the reduced argument of the cheaper exponential, highest power first.
const FAST_EXP_SERIES: [f32; 6] = [
    0.01314350012789660196,
    0.03668965196652099192,
    0.16873890085469545053,
    0.49970514590562437052,
    1.0,
    1.0,
];

/// Evaluates a polynomial (highest power first) as two Horner chains in `x * x`, joined at the end.
#[inline]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let square = x * x;
    let mut chains = [coefficients[0], coefficients[1]];
    for (i, &c) in coefficients.iter().enumerate().skip(2) {
        chains[i % 2] = chains[i % 2] * square + c;
    }
    let [even, odd] = chains;
    if N.is_multiple_of(2) { even * x + odd } else { odd * x + even }
}

/// Evaluates a polynomial (highest power first) as one Horner chain.
#[inline]
fn horner<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut chain = coefficients[0];
    for &c in &coefficients[1..] {
        chain = chain * x + c;
    }
    chain
}

/// The upper half of a product.
#[inline]
fn mul_high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// `2^exponent`, for exponents of normal numbers, and 0 and infinity for those next to them.
#[inline]
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// `e^x`; 0 on underflow, infinity on overflow.
#[inline]
pub fn exp(x: f32) -> f32 {
    let k = (x * (1.0 / LN_2)).floor();
    let t = x - k * 0.6931457519;
    let t = t - k * 1.4286067653e-6;
    let mantissa = polynomial(t, EXP_SERIES);
    let k = k as i32;
    if k <= -127 {
        return 0.0;
    }
    if k >= 128 {
        return f32::INFINITY;
    }
    mantissa * power_of_two(k)
}

/// Natural logarithm; -infinity for 0, NaN for negative numbers.
#[inline]
pub fn log(x: f32) -> f32 {
    if x.is_nan() || x < 0.0 {
        return f32::NAN;
    }
    if x == 0.0 {
        return f32::NEG_INFINITY;
    }
    if x.is_infinite() {
        return x;
    }
    let (x, shift) = if x < f32::MIN_POSITIVE { (x * 8_388_608.0, -23) } else { (x, 0) };
    let bits = x.to_bits();
    // If the top bit of the fraction is set, the mantissa is 1.5 or more: halve it.
    let halve = (bits >> 22) & 1;
    let exponent = (bits >> 23) as i32 - 127 + halve as i32 + shift;
    let mantissa = f32::from_bits((bits & 0x7f_ffff) | ((127 - halve) << 23));
    let series = polynomial(mantissa - 1.0, LOG_SERIES);
    series + exponent as f32 * LN_2
}

/// `x^y` as `exp(log(x) * y)`; 1 for `y == 0`; NaN for a negative `x` with a non-integral `y`.
#[inline]
pub fn pow(x: f32, y: f32) -> f32 {
    if y == 0.0 {
        return 1.0;
    }
    if x == 0.0 {
        return if y > 0.0 { 0.0 } else { f32::INFINITY };
    }
    if x.is_nan() {
        return x;
    }
    let magnitude = exp(log(x.abs()) * y);
    if x > 0.0 {
        return magnitude;
    }
    if y.floor() != y {
        return f32::NAN;
    }
    let odd = y - 2.0 * (y / 2.0).floor() == 1.0;
    if odd { -magnitude } else { magnitude }
}

/// `e^x` to about 1e-6, with fewer operations than [`exp`].
#[inline]
pub fn fast_exp(x: f32) -> f32 {
    // Beyond these limits the result is infinite or 0. NaN passes through.
    let x = if x > 100.0 { 100.0 } else { x };
    let x = if x < -150.0 { -150.0 } else { x };
    let k = (x / LN_2).floor();
    let t = x - k * LN_2;
    let mantissa = polynomial(t, FAST_EXP_SERIES);
    let e = (k as i32).clamp(-127, 128);
    mantissa * power_of_two(e)
}

/// Splits an angle into a number of quarter turns and a remainder in about -π/4..π/4.
#[inline]
fn quarter_turns(x: f32) -> (i32, f32) {
    let k = (x * std::f32::consts::FRAC_2_PI).round_ties_even();
    // π/2 in three parts. The first two are short enough for exact products with a moderate `k`.
    let t = x - k * 1.570_312_5;
    let t = t - k * 4.837_512_969_970_703e-4;
    let t = t - k * 7.549_789_954e-8;
    (k as i32, t)
}

#[inline]
fn sin_series(t: f32) -> f32 {
    let square = t * t;
    let series = (-1.951_529_6e-4 * square + 8.332_161e-3) * square - 1.666_665_5e-1;
    series * square * t + t
}

#[inline]
fn cos_series(t: f32) -> f32 {
    let square = t * t;
    let series = (2.443_315_7e-5 * square - 1.388_731_6e-3) * square + 4.166_664_6e-2;
    series * square * square - 0.5 * square + 1.0
}

/// Sine of an angle in radians, intended for `|x|` up to a few thousand.
#[inline]
pub fn sin(x: f32) -> f32 {
    let (quarter, t) = quarter_turns(x);
    let value = if quarter & 1 == 0 { sin_series(t) } else { cos_series(t) };
    if quarter & 2 == 0 { value } else { -value }
}

/// Cosine of an angle in radians, intended for `|x|` up to a few thousand.
#[inline]
pub fn cos(x: f32) -> f32 {
    let (quarter, t) = quarter_turns(x);
    let value = if quarter & 1 == 0 { cos_series(t) } else { sin_series(t) };
    if quarter.wrapping_add(1) & 2 == 0 { value } else { -value }
}

/// Hyperbolic tangent, in -1..=1.
#[inline]
pub fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    if magnitude < 0.625 {
        let square = x * x;
        let series = (((-5.704_988_7e-3 * square + 2.063_908_9e-2) * square - 5.373_971_5e-2) * square
            + 1.333_144_2e-1)
            * square
            - 3.333_328_2e-1;
        return series * square * x + x;
    }
    let value = 1.0 - 2.0 / (exp(magnitude + magnitude) + 1.0);
    if x < 0.0 { -value } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(function: fn(f32) -> f32, truth: fn(f64) -> f64, range: (f32, f32), relative: bool) -> f64 {
        (0..=20_000)
            .map(|i| range.0 + (range.1 - range.0) * i as f32 / 20_000.0)
            .map(|x| {
                let expected = truth(f64::from(x));
                let error = (f64::from(function(x)) - expected).abs();
                if relative { error / expected.abs().max(1e-30) } else { error }
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_close_to_the_mathematics() {
        assert!(worst(exp, f64::exp, (-80.0, 80.0), true) < 5e-7);
        assert!(worst(fast_exp, f64::exp, (-20.0, 20.0), true) < 5e-5);
        assert!(worst(log, f64::ln, (1e-3, 100.0), false) < 5e-7);
        assert!(worst(sin, f64::sin, (-3000.0, 3000.0), false) < 2e-6);
        assert!(worst(cos, f64::cos, (-3000.0, 3000.0), false) < 2e-6);
        assert!(worst(tanh, f64::tanh, (-12.0, 12.0), false) < 3e-7);
        assert!(worst(|x| pow(x, 0.45), |x| x.powf(0.45), (1e-3, 4.0), true) < 1e-6);
    }

    #[test]
    fn edges_are_as_documented() {
        assert_eq!((exp(-1000.0), exp(1000.0)), (0.0, f32::INFINITY));
        assert!(exp(f32::NAN).is_nan() && log(-1.0).is_nan() && log(f32::NAN).is_nan());
        assert_eq!((log(0.0), log(f32::INFINITY)), (f32::NEG_INFINITY, f32::INFINITY));
        assert!((f64::from(log(1e-40)) - 1e-40f64.ln()).abs() < 1e-2);
        assert_eq!((pow(0.0, 2.0), pow(0.0, -1.0), pow(5.0, 0.0)), (0.0, f32::INFINITY, 1.0));
        assert!(pow(-2.0, 0.5).is_nan() && pow(-2.0, 3.0) < 0.0 && pow(-2.0, 2.0) > 0.0);
        assert_eq!((fast_exp(-1000.0), fast_exp(f32::NEG_INFINITY)), (0.0, 0.0));
    }
}
