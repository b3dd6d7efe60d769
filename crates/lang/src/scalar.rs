//! The definition of every operation on one value, shared by the evaluator, the simulator and constant folding.
//!
//! Values are passed as patterns ([`Scalar::to_bits`]): of 64 bits for types of that width, and of 32 bits for all
//! others, with integers extended, so that two kinds of registers can hold any type.

mod cast;
mod float;

pub use half::{bf16, f16};

pub use self::cast::CastFrom;
pub use self::float::Float;
use crate::types::Type;

/// A pattern of bits: `u32` or `u64`.
pub trait Word: Copy + Default + Eq + Send + Sync + std::fmt::Debug + 'static {
    /// The low bits of a pattern of 64 bits.
    fn narrow(bits: u64) -> Self;
    /// The pattern, extended by zeros.
    fn wide(self) -> u64;
}

impl Word for u32 {
    #[inline]
    fn narrow(bits: u64) -> u32 {
        bits as u32
    }
    #[inline]
    fn wide(self) -> u64 {
        u64::from(self)
    }
}

impl Word for u64 {
    #[inline]
    fn narrow(bits: u64) -> u64 {
        bits
    }
    #[inline]
    fn wide(self) -> u64 {
        self
    }
}

/// A Rust type that corresponds to one of the language's [types](Type).
pub trait Scalar: Copy + PartialEq + PartialOrd + Default + Send + Sync + std::fmt::Debug + 'static {
    /// The corresponding type of the language.
    const TYPE: Type;
    /// The pattern of a register that holds a value.
    type Bits: Word;
    /// The value with this extended pattern.
    fn from_bits(bits: Self::Bits) -> Self;
    /// The value's extended pattern.
    fn to_bits(self) -> Self::Bits;
    /// The value with this pattern. Only the bits of the type count.
    #[inline]
    fn from_word(word: u64) -> Self {
        Self::from_bits(Self::Bits::narrow(word))
    }
    /// The value's pattern, extended by zeros.
    #[inline]
    fn to_word(self) -> u64 {
        self.to_bits().wide()
    }
    /// The pattern that a reinterpretation reads. All NaNs of 16 bits have the same pattern, because a conversion to
    /// `f32` and back may change it.
    #[inline]
    fn seen(self) -> u64 {
        self.to_word()
    }
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
    /// The integer as an `i64`; a `u64` wraps.
    fn widen(self) -> i64;
    /// Clamps an integer to the type's range.
    fn saturate<S: Integer>(from: S) -> Self;
    /// The integer as an `i64`; a larger `u64` becomes the largest one.
    fn limit(self) -> i64;
    /// The nearest `f32`.
    fn to_f32(self) -> f32;
    /// The nearest `f64`.
    fn to_f64(self) -> f64;
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
            __Type::F16 => {
                type $t = $crate::scalar::f16;
                $body
            }
            __Type::BF16 => {
                type $t = $crate::scalar::bf16;
                $body
            }
            __Type::F64 => {
                type $t = f64;
                $body
            }
            __Type::I64 => {
                type $t = i64;
                $body
            }
            __Type::U64 => {
                type $t = u64;
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

/// Runs one of three bodies: the first for `bool`, the others with the alias bound to the Rust type
/// of a float or an integer.
#[macro_export]
macro_rules! dispatch_kind {
    ($ty:expr, bool => $bool:expr, $float:ident => $floats:expr, $int:ident => $ints:expr) => {{
        use $crate::Type as __Type;
        match $ty {
            __Type::Bool => $bool,
            __Type::F32 => {
                type $float = f32;
                $floats
            }
            __Type::F16 => {
                type $float = $crate::scalar::f16;
                $floats
            }
            __Type::BF16 => {
                type $float = $crate::scalar::bf16;
                $floats
            }
            __Type::F64 => {
                type $float = f64;
                $floats
            }
            __Type::U8 => {
                type $int = u8;
                $ints
            }
            __Type::U16 => {
                type $int = u16;
                $ints
            }
            __Type::U32 => {
                type $int = u32;
                $ints
            }
            __Type::U64 => {
                type $int = u64;
                $ints
            }
            __Type::I8 => {
                type $int = i8;
                $ints
            }
            __Type::I16 => {
                type $int = i16;
                $ints
            }
            __Type::I32 => {
                type $int = i32;
                $ints
            }
            __Type::I64 => {
                type $int = i64;
                $ints
            }
        }
    }};
}
pub use dispatch_kind;

macro_rules! integers {
    ($($t:ident $unsigned:ident $bits:ident $ty:ident;)*) => {$(
        impl Scalar for $t {
            const TYPE: Type = Type::$ty;
            type Bits = $bits;
            #[inline]
            #[allow(trivial_numeric_casts, reason = "the macro serves u32 and u64 too")]
            fn from_bits(bits: $bits) -> $t {
                bits as $t
            }
            #[inline]
            #[allow(trivial_numeric_casts, reason = "the macro serves u32 and u64 too")]
            fn to_bits(self) -> $bits {
                self as $bits
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
                // Half of the sum, rounded up, without overflow.
                (self | other).wrapping_sub((self ^ other) >> 1)
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
            #[allow(trivial_numeric_casts, reason = "the macro serves i64 too")]
            fn wrap(wide: i64) -> $t {
                wide as $t
            }
            #[inline]
            #[allow(trivial_numeric_casts, reason = "the macro serves i64 too")]
            fn widen(self) -> i64 {
                self as i64
            }
            #[inline]
            #[allow(trivial_numeric_casts, reason = "the macro serves i64 too")]
            fn saturate<S: Integer>(from: S) -> $t {
                if matches!((S::TYPE, Type::$ty), (Type::U64, Type::U64)) {
                    return <$t>::wrap(from.widen());
                }
                let largest = $t::MAX.limit();
                from.limit().clamp($t::MIN.limit(), largest) as $t
            }
            #[inline]
            fn limit(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }
            #[inline]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

integers! {
    u8 u8 u32 U8;
    u16 u16 u32 U16;
    u32 u32 u32 U32;
    u64 u64 u64 U64;
    i8 u8 u32 I8;
    i16 u16 u32 I16;
    i32 u32 u32 I32;
    i64 u64 u64 I64;
}

impl Scalar for bool {
    const TYPE: Type = Type::Bool;
    type Bits = u32;
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
