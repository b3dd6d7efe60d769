//! Comparison of buffers.

use proptest::prelude::*;
use warploom_interp::buffer::Buffer;
use warploom_interp::compare::{Comparison, Outliers, ShapeMismatch, Tolerance, compare};
use warploom_lang::{Region, Type, Value};

const EXACT: Tolerance = Tolerance { abs: 0.0, rel: 0.0, ulp: 0, outliers: None };

fn floats(samples: &[f32]) -> Buffer {
    Buffer::from_vec(Region::of_extents(&[samples.len() as i64]), samples.to_vec()).unwrap()
}

fn compare_floats(actual: &[f32], expected: &[f32], tolerance: Tolerance) -> Comparison {
    compare(&floats(actual), &floats(expected), &tolerance).unwrap()
}

#[test]
fn any_of_the_three_bounds_admits() {
    let next = f32::from_bits(1.0_f32.to_bits() + 3);
    for (tolerance, passed) in [
        (EXACT, false),
        (Tolerance { abs: 4e-7, ..EXACT }, true),
        (Tolerance { abs: 3e-7, ..EXACT }, false),
        (Tolerance { rel: 4e-7, ..EXACT }, true),
        (Tolerance { rel: 3e-7, ..EXACT }, false),
        (Tolerance { ulp: 3, ..EXACT }, true),
        (Tolerance { ulp: 2, ..EXACT }, false),
        (Tolerance { abs: f64::NAN, rel: -1.0, ..EXACT }, false),
    ] {
        let found = compare_floats(&[next], &[1.0], tolerance);
        assert_eq!((found.passed, found.max_ulp, found.differing), (passed, 3, 1), "{tolerance:?}");
    }
}

#[test]
fn nan_and_infinities_equal_only_themselves() {
    let loose = Tolerance { abs: f64::INFINITY, rel: f64::INFINITY, ulp: u32::MAX, outliers: None };
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for tolerance in [EXACT, loose] {
        assert!(compare_floats(&[nan, inf, -inf], &[-nan, inf, -inf], tolerance).passed);
        for (actual, expected) in [(nan, 0.0), (0.0, nan), (inf, -inf), (inf, f32::MAX), (nan, inf)] {
            let found = compare_floats(&[actual], &[expected], tolerance);
            assert!(!found.passed && found.max_abs.is_infinite(), "{actual} {expected}");
        }
    }
}

#[test]
fn both_zeros_are_equal_but_not_identical() {
    let found = compare_floats(&[-0.0], &[0.0], EXACT);
    assert!(found.passed && !found.identical);
    assert_eq!((found.differing, found.max_ulp), (0, 0));
    assert!(compare_floats(&[f32::NAN], &[-f32::NAN], EXACT).identical);
}

#[test]
fn steps_are_counted_across_zero() {
    let least = f32::from_bits(1);
    assert_eq!(compare_floats(&[-least], &[least], EXACT).max_ulp, 2);
    assert_eq!(compare_floats(&[f32::MAX], &[f32::MIN], EXACT).max_ulp, 2 * 0x7f7f_ffff);
}

#[test]
fn integers_count_whole_steps() {
    let region = Region::of_extents(&[2]);
    let actual = Buffer::from_vec(region.clone(), vec![i32::MIN, 5]).unwrap();
    let expected = Buffer::from_vec(region, vec![i32::MAX, 4]).unwrap();
    let found = compare(&actual, &expected, &Tolerance { ulp: 1, ..EXACT }).unwrap();
    assert_eq!((found.beyond, found.differing, found.max_ulp), (1, 2, u32::MAX));
    assert_eq!(found.max_abs, f64::from(u32::MAX));
}

