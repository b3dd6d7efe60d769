//! The semantics of every operation, conversion and update of the language, tested through the
//! evaluator.

use warploom_interp::buffer::{Buffer, Element};
use warploom_interp::{EvalError, Evaluation};
use warploom_lang::*;

// ---- Helpers.

/// The values of a Func over a box at the origin, first index fastest.
fn values<T: Element>(func: &Func, extents: &[i64]) -> Vec<T> {
    values_of(func, &[], Region::of_extents(extents))
}

/// The values of a Func with inputs; the first value if it has several.
fn values_of<T: Element>(func: &Func, inputs: &[(&str, &Buffer)], region: Region) -> Vec<T> {
    let pipeline = Pipeline::new("p", [func.clone()]).unwrap();
    let output = pipeline.funcs()[pipeline.outputs()[0]].name.clone();
    let mut evaluation = Evaluation::new(&pipeline).output(&output, region);
    for (name, buffer) in inputs {
        evaluation = evaluation.input(name, buffer);
    }
    evaluation.run().unwrap()[0].as_slice::<T>().unwrap().to_vec()
}

fn list<T: Element>(samples: &[T]) -> Buffer {
    Buffer::from_vec(Region::of_extents(&[samples.len() as i64]), samples.to_vec()).unwrap()
}

/// Whether the bits are equal or both are NaN.
fn same<T: Element>(a: T, b: T) -> bool {
    let (a, b) = (Value::from(a), Value::from(b));
    a == b || (a.as_f64().is_nan() && b.as_f64().is_nan())
}

/// Checks `f(a, b) = result` for operands that vary along a row, are uniform, or are constants.
#[track_caller]
fn check2<A: Element, R: Element>(cases: &[(A, A, R)], f: impl Fn(Expr, Expr) -> Expr) {
    let x = vars!(x);
    let (left, right) = (Input::new("left", A::TYPE, 1), Input::new("right", A::TYPE, 1));
    let (a, b): (Vec<A>, Vec<A>) = cases.iter().map(|&(a, b, _)| (a, b)).unzip();
    let (a_list, b_list) = (list(&a), list(&b));
    let inputs = [("left", &a_list), ("right", &b_list)];
    for (i, &(a, b, expected)) in cases.iter().enumerate() {
        let at = i as i32;
        let whole = Region::of_extents(&[cases.len() as i64]);
        let ways = [
            ("rows", left.at(x), right.at(x), i),
            ("row and scalar", left.at(x), right.at(at), i),
            ("scalar and row", left.at(at), right.at(x), i),
            ("scalars", left.at(at), right.at(at), 0),
            ("row and constant", left.at(x), Value::from(b).into(), i),
            ("constants", Value::from(a).into(), Value::from(b).into(), 0),
        ];
        for (way, first, second, point) in ways {
            let func = func("f", x, Vec::from([f(first, second)]));
            let pipeline = Pipeline::new("p", [func.clone()]).unwrap();
            let used: Vec<_> =
                inputs.into_iter().filter(|(name, _)| pipeline.input_named(name).is_some()).collect();
            let got = values_of::<R>(&func, &used, whole.clone())[point];
            assert!(same(got, expected), "{way}: {a:?}, {b:?} gave {got:?}, not {expected:?}");
        }
    }
}

#[track_caller]
fn check1<A: Element, R: Element>(cases: &[(A, R)], f: impl Fn(Expr) -> Expr) {
    let cases: Vec<(A, A, R)> = cases.iter().map(|&(a, result)| (a, a, result)).collect();
    check2(&cases, |a, _| f(a));
}

// ---- Integers.

/// An integer converted to a type, modulo 2^bits.
fn wrapped(ty: Type, value: i128) -> i64 {
    let (low, high) = ty.int_range().unwrap();
    let count = i128::from(high) - i128::from(low) + 1;
    ((value - i128::from(low)).rem_euclid(count) + i128::from(low)) as i64
}

type Reference = fn(Type, i128, i128) -> i128;
type Written = fn(Expr, Expr) -> Expr;

fn euclidean(a: i128, b: i128) -> (i128, i128) {
    if b == 0 {
        return (0, 0);
    }
    let remainder = ((a % b) + b.abs()) % b.abs();
    ((a - remainder) / b, remainder)
}

