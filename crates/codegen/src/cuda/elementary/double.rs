//! The elementary functions of [`warploom_lang::math::double`] in CUDA C++: the same operations in the
//! same order.

use warploom_lang::math::double as math;

use crate::cuda::literal;

fn d(value: f64) -> String {
    literal::double(value).code
}

/// A polynomial in `x`, highest power first.
fn polynomial(x: &str, coefficients: &[f64]) -> String {
    let first = d(coefficients.first().copied().unwrap_or_default());
    coefficients.iter().skip(1).fold(first, |chain, c| format!("({chain} * {x} + {})", d(*c)))
}

/// Sums and products with their rounding errors.
pub(in crate::cuda) const PAIRS: &str = "\
static __device__ __forceinline__ double2 wl_sum(double a, double b) {
    const double sum = a + b, other = sum - a;
    return make_double2(sum, (a - (sum - other)) + (b - other));
}
static __device__ __forceinline__ double2 wl_halves(double a) {
    const double scaled = 134217729.0 * a, upper = scaled - (scaled - a);
    return make_double2(upper, a - upper);
}
static __device__ __forceinline__ double2 wl_product(double a, double b) {
    const double product = a * b;
    const double2 x = wl_halves(a), y = wl_halves(b);
    return make_double2(product, ((x.x * y.x - product) + x.x * y.y + x.y * y.x) + x.y * y.y);
}
static __device__ __forceinline__ double2 wl_sum(double2 a, double2 b) {
    const double2 sum = wl_sum(a.x, b.x);
    return wl_sum(sum.x, sum.y + (a.y + b.y));
}
static __device__ __forceinline__ double2 wl_product(double2 a, double2 b) {
    const double2 product = wl_product(a.x, b.x);
    return wl_sum(product.x, product.y + (a.x * b.y + a.y * b.x));
}";

pub(in crate::cuda) fn exp() -> String {
    format!(
        "\
static __device__ __forceinline__ double wl_power_of_two(int e) {{
    return __longlong_as_double(((long long)e + 1023LL) << 52);
}}
static __device__ __forceinline__ double wl_exp_of(double x, double rest) {{
    if (x > 709.8) return {infinity};
    if (x < -745.2) return 0.0;
    const double k = rint(x * {});
    const double t = ((x - k * {}) - k * {}) + rest;
    const double value = 1.0 + (t + t * t * {});
    const int e = x != x ? 0 : (int)k, first = e / 2;
    return value * wl_power_of_two(first) * wl_power_of_two(e - first);
}}
static __device__ __forceinline__ double wl_exp(double x) {{
    return wl_exp_of(x, 0.0);
}}",
        d(std::f64::consts::LOG2_E),
        d(math::LN_2[0]),
        d(math::LN_2[1]),
        polynomial("t", &math::EXP_SERIES),
        infinity = d(f64::INFINITY),
    )
}

pub(in crate::cuda) fn split() -> String {
    format!(
        "\
static __device__ __forceinline__ double wl_split(double x, double* exponent) {{
    const bool tiny = x < {};
    const long long bits = __double_as_longlong(tiny ? x * 18014398509481984.0 : x);
    const double mantissa = __longlong_as_double((bits & 0x000fffffffffffffLL) | 0x3ff0000000000000LL);
    const int e = (int)(bits >> 52) - 1023 + (tiny ? -54 : 0);
    const bool large = mantissa > {};
    *exponent = (double)(large ? e + 1 : e);
    return large ? mantissa * 0.5 : mantissa;
}}",
        d(f64::MIN_POSITIVE),
        d(std::f64::consts::SQRT_2),
    )
}

pub(in crate::cuda) fn log() -> String {
    format!(
        "\
static __device__ __forceinline__ double wl_log(double x) {{
    if (x != x || x < 0.0) return {nan};
    if (x == 0.0) return -{infinity};
    if (x == {infinity}) return x;
    double k;
    const double f = wl_split(x, &k) - 1.0;
    const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    const double series = s * (half + z * {});
    return k * {} - ((half - (series + k * {})) - f);
}}",
        polynomial("z", &math::LOG_SERIES),
        d(math::LN_2[0]),
        d(math::LN_2[1]),
        nan = d(f64::NAN),
        infinity = d(f64::INFINITY),
    )
}

