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
    let words: Vec<String> = math::TWO_OVER_PI.iter().map(|word| format!("0x{word:016x}ULL")).collect();
    format!(
        "\
// The product of a large angle with 2/pi modulo 4, in integers.
static __device__ int wl_large_angle(double x, double2* remainder) {{
    static const unsigned long long words[] = {{{words}}};
    const unsigned long long bits = (unsigned long long)__double_as_longlong(x);
    const int exponent = (int)(bits >> 52) & 0x7ff;
    if (exponent == 0x7ff) {{
        *remainder = make_double2({nan}, 0.0);
        return 0;
    }}
    const unsigned long long mantissa = (bits & 0x000fffffffffffffULL) | 0x0010000000000000ULL;
    const int first = exponent - 1075 - 2 + 64, word = first / 64, shift = first % 64;
    unsigned long long digits[3];
    for (int i = 0; i < 3; ++i) {{
        const unsigned long long next = shift == 0 ? 0ULL : words[word + i + 1] >> (64 - shift);
        digits[i] = words[word + i] << shift | next;
    }}
    const unsigned long long low = mantissa * digits[2], middle = mantissa * digits[1];
    const unsigned long long carried = __umul64hi(mantissa, digits[2]), sum = carried + middle;
    const unsigned long long top =
        mantissa * digits[0] + __umul64hi(mantissa, digits[1]) + (sum < middle ? 1ULL : 0ULL);
    int quarter = (int)(top >> 62);
    unsigned long long upper = top << 2 | sum >> 62, lower = sum << 2 | low >> 62;
    const bool negative = upper >> 63 == 1ULL;
    if (negative) {{
        quarter += 1;
        lower = -lower;
        upper = ~upper + (lower == 0ULL ? 1ULL : 0ULL);
    }}
    const double unit = {unit};
    const double high = (double)(upper & ~2047ULL) * unit;
    const double rest = (double)(upper & 2047ULL) * unit + (double)lower * {small};
    const double2 t = wl_product(wl_sum(high, rest), make_double2({quarter}, {lost}));
    *remainder = negative != (x < 0.0) ? make_double2(-t.x, -t.y) : t;
    return x < 0.0 ? -quarter : quarter;
}}
static __device__ __forceinline__ int wl_turns(double x, double* sine, double* cosine) {{
    double2 t;
    int turns;
    if (fabs(x) >= {large}) {{
        turns = wl_large_angle(x, &t);
    }} else {{
        const double k = rint(x * {});
        const double2 a = wl_sum(x - k * {}, -(k * {}));
        const double2 b = wl_sum(a.x, -(k * {}));
        t = wl_sum(b.x, (a.y + b.y) - k * {});
        turns = x != x ? 0 : (int)k;
    }}
    const double z = t.x * t.x, half = 0.5 * z, most = 1.0 - half;
    *sine = t.x + (t.x * z * {} + t.y * (1.0 - 0.5 * z));
    *cosine = most + (((1.0 - most) - half) + (z * z * {} - t.x * t.y));
    return turns;
}}",
        d(std::f64::consts::FRAC_2_PI),
        d(math::HALF_PI[0]),
        d(math::HALF_PI[1]),
        d(math::HALF_PI[2]),
        d(math::HALF_PI[3]),
        polynomial("z", &math::SIN_SERIES),
        polynomial("z", &math::COS_SERIES),
        words = words.join(", "),
        nan = d(f64::NAN),
        unit = d(2.0_f64.powi(-64)),
        small = d(2.0_f64.powi(-128)),
        quarter = d(math::QUARTER[0]),
        lost = d(math::QUARTER[1]),
        large = d(math::LARGE_ANGLE),
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