fn amount(ty: Type, b: i128) -> u32 {
    b.rem_euclid(8 * ty.bytes() as i128) as u32
}

const INTEGER_OPERATIONS: [(&str, Written, Reference); 16] = [
    ("add", |a, b| a + b, |_, a, b| a + b),
    ("sub", |a, b| a - b, |_, a, b| a - b),
    ("mul", |a, b| a * b, |_, a, b| a * b),
    ("div", |a, b| a / b, |_, a, b| euclidean(a, b).0),
    ("mod", |a, b| a % b, |_, a, b| euclidean(a, b).1),
    ("min", min, |_, a, b| a.min(b)),
    ("max", max, |_, a, b| a.max(b)),
    ("neg", |a, _| -a, |_, a, _| -a),
    ("abs", |a, _| abs(a), |_, a, _| a.abs()),
    ("not", |a, _| !a, |_, a, _| -1 - a),
    ("and", |a, b| a & b, |_, a, b| a & b),
    ("or", |a, b| a | b, |_, a, b| a | b),
    ("xor", |a, b| a ^ b, |_, a, b| a ^ b),
    ("shl", |a, b| a << b, |ty, a, b| a << amount(ty, b)),
    ("shr", |a, b| a >> b, |ty, a, b| a >> amount(ty, b)),
    ("average", average, |_, a, b| (a + b + 1).div_euclid(2)),
];

/// Checks every operation on every pair of these values.
fn check_integers<T: Element>(operands: &[T]) {
    let (x, y) = vars!(x, y);
    let input = Input::new("in", T::TYPE, 1);
    let image = list(operands);
    let region = Region::of_extents(&[operands.len() as i64; 2]);
    let int = |value: T| i128::from(Value::from(value).as_int().unwrap());
    for (name, written, reference) in INTEGER_OPERATIONS {
        let func = func("f", (x, y), Vec::from([written(input.at(x), input.at(y))]));
        let got: Vec<T> = values_of(&func, &[("in", &image)], region.clone());
        for (i, got) in got.into_iter().enumerate() {
            let (a, b) = (int(operands[i % operands.len()]), int(operands[i / operands.len()]));
            let expected = wrapped(T::TYPE, reference(T::TYPE, a, b));
            assert_eq!(int(got), i128::from(expected), "{} {name} of {a} and {b}", T::TYPE);
        }
    }
}

#[test]
fn integers_wrap_and_divide_as_mathematics_says() {
    check_integers::<u8>(&(0..=255).collect::<Vec<_>>());
    check_integers::<i8>(&(-128..=127).collect::<Vec<_>>());
    check_integers::<u16>(&[0, 1, 2, 3, 7, 15, 16, 17, 255, 256, 32767, 32768, 65534, 65535]);
    check_integers::<i16>(&[-32768, -32767, -17, -16, -3, -1, 0, 1, 2, 7, 15, 16, 17, 300, 32766, 32767]);
    check_integers::<u32>(&[
        0,
        1,
        2,
        3,
        31,
        32,
        33,
        65535,
        65536,
        1 << 31,
        (1 << 31) - 1,
        u32::MAX - 1,
        u32::MAX,
    ]);
    check_integers::<i32>(&[
        i32::MIN,
        i32::MIN + 1,
        -65536,
        -33,
        -7,
        -2,
        -1,
        0,
        1,
        2,
        7,
        31,
        32,
        33,
        i32::MAX,
    ]);
}

#[test]
fn wrap_around() {
    check2(&[(255u8, 1, 0u8), (200, 100, 44)], |a, b| a + b);
    check2(&[(127i8, 1, -128i8), (-128, -1, 127)], |a, b| a + b);
    check2(&[(0u16, 1, 65535u16)], |a, b| a - b);
    check2(&[(300i16, 300, 24464i16)], |a, b| a * b);
    check2(&[(0u32, 1, u32::MAX)], |a, b| a - b);
    check2(&[(i32::MAX, 1, i32::MIN), (i32::MIN, -1, i32::MAX)], |a, b| a + b);
    check1(&[(i32::MIN, i32::MIN), (-5, 5)], abs);
    check1(&[(i8::MIN, i8::MIN), (5, -5)], |a| -a);
}

