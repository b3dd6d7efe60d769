//! Operations on floats of 16 and 64 bits.

use warploom_lang::*;

use super::oracle::{Number, converted, rounded};
use super::{edges, pairs, same, values};

const HALVES: [Type; 2] = [Type::F16, Type::BF16];

type Operation = fn(&Expr, &Expr) -> Expr;

/// Compares an operation on two operands at all pairs of edges.
fn check(ty: Type, operation: Operation, exact: impl Fn(f64, f64) -> Value) {
    let [left, right] = pairs(&edges(ty));
    let found = values(&[&left, &right], |of| operation(&of[0], &of[1]));
    for ((a, b), found) in left.iter().zip(&right).zip(found) {
        let expected = exact(a.as_f64(), b.as_f64());
        assert!(same(found, expected), "{a:?}, {b:?}: {found:?}, not {expected:?}");
    }
}

#[test]
fn halves_are_computed_in_f32_and_rounded_once() {
    type Single = fn(f32, f32) -> f32;
    let operations: [(Operation, Single); 7] = [
        (|a, b| a + b, |a, b| a + b),
        (|a, b| a - b, |a, b| a - b),
        (|a, b| a * b, |a, b| a * b),
        (|a, b| a / b, |a, b| a / b),
        (|a, b| a % b, |a, b| a - b * (a / b).floor()),
        (|a, b| absd(a, b), |a, b| (a - b).abs()),
        (|a, b| select(a.lt(b), a, b), |a, b| if a < b { a } else { b }),
    ];
    for ty in HALVES {
        for (operation, exact) in operations {
            check(ty, operation, |a, b| rounded(ty, exact(a as f32, b as f32).into()));
        }
    }
}

#[test]
fn doubles_are_those_of_the_machine() {
    type Double = fn(f64, f64) -> f64;
    let operations: [(Operation, Double); 7] = [
        (|a, b| a + b, |a, b| a + b),
        (|a, b| a - b, |a, b| a - b),
        (|a, b| a * b, |a, b| a * b),
        (|a, b| a / b, |a, b| a / b),
        (|a, b| a % b, |a, b| a - b * (a / b).floor()),
        (|a, b| absd(a, b), |a, b| (a - b).abs()),
        (|a, b| select(a.lt(b), a, b), |a, b| if a < b { a } else { b }),
    ];
    for (operation, exact) in operations {
        check(Type::F64, operation, |a, b| Value::from(exact(a, b)));
    }
}

/// The smaller or larger of two numbers; NaN gives the other, and -0 is below 0.
fn extreme(a: f64, b: f64, larger: bool) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if (a.total_cmp(&b).is_lt()) == larger => b,
        _ => a,
    }
}

#[test]
fn extremes_and_comparisons_with_nan() {
    for ty in [Type::F16, Type::BF16, Type::F64] {
        let value = |number: f64| Value::rounded(ty, number).unwrap();
        check(ty, |a, b| min(a, b), |a, b| value(extreme(a, b, false)));
        check(ty, |a, b| max(a, b), |a, b| value(extreme(a, b, true)));
        check(ty, |a, b| a.lt(b), |a, b| Value::from(a < b));
        check(ty, |a, b| a.le(b), |a, b| Value::from(a <= b));
        check(ty, |a, b| a.eq(b), |a, b| Value::from(a == b));
        check(ty, |a, b| a.ne(b), |a, b| Value::from(a != b));
        check(ty, |a, _| is_nan(a), |a, _| Value::from(a.is_nan()));
        check(ty, |a, _| -a, |a, _| value(-a));
        check(ty, |a, _| abs(a), |a, _| value(a.abs()));
        check(ty, |a, _| floor(a), |a, _| value(a.floor()));
        check(ty, |a, _| ceil(a), |a, _| value(a.ceil()));
        check(ty, |a, _| round(a), |a, _| value(a.round_ties_even()));
    }
    for ty in HALVES {
        check(ty, |a, _| sqrt(a), |a, _| rounded(ty, (a as f32).sqrt().into()));
    }
    check(Type::F64, |a, _| sqrt(a), |a, _| Value::from(a.sqrt()));
}

#[test]
fn functions_of_halves_are_those_of_f32() {
    let functions: [fn(Expr) -> Expr; 17] = [
        exp, log, sin, cos, tanh, fast_exp, atan, asin, acos, tan, rsqrt, erf, log1p, expm1, exp2, log2, sqrt,
    ];
    for ty in HALVES {
        let all = edges(ty);
        let singles: Vec<Value> =
            all.iter().map(|value| converted(Number::of(*value), Type::F32, false)).collect();
        for function in functions {
            let found = values(&[&all], |of| function(of[0].clone()));
            let exact = values(&[&singles], |of| function(of[0].clone()));
            for ((a, found), exact) in all.iter().zip(found).zip(exact) {
                assert!(same(found, rounded(ty, exact.as_f64())), "{a:?}: {found:?}, not {exact:?}");
            }
        }
        let [left, right] = pairs(&all);
        let wide = |of: &[Value]| -> Vec<Value> {
            of.iter().map(|value| converted(Number::of(*value), Type::F32, false)).collect()
        };
        for function in [pow, atan2] as [fn(Expr, Expr) -> Expr; 2] {
            let found = values(&[&left, &right], |of| function(of[0].clone(), of[1].clone()));
            let exact = values(&[&wide(&left), &wide(&right)], |of| function(of[0].clone(), of[1].clone()));
            for (found, exact) in found.into_iter().zip(exact) {
                assert!(same(found, rounded(ty, exact.as_f64())), "{found:?}, not {exact:?}");
            }
        }
    }
}

