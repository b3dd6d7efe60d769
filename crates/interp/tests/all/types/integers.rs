//! Operations on integers of 64 bits, against integers of 128.

use warploom_lang::*;

use super::oracle::{Number, wrapped};
use super::{edges, pairs, values};

fn int(value: Value) -> i128 {
    match Number::of(value) {
        Number::Int(int) => int,
        Number::Float(_) => panic!("{value:?} is no integer"),
    }
}

type Operation = fn(&Expr, &Expr) -> Expr;
type Exact = fn(i128, i128) -> i128;

#[test]
fn arithmetic_wraps_and_divides_as_euclid() {
    let operations: [(&str, Operation, Exact); 10] = [
        ("+", |a, b| a + b, |a, b| a + b),
        ("-", |a, b| a - b, |a, b| a - b),
        ("*", |a, b| a * b, |a, b| a.wrapping_mul(b)),
        ("/", |a, b| a / b, |a, b| if b == 0 { 0 } else { a.div_euclid(b) }),
        ("%", |a, b| a % b, |a, b| if b == 0 { 0 } else { a.rem_euclid(b) }),
        ("min", |a, b| min(a, b), |a, b| a.min(b)),
        ("max", |a, b| max(a, b), |a, b| a.max(b)),
        ("average", |a, b| average(a, b), |a, b| (a + b + 1) >> 1),
        ("<<", |a, b| a << b, |a, b| a << b.rem_euclid(64)),
        (">>", |a, b| a >> b, |a, b| a >> b.rem_euclid(64)),
    ];
    for ty in [Type::I64, Type::U64] {
        let [left, right] = pairs(&edges(ty));
        for (name, operation, exact) in operations {
            let found = values(&[&left, &right], |of| operation(&of[0], &of[1]));
            for ((a, b), found) in left.iter().zip(&right).zip(found) {
                let expected = wrapped(ty, exact(int(*a), int(*b)));
                assert_eq!(found, expected, "{a:?} {name} {b:?}");
            }
        }
    }
}

#[test]
fn bits_and_differences_are_exact() {
    let operations: [(&str, Operation, Exact); 5] = [
        ("&", |a, b| a & b, |a, b| a & b),
        ("|", |a, b| a | b, |a, b| a | b),
        ("^", |a, b| a ^ b, |a, b| a ^ b),
        ("select", |a, b| select(a.lt(b), a, b), |a, b| if a < b { a } else { b }),
        ("absd", |a, b| absd(a, b), |a, b| (a - b).abs()),
    ];
    for ty in [Type::I64, Type::U64] {
        let [left, right] = pairs(&edges(ty));
        for (name, operation, exact) in operations {
            let to = if name == "absd" { Type::U64 } else { ty };
            let found = values(&[&left, &right], |of| operation(&of[0], &of[1]));
            for ((a, b), found) in left.iter().zip(&right).zip(found) {
                assert_eq!(found, wrapped(to, exact(int(*a), int(*b))), "{a:?} {name} {b:?}");
            }
        }
    }
}

#[test]
fn comparisons_and_single_operands() {
    for ty in [Type::I64, Type::U64] {
        let [left, right] = pairs(&edges(ty));
        type Comparison = fn(&i128, &i128) -> bool;
        let comparisons: [(Operation, Comparison); 4] = [
            (|a, b| a.lt(b), i128::lt),
            (|a, b| a.le(b), i128::le),
            (|a, b| a.eq(b), i128::eq),
            (|a, b| a.ne(b), i128::ne),
        ];
        for (operation, exact) in comparisons {
            let found = values(&[&left, &right], |of| operation(&of[0], &of[1]));
            for ((a, b), found) in left.iter().zip(&right).zip(found) {
                assert_eq!(found, Value::from(exact(&int(*a), &int(*b))), "{a:?} {b:?}");
            }
        }
        type Single = (fn(&Expr) -> Expr, fn(i128) -> i128);
        let single: [Single; 5] = [
            (|a| -a, |a| -a),
            (|a| !a, |a| -1 - a),
            (|a| abs(a), i128::abs),
            (|a| popcount(a), |a| (a as u64).count_ones().into()),
            (|a| leading_zeros(a), |a| (a as u64).leading_zeros().into()),
        ];
        for (operation, exact) in single {
            let all = edges(ty);
            for (a, found) in all.iter().zip(values(&[&all], |of| operation(&of[0]))) {
                assert_eq!(found, wrapped(ty, exact(int(*a))), "{a:?}");
            }
        }
    }
}

#[test]
fn sums_and_extremes_of_64_bits() {
    let all = edges(Type::U64);
    let count = all.len() as i32;
    let input = Input::new("in", Type::U64, 1);
    let r = rdom([(0, count)]);
    let outputs = [
        func("total", (), sum(&r, input.at(r.x))),
        func("largest", (), maximum(&r, input.at(r.x))),
        func("least", (), minimum(&r, input.at(r.x))),
        func("place", (), argmax(&r, input.at(r.x)).at[0].clone()),
    ];
    let pipeline = Pipeline::new("p", outputs).unwrap();
    let samples = all.iter().map(|value| value.get::<u64>().unwrap()).collect();
    let buffer =
        warploom_interp::buffer::Buffer::from_vec(Region::of_extents(&[count.into()]), samples).unwrap();
    let mut evaluation = warploom_interp::Evaluation::new(&pipeline).input("in", &buffer);
    for name in ["total", "largest", "least", "place"] {
        evaluation = evaluation.output(name, Region::of_extents(&[]));
    }
    let found: Vec<Value> = evaluation.run().unwrap().iter().map(|buffer| buffer.get(&[]).unwrap()).collect();
    let total = all.iter().map(|value| int(*value)).sum();
    assert_eq!(found[0], wrapped(Type::U64, total));
    assert_eq!(found[1..3], [Value::from(u64::MAX), Value::from(0_u64)]);
    let first = all.iter().position(|value| *value == Value::from(u64::MAX)).unwrap();
    assert_eq!(found[3], Value::from(first as i32));
}
