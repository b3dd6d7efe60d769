//! Functions in double precision that the standard library lacks. They say what a result should
//! be; no result of a pipeline comes from them.

/// The error function, to about 15 digits.
pub fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a > 6.0 {
        return 1f64.copysign(x);
    }
    // All terms have the same sign, so nothing cancels.
    let (mut term, mut sum, mut odd) = (a, a, 1.0);
    while term > sum * 1e-17 {
        odd += 2.0;
        term *= 2.0 * a * a / odd;
        sum += term;
    }
    (std::f64::consts::FRAC_2_SQRT_PI * (-a * a).exp() * sum).copysign(x)
}
