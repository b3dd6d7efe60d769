//! What every operation computes on one value. The evaluator, the simulator and constant folding
//! share these definitions.
//!
//! Values are passed as 32-bit patterns ([`Scalar::to_bits`]), with integers extended to 32 bits,
//! so that one register can hold any type.

use crate::types::Type;

/// A Rust type that corresponds to one of the language's [types](Type).
pub trait Scalar: Copy + PartialEq + PartialOrd + Default + Send + Sync + std::fmt::Debug + 'static {
    /// The corresponding type of the language.
    const TYPE: Type;
    /// The value with this extended 32-bit pattern.
    fn from_bits(bits: u32) -> Self;
    /// The value's extended 32-bit pattern.
    fn to_bits(self) -> u32;
}

/// Arithmetic on integers (wrapping, Euclidean) and floats (IEEE).
pub trait Arithmetic: Scalar {
    /// The type of an absolute difference; unsigned for integers.
    type Distance: Scalar;
    /// Sum; wraps for integers.
    fn add(self, other: Self) -> Self;
    /// Difference; wraps for integers.
    fn sub(self, other: Self) -> Self;
    /// Product; wraps for integers.
    fn mul(self, other: Self) -> Self;
    /// Quotient; for integers Euclidean, and 0 for a zero divisor.
    fn div(self, other: Self) -> Self;
    /// Remainder in `0..|other|`; for integers 0 for a zero divisor; for floats
    /// `a - b * floor(a / b)`.
    fn rem(self, other: Self) -> Self;
    /// The smaller value; NaN gives the other operand; -0 is smaller than +0.
    fn min(self, other: Self) -> Self;
    /// The larger value; NaN gives the other operand; +0 is larger than -0.
    fn max(self, other: Self) -> Self;
    /// Negation; wraps for integers.
    fn neg(self) -> Self;
    /// Absolute value; the most negative integer maps to itself.
    fn abs(self) -> Self;
    /// `|self - other|`, exact for integers.
    fn absd(self, other: Self) -> Self::Distance;
}

/// Bitwise operations on integers; logical operations on booleans.
pub trait Bits: Scalar {
    /// Bitwise (logical) and.
    fn and(self, other: Self) -> Self;
    /// Bitwise (logical) or.
    fn or(self, other: Self) -> Self;
    /// Bitwise (logical) exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Bitwise (logical) complement.
    fn not(self) -> Self;
}

/// Operations that only integers have.
pub trait Integer: Arithmetic + Bits {
    /// Left shift by `amount` modulo the width.
    fn shl(self, amount: Self) -> Self;
    /// Right shift by `amount` modulo the width; arithmetic for signed types.
    fn shr(self, amount: Self) -> Self;
    /// `(self + other + 1) / 2` rounded down, without overflow.
    fn average(self, other: Self) -> Self;
    /// The number of set bits.
    fn popcount(self) -> Self;
    /// The number of zeros above the highest set bit; the width for 0.
    fn leading_zeros(self) -> Self;
    /// Truncates to the type's width (wraps).
    fn wrap(wide: i64) -> Self;
    /// Clamps to the type's range.
    fn saturate(wide: i64) -> Self;
    /// The integer as an `i64`, without loss.
    fn widen(self) -> i64;
}

/// Runs `$body` with the type alias `$t` bound to the Rust type of a [`Type`].
#[macro_export]
macro_rules! dispatch {
    ($ty:expr, $t:ident => $body:expr) => {{
        use $crate::Type as __Type;
        match $ty {
            __Type::Bool => {
                type $t = bool;
                $body
            }
            __Type::F32 => {
                type $t = f32;
                $body
            }
            __Type::U8 => {
                type $t = u8;
                $body
            }
            __Type::U16 => {
                type $t = u16;
                $body
            }
            __Type::U32 => {
                type $t = u32;
                $body
            }
            __Type::I8 => {
                type $t = i8;
                $body
            }
            __Type::I16 => {
                type $t = i16;
                $body
            }
            __Type::I32 => {
                type $t = i32;
                $body
            }
        }
    }};
}
pub use dispatch;