#[test]
fn division_is_euclidean_and_total() {
    check2(
        &[(7, 2, 3), (-7, 2, -4), (7, -2, -3), (-7, -2, 4), (-1, 2, -1), (5, 0, 0), (i32::MIN, -1, i32::MIN)],
        |a, b| a / b,
    );
    check2(
        &[(7, 2, 1), (-7, 2, 1), (7, -2, 1), (-7, -2, 1), (-1, 5, 4), (5, 0, 0), (i32::MIN, -1, 0)],
        |a, b| a % b,
    );
    check2(&[(-128i8, -1, -128i8), (-128, 3, -43)], |a, b| a / b);
    check2(&[(200u8, 7, 28u8), (200, 0, 0)], |a, b| a / b);
}

#[test]
fn shifts_count_modulo_the_width() {
    check2(&[(1, 31, i32::MIN), (1, 32, 1), (1, 33, 2), (1, -1, i32::MIN)], |a, b| a << b);
    check2(&[(-8, 1, -4), (-1, 31, -1), (-8, 33, -4), (8, 32, 8)], |a, b| a >> b);
    check2(&[(0x81u8, 1, 0x40u8), (0x81, 8, 0x81), (0x81, 9, 0x40)], |a, b| a >> b);
    check2(&[(-128i8, 7, -1i8), (-128, 8, -128)], |a, b| a >> b);
    check2(&[(1u16, 15, 0x8000u16), (1, 16, 1)], |a, b| a << b);
}

#[test]
fn distances_and_averages_do_not_overflow() {
    check2(&[(-128i8, 127, 255u8), (127, -128, 255), (3, 3, 0)], absd);
    check2(&[(i32::MIN, i32::MAX, u32::MAX), (5, -5, 10)], absd);
    check2(&[(0u32, u32::MAX, u32::MAX)], absd);
    check2(&[(1.5f32, -2.0, 3.5f32), (f32::NAN, 1.0, f32::NAN)], absd);
    check2(&[(255u8, 255, 255u8), (254, 255, 255), (0, 1, 1), (1, 1, 1)], average);
    check2(
        &[(i32::MAX, i32::MAX, i32::MAX), (i32::MIN, i32::MIN, i32::MIN), (-3, 0, -1), (-4, 1, -1)],
        average,
    );
}

// ---- Booleans.

#[test]
fn truth_values() {
    let (t, f) = (true, false);
    let table =
        |results: [bool; 4]| [(f, f, results[0]), (f, t, results[1]), (t, f, results[2]), (t, t, results[3])];
    check2(&table([f, f, f, t]), |a, b| a & b);
    check2(&table([f, t, t, t]), |a, b| a | b);
    check2(&table([f, t, t, f]), |a, b| a ^ b);
    check2(&table([t, f, f, t]), |a, b| a.eq(b));
    check2(&table([f, t, t, f]), |a, b| a.ne(b));
    check1(&[(t, f), (f, t)], |a| !a);
}

#[test]
fn comparisons() {
    check2(&[(-1, 0, true), (0, 0, false), (i32::MIN, i32::MAX, true)], |a, b| a.lt(b));
    check2(&[(200u8, 100, false), (100, 100, true)], |a, b| a.le(b));
    check2(&[(u32::MAX, 0, true), (1, 1, false)], |a, b| a.gt(b));
    let nan = f32::NAN;
    check2(&[(nan, 1.0, false), (1.0, nan, false), (-0.0, 0.0, false)], |a, b| a.lt(b));
    check2(&[(nan, nan, false), (-0.0, 0.0, true)], |a, b| a.ge(b));
    check2(&[(nan, nan, false), (-0.0, 0.0, true)], |a, b| a.eq(b));
    check2(&[(nan, nan, true), (-0.0, 0.0, false)], |a, b| a.ne(b));
}

// ---- Floats.

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

/// [`check1`] of `f32`, which literals would not be.
#[track_caller]
fn floats1(cases: &[(f32, f32)], f: impl Fn(Expr) -> Expr) {
    check1(cases, f);
}

