//! Conversions between types.

use half::{bf16, f16};

use crate::scalar::{Integer, Scalar};

/// Conversion between types: integers wrap, floats truncate toward zero and saturate, and NaN
/// becomes 0. A conversion to a float rounds once, to the nearest, ties to even.
pub trait CastFrom<S> {
    /// The converted value; wraps if it does not fit.
    fn cast_from(source: S) -> Self;
    /// The converted value, clamped to the target's range.
    fn saturate_from(source: S) -> Self;
}

/// A conversion that is the same with and without saturation.
macro_rules! same {
    ($([$($generic:tt)*] $from:ty => $to:ty, |$source:ident| $value:expr;)*) => {$(
        impl<$($generic)*> CastFrom<$from> for $to {
            #[inline]
            fn cast_from($source: $from) -> $to {
                $value
            }
            #[inline]
            fn saturate_from($source: $from) -> $to {
                $value
            }
        }
    )*};
}

macro_rules! to_integers {
    ($($to:ident)*) => {$(
        impl<S: Integer> CastFrom<S> for $to {
            #[inline]
            fn cast_from(source: S) -> $to {
                <$to>::wrap(source.widen())
            }
            #[inline]
            fn saturate_from(source: S) -> $to {
                <$to>::saturate(source)
            }
        }
        same! {
            [] f32 => $to, |source| source as $to;
            [] f64 => $to, |source| source as $to;
            [] f16 => $to, |source| source.to_f32() as $to;
            [] bf16 => $to, |source| source.to_f32() as $to;
            [] bool => $to, |source| $to::from(source);
        }
    )*};
}
to_integers! { u8 u16 u32 u64 i8 i16 i32 i64 }

same! {
    [S: Integer] S => f32, |source| source.to_f32();
    [] f32 => f32, |source| source;
    [] f64 => f32, |source| source as f32;
    [] f16 => f32, |source| source.to_f32();
    [] bf16 => f32, |source| source.to_f32();
    [] bool => f32, |source| f32::from(u8::from(source));

    [S: Integer] S => f64, |source| source.to_f64();
    [] f32 => f64, |source| f64::from(source);
    [] f64 => f64, |source| source;
    [] f16 => f64, |source| source.to_f64();
    [] bf16 => f64, |source| source.to_f64();
    [] bool => f64, |source| f64::from(u8::from(source));

    [S: Integer] S => f16, |source| f16::from_f32(odd_integer(source));
    [] f32 => f16, |source| f16::from_f32(source);
    [] f64 => f16, |source| f16::from_f32(odd(source));
    [] f16 => f16, |source| source;
    [] bf16 => f16, |source| f16::from_f32(source.to_f32());
    [] bool => f16, |source| f16::from_f32(f32::from(u8::from(source)));

    [S: Integer] S => bf16, |source| bf16::from_f32(odd_integer(source));
    [] f32 => bf16, |source| bf16::from_f32(source);
    [] f64 => bf16, |source| bf16::from_f32(odd(source));
    [] f16 => bf16, |source| bf16::from_f32(source.to_f32());
    [] bf16 => bf16, |source| source;
    [] bool => bf16, |source| bf16::from_f32(f32::from(u8::from(source)));
}

impl<S: Scalar> CastFrom<S> for bool {
    #[inline]
    fn cast_from(source: S) -> bool {
        source != S::default()
    }
    #[inline]
    fn saturate_from(source: S) -> bool {
        source != S::default()
    }
}

/// The number rounded to odd: truncated, with the last bit set if that was inexact. Rounding this to a float of 16 bits
/// gives the same result as rounding the number at once.
#[inline]
fn odd(number: f64) -> f32 {
    let nearest = number as f32;
    let back = f64::from(nearest);
    if back == number || number.is_nan() {
        return nearest;
    }
    sticky(nearest, back.abs() > number.abs())
}

/// An integer rounded to odd.
#[inline]
fn odd_integer<S: Integer>(number: S) -> f32 {
    let nearest = number.to_f32();
    // Both are integers of at most 65 bits.
    let (back, number) = (nearest as i128, exact(number));
    if back == number {
        return nearest;
    }
    sticky(nearest, back.abs() > number.abs())
}

#[inline]
fn exact<S: Integer>(number: S) -> i128 {
    if S::TYPE == crate::types::Type::U64 { i128::from(number.widen() as u64) } else { number.widen().into() }
}

/// The float below in magnitude if this one was rounded up, with the last bit set.
#[inline]
fn sticky(nearest: f32, rounded_up: bool) -> f32 {
    f32::from_bits((nearest.to_bits() - u32::from(rounded_up)) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nearest of all floats of 16 bits, ties to the even pattern.
    fn nearest<T: Copy>(number: f64, all: impl Iterator<Item = (u16, f64, T)>) -> T {
        let distance = |value: f64| (value - number).abs();
        let order = |a: &(u16, f64, T), b: &(u16, f64, T)| {
            distance(a.1).total_cmp(&distance(b.1)).then((a.0 & 1).cmp(&(b.0 & 1)))
        };
        all.min_by(order).map(|(_, _, value)| value).expect("there are floats")
    }

    #[test]
    fn conversions_to_sixteen_bits_round_once() {
        let finite = |bits: &u16| f16::from_bits(*bits).is_finite();
        let all = || (0..0x7c00).filter(finite).map(|bits| (bits, f16::from_bits(bits).to_f64(), bits));
        for number in [
            1.0 + 1.0 / 2048.0,
            1.0 + 1.0 / 2048.0 + 1e-12,
            1.0 + 3.0 / 2048.0 - 1e-12,
            2.0_f64.powi(-25) * (1.0 + 1e-9),
            2.0_f64.powi(-25),
            3.3e-6,
            65503.9999,
        ] {
            assert_eq!(f16::cast_from(number).to_bits(), nearest(number, all()), "{number}");
        }
        assert_eq!(
            (f16::cast_from(65520.0_f64), f16::cast_from(-1e300_f64)),
            (f16::INFINITY, f16::NEG_INFINITY)
        );
        assert!(f16::cast_from(f64::NAN).is_nan() && bf16::cast_from(f64::NAN).is_nan());
        // A tie after rounding to f32 first, which would round to even.
        let tie = (1_i64 << 40) + (1 << 32) + 1;
        assert_eq!(bf16::cast_from(tie).to_f64(), (1_i64 << 40) as f64 + (1_i64 << 33) as f64);
        assert_eq!(bf16::cast_from(tie as f64).to_f64(), (1_i64 << 40) as f64 + (1_i64 << 33) as f64);
        assert_eq!(bf16::cast_from(u64::MAX).to_f64(), 2.0_f64.powi(64));
        assert_eq!(bf16::cast_from(i64::MIN).to_f64(), -(2.0_f64.powi(63)));
    }

    #[test]
    fn wide_integers_saturate_and_wrap() {
        assert_eq!((i32::saturate_from(i64::MIN), i32::cast_from(1_i64 << 32 | 5)), (i32::MIN, 5));
        assert_eq!((u64::saturate_from(-3_i32), u64::cast_from(-1_i32)), (0, u64::MAX));
        assert_eq!((u64::saturate_from(u64::MAX), i64::saturate_from(u64::MAX)), (u64::MAX, i64::MAX));
        assert_eq!((i64::cast_from(u64::MAX), u8::saturate_from(u64::MAX)), (-1, 255));
        assert_eq!((u64::cast_from(1e30_f32), i64::cast_from(f64::NAN)), (u64::MAX, 0));
    }
}