macro_rules! integers {
    ($($t:ident $unsigned:ident $ty:ident;)*) => {$(
        impl Scalar for $t {
            const TYPE: Type = Type::$ty;
            #[inline]
            #[allow(trivial_numeric_casts, reason = "the macro serves u32 too")]
            fn from_bits(bits: u32) -> $t {
                bits as $t
            }
            #[inline]
            #[allow(trivial_numeric_casts, reason = "the macro serves u32 too")]
            fn to_bits(self) -> u32 {
                self as u32
            }
        }

        impl Arithmetic for $t {
            type Distance = $unsigned;
            #[inline]
            fn add(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            #[inline]
            fn sub(self, other: $t) -> $t {
                self.wrapping_sub(other)
            }
            #[inline]
            fn mul(self, other: $t) -> $t {
                self.wrapping_mul(other)
            }
            #[inline]
            fn div(self, other: $t) -> $t {
                if other == 0 { 0 } else { self.wrapping_div_euclid(other) }
            }
            #[inline]
            fn rem(self, other: $t) -> $t {
                if other == 0 { 0 } else { self.wrapping_rem_euclid(other) }
            }
            #[inline]
            fn min(self, other: $t) -> $t {
                Ord::min(self, other)
            }
            #[inline]
            fn max(self, other: $t) -> $t {
                Ord::max(self, other)
            }
            #[inline]
            fn neg(self) -> $t {
                self.wrapping_neg()
            }
            #[inline]
            #[allow(unused_comparisons, reason = "the macro serves unsigned types too")]
            fn abs(self) -> $t {
                if self < 0 { self.wrapping_neg() } else { self }
            }
            #[inline]
            fn absd(self, other: $t) -> $unsigned {
                self.abs_diff(other)
            }
        }

        impl Bits for $t {
            #[inline]
            fn and(self, other: $t) -> $t {
                self & other
            }
            #[inline]
            fn or(self, other: $t) -> $t {
                self | other
            }
            #[inline]
            fn xor(self, other: $t) -> $t {
                self ^ other
            }
            #[inline]
            fn not(self) -> $t {
                !self
            }
        }

        impl Integer for $t {
            #[inline]
            #[allow(trivial_numeric_casts, reason = "the macro serves u32 too")]
            fn shl(self, amount: $t) -> $t {
                self.wrapping_shl(amount as u32)
            }
            #[inline]
            #[allow(trivial_numeric_casts, reason = "the macro serves u32 too")]
            fn shr(self, amount: $t) -> $t {
                self.wrapping_shr(amount as u32)
            }
            #[inline]
            fn average(self, other: $t) -> $t {
                ((i64::from(self) + i64::from(other) + 1) >> 1) as $t
            }
            #[inline]
            fn popcount(self) -> $t {
                <$t as Integer>::wrap(i64::from(self.count_ones()))
            }
            #[inline]
            fn leading_zeros(self) -> $t {
                <$t as Integer>::wrap(i64::from($t::leading_zeros(self)))
            }
            #[inline]
            fn wrap(wide: i64) -> $t {
                wide as $t
            }
            #[inline]
            fn saturate(wide: i64) -> $t {
                wide.clamp(i64::from($t::MIN), i64::from($t::MAX)) as $t
            }
            #[inline]
            fn widen(self) -> i64 {
                i64::from(self)
            }
        }
    )*};
}

integers! {
    u8 u8 U8;
    u16 u16 U16;
    u32 u32 U32;
    i8 u8 I8;
    i16 u16 I16;
    i32 u32 I32;
}

impl Scalar for bool {
    const TYPE: Type = Type::Bool;
    #[inline]
    fn from_bits(bits: u32) -> bool {
        bits != 0
    }
    #[inline]
    fn to_bits(self) -> u32 {
        u32::from(self)
    }
}

impl Bits for bool {
    #[inline]
    fn and(self, other: bool) -> bool {
        self & other
    }
    #[inline]
    fn or(self, other: bool) -> bool {
        self | other
    }
    #[inline]
    fn xor(self, other: bool) -> bool {
        self ^ other
    }
    #[inline]
    fn not(self) -> bool {
        !self
    }
}

impl Scalar for f32 {
    const TYPE: Type = Type::F32;
    #[inline]
    fn from_bits(bits: u32) -> f32 {
        f32::from_bits(bits)
    }
    #[inline]
    fn to_bits(self) -> u32 {
        f32::to_bits(self)
    }
}

impl Arithmetic for f32 {
    type Distance = f32;
    #[inline]
    fn add(self, other: f32) -> f32 {
        self + other
    }
    #[inline]
    fn sub(self, other: f32) -> f32 {
        self - other
    }
    #[inline]
    fn mul(self, other: f32) -> f32 {
        self * other
    }
    #[inline]
    fn div(self, other: f32) -> f32 {
        self / other
    }
    #[inline]
    fn rem(self, other: f32) -> f32 {
        self - other * (self / other).floor()
    }
    #[inline]
    fn min(self, other: f32) -> f32 {
        // Equal operands have equal bits, except for zeros: OR-ing the bits gives -0 if either
        // operand is -0.
        let ordered = if other < self { other } else { self };
        let equal = f32::from_bits(self.to_bits() | other.to_bits());
        let number = if self == other { equal } else { ordered };
        if self.is_nan() { other } else { number }
    }
    #[inline]
    fn max(self, other: f32) -> f32 {
        let ordered = if other > self { other } else { self };
        let equal = f32::from_bits(self.to_bits() & other.to_bits());
        let number = if self == other { equal } else { ordered };
        if self.is_nan() { other } else { number }
    }
    #[inline]
    fn neg(self) -> f32 {
        -self
    }
    #[inline]
    fn abs(self) -> f32 {
        f32::abs(self)
    }
    #[inline]
    fn absd(self, other: f32) -> f32 {
        (self - other).abs()
    }
}

/// Conversion between types: integers wrap, floats truncate toward zero and saturate, and NaN
/// becomes 0.
pub trait CastFrom<S> {
    /// The converted value; wraps if it does not fit.
    fn cast_from(source: S) -> Self;
    /// The converted value, clamped to the target's range.
    fn saturate_from(source: S) -> Self;
}

macro_rules! int_casts {
    ($($to:ident)*) => {$(
        impl<S: Integer> CastFrom<S> for $to {
            #[inline]
            fn cast_from(source: S) -> $to {
                <$to>::wrap(source.widen())
            }
            #[inline]
            fn saturate_from(source: S) -> $to {
                <$to>::saturate(source.widen())
            }
        }
        impl CastFrom<f32> for $to {
            #[inline]
            fn cast_from(source: f32) -> $to {
                source as $to
            }
            #[inline]
            fn saturate_from(source: f32) -> $to {
                source as $to
            }
        }
        impl CastFrom<bool> for $to {
            #[inline]
            fn cast_from(source: bool) -> $to {
                $to::from(source)
            }
            #[inline]
            fn saturate_from(source: bool) -> $to {
                $to::from(source)
            }
        }
    )*};
}
int_casts! { u8 u16 u32 i8 i16 i32 }

impl<S: Integer> CastFrom<S> for f32 {
    #[inline]
    fn cast_from(source: S) -> f32 {
        // An i64 holds every source value exactly, so this rounds once.
        source.widen() as f32
    }
    #[inline]
    fn saturate_from(source: S) -> f32 {
        source.widen() as f32
    }
}

impl CastFrom<f32> for f32 {
    #[inline]
    fn cast_from(source: f32) -> f32 {
        source
    }
    #[inline]
    fn saturate_from(source: f32) -> f32 {
        source
    }
}

impl CastFrom<bool> for f32 {
    #[inline]
    fn cast_from(source: bool) -> f32 {
        f32::from(u8::from(source))
    }
    #[inline]
    fn saturate_from(source: bool) -> f32 {
        f32::from(u8::from(source))
    }
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