/// [`check2`] of `f32`.
#[track_caller]
fn floats2(cases: &[(f32, f32, f32)], f: impl Fn(Expr, Expr) -> Expr) {
    check2(cases, f);
}

#[test]
fn extremes_prefer_numbers_and_tell_zeros_apart() {
    let zeros: [(f32, f32, f32); 4] =
        [(0.0, -0.0, -0.0), (-0.0, 0.0, -0.0), (-0.0, -0.0, -0.0), (0.0, 0.0, 0.0)];
    floats2(&zeros, min);
    floats2(&zeros.map(|(a, b, _)| (a, b, if a.is_sign_negative() { b } else { a })), max);
    floats2(&[(NAN, 1.0, 1.0), (1.0, NAN, 1.0), (NAN, NAN, NAN), (-INF, 1.0, -INF), (NAN, -INF, -INF)], min);
    floats2(&[(NAN, 1.0, 1.0), (1.0, NAN, 1.0), (NAN, NAN, NAN), (INF, 1.0, INF), (-1.0, -2.0, -1.0)], max);
    floats1(&[(NAN, 2.0), (-5.0, -1.0), (INF, 2.0), (0.5, 0.5)], |a| clamp(a, -1.0, 2.0));
}

#[test]
fn floats_follow_ieee() {
    floats2(&[(1.0, 0.0, INF), (-1.0, 0.0, -INF), (0.0, 0.0, NAN), (INF, INF, NAN)], |a, b| a / b);
    floats2(&[(5.5, 2.0, 1.5), (-0.5, 2.0, 1.5), (5.5, -2.0, -0.5), (1.0, 0.0, NAN)], |a, b| a % b);
    floats2(&[(1e30, 1e30, INF), (0.0, INF, NAN), (-1.0, 0.0, -0.0)], |a, b| a * b);
    floats1(&[(-0.0, 0.0), (NAN, NAN), (-INF, INF)], abs);
    floats1(&[(0.0, -0.0), (1.5, -1.5)], |a| -a);
    floats1(&[(-1.0, NAN), (-0.0, -0.0), (9.0, 3.0)], sqrt);
}

#[test]
fn rounding() {
    floats1(
        &[
            (0.5, 0.0),
            (1.5, 2.0),
            (2.5, 2.0),
            (-0.5, -0.0),
            (-1.5, -2.0),
            (2.4, 2.0),
            (1e30, 1e30),
            (NAN, NAN),
        ],
        round,
    );
    floats1(&[(1.9, 1.0), (-1.1, -2.0), (-0.0, -0.0)], floor);
    floats1(&[(1.1, 2.0), (-1.9, -1.0), (-0.5, -0.0)], ceil);
}

#[test]
fn elementary_functions_never_fail() {
    let wild =
        [INF, -INF, NAN, f32::MAX, f32::MIN, 1e-45, -0.0, 0.0, 3.176_764_4e7, -6.768_135_7e19, 3e9, -3e9];
    let functions: [fn(Expr) -> Expr; 8] = [exp, fast_exp, log, sin, cos, tanh, sqrt, |a| pow(a, 0.3)];
    let more = [atan, asin, acos, tan, rsqrt, erf, log1p, expm1, exp2, log2];
    for function in functions.into_iter().chain(more) {
        let got: Vec<f32> = {
            let (x, input) = (vars!(x), Input::f32("in", 1));
            let image = list(&wild);
            values_of(&func("f", x, function(input.at(x))), &[("in", &image)], Region::of_extents(&[12]))
        };
        assert_eq!(got.len(), wild.len());
    }
    for function in [exp, fast_exp] {
        floats1(
            &[(3.176_764_4e7, INF), (3e9, INF), (-6.768_135_7e19, 0.0), (-3e9, 0.0), (0.0, 1.0)],
            function,
        );
    }
    floats2(
        &[(0.0, 0.0, 1.0), (NAN, 0.0, 1.0), (0.0, -1.0, INF), (-8.0, 0.5, NAN), (3.0, 2.0, 9.0)],
        |a, b| select(b.eq(2.0), pow(&a, 2.0), pow(a, b)),
    );
}

// ---- Conversions.