/// The distance of two doubles in representable numbers.
fn distance(a: f64, b: f64) -> u64 {
    let line = |value: f64| {
        let bits = value.to_bits() as i64;
        if bits < 0 { i64::MIN - bits } else { bits }
    };
    if same(a.into(), b.into()) { 0 } else { line(a).abs_diff(line(b)) }
}

#[test]
fn functions_of_doubles_are_near_the_machines() {
    type Function = (fn(Expr) -> Expr, fn(f64) -> f64);
    let functions: [Function; 5] =
        [(exp, f64::exp), (log, f64::ln), (sin, f64::sin), (cos, f64::cos), (tanh, f64::tanh)];
    let numbers =
        (0..4000).map(|i| (f64::from(i) - 2000.0) * 0.0173 + 1e-9).chain([1e5, -3e5, 1e-300, 700.0, -740.0]);
    let numbers: Vec<Value> = numbers.map(Value::from).collect();
    for (number, (function, exact)) in functions.into_iter().enumerate() {
        for (a, found) in numbers.iter().zip(values(&[&numbers], |of| function(of[0].clone()))) {
            let exact = exact(a.as_f64());
            // One more than our own error, for that of the machine's.
            assert!(
                distance(found.as_f64(), exact) <= 5,
                "function {number} of {a:?}: {found:?}, not {exact}"
            );
        }
    }
    let bases: Vec<Value> = [0.1, 0.9, 1.0, 1.5, 7.25, 300.0].map(Value::from).to_vec();
    let [left, right] = pairs(&bases);
    for ((a, b), found) in left.iter().zip(&right).zip(values(&[&left, &right], |of| pow(&of[0], &of[1]))) {
        assert!(distance(found.as_f64(), a.as_f64().powf(b.as_f64())) <= 5, "{a:?} to the {b:?}: {found:?}");
    }
}

#[test]
fn functions_without_a_double_are_refused() {
    let x = vars!(x);
    let input = Input::new("in", Type::F64, 1);
    let functions: [fn(Expr) -> Expr; 11] =
        [fast_exp, atan, asin, acos, tan, rsqrt, erf, log1p, expm1, exp2, log2];
    for function in functions {
        let error = Pipeline::new("p", [func("out", x, function(input.at(x)))]).unwrap_err();
        assert!(error.to_string().contains("f64"), "{error}");
    }
    assert!(Pipeline::new("p", [func("out", x, atan2(input.at(x), input.at(x)))]).is_err());
}

#[test]
fn sums_of_halves_are_rounded_once() {
    let count = 3000;
    let x = vars!(x);
    for ty in HALVES {
        // In 16 bits, a large sum grows by too much with each term, or no longer at all.
        let term = Value::rounded(ty, 1.0 + 1.0 / 64.0).unwrap();
        let r = rdom([(0, count)]);
        let pipeline = Pipeline::new(
            "p",
            [
                func("total", x, sum(&r, Expr::from(term))),
                func("factor", x, product(&r, Value::rounded(ty, 1.0 + 1.0 / 128.0).unwrap())),
                func("stuck", x, Value::zero(ty)).over(&r, |own| own.add(x, Expr::from(term))),
            ],
        )
        .unwrap();
        let evaluation = warploom_interp::Evaluation::new(&pipeline);
        let outputs = ["total", "factor", "stuck"]
            .into_iter()
            .fold(evaluation, |evaluation, name| evaluation.output(name, Region::of_extents(&[1])));
        let found: Vec<Value> =
            outputs.run().unwrap().iter().map(|buffer| buffer.get(&[0]).unwrap()).collect();
        let total = (0..count).fold(0_f32, |sum, _| sum + term.as_f64() as f32);
        let factor = (0..count).fold(1_f32, |product, _| product * (1.0 + 1.0 / 128.0));
        let stuck = (0..count).fold(Value::zero(ty), |sum, _| rounded(ty, sum.as_f64() + term.as_f64()));
        assert_eq!(found, [rounded(ty, total.into()), rounded(ty, factor.into()), stuck], "{ty}");
        assert!((stuck.as_f64() - f64::from(total)).abs() > 0.1 * f64::from(total), "{stuck:?}");
    }
}