#[test]
fn outliers_are_few_and_bounded() {
    let expected = vec![0.0; 100];
    let mut actual = expected.clone();
    actual[10..39].fill(1.0);
    let outliers = |abs, fraction| Tolerance { outliers: Some(Outliers { abs, fraction }), ..EXACT };
    let passed = |tolerance| compare_floats(&actual, &expected, tolerance).passed;
    assert!(passed(outliers(1.0, 0.29)));
    assert!(!passed(outliers(1.0, 0.28)));
    assert!(!passed(outliers(0.5, 1.0)));
    let admitted = compare_floats(&actual, &expected, outliers(1.0, 0.5));
    assert_eq!(admitted.beyond, 29);
    assert!(admitted.to_string().starts_with("all 100 samples pass, 29 of them as outliers"));
    for wrong in [f32::NAN, f32::INFINITY] {
        assert!(!compare_floats(&[wrong], &[0.0], outliers(f64::INFINITY, 1.0)).passed);
    }
    let nan = compare_floats(&[f32::NAN], &[0.0], outliers(f64::MAX, 1.0));
    assert!(!nan.passed);
}

#[test]
fn the_first_mismatch_is_first_by_index_not_by_storage() {
    let region = Region::of_extents(&[4, 3]);
    let expected = Buffer::zeros(Type::U8, region).unwrap().translated(&[10, -1]).unwrap();
    let mut actual = expected.reordered(&[1, 0]).unwrap();
    actual.set(&[10, 1], Value::from(9_u8)).unwrap();
    actual.set(&[13, 0], Value::from(7_u8)).unwrap();
    let found = compare(&actual, &expected, &EXACT).unwrap();
    assert_eq!(found.first.as_ref().unwrap().at, [13, 0]);
    assert_eq!(
        found.to_string(),
        "2 of 12 samples are beyond the tolerance, the first at (13, 0) with 7 instead of 0 \
         (largest difference: 9.000e0 absolute, inf relative, 9 ulp)"
    );
}

#[test]
fn shapes_must_match() {
    let zeros = |ty, extents: &[i64]| Buffer::zeros(ty, Region::of_extents(extents)).unwrap();
    let expected = zeros(Type::U8, &[4, 3]);
    let error = |actual: Buffer| compare(&actual, &expected, &EXACT).unwrap_err();
    assert!(matches!(error(zeros(Type::I8, &[4, 3])), ShapeMismatch::Type { .. }));
    assert!(matches!(error(zeros(Type::U8, &[4])), ShapeMismatch::Dimensions { .. }));
    assert!(matches!(error(zeros(Type::U8, &[4, 2])), ShapeMismatch::Extent { dimension: 1, .. }));
    let moved = expected.clone().translated(&[0, 5]).unwrap();
    assert_eq!(error(moved).to_string(), "dimension 1 starts at 5 instead of 0");
}

#[test]
fn empty_and_scalar_buffers_compare() {
    let empty = Buffer::zeros(Type::F32, Region::of_extents(&[0, 5])).unwrap();
    let found = compare(&empty, &empty, &EXACT).unwrap();
    assert_eq!(found.to_string(), "all 0 samples are equal");
    assert!(found.passed);
    let scalar = |value: i32| Buffer::from_vec(Region::default(), vec![value]).unwrap();
    let found = compare(&scalar(1), &scalar(2), &EXACT).unwrap();
    assert!(found.first.unwrap().at.is_empty());
}

proptest! {
    #[test]
    fn counts_agree_with_a_plain_loop(
        pairs in prop::collection::vec((any::<i8>(), any::<i8>()), 1..60),
        abs in 0_u8..100,
    ) {
        let region = Region::of_extents(&[pairs.len() as i64]);
        let (actual, expected): (Vec<i8>, Vec<i8>) = pairs.iter().copied().unzip();
        let actual = Buffer::from_vec(region.clone(), actual).unwrap();
        let expected = Buffer::from_vec(region, expected).unwrap();
        let found = compare(&actual, &expected, &Tolerance { abs: f64::from(abs), ..EXACT }).unwrap();
        let distances: Vec<u8> = pairs.iter().map(|(a, e)| a.abs_diff(*e)).collect();
        prop_assert_eq!(found.differing, distances.iter().filter(|&&d| d > 0).count());
        prop_assert_eq!(found.beyond, distances.iter().filter(|&&d| d > abs).count());
        prop_assert_eq!(Some(found.max_abs as u8), distances.iter().copied().max());
        let first = distances.iter().position(|&d| d > abs).map(|index| vec![index as i64]);
        prop_assert_eq!(found.first.map(|mismatch| mismatch.at), first);
        prop_assert_eq!(found.passed, found.beyond == 0);
    }
}
