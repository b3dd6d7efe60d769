//! What functions give at signed zeros, at the ends of their domains and for NaN, tested through the
//! evaluator; and the counts of bits.

use warploom_interp::Evaluation;
use warploom_interp::buffer::{Buffer, Element};
use warploom_lang::*;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn list<T: Element>(samples: &[T]) -> Buffer {
    Buffer::from_vec(Region::of_extents(&[samples.len() as i64]), samples.to_vec()).unwrap()
}

fn values_of<T: Element>(func: &Func, inputs: &[(&str, &Buffer)], region: Region) -> Vec<T> {
    let pipeline = Pipeline::new("p", [func.clone()]).unwrap();
    let output = &pipeline.funcs()[pipeline.outputs()[0]].name;
    let evaluation = Evaluation::new(&pipeline).output(output, region);
    let is_used = |name: &str| pipeline.inputs().values().any(|input| input.name == name);
    let inputs = inputs.iter().filter(|(name, _)| is_used(name));
    let evaluation = inputs.fold(evaluation, |all, (name, buffer)| all.input(name, buffer));
    evaluation.run().unwrap()[0].as_slice::<T>().unwrap().to_vec()
}

/// Whether the bits are equal or both are NaN.
fn same<T: Element>(a: T, b: T) -> bool {
    let (a, b) = (Value::from(a), Value::from(b));
    a == b || (a.as_f64().is_nan() && b.as_f64().is_nan())
}

/// Checks `f(a, b) = result` for operands that vary along a row and for constants.
#[track_caller]
fn check_pairs<A: Element, R: Element>(cases: &[(A, A, R)], f: impl Fn(Expr, Expr) -> Expr) {
    let x = vars!(x);
    let (left, right) = (Input::new("left", A::TYPE, 1), Input::new("right", A::TYPE, 1));
    let (a, b): (Vec<A>, Vec<A>) = cases.iter().map(|&(a, b, _)| (a, b)).unzip();
    let (a, b) = (list(&a), list(&b));
    let rows = func("rows", x, f(left.at(x), right.at(x)));
    let whole = Region::of_extents(&[cases.len() as i64]);
    let rows: Vec<R> = values_of(&rows, &[("left", &a), ("right", &b)], whole);
    for (&(a, b, expected), row) in cases.iter().zip(rows) {
        let fixed = func("fixed", x, f(Value::from(a).into(), Value::from(b).into()));
        let fixed: R = values_of(&fixed, &[], Region::of_extents(&[1]))[0];
        assert!(same(row, expected), "{a:?}, {b:?} gave {row:?}, not {expected:?}");
        assert!(same(fixed, expected), "constants {a:?}, {b:?} gave {fixed:?}, not {expected:?}");
    }
}

#[track_caller]
fn check<A: Element, R: Element>(cases: &[(A, R)], f: impl Fn(Expr) -> Expr) {
    let cases: Vec<(A, A, R)> = cases.iter().map(|&(a, result)| (a, a, result)).collect();
    check_pairs(&cases, |a, _| f(a));
}

#[test]
fn inverse_functions_know_signs_and_ends() {
    let (pi, half, quarter) =
        (std::f32::consts::PI, std::f32::consts::FRAC_PI_2, std::f32::consts::FRAC_PI_4);
    check(&[(0.0, 0.0), (-0.0, -0.0), (1.0, quarter), (INF, half), (-INF, -half), (NAN, NAN)], atan);
    check(&[(-0.0, -0.0), (1.0, half), (-1.0, -half), (1.5, NAN), (NAN, NAN), (1e-40, 1e-40)], asin);
    check(&[(1.0, 0.0), (0.0, half), (-1.0, pi), (-1.5, NAN), (INF, NAN)], acos);
    check(&[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (1e-40, 1e-40)], tan);
    check_pairs(
        &[
            (0.0, 1.0, 0.0),
            (-0.0, 1.0, -0.0),
            (0.0, -1.0, pi),
            (-0.0, -1.0, -pi),
            (0.0, 0.0, 0.0),
            (0.0, -0.0, pi),
            (-0.0, -0.0, -pi),
            (1.0, 0.0, half),
            (-1.0, -0.0, -half),
            (2.0, 2.0, quarter),
            (INF, INF, quarter),
            (INF, -INF, 3.0 * quarter),
            (1.0, INF, 0.0),
            (-1.0, -INF, -pi),
            (INF, 1.0, half),
            (NAN, 1.0, NAN),
            (0.0, NAN, NAN),
        ],
        atan2,
    );
}

