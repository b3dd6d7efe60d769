//! Conversions between all types.

use warploom_lang::{Operand, Type, Value, constant, f16};

use super::oracle::{Number, converted};
use super::{edges, same, values};

#[test]
fn every_type_converts_to_every_other() {
    for (from, to) in Type::ALL.into_iter().flat_map(|from| Type::ALL.map(|to| (from, to))) {
        let sources = edges(from);
        for saturates in [false, true] {
            let found = values(&[&sources], |of| match saturates {
                true => of[0].saturating_cast(to),
                false => of[0].cast(to),
            });
            for (source, found) in sources.iter().zip(found) {
                let expected = converted(Number::of(*source), to, saturates);
                assert!(same(found, expected), "{source:?} is {found:?}, not {expected:?}");
            }
        }
    }
}

#[test]
fn constants_convert_as_values_do() {
    for (from, to) in Type::ALL.into_iter().flat_map(|from| Type::ALL.map(|to| (from, to))) {
        for source in edges(from) {
            let zero = [Value::zero(Type::I32)];
            let found = values(&[&zero], |_| warploom_lang::Expr::from(source).cast(to))[0];
            let expected = converted(Number::of(source), to, false);
            assert!(same(found, expected), "{source:?} is {found:?}, not {expected:?}");
        }
    }
    assert_eq!(constant(0.1_f64).ty(), Some(Type::F64));
    assert_eq!(constant(f16::ONE).ty(), Some(Type::F16));
}

#[test]
fn bits_are_reinterpreted() {
    let groups = [
        vec![Type::U8, Type::I8],
        vec![Type::U16, Type::I16, Type::F16, Type::BF16],
        vec![Type::U32, Type::I32, Type::F32],
        vec![Type::U64, Type::I64, Type::F64],
    ];
    let pairs = groups
        .iter()
        .flat_map(|group| group.iter().flat_map(|from| group.iter().map(move |to| (*from, *to))));
    for (from, to) in pairs.filter(|(from, to)| from != to) {
        // The bits of a NaN are unspecified.
        let sources: Vec<Value> = edges(from).into_iter().filter(|value| !value.as_f64().is_nan()).collect();
        let mask = u64::MAX >> (64 - 8 * from.bytes());
        for (source, found) in sources.iter().zip(values(&[&sources], |of| of[0].reinterpret(to))) {
            let expected = Value::from_bits(to, source.bits() & mask);
            assert!(same(found, expected), "{source:?} as {to} is {found:?}, not {expected:?}");
        }
    }
}
