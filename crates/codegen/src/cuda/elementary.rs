//! The elementary functions of [`warploom_lang::math`] in CUDA C++: the same operations in the same
//! order.
#![allow(
    clippy::excessive_precision,
    clippy::approx_constant,
    reason = "coefficients are given with all their published digits"
)]

use warploom_lang::math::{self, LN_2};

use super::literal;

pub(super) mod angles;
pub(super) mod double;
pub(super) mod powers;

fn f(value: f32) -> String {
    literal::float(value).code
}

/// A polynomial in `x`, highest power first, as two interleaved Horner chains in `s` that are
/// joined at the end.
fn polynomial(x: &str, coefficients: &[f32]) -> String {
    let chain = |start: usize| {
        let terms: Vec<String> = coefficients.iter().skip(start).step_by(2).map(|&c| f(c)).collect();
        let steps = terms.len().saturating_sub(2);
        let first = terms.first().cloned().unwrap_or_default();
        terms.iter().skip(1).enumerate().fold(first, |chain, (i, term)| {
            let term = term.strip_prefix('-').map_or(format!("+ {term}"), |term| format!("- {term}"));
            if i < steps { format!("({chain} * s {term})") } else { format!("{chain} * s {term}") }
        })
    };
    let (even, odd) = (chain(0), chain(1));
    let (high, low) = if coefficients.len().is_multiple_of(2) { ("even", "odd") } else { ("odd", "even") };
    format!(
        "    const float s = {x} * {x};
    const float even = {even};
    const float odd = {odd};
    const float series = {high} * {x} + {low};"
    )
}

/// A polynomial in `x`, highest power first, as one Horner chain in parentheses.
fn horner(x: &str, coefficients: &[f32]) -> String {
    let terms: Vec<String> = coefficients.iter().map(|&c| f(c)).collect();
    let first = terms.first().cloned().unwrap_or_default();
    terms.iter().skip(1).fold(first, |chain, term| {
        let term = term.strip_prefix('-').map_or(format!("+ {term}"), |term| format!("- {term}"));
        format!("({chain} * {x} {term})")
    })
}

/// Emits `wl_exp`.
pub(super) fn exp() -> String {
    let series = polynomial("t", &math::EXP_SERIES);
    format!(
        "\
static __device__ __forceinline__ float wl_exp(float x) {{
    const float k = floorf(x * {});
    const float r = x - k * {};
    const float t = r - k * {};
{series}
    const int e = __float2int_rz(k);
    if (e <= -127) return 0.0f;
    if (e >= 128) return {};
    return series * __int_as_float((e + 127) << 23);
}}",
        f(1.0 / LN_2),
        f(0.6931457519),
        f(1.4286067653e-6),
        f(f32::INFINITY),
    )
}

/// Emits `wl_fast_exp`, the cheaper approximation.
pub(super) fn fast_exp() -> String {
    let series = polynomial("t", &math::FAST_EXP_SERIES);
    format!(
        "\
static __device__ __forceinline__ float wl_fast_exp(float x) {{
    x = x > 100.0f ? 100.0f : x;
    x = x < -150.0f ? -150.0f : x;
    const float k = floorf(x / {ln_2});
    const float t = x - k * {ln_2};
{series}
    const int e = min(max(__float2int_rz(k), -127), 128);
    return series * __int_as_float((e + 127) << 23);
}}",
        ln_2 = f(LN_2),
    )
}

/// Emits `wl_log`, the natural logarithm.
pub(super) fn log() -> String {
    let series = polynomial("t", &math::LOG_SERIES);
    format!(
        "\
static __device__ __forceinline__ float wl_log(float x) {{
    if (x != x || x < 0.0f) return {};
    if (x == 0.0f) return {};
    if (x == {infinity}) return x;
    const bool tiny = x < {};
    const unsigned bits = __float_as_uint(tiny ? x * 8388608.0f : x);
    const unsigned halve = (bits >> 22) & 1u;
    const int e = (int)(bits >> 23) - 127 + (int)halve + (tiny ? -23 : 0);
    const float t = __uint_as_float((bits & 0x7fffffu) | ((127u - halve) << 23)) - 1.0f;
{series}
    return series + (float)e * {};
}}",
        f(f32::NAN),
        f(f32::NEG_INFINITY),
        f(f32::MIN_POSITIVE),
        f(LN_2),
        infinity = f(f32::INFINITY),
    )
}