#[test]
fn integer_casts_wrap_and_saturating_casts_clamp() {
    let x = vars!(x);
    let operands =
        [i32::MIN, -70_000, -32_769, -129, -128, -1, 0, 1, 127, 128, 255, 256, 65_535, 65_536, i32::MAX];
    let (input, image) = (Input::new("in", Type::I32, 1), list(&operands));
    let region = Region::of_extents(&[operands.len() as i64]);
    // Those of 64 bits have tests of their own.
    let types = Type::ALL.into_iter().filter(|ty| ty.is_int() && !ty.is_wide());
    for (from, to) in types.clone().flat_map(|from| types.clone().map(move |to| (from, to))) {
        // Convert back to i32, so that every target has the same Rust type; u32 keeps its bits.
        let run = |convert: &dyn Fn(Expr) -> Expr| -> Vec<i32> {
            let func = func("f", x, convert(input.at(x).cast(from)).i32());
            values_of(&func, &[("in", &image)], region.clone())
        };
        let (cast, saturated) = (run(&|a| a.cast(to)), run(&|a| a.saturating_cast(to)));
        for (i, operand) in operands.iter().enumerate() {
            let source = wrapped(from, i128::from(*operand));
            let (low, high) = to.int_range().unwrap();
            let as_i32 = |value: i64| wrapped(Type::I32, i128::from(value)) as i32;
            assert_eq!(cast[i], as_i32(wrapped(to, i128::from(source))), "{source}: {from} to {to}");
            assert_eq!(saturated[i], as_i32(source.clamp(low, high)), "{source}: {from} to {to}, saturating");
        }
    }
    check1(&[(300, 255u8), (-5, 0)], |a| a.saturating_cast(Type::U8));
    check1(&[(u32::MAX, i32::MAX)], |a| a.saturating_cast(Type::I32));
}

#[test]
fn floats_become_integers_by_truncation_within_the_range() {
    for saturating in [false, true] {
        let to = |ty: Type| move |a: Expr| if saturating { a.saturating_cast(ty) } else { a.cast(ty) };
        check1(
            &[(1.9, 1), (-1.9, -1), (NAN, 0), (INF, i32::MAX), (-INF, i32::MIN), (3e9, i32::MAX)],
            to(Type::I32),
        );
        check1(&[(255.9, 255u8), (300.0, 255), (-0.9, 0), (-5.0, 0), (NAN, 0)], to(Type::U8));
        check1(&[(-129.5, -128i8), (127.9, 127), (200.0, 127)], to(Type::I8));
        check1(&[(3e9, 3_000_000_000u32), (1e10, u32::MAX), (-1.0, 0)], to(Type::U32));
    }
}

#[test]
fn integers_become_the_nearest_float() {
    check1(&[(16_777_217, 16_777_216.0f32), (16_777_219, 16_777_220.0), (i32::MIN, -2_147_483_648.0)], |a| {
        a.f32()
    });
    check1(&[(u32::MAX, 4_294_967_296.0f32)], |a| a.f32());
    check1(&[(-1i8, -1.0f32)], |a| a.saturating_cast(Type::F32));
}

#[test]
fn truth_values_convert_by_being_zero_or_not() {
    for saturating in [false, true] {
        let to = |ty: Type| move |a: Expr| if saturating { a.saturating_cast(ty) } else { a.cast(ty) };
        check1(&[(0, false), (256, true), (-3, true), (1, true)], to(Type::Bool));
        check1(&[(0u8, false), (255, true)], to(Type::Bool));
        check1(&[(0.0, false), (-0.0, false), (0.3, true), (-0.3, true), (NAN, true)], to(Type::Bool));
        check1(&[(true, 1i32), (false, 0)], to(Type::I32));
        check1(&[(true, 1.0f32), (false, 0.0)], to(Type::F32));
    }
}

#[test]
fn reinterpreted_bits() {
    check1(&[(1.0f32, 0x3f80_0000u32), (-0.0, 0x8000_0000)], |a| a.reinterpret(Type::U32));
    check1(&[(0x7f80_0000, INF), (i32::MIN, -0.0)], |a| a.reinterpret(Type::F32));
    check1(&[(-1i8, 255u8), (-128, 128)], |a| a.reinterpret(Type::U8));
    check1(&[(0x8000u16, i16::MIN)], |a| a.reinterpret(Type::I16));
}

