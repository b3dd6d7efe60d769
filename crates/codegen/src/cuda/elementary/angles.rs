//! The functions of [`warploom_lang::math::angles`].

use warploom_lang::math::angles::{
    ASIN_SERIES, ATAN_SERIES, HALF_PI, HALF_PI_FIXED, HALF_PI_LOW, PI, PI_LOW, QUARTER_PI, TAN_SERIES,
    TWO_OVER_PI,
};

use super::{f, horner};

/// Emits `wl_atan_series`: the arc tangent of a number in 0..=1.
pub(in super::super) fn atan_series() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_atan_series(float t) {{
    const float s = t * t;
    return t + t * s * {};
}}",
        horner("s", &ATAN_SERIES)
    )
}

/// Emits `wl_atan`.
pub(in super::super) fn atan() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_atan(float x) {{
    const float a = fabsf(x);
    const float series = wl_atan_series(a > 1.0f ? 1.0f / a : a);
    return copysignf(a > 1.0f ? {} - (series + {}) : series, x);
}}",
        f(HALF_PI),
        f(-HALF_PI_LOW),
    )
}

/// Emits `wl_atan2`.
pub(in super::super) fn atan2() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_atan2(float y, float x) {{
    if (x != x || y != y) return {};
    const float a = fabsf(y), b = fabsf(x);
    const bool steep = a > b;
    const float low = steep ? b : a, high = steep ? a : b;
    float angle = wl_atan_series(high == 0.0f ? 0.0f : low == {} ? 1.0f : low / high);
    const bool negative = __float_as_int(x) < 0;
    if (steep) angle = negative ? {half} + (angle - {half_low}) : {half} - (angle + {half_low});
    else if (negative) angle = {} - (angle + {});
    return copysignf(angle, y);
}}",
        f(f32::NAN),
        f(f32::INFINITY),
        f(PI),
        f(-PI_LOW),
        half = f(HALF_PI),
        half_low = f(-HALF_PI_LOW),
    )
}

/// Emits `wl_asin_tail`: what the series of the arc sine adds to `t`, from the square of `t`.
pub(in super::super) fn asin_tail() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_asin_tail(float t, float s) {{
    return t * s * {};
}}",
        horner("s", &ASIN_SERIES)
    )
}

/// Emits `wl_asin`.
pub(in super::super) fn asin() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_asin(float x) {{
    const float a = fabsf(x);
    if (a <= 0.5f) return x + wl_asin_tail(x, x * x);
    const float s = 0.5f * (1.0f - a);
    const float root = __fsqrt_rn(s);
    return copysignf({} - (2.0f * (root + wl_asin_tail(root, s)) + {}), x);
}}",
        f(HALF_PI),
        f(-HALF_PI_LOW),
    )
}

/// Emits `wl_acos`.
pub(in super::super) fn acos() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_acos(float x) {{
    const float a = fabsf(x);
    if (a <= 0.5f) return {} - (x + (wl_asin_tail(x, x * x) + {low}));
    const float s = 0.5f * (1.0f - a);
    const float root = __fsqrt_rn(s);
    const float tail = wl_asin_tail(root, s);
    return x > 0.0f ? 2.0f * (root + tail) : {} - 2.0f * (root + (tail + {low}));
}}",
        f(HALF_PI),
        f(PI),
        low = f(-HALF_PI_LOW),
    )
}

/// Emits `wl_reduced`: quarter turns of an angle above π/4, and the remainder in two parts.
pub(in super::super) fn reduced() -> String {
    let bits = TWO_OVER_PI.map(|word| format!("{word:#x}u")).join(", ");
    format!(
        "\
static __device__ __forceinline__ unsigned wl_reduced(float a, float* t, float* rest) {{
    const unsigned table[8] = {{{bits}}};
    const unsigned bits = __float_as_uint(a);
    const unsigned long long mantissa = (bits & 0x7fffffu) | 0x800000u;
    const unsigned start = (bits >> 23) - 120u;
    const unsigned word = start >> 5, shift = start & 31u;
    const unsigned long long low = mantissa * __funnelshift_l(table[word + 3u], table[word + 2u], shift);
    const unsigned long long middle =
        mantissa * __funnelshift_l(table[word + 2u], table[word + 1u], shift) + (low >> 32);
    const unsigned long long high =
        mantissa * __funnelshift_l(table[word + 1u], table[word], shift) + (middle >> 32);
    const unsigned long long turns = (high << 32) | (middle & 0xffffffffull);
    const unsigned long long fraction = (turns << 2) | ((low >> 30) & 3ull);
    const bool negative = (fraction >> 63) != 0ull;
    const unsigned long long magnitude = negative ? 0ull - fraction : fraction;
    const int zeros = __clzll((long long)(magnitude | 1ull));
    const unsigned long long product = __umul64hi(magnitude << zeros, {HALF_PI_FIXED:#x}ull);
    const unsigned long long first = product & ~0xffffffffffull;
    const float scale = __int_as_float((64 - zeros) << 23);
    *t = __ull2float_rn(first) * (negative ? -scale : scale);
    *rest = __ull2float_rn(product - first) * (negative ? -scale : scale);
    return (unsigned)(turns >> 62) + (negative ? 1u : 0u);
}}"
    )
}

/// Emits `wl_tan`.
pub(in super::super) fn tan() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_tan(float x) {{
    const float a = fabsf(x);
    if (x != x || a == {}) return {};
    float t = a, rest = 0.0f;
    unsigned quarter = 0u;
    if (a > {}) quarter = wl_reduced(a, &t, &rest);
    const float s = t * t;
    const float tail = t * s * {};
    const float near = t + tail;
    float tangent = t + (tail + (rest + rest * (near * near)));
    tangent = (quarter & 1u) == 0u ? tangent : -1.0f / tangent;
    return __float_as_int(x) < 0 ? -tangent : tangent;
}}",
        f(f32::INFINITY),
        f(f32::NAN),
        f(QUARTER_PI),
        horner("s", &TAN_SERIES),
    )
}
