//! Arithmetic of floats. Those of 16 bits compute in `f32` and round once.

use half::{bf16, f16};

use crate::math;
use crate::op::UnaryOp;
use crate::scalar::{Arithmetic, Scalar};
use crate::types::Type;

/// Operations that only floats have.
pub trait Float: Arithmetic {
    /// An operation on one operand, which the type has.
    fn function(self, op: UnaryOp) -> Self;
    /// `self` to the power of `other`.
    fn power(self, other: Self) -> Self;
    /// The angle of the point with the coordinates `other` and `self`.
    fn angle(self, other: Self) -> Self;
    /// Whether it is no number.
    fn is_nan(self) -> bool;
}

impl Float for f32 {
    #[inline]
    fn function(self, op: UnaryOp) -> f32 {
        op.float(self)
    }
    #[inline]
    fn power(self, other: f32) -> f32 {
        math::pow(self, other)
    }
    #[inline]
    fn angle(self, other: f32) -> f32 {
        math::atan2(self, other)
    }
    #[inline]
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
}

impl Float for f64 {
    #[inline]
    fn function(self, op: UnaryOp) -> f64 {
        op.double(self)
    }
    #[inline]
    fn power(self, other: f64) -> f64 {
        math::double::pow(self, other)
    }
    #[inline]
    fn angle(self, _: f64) -> f64 {
        unreachable!("f64 has no such function")
    }
    #[inline]
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}

macro_rules! floats {
    ($($t:ident $bits:ident $ty:ident;)*) => {$(
        impl Scalar for $t {
            const TYPE: Type = Type::$ty;
            type Bits = $bits;
            #[inline]
            fn from_bits(bits: $bits) -> $t {
                $t::from_bits(bits)
            }
            #[inline]
            fn to_bits(self) -> $bits {
                $t::to_bits(self)
            }
        }

        impl Arithmetic for $t {
            type Distance = $t;
            #[inline]
            fn add(self, other: $t) -> $t {
                self + other
            }
            #[inline]
            fn sub(self, other: $t) -> $t {
                self - other
            }
            #[inline]
            fn mul(self, other: $t) -> $t {
                self * other
            }
            #[inline]
            fn div(self, other: $t) -> $t {
                self / other
            }
            #[inline]
            fn rem(self, other: $t) -> $t {
                self - other * (self / other).floor()
            }
            #[inline]
            fn min(self, other: $t) -> $t {
                // Equal operands have equal bits, except for zeros: OR-ing the bits gives -0 if either
                // operand is -0.
                let ordered = if other < self { other } else { self };
                let equal = $t::from_bits(self.to_bits() | other.to_bits());
                let number = if self == other { equal } else { ordered };
                if self.is_nan() { other } else { number }
            }
            #[inline]
            fn max(self, other: $t) -> $t {
                let ordered = if other > self { other } else { self };
                let equal = $t::from_bits(self.to_bits() & other.to_bits());
                let number = if self == other { equal } else { ordered };
                if self.is_nan() { other } else { number }
            }
            #[inline]
            fn neg(self) -> $t {
                -self
            }
            #[inline]
            fn abs(self) -> $t {
                $t::abs(self)
            }
            #[inline]
            fn absd(self, other: $t) -> $t {
                (self - other).abs()
            }
        }
    )*};
}
floats! {
    f32 u32 F32;
    f64 u64 F64;
}

macro_rules! halves {
    ($($t:ident $ty:ident;)*) => {$(
        impl Scalar for $t {
            const TYPE: Type = Type::$ty;
            type Bits = u32;
            #[inline]
            fn from_bits(bits: u32) -> $t {
                $t::from_bits(bits as u16)
            }
            #[inline]
            fn to_bits(self) -> u32 {
                u32::from($t::to_bits(self))
            }
            #[inline]
            fn seen(self) -> u64 {
                if self.is_nan() { 0x7fff } else { self.to_word() }
            }
        }

        impl Arithmetic for $t {
            type Distance = $t;
            #[inline]
            fn add(self, other: $t) -> $t {
                through(self, other, |a, b| a + b)
            }
            #[inline]
            fn sub(self, other: $t) -> $t {
                through(self, other, |a, b| a - b)
            }
            #[inline]
            fn mul(self, other: $t) -> $t {
                through(self, other, |a, b| a * b)
            }
            #[inline]
            fn div(self, other: $t) -> $t {
                through(self, other, |a, b| a / b)
            }
            #[inline]
            fn rem(self, other: $t) -> $t {
                through(self, other, Arithmetic::rem)
            }
            #[inline]
            fn min(self, other: $t) -> $t {
                through(self, other, Arithmetic::min)
            }
            #[inline]
            fn max(self, other: $t) -> $t {
                through(self, other, Arithmetic::max)
            }
            #[inline]
            fn neg(self) -> $t {
                -self
            }
            #[inline]
            fn abs(self) -> $t {
                $t::from_bits($t::to_bits(self) & 0x7fff)
            }
            #[inline]
            fn absd(self, other: $t) -> $t {
                through(self, other, Arithmetic::absd)
            }
        }

        impl Float for $t {
            #[inline]
            fn function(self, op: UnaryOp) -> $t {
                $t::from_f32(op.float(self.to_f32()))
            }
            #[inline]
            fn power(self, other: $t) -> $t {
                through(self, other, math::pow)
            }
            #[inline]
            fn angle(self, other: $t) -> $t {
                through(self, other, math::atan2)
            }
            #[inline]
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
        }

        impl Half for $t {
            #[inline]
            fn to_single(self) -> f32 {
                self.to_f32()
            }
            #[inline]
            fn of_single(value: f32) -> $t {
                $t::from_f32(value)
            }
        }
    )*};
}
halves! {
    f16 F16;
    bf16 BF16;
}

/// A float of 16 bits.
trait Half: Scalar {
    fn to_single(self) -> f32;
    fn of_single(value: f32) -> Self;
}

/// An operation in `f32`, rounded once.
#[inline]
fn through<T: Half>(a: T, b: T, operation: impl Fn(f32, f32) -> f32) -> T {
    T::of_single(operation(a.to_single(), b.to_single()))
}
