//! Floats of 16 bits in C++.
//!
//! In expressions they are `float`s that hold a value of the type, so that an operation is that of
//! `float`, rounded; in memory they are bit patterns.

use warploom_lang::Type;

use super::expr::Printer;
use super::prelude::Helper;
use super::text::Text;

impl Printer<'_> {
    /// Rounds a `float` to a type of 16 bits.
    pub(super) fn rounded(&mut self, ty: Type, text: &Text) -> Text {
        self.half_helper(ty, [Helper::F16, Helper::BF16], text)
    }

    /// The bits of a value.
    pub(super) fn half_bits(&mut self, ty: Type, text: &Text) -> Text {
        self.half_helper(ty, [Helper::F16Bits, Helper::BF16Bits], text)
    }

    /// The value with some bits.
    pub(super) fn half_value(&mut self, ty: Type, text: &Text) -> Text {
        self.half_helper(ty, [Helper::F16Value, Helper::BF16Value], text)
    }

    fn half_helper(&mut self, ty: Type, [f16, bf16]: [Helper; 2], text: &Text) -> Text {
        let helper = if ty == Type::F16 { f16 } else { bf16 };
        self.helpers.insert(helper);
        Text::call(helper.name(), [text])
    }

    /// An element of an array as a value.
    pub(super) fn loaded(&mut self, ty: Type, element: Text) -> Text {
        if ty.is_half() { self.half_value(ty, &element) } else { element }
    }

    /// A value as an element of an array.
    pub(super) fn stored(&mut self, ty: Type, value: Text) -> Text {
        if ty.is_half() { self.half_bits(ty, &value) } else { value }
    }
}

pub(super) const F16_BITS: &str = "\
static __device__ __forceinline__ unsigned short wl_f16_bits(float x) {
    unsigned short bits;
    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x));
    return x != x ? (unsigned short)0x7fffu : bits;
}";

pub(super) const F16_VALUE: &str = "\
static __device__ __forceinline__ float wl_f16_value(unsigned short bits) {
    float x;
    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(bits));
    return x;
}";

pub(super) const F16: &str = "\
static __device__ __forceinline__ float wl_f16(float x) {
    return wl_f16_value(wl_f16_bits(x));
}";

pub(super) const BF16_BITS: &str = "\
static __device__ __forceinline__ unsigned short wl_bf16_bits(float x) {
    const unsigned bits = __float_as_uint(x);
    if (x != x) return (unsigned short)0x7fffu;
    return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}";

pub(super) const BF16_VALUE: &str = "\
static __device__ __forceinline__ float wl_bf16_value(unsigned short bits) {
    return __uint_as_float((unsigned)bits << 16);
}";

pub(super) const BF16: &str = "\
static __device__ __forceinline__ float wl_bf16(float x) {
    return wl_bf16_value(wl_bf16_bits(x));
}";

pub(super) const ODD: &str = "\
// Cut off, and the last bit set if that lost anything: rounding this to 16 bits rounds once.
static __device__ __forceinline__ float wl_odd(double x) {
    const float f = __double2float_rz(x);
    return x != x || (double)f == x ? f : __uint_as_float(__float_as_uint(f) | 1u);
}";

pub(super) const ODD_WIDE: &str = "\
static __device__ __forceinline__ float wl_odd(long long x) {
    const float f = __ll2float_rz(x);
    return (long long)f == x ? f : __uint_as_float(__float_as_uint(f) | 1u);
}";

pub(super) const ODD_WIDE_UNSIGNED: &str = "\
static __device__ __forceinline__ float wl_odd(unsigned long long x) {
    const float f = __ull2float_rz(x);
    return (unsigned long long)f == x ? f : __uint_as_float(__float_as_uint(f) | 1u);
}";