// ---- Select and random numbers.

#[test]
fn select_evaluates_both_sides() {
    let x = vars!(x);
    floats2(&[(1.0, NAN, 1.0), (NAN, 2.0, 2.0)], |a, b| select(a.eq(&a), a, b));
    check1(&[(0, 10), (1, 20), (2, 30), (9, 30), (-1, 30)], |a| mux(a, [10, 20, 30]));
    // The side that is not taken must be in bounds too.
    let input = Input::f32("in", 1);
    let image = list(&[1.0f32; 4]);
    for condition in [x.gt(0), Expr::from(true)] {
        let guarded = func("f", x, select(condition, input.at(max(x, 0)), input.at(x - 1)));
        let pipeline = Pipeline::new("p", [guarded]).unwrap();
        let run = Evaluation::new(&pipeline).input("in", &image).output("f", Region::of_extents(&[4])).run();
        assert!(matches!(run, Err(EvalError::Bounds(BoundsError::LeavesInput { .. }))));
    }
}

#[test]
fn random_numbers_are_those_of_the_reference() {
    let (x, y, z) = vars!(x, y, z);
    for (seed, at, expected) in [
        (3_392_003_200, [0, 0, 0], 0.981_924_8),
        (3_457_526_737, [0, 0, 0], 0.839_193_46),
        (3_392_003_200, [3, 2, 1], 0.518_832_1),
        (3_457_526_737, [57, 100, 31], 0.837_403_2),
    ] {
        let point = Region(at.iter().map(|&at| Range::new(at, 1)).collect());
        let random = func("random", (x, y, z), random_f32(seed, [x, y, z]));
        assert_eq!(values_of::<f32>(&random, &[], point), [expected]);
    }
}

// ---- Updates.

#[test]
fn the_first_reduction_variable_is_the_fastest() {
    let r = rdom([(0, 3), (0, 2)]);
    let visits = func("visits", (), 0).over(&r, |f| f.set((), f.at(()) * 10 + 1 + r.x + 3 * r.y));
    assert_eq!(values::<i32>(&visits, &[]), [123_456]);
    let odd = r.clone().filter((r.x + r.y).eq(1) | r.x.eq(2));
    let visits = func("visits", (), 0).over(&odd, |f| f.set((), f.at(()) * 10 + 1 + r.x + 3 * r.y));
    assert_eq!(values::<i32>(&visits, &[]), [2346]);
}

#[test]
fn updates_run_in_the_order_written() {
    let x = vars!(x);
    let r = rdom([(0, 3)]);
    let steps = func("steps", x, x)
        .update(|f| f.set(x, f.at(x) * 2))
        .over(&r, |f| f.set(r.x, f.at(r.x + 1)))
        .update(|f| f.set(1, -1))
        .update(|f| f.add(x, 100));
    assert_eq!(values::<i32>(&steps, &[5]), [102, 99, 106, 106, 108]);
}

#[test]
fn updates_read_all_old_values_before_they_write() {
    let x = vars!(x);
    let r = rdom([(0, 10)]);
    let fibonacci =
        func("fibonacci", (), (0, 1)).over(&r, |f| f.set((), (f.get(1, ()), f.get(0, ()) + f.get(1, ()))));
    assert_eq!(values::<i32>(&fibonacci, &[]), [55]);
    let swapped = func("swapped", x, (x, x * 10)).update(|f| f.set(x, (f.get(1, x), f.get(0, x))));
    assert_eq!(values::<i32>(&func("first", x, swapped.get(0, x)), &[4]), [0, 10, 20, 30]);
    assert_eq!(values::<i32>(&func("second", x, swapped.get(1, x)), &[4]), [0, 1, 2, 3]);
}

