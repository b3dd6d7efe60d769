//! The builtin functions: CUDA's float functions, some of them by formula.

use warploom_lang::{Expr, Operand, abs, ceil, cos, exp, floor, log, max, min, pow, select, sin, sqrt, tanh};

/// The functions that are computed, with their number of arguments; sorted.
const SUPPORTED: [(&str, usize); 32] = [
    ("ceil", 1),
    ("cos", 1),
    ("cosh", 1),
    ("exp", 1),
    ("exp10", 1),
    ("exp2", 1),
    ("fabs", 1),
    ("fdim", 2),
    ("fdivide", 2),
    ("floor", 1),
    ("fma", 3),
    ("fmax", 2),
    ("fmaxf", 2),
    ("fmin", 2),
    ("fminf", 2),
    ("hypot", 2),
    ("log", 1),
    ("log10", 1),
    ("log2", 1),
    ("norm3d", 3),
    ("norm4d", 4),
    ("pow", 2),
    ("rhypot", 2),
    ("rnorm3d", 3),
    ("rnorm4d", 4),
    ("round", 1),
    ("rsqrt", 1),
    ("sin", 1),
    ("sqrt", 1),
    ("tan", 1),
    ("tanh", 1),
    ("trunc", 1),
];

/// The functions that the notation has and that are not computed; sorted.
const KNOWN: [&str; 34] = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "copysign",
    "cospi",
    "cyl_bessel_i0",
    "cyl_bessel_i1",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "expm1",
    "fmod",
    "j0",
    "j1",
    "lgamma",
    "log1p",
    "logb",
    "nextafter",
    "normcdf",
    "normcdfinv",
    "rcbrt",
    "remainder",
    "sinh",
    "sinpi",
    "tgamma",
    "y0",
    "y1",
];

/// The functions to suggest in place of one that is not computed.
pub(crate) const SUGGESTED: &str = "exp, log, pow, sin, cos, tanh, sqrt, floor and ceil";

/// Whether the notation has a function of this name.
pub(crate) fn is_builtin(name: &str) -> bool {
    arguments(name).is_some() || KNOWN.binary_search(&name).is_ok()
}

/// The number of arguments of a function; `None` if it is not computed.
pub(crate) fn arguments(name: &str) -> Option<usize> {
    let position = SUPPORTED.binary_search_by_key(&name, |(known, _)| *known);
    position.ok().map(|position| SUPPORTED[position].1)
}

/// A function applied to floats. The number of arguments has been checked.
pub(crate) fn apply(name: &str, arguments: &[Expr]) -> Expr {
    let a = &arguments[0];
    let b = arguments.get(1).unwrap_or(a);
    let norm = || {
        let squares = arguments.iter().map(|x| x * x);
        sqrt(squares.reduce(|sum, square| sum + square).unwrap_or(0.0f32.into()))
    };
    match name {
        "ceil" => ceil(a),
        "cos" => cos(a),
        "cosh" => (exp(a) + exp(-a)) * 0.5f32,
        "exp" => exp(a),
        "exp10" => exp(a * std::f32::consts::LN_10),
        "exp2" => exp(a * std::f32::consts::LN_2),
        "fabs" => abs(a),
        "floor" => floor(a),
        "log" => log(a),
        "log10" => log(a) * std::f32::consts::LOG10_E,
        "log2" => log(a) * std::f32::consts::LOG2_E,
        "round" => round_away(a),
        "rsqrt" => 1.0f32 / sqrt(a),
        "sin" => sin(a),
        "sqrt" => sqrt(a),
        "tan" => sin(a) / cos(a),
        "tanh" => tanh(a),
        "trunc" => trunc(a),
        "fdim" => select(a.gt(b), a - b, 0.0f32),
        "fdivide" => a / b,
        "fmax" | "fmaxf" => max(a, b),
        "fmin" | "fminf" => min(a, b),
        "pow" => pow(a, b),
        "fma" => a * b + arguments.get(2).unwrap_or(a),
        "rhypot" | "rnorm3d" | "rnorm4d" => 1.0f32 / norm(),
        _ => norm(),
    }
}

fn trunc(a: &Expr) -> Expr {
    select(a.lt(0.0f32), ceil(a), floor(a))
}

/// The nearest integer, halves away from zero.
fn round_away(a: &Expr) -> Expr {
    let whole = trunc(a);
    let step = select(a.lt(0.0f32), -1.0f32, 1.0f32);
    select(abs(a - &whole).ge(0.5f32), &whole + step, &whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(SUPPORTED.is_sorted() && KNOWN.is_sorted());
        assert!(is_builtin("erf") && is_builtin("fmaxf") && !is_builtin("x"));
        assert_eq!((arguments("pow"), arguments("erf")), (Some(2), None));
    }
}