pub(in crate::cuda) fn pow() -> String {
    format!(
        "\
static __device__ __forceinline__ double2 wl_precise_log(double x) {{
    double k;
    const double f = wl_split(x, &k) - 1.0;
    const double2 whole = wl_sum(2.0, f);
    const double rough = f / whole.x;
    const double2 back = wl_product(rough, whole.x);
    const double2 s = wl_sum(rough, ((f - back.x) - back.y - rough * whole.y) / whole.x);
    const double2 z = wl_product(s, s);
    const double tail = z.x * {tail};
    double2 series = wl_sum(make_double2(0.4, {}), make_double2(tail, 0.0));
    series = wl_sum(make_double2({}, {}), wl_product(z, series));
    series = wl_product(wl_product(s, z), series);
    const double2 mantissa = wl_sum(make_double2(2.0 * s.x, 2.0 * s.y), series);
    const double2 exponent = wl_sum(k * {}, k * {});
    return wl_sum(wl_sum(exponent, make_double2(k * {}, 0.0)), mantissa);
}}
static __device__ __forceinline__ double wl_power_of_magnitude(double x, double y) {{
    if (x == 1.0) return 1.0;
    if (x == 0.0 || x == {infinity} || fabs(y) == {infinity}) {{
        return (x > 1.0) == (y > 0.0) ? {infinity} : 0.0;
    }}
    const double2 logarithm = wl_precise_log(x);
    const double rough = logarithm.x * y;
    if (rough > 710.0) return {infinity};
    if (rough < -746.0) return 0.0;
    const double2 power = wl_product(logarithm.x, y);
    return wl_exp_of(power.x, power.y + logarithm.y * y);
}}
static __device__ __forceinline__ double wl_pow(double x, double y) {{
    if (y == 0.0 || x == 1.0) return 1.0;
    if (x != x || y != y) return {nan};
    const double magnitude = wl_power_of_magnitude(fabs(x), y);
    if (x > 0.0) return magnitude;
    if (floor(y) != y && x != -{infinity} && x != 0.0) return {nan};
    return y - 2.0 * floor(y * 0.5) == 1.0 && x != 0.0 ? -magnitude : magnitude;
}}",
        d(math::TWO_FIFTHS_REST),
        d(math::TWO_THIRDS),
        d(math::TWO_THIRDS_REST),
        d(math::LN_2[0]),
        d(math::LN_2[1]),
        d(math::LN_2[2]),
        tail = polynomial("z.x", &math::LOG_SERIES[..10]),
        nan = d(f64::NAN),
        infinity = d(f64::INFINITY),
    )
}

pub(in crate::cuda) fn turns() -> String {
    format!(
        "\
static __device__ __forceinline__ int wl_turns(double x, double* sine, double* cosine) {{
    const double k = rint(x * {});
    const double2 a = wl_sum(x - k * {}, -(k * {}));
    const double2 b = wl_sum(a.x, -(k * {}));
    const double2 t = wl_sum(b.x, (a.y + b.y) - k * {});
    const double z = t.x * t.x, half = 0.5 * z, most = 1.0 - half;
    *sine = t.x + (t.x * z * {} + t.y * (1.0 - 0.5 * z));
    *cosine = most + (((1.0 - most) - half) + (z * z * {} - t.x * t.y));
    return k != k ? 0 : (int)fmin(fmax(k, -2147483648.0), 2147483647.0);
}}",
        d(std::f64::consts::FRAC_2_PI),
        d(math::HALF_PI[0]),
        d(math::HALF_PI[1]),
        d(math::HALF_PI[2]),
        d(math::HALF_PI[3]),
        polynomial("z", &math::SIN_SERIES),
        polynomial("z", &math::COS_SERIES),
    )
}

pub(in crate::cuda) const SIN: &str = "\
static __device__ __forceinline__ double wl_sin(double x) {
    if (x == 0.0) return x;
    double sine, cosine;
    const int quarter = wl_turns(x, &sine, &cosine);
    const double value = (quarter & 1) == 0 ? sine : cosine;
    return (quarter & 2) == 0 ? value : -value;
}";

pub(in crate::cuda) const COS: &str = "\
static __device__ __forceinline__ double wl_cos(double x) {
    double sine, cosine;
    const int quarter = wl_turns(x, &sine, &cosine);
    const double value = (quarter & 1) == 0 ? cosine : sine;
    return (((unsigned)quarter + 1u) & 2u) == 0u ? value : -value;
}";

pub(in crate::cuda) fn tanh() -> String {
    let fraction =
        (1..math::TANH_DEPTH).rev().fold(d(f64::from(2 * math::TANH_DEPTH + 1)), |below, depth| {
            format!("({} + square / {below})", d(f64::from(2 * depth + 1)))
        });
    format!(
        "\
static __device__ __forceinline__ double wl_tanh(double x) {{
    const double magnitude = fabs(x);
    if (magnitude < 0.55) {{
        const double square = x * x;
        return x / (1.0 + square / {fraction});
    }}
    const double value = 1.0 - 2.0 / (wl_exp(magnitude + magnitude) + 1.0);
    return x < 0.0 ? -value : value;
}}"
    )
}

#[cfg(test)]
mod tests {
    use warploom_lang::math::double as math;

    /// The C++ text above must follow `warploom_lang::math::double`. This test fails if that module
    /// changes; the tests on a GPU check that both agree.
    #[test]
    fn the_functions_it_copies_are_still_those() {
        let functions = [math::exp, math::log, math::sin, math::cos, math::tanh];
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for i in 0..4000 {
            let x = (f64::from(i) - 1500.0) * 0.037;
            let results = [x, 40.0 * x].into_iter().flat_map(|x| functions.iter().map(move |f| f(x)));
            for y in results.chain([math::pow(x.abs(), 0.45)]).filter(|y| !y.is_nan()) {
                hash = (hash ^ y.to_bits()).wrapping_mul(0x100_0000_01b3);
            }
        }
        assert_eq!(
            hash, 0x5366_b5b7_f613_e93b,
            "the elementary functions of f64 changed: change them here too"
        );
    }
}