#[test]
fn powers_know_signs_and_ends() {
    check(&[(4.0, 0.5), (0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (NAN, NAN)], rsqrt);
    check(&[(0.0, 0.0), (-0.0, -0.0), (5.0, 1.0), (-INF, -1.0), (NAN, NAN)], erf);
    check(&[(-0.0, -0.0), (1e-40, 1e-40), (-1.0, -INF), (-1.5, NAN), (INF, INF), (NAN, NAN)], log1p);
    check(&[(-0.0, -0.0), (1e-40, 1e-40), (-INF, -1.0), (-30.0, -1.0), (100.0, INF), (NAN, NAN)], expm1);
    check(
        &[(0.0, 1.0), (-149.0, 1e-45), (-151.0, 0.0), (127.0, 1.701_411_8e38), (128.0, INF), (NAN, NAN)],
        exp2,
    );
    check(&[(8.0, 3.0), (1.0, 0.0), (1e-45, -149.0), (0.0, -INF), (-1.0, NAN), (INF, INF), (NAN, NAN)], log2);
    check(&[(NAN, true), (INF, false), (0.0, false), (-1.5, false)], is_nan);
}

#[test]
fn bits_are_counted_within_the_width() {
    check(&[(0u8, 0u8), (255, 8), (0x51, 3)], popcount);
    check(&[(0i8, 0i8), (-1, 8), (i8::MIN, 1)], popcount);
    check(&[(-1i16, 16i16), (0x0ff0, 8)], popcount);
    check(&[(u32::MAX, 32u32), (0, 0), (0x8000_0001, 2)], popcount);
    check(&[(-1i32, 32i32), (i32::MIN, 1), (7, 3)], popcount);
    check(&[(0u8, 8u8), (1, 7), (255, 0)], leading_zeros);
    check(&[(0i8, 8i8), (1, 7), (-1, 0), (127, 1)], leading_zeros);
    check(&[(0u16, 16u16), (1 << 15, 0)], leading_zeros);
    check(&[(-3i16, 0i16), (3, 14)], leading_zeros);
    check(&[(0u32, 32u32), (1, 31), (u32::MAX, 0)], leading_zeros);
    check(&[(0i32, 32i32), (-5, 0), (i32::MAX, 1)], leading_zeros);
}

#[test]
fn counts_of_bits_are_indices() {
    let x = vars!(x);
    let (table, input) = (Input::f32("table", 1), Input::new("in", Type::I8, 1));
    let (numbers, samples) =
        (list(&[0.0f32, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0]), list(&[0i8, -1, 5]));
    let inputs = [("table", &numbers), ("in", &samples)];
    for (function, expected) in
        [(popcount as fn(Expr) -> Expr, [0.0f32, 80.0, 20.0]), (leading_zeros, [80.0, 0.0, 50.0])]
    {
        let read = func("read", x, table.at(function(input.at(x)).i32()));
        assert_eq!(values_of::<f32>(&read, &inputs, Region::of_extents(&[3])), expected);
    }
}

#[test]
fn functions_refuse_other_types() {
    let integer = Expr::from(3);
    for function in [atan, asin, acos, tan, rsqrt, erf, log1p, expm1, exp2, log2, is_nan] {
        assert_eq!(function(integer.clone()).ty(), None);
    }
    for function in [popcount, leading_zeros] {
        assert_eq!(function(Expr::from(1.0f32)).ty(), None);
        assert_eq!(function(integer.lt(4)).ty(), None);
    }
    assert_eq!(is_nan(Expr::from(1.0f32)).ty(), Some(Type::Bool));
    assert_eq!(popcount(integer.cast(Type::U16)).ty(), Some(Type::U16));
}