#[test]
fn scans_read_what_they_wrote() {
    let (x, y) = vars!(x, y);
    let r = rdom([(1, 4)]);
    let powers = func("powers", (x, y), undef(Type::I32))
        .update(|f| f.set((0, y), 1))
        .over(&r, |f| f.set((r.x, y), f.at((r.x - 1, y)) * (y + 2)));
    assert_eq!(values::<i32>(&powers, &[5, 2]), [1, 2, 4, 8, 16, 1, 3, 9, 27, 81]);
    let back = func("back", x, x).over(&r, |f| f.set(4 - r.x, f.at(5 - r.x) + f.at(4 - r.x)));
    assert_eq!(values::<i32>(&back, &[5]), [10, 10, 9, 7, 4]);
}

#[test]
fn undefined_starts_read_as_zero() {
    let x = vars!(x);
    let some = func("some", x, undef(Type::F32)).update(|f| f.set(2, 5.0));
    assert_eq!(values::<f32>(&some, &[4]), [0.0, 0.0, 5.0, 0.0]);
}

#[test]
fn funcs_without_dimensions_hold_one_value() {
    let x = vars!(x);
    let base = func("base", (), 7);
    let total = func("total", (), base.at(()) + 1).update(|f| f.add((), base.at(())));
    assert_eq!(values::<i32>(&total, &[]), [15]);
    assert_eq!(values::<i32>(&func("out", x, total.at(()) + x), &[3]), [15, 16, 17]);
}

#[test]
fn reductions_over_nothing_give_their_start() {
    let x = vars!(x);
    for extent in [0, -3] {
        let r = rdom([(4, extent)]);
        let float = |expr: Expr| values::<f32>(&func("out", x, expr), &[1])[0];
        let int = |expr: Expr| values::<i32>(&func("out", x, expr), &[1])[0];
        assert_eq!((float(sum(&r, r.x.f32())), float(product(&r, r.x.f32()))), (0.0, 1.0));
        assert_eq!((float(minimum(&r, r.x.f32())), float(maximum(&r, r.x.f32()))), (INF, -INF));
        assert_eq!((int(minimum(&r, r.x)), int(maximum(&r, r.x))), (i32::MAX, i32::MIN));
        assert_eq!((int(argmin(&r, r.x).at[0].clone()), int(argmin(&r, r.x).value)), (4, i32::MAX));
    }
}

#[test]
fn the_first_extreme_wins() {
    let x = vars!(x);
    let input = Input::f32("in", 1);
    let image = list(&[3.0f32, NAN, 1.0, 5.0, 1.0, 5.0]);
    let r = rdom([(0, 6)]);
    let (low, high) = (argmin(&r, input.at(r.x)), argmax(&r, input.at(r.x)));
    let found = func("found", x, mux(x, [low.at[0].f32(), low.value, high.at[0].f32(), high.value]));
    assert_eq!(values_of::<f32>(&found, &[("in", &image)], Region::of_extents(&[4])), [2.0, 1.0, 3.0, 5.0]);
}

#[test]
fn what_nobody_needs_is_not_computed() {
    let x = vars!(x);
    let nothing = rdom([(0, 0)]);
    let deep = func("deep", x, x + 1);
    let single = func("single", (), deep.at(3));
    let out = func("out", x, x * 2).over(&nothing, |f| f.add(x, single.at(()) + nothing.x));
    assert_eq!(values::<i32>(&out, &[3]), [0, 2, 4]);
}

#[test]
fn arithmetic_along_a_row_may_wrap_many_times() {
    let x = vars!(x);
    let far = (x * i32::MIN) * i32::MIN;
    assert_eq!(values::<i32>(&func("sum", x, &far + &far + &far + &far), &[3]), [0, 0, 0]);
    let near = (x * i32::MAX) * i32::MAX * i32::MAX;
    assert_eq!(values::<i32>(&func("product", x, &near - (-&near)), &[3]), [0, -2, -4]);
}

#[test]
fn a_row_of_one_point_may_have_any_step() {
    let x = vars!(x);
    let input = Input::new("in", Type::I32, 2).stored([1, 0]);
    let image = Buffer::from_fn(Region::of_extents(&[2, 9]), |at| (at[0] + at[1]) as i32).unwrap();
    let image = image.reordered(&[1, 0]).unwrap();
    let read = func("read", x, input.at((x * (1 << 30) * (1 << 30) * 4, 3)));
    assert_eq!(values_of::<i32>(&read, &[("in", &image)], Region::of_extents(&[1])), [3]);
}