/// `wl_pow`: `x` to the power of `y`.
pub(super) const POW: &str = "\
static __device__ __forceinline__ float wl_pow(float x, float y) {
    if (y == 0.0f) return 1.0f;
    if (x == 0.0f) return y > 0.0f ? 0.0f : __int_as_float(0x7f800000);
    if (x != x) return x;
    const float magnitude = wl_exp(wl_log(fabsf(x)) * y);
    if (x > 0.0f) return magnitude;
    if (floorf(y) != y) return __int_as_float(0x7fc00000);
    return y - 2.0f * floorf(y / 2.0f) == 1.0f ? -magnitude : magnitude;
}";

/// Emits the range reduction to quarter turns, and the sine and cosine series on the remainder.
pub(super) fn turns() -> String {
    format!(
        "\
static __device__ __forceinline__ int wl_turns(float x, float* sine, float* cosine) {{
    const float k = rintf(x * {});
    float t = x - k * {};
    t = t - k * {};
    t = t - k * {};
    const float s = t * t;
    *sine = (({} * s + {}) * s - {}) * s * t + t;
    *cosine = (({} * s - {}) * s + {}) * s * s - 0.5f * s + 1.0f;
    return __float2int_rz(k);
}}",
        f(std::f32::consts::FRAC_2_PI),
        f(1.570_312_5),
        f(4.837_512_969_970_703e-4),
        f(7.549_789_954e-8),
        f(-1.951_529_6e-4),
        f(8.332_161e-3),
        f(1.666_665_5e-1),
        f(2.443_315_7e-5),
        f(1.388_731_6e-3),
        f(4.166_664_6e-2),
    )
}

pub(super) const SIN: &str = "\
static __device__ __forceinline__ float wl_sin(float x) {
    float sine, cosine;
    const int quarter = wl_turns(x, &sine, &cosine);
    const float value = (quarter & 1) == 0 ? sine : cosine;
    return (quarter & 2) == 0 ? value : -value;
}";

pub(super) const COS: &str = "\
static __device__ __forceinline__ float wl_cos(float x) {
    float sine, cosine;
    const int quarter = wl_turns(x, &sine, &cosine);
    const float value = (quarter & 1) == 0 ? cosine : sine;
    return (((unsigned)quarter + 1u) & 2u) == 0u ? value : -value;
}";

pub(super) fn tanh() -> String {
    format!(
        "\
static __device__ __forceinline__ float wl_tanh(float x) {{
    const float magnitude = fabsf(x);
    if (magnitude < 0.625f) {{
        const float s = x * x;
        return (((({} * s + {}) * s - {}) * s + {}) * s - {}) * s * x + x;
    }}
    const float value = 1.0f - 2.0f / (wl_exp(magnitude + magnitude) + 1.0f);
    return x < 0.0f ? -value : value;
}}",
        f(-5.704_988_7e-3),
        f(2.063_908_9e-2),
        f(5.373_971_5e-2),
        f(1.333_144_2e-1),
        f(3.333_328_2e-1),
    )
}

#[cfg(test)]
mod tests {
    use warploom_lang::math;

    /// The C++ text above must follow `warploom_lang::math`. This test fails if that module
    /// changes; the tests on a GPU check that both agree.
    #[test]
    fn the_functions_it_copies_are_still_those() {
        let functions = [math::exp, math::fast_exp, math::log, math::sin, math::cos, math::tanh];
        let hash = hash_of(&functions, |x| math::pow(x.abs(), 0.45));
        assert_eq!(hash, 0x7540_3442_de3a_335e, "the elementary functions changed: change them here too");
    }

    #[test]
    fn the_functions_in_its_modules_are_still_those() {
        use math::{acos, asin, atan, erf, exp2, expm1, log1p, log2, rsqrt, tan};
        let functions = [atan, asin, acos, tan, rsqrt, erf, log1p, expm1, exp2, log2];
        let hash = hash_of(&functions, |x| math::atan2(x, 3.0 - x));
        assert_eq!(
            hash, 0xd2a1_1c2b_5dd7_77c0,
            "the functions of angles and powers changed: change them here too"
        );
    }

    /// A hash of the values of functions from -60 to 90, and at steps that are 40 times as large.
    fn hash_of(functions: &[fn(f32) -> f32], one_more: fn(f32) -> f32) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut feed = |value: f32| hash = (hash ^ u64::from(value.to_bits())).wrapping_mul(0x100_0000_01b3);
        for i in 0..4000 {
            let x = (i as f32 - 1500.0) * 0.037;
            let results = [x, 40.0 * x].into_iter().flat_map(|x| functions.iter().map(move |f| f(x)));
            results.chain([one_more(x)]).filter(|y| !y.is_nan()).for_each(&mut feed);
        }
        hash
    }
}
