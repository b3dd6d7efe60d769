//! The builtin functions: CUDA's float functions, some of them by formula.

use warploom_lang::{
    Expr, Operand, Type, abs, acos, asin, atan, atan2, ceil, cos, erf, exp, exp2, expm1, floor, log, log1p,
    log2, max, min, pow, rsqrt, select, sin, sqrt, tan, tanh,
};

use crate::lower::convert;

/// The functions that are computed, with their number of arguments; sorted.
const SUPPORTED: [(&str, usize); 45] = [
    ("acos", 1),
    ("acosh", 1),
    ("asin", 1),
    ("asinh", 1),
    ("atan", 1),
    ("atan2", 2),
    ("atanh", 1),
    ("cbrt", 1),
    ("ceil", 1),
    ("cos", 1),
    ("cosh", 1),
    ("erf", 1),
    ("exp", 1),
    ("exp10", 1),
    ("exp2", 1),
    ("expm1", 1),
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
    ("log1p", 1),
    ("log2", 1),
    ("norm3d", 3),
    ("norm4d", 4),
    ("pow", 2),
    ("rcbrt", 1),
    ("rhypot", 2),
    ("rnorm3d", 3),
    ("rnorm4d", 4),
    ("round", 1),
    ("rsqrt", 1),
    ("sin", 1),
    ("sinh", 1),
    ("sqrt", 1),
    ("tan", 1),
    ("tanh", 1),
    ("trunc", 1),
];

/// The functions of the notation that are not computed; sorted.
const KNOWN: [&str; 21] = [
    "copysign",
    "cospi",
    "cyl_bessel_i0",
    "cyl_bessel_i1",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "fmod",
    "j0",
    "j1",
    "lgamma",
    "logb",
    "nextafter",
    "normcdf",
    "normcdfinv",
    "remainder",
    "sinpi",
    "tgamma",
    "y0",
    "y1",
];

/// The functions that are computed in `double` too: those of the language, and formulas of arithmetic and square roots;
/// sorted.
const DOUBLE: [&str; 26] = [
    "ceil", "cos", "exp", "fabs", "fdim", "fdivide", "floor", "fma", "fmax", "fmaxf", "fmin", "fminf",
    "hypot", "log", "norm3d", "norm4d", "pow", "rhypot", "rnorm3d", "rnorm4d", "round", "rsqrt", "sin",
    "sqrt", "tanh", "trunc",
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

/// Whether a function is computed in `double` too.
pub(crate) fn has_double(name: &str) -> bool {
    DOUBLE.binary_search(&name).is_ok()
}

/// A function applied to floats of one type. The number of arguments has been checked. Floats of 16 bits are computed in
/// `f32` and rounded once.
pub(crate) fn apply(name: &str, arguments: &[Expr], ty: Type) -> Expr {
    let within = if ty == Type::F64 && has_double(name) { ty } else { Type::F32 };
    let arguments: Vec<Expr> = arguments.iter().map(|argument| convert(argument.clone(), within)).collect();
    formula(name, &arguments).cast(ty)
}

/// A function in the type of its arguments, `f32` or `f64`.
fn formula(name: &str, arguments: &[Expr]) -> Expr {
    let a = &arguments[0];
    let b = arguments.get(1).unwrap_or(a);
    let norm = || {
        let squares = arguments.iter().map(|x| x * x);
        sqrt(squares.reduce(|sum, square| sum + square).unwrap_or(0.0f32.into()))
    };
    match name {
        "acos" => acos(a),
        "acosh" => acosh(a),
        "asin" => asin(a),
        "asinh" => asinh(a),
        "atan" => atan(a),
        "atan2" => atan2(a, b),
        "atanh" => with_sign_of(a, log1p(abs(a) * 2.0f32 / (1.0f32 - abs(a))) * 0.5f32),
        "cbrt" => cbrt(a),
        "ceil" => ceil(a),
        "cos" => cos(a),
        "cosh" => (exp(a) + exp(-a)) * 0.5f32,
        "exp" => exp(a),
        "erf" => erf(a),
        "exp10" => exp2(a * std::f32::consts::LOG2_10),
        "exp2" => exp2(a),
        "expm1" => expm1(a),
        "fabs" => abs(a),
        "floor" => floor(a),
        "log" => log(a),
        "log10" => log2(a) * std::f32::consts::LOG10_2,
        "log1p" => log1p(a),
        "log2" => log2(a),
        "rcbrt" => 1.0f32 / cbrt(a),
        "round" => round_away(a),
        "rsqrt" if a.ty() == Some(Type::F64) => 1.0f32 / sqrt(a),
        "rsqrt" => rsqrt(a),
        "sin" => sin(a),
        "sinh" => sinh(a),
        "sqrt" => sqrt(a),
        "tan" => tan(a),
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

/// The magnitude, negated where `a` is negative.
fn with_sign_of(a: &Expr, magnitude: Expr) -> Expr {
    select(a.lt(0.0f32), -&magnitude, &magnitude)
}

/// `(e^a - e^-a) / 2`, from `e^a - 1`: nothing cancels near 0.
fn sinh(a: &Expr) -> Expr {
    let grown = expm1(abs(a));
    with_sign_of(a, &grown * (1.0f32 / (&grown + 1.0f32) + 1.0f32) * 0.5f32)
}

/// `ln(a + sqrt(a² + 1))` without a square that could overflow.
fn asinh(a: &Expr) -> Expr {
    let magnitude = abs(a);
    let inverse = 1.0f32 / &magnitude;
    let slope = &inverse + sqrt(&inverse * &inverse + 1.0f32);
    with_sign_of(a, log1p(&magnitude + &magnitude / slope))
}

/// `ln(a + sqrt(a² - 1))`, from `a - 1`: nothing cancels near 1.
fn acosh(a: &Expr) -> Expr {
    let above = a - 1.0f32;
    log1p(&above + sqrt(&above) * sqrt(&above + 2.0f32))
}

/// The cube root: a power, improved by a step of Newton's method. Zeros and infinities are their
/// own roots.
fn cbrt(a: &Expr) -> Expr {
    let third = 1.0f32 / 3.0f32;
    let guess = exp2(log2(abs(a)) * third);
    let root = &guess - (&guess - abs(a) / (&guess * &guess)) * third;
    select((a + a).eq(a), a, with_sign_of(a, root))
}

fn trunc(a: &Expr) -> Expr {
    select(a.lt(0.0f32), ceil(a), floor(a))
}

/// The nearest integer, halves away from zero.
fn round_away(a: &Expr) -> Expr {
    let whole = trunc(a);
    let further = select(a.lt(0.0f32), &whole - 1.0f32, &whole + 1.0f32);
    select(abs(a - &whole).ge(0.5f32), further, &whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(SUPPORTED.is_sorted() && KNOWN.is_sorted() && DOUBLE.is_sorted());
        assert!(DOUBLE.iter().all(|name| arguments(name).is_some()));
        assert!(is_builtin("erfc") && is_builtin("fmaxf") && !is_builtin("x"));
        assert_eq!((arguments("pow"), arguments("erfc")), (Some(2), None));
    }
}
