//! Perturbed evaluations stay within the error that is admitted for each operation.

use std::collections::BTreeSet;

use warploom_lang::*;

use super::{run, values};

/// The position of a float among those of its type.
fn place(value: Value) -> i64 {
    let bits = 8 * value.ty().bytes();
    let sign = 1_u64 << (bits - 1);
    let magnitude = (value.bits() & !sign) as i64;
    if value.bits() & sign == 0 { magnitude } else { -magnitude }
}

/// The largest distance of perturbed results from the others, and the number of distances seen.
fn spread(inputs: &[&[Value]], make: impl Fn(&[Expr]) -> Expr) -> (i64, usize) {
    let exact = values(inputs, &make);
    let mut seen = BTreeSet::new();
    for seed in 0..16 {
        let found = run(inputs, &make, Some(seed));
        seen.extend(found.into_iter().zip(&exact).map(|(found, exact)| place(found) - place(*exact)));
    }
    (seen.iter().map(|distance| distance.abs()).max().unwrap(), seen.len())
}

fn numbers(ty: Type) -> [Vec<Value>; 3] {
    [0.31, 0.17, 0.53]
        .map(|step| (1..200).map(|i| Value::rounded(ty, f64::from(i) * step % 3.0 + 0.25).unwrap()).collect())
}

#[test]
fn halves_differ_by_a_unit() {
    for ty in [Type::F16, Type::BF16] {
        let [a, b, c] = numbers(ty);
        // A result in f32 may be on the other side of a tie.
        for (most, admitted) in [
            spread(&[&a, &b], |of| &of[0] / &of[1]),
            spread(&[&a], |of| sqrt(&of[0])),
            spread(&[&a], |of| exp(&of[0])),
            spread(&[&a], |of| sin(&of[0])),
            spread(&[&a, &b], |of| pow(&of[0], &of[1])),
        ]
        .map(|(most, _)| (most, 1))
        {
            assert!(most <= admitted, "{ty}: {most} units");
        }
        // Products are rounded before they are added: nothing is fused.
        assert_eq!(spread(&[&a, &b, &c], |of| &of[0] * &of[1] + &of[2]).0, 0, "{ty}");
        assert_eq!(spread(&[&a, &b, &c], |of| min(&of[0], &of[1]) - &of[2]).0, 0, "{ty}");
    }
}

#[test]
fn doubles_differ_by_what_their_functions_may() {
    let [a, b, c] = numbers(Type::F64);
    for (most, seen) in [
        spread(&[&a], |of| exp(&of[0])),
        spread(&[&a], |of| log(&of[0])),
        spread(&[&a], |of| sin(&of[0])),
        spread(&[&a], |of| tanh(&of[0])),
        spread(&[&a, &b], |of| pow(&of[0], &of[1])),
    ] {
        assert!((1..=6).contains(&most) && seen > 3, "{most} units, {seen} of them");
    }
    // Division and square root are correctly rounded in both builds.
    assert_eq!(spread(&[&a, &b], |of| &of[0] / &of[1]).0, 0);
    assert_eq!(spread(&[&a], |of| sqrt(&of[0])).0, 0);
    // A fused product differs by one rounding; all operands are positive, so nothing cancels.
    let (most, seen) = spread(&[&a, &b, &c], |of| &of[0] * &of[1] + &of[2]);
    assert!(most == 1 && seen > 1, "{most} units");
}

#[test]
fn integers_never_differ() {
    for ty in [Type::I64, Type::U64] {
        let ints: Vec<Value> = (1..100).map(|i| Value::from_int(ty, i * 123_456_789_012).unwrap()).collect();
        let make = |of: &[Expr]| &of[0] * &of[0] + &of[0] / 7 - &of[0] % 1000;
        assert_eq!(run(&[&ints], make, Some(3)), values(&[&ints], make));
    }
}
