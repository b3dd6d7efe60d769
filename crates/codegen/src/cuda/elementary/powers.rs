//! The functions of [`warploom_lang::math::powers`].

use warploom_lang::math::powers::{
    ERF_SERIES, ERFC_SERIES, EXP2_SERIES, EXPM1_SERIES, LN_2_HIGH, LN_2_LOW, LOG1P_SERIES, LOG2_SERIES,
    ROOT_HALF_BITS, TINY,
};

use super::{f, horner};

/// `wl_rsqrt`.
pub(in super::super) const RSQRT: &str = "\
static __device__ __forceinline__ float wl_rsqrt(float x) {
    return __fdiv_rn(1.0f, __fsqrt_rn(x));
}";

/// Emits `wl_exp2`.
pub(in super::super) fn exp2() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_exp2(float x) {{
    if (x >= 128.0f) return {};
    if (x < -150.0f) return 0.0f;
    const float k = rintf(x);
    const float t = x - k;
    const float mantissa = 1.0f + t * {};
    const int e = __float2int_rz(k);
    const int half = e >> 1;
    return mantissa * __int_as_float((half + 127) << 23) * __int_as_float((e - half + 127) << 23);
}}",
        f(f32::INFINITY),
        horner("t", &EXP2_SERIES),
    )
}

/// Emits `wl_expm1`.
pub(in super::super) fn expm1() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_expm1(float x) {{
    if (fabsf(x) < {}) return x;
    if (x < -18.0f) return -1.0f;
    if (x > 89.0f) return {};
    const float k = rintf(x * {});
    const float high = x - k * {}, low = k * {};
    const float t = high - low;
    const float lost = (high - t) - low;
    const float near = t + (t * t * {} + lost);
    const float half = __int_as_float((__float2int_rz(k) + 126) << 23);
    return 2.0f * ((half - 0.5f) + half * near);
}}",
        f(TINY),
        f(f32::INFINITY),
        f(std::f32::consts::LOG2_E),
        f(LN_2_HIGH),
        f(LN_2_LOW),
        horner("t", &EXPM1_SERIES),
    )
}

/// Emits `wl_split`: the exponent and the mantissa, between √½ and √2, of a positive normal number.
pub(in super::super) fn split() -> String {
    format!(
        "\
static __device__ __forceinline__ int wl_split(float x, float* mantissa) {{
    const int bits = __float_as_int(x);
    const int e = (bits - {ROOT_HALF_BITS:#x}) >> 23;
    *mantissa = __uint_as_float((unsigned)bits - ((unsigned)e << 23));
    return e;
}}"
    )
}

/// Emits `wl_log2`.
pub(in super::super) fn log2() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_log2(float x) {{
    if (x != x || x < 0.0f) return {};
    if (x == 0.0f) return {};
    if (x == {}) return x;
    const bool tiny = x < {};
    float mantissa;
    const int e = wl_split(tiny ? x * 8388608.0f : x, &mantissa) + (tiny ? -23 : 0);
    const float t = mantissa - 1.0f;
    return (float)e + (t + t * {});
}}",
        f(f32::NAN),
        f(f32::NEG_INFINITY),
        f(f32::INFINITY),
        f(f32::MIN_POSITIVE),
        horner("t", &LOG2_SERIES),
    )
}

/// Emits `wl_log1p`.
pub(in super::super) fn log1p() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_log1p(float x) {{
    if (fabsf(x) < {}) return x;
    if (x != x || x < -1.0f) return {};
    if (x == -1.0f) return {};
    if (x == {}) return x;
    const float sum = 1.0f + x;
    float mantissa;
    const int e = wl_split(sum, &mantissa);
    const float lost = x > 1.0f ? 1.0f - (sum - x) : x - (sum - 1.0f);
    const float t = e == 0 ? x : mantissa - 1.0f;
    const float low = e == 0 ? 0.0f : lost / sum;
    const float k = (float)e;
    const float s = t * t;
    const float tail = t * s * {} + (k * {} + low);
    return k * {} + (t - (0.5f * s - tail));
}}",
        f(TINY),
        f(f32::NAN),
        f(f32::NEG_INFINITY),
        f(f32::INFINITY),
        horner("t", &LOG1P_SERIES),
        f(LN_2_LOW),
        f(LN_2_HIGH),
    )
}

/// Emits `wl_erf`.
pub(in super::super) fn erf() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_erf(float x) {{
    const float a = fabsf(x);
    if (a < 1.0f) {{
        const float s = x * x;
        return x + x * {};
    }}
    return copysignf(a >= 4.0f ? 1.0f : 1.0f - wl_exp2({}), x);
}}",
        horner("s", &ERF_SERIES),
        horner("a", &ERFC_SERIES),
    )
}
