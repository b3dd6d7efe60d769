//! Which results of kernels built for speed pass, and which do not.

use proptest::prelude::*;
use warploom_interp::Evaluation;
use warploom_interp::buffer::Buffer;
use warploom_interp::expected::{Expected, Fault, OUTLIERS};
use warploom_lang::rounding::Rounding;
use warploom_lang::*;

const SIDE: i64 = 60;

/// A blur with weights that no float represents exactly.
fn blur() -> Pipeline {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2).repeat_edge();
    let row =
        func("row", (x, y), input.at((x - 1, y)) * 0.3 + input.at((x, y)) * 0.4 + input.at((x + 1, y)) * 0.3);
    let blur =
        func("blur", (x, y), row.at((x, y - 1)) * 0.3 + row.at((x, y)) * 0.4 + row.at((x, y + 1)) * 0.3);
    Pipeline::new("blur", [blur]).unwrap()
}

/// White where the brightness is above a threshold.
fn threshold() -> Pipeline {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let white = func("white", (x, y), select((input.at((x, y)) * 0.7 + 0.1).gt(0.45), 255, 0).cast(Type::U8));
    Pipeline::new("threshold", [white]).unwrap()
}

fn image() -> Buffer {
    let brightness = |at: &[i64]| ((at[0] * 37 + at[1] * 101) % 97) as f32 / 97.0;
    Buffer::from_fn(Region::of_extents(&[SIDE, SIDE]), brightness).unwrap()
}

fn run(pipeline: &Pipeline, perturbed: Option<u64>) -> Vec<Buffer> {
    let image = image();
    let output = pipeline.output_names()[0].clone();
    let evaluation = Evaluation::new(pipeline).input("input", &image).output(&output, image.region().clone());
    let evaluation = match perturbed {
        Some(seed) => evaluation.perturbed(seed),
        None => evaluation,
    };
    evaluation.run().unwrap()
}

fn expected(pipeline: &Pipeline, stated: Option<f64>) -> Expected {
    let runs = (0..8).map(|seed| Ok::<_, ()>(run(pipeline, Some(seed))));
    Expected::new(pipeline, run(pipeline, None), runs, stated, Rounding::Timing).unwrap()
}

fn fault(expected: &Expected, outputs: &[Buffer]) -> Option<Fault> {
    expected.closeness(outputs)[0].fault.clone()
}

#[test]
fn other_roundings_are_the_same_however_the_work_is_split() {
    let pipeline = blur();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&pipeline, Some(3)))
    };
    assert_eq!(with(1), with(5));
    assert_ne!(with(1), run(&pipeline, Some(4)));
    assert_ne!(with(1), run(&pipeline, None));
}

#[test]
fn what_other_roundings_give_passes() {
    for pipeline in [blur(), threshold()] {
        for stated in [None, Some(1e-6)] {
            let expected = expected(&pipeline, stated);
            for seed in 100..110 {
                let found = expected.closeness(&run(&pipeline, Some(seed)));
                assert_eq!(found[0].fault, None, "{}", found[0]);
            }
        }
    }
}

/// Two builds give a poor estimate of each sample's range. A few samples may be as far off as the
/// builds differ anywhere, but not further.
#[test]
fn outliers_of_two_builds_are_bounded_by_their_largest_difference() {
    let pipeline = blur();
    let (checking, mut timing) = (run(&pipeline, None), run(&pipeline, Some(1)));
    let largest = 1e-4;
    timing[0].as_mut_slice::<f32>().unwrap()[7] += largest;
    let expected = Expected::of_builds(&pipeline, checking.clone(), timing, None);
    let off = |count: usize, by: f32| {
        let mut outputs = checking.clone();
        let samples = outputs[0].as_mut_slice::<f32>().unwrap();
        samples[1800..1800 + count].iter_mut().for_each(|sample| *sample += by);
        fault(&expected, &outputs)
    };
    let allowed = (OUTLIERS * (SIDE * SIDE) as f64) as usize;
    assert_eq!(off(allowed, 2.0 * largest), None);
    assert!(matches!(off(allowed + 1, 2.0 * largest), Some(Fault::Outliers(_))));
    // The largest sample near that one may be larger than it is here, but not ten times.
    assert!(matches!(off(1, 1.5), Some(Fault::OutOfRange { .. })));
}

/// Large outputs are compared in parts.
#[test]
fn faults_of_large_outputs_are_counted_and_placed() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let pipeline = Pipeline::new("scale", [func("out", (x, y), input.at((x, y)) * 0.3 + 1.0)]).unwrap();
    let region = Region::of_extents(&[500, 400]);
    let samples: Vec<f32> = (0..200_000).map(|i| 1.0 + (i % 97) as f32).collect();
    let of = |samples: &[f32]| Buffer::from_vec::<f32>(region.clone(), samples.to_vec()).unwrap();
    let reference = of(&samples);
    let expected = Expected::of_builds(&pipeline, vec![reference.clone()], vec![reference.clone()], None);
    let mut wrong = samples.clone();
    for place in [70_123, 150_000, 199_999] {
        wrong[place] += 1000.0;
    }
    for stored in [of(&wrong), of(&wrong).reordered(&[1, 0]).unwrap()] {
        let close = &expected.closeness(std::slice::from_ref(&stored))[0];
        assert_eq!((close.differing, close.outliers, close.max_abs), (3, 3, 1000.0));
        let Some(Fault::OutOfRange { first, .. }) = &close.fault else { panic!("{close}") };
        assert_eq!(first.at, [123, 140]);
        let difference = expected.difference(&[stored]).expect("three samples differ");
        assert!(difference.contains("3 of 200000"), "{difference}");
    }
    let turned = reference.reordered(&[1, 0]).unwrap();
    assert_eq!(expected.difference(&[turned]), None);
}

#[test]
fn what_no_rounding_reaches_is_exact() {
    let x = vars!(x);
    let input = Input::f32("input", 1);
    let sum = func("sum", x, (input.at(x) + input.at(x + 1)) / 2.0);
    let pipeline = Pipeline::new("sum", [sum]).unwrap();
    let image = Buffer::from_fn(Region::of_extents(&[101]), |at| at[0] as f32 * 0.37).unwrap();
    let run = |seed| {
        let evaluation = Evaluation::new(&pipeline).input("input", &image);
        evaluation.output("sum", Region::of_extents(&[100])).perturbed(seed).run()
    };
    let expected =
        Expected::new(&pipeline, run(0).unwrap(), (0..4).map(run), None, Rounding::Timing).unwrap();
    let mut outputs = run(9).unwrap();
    assert_eq!(fault(&expected, &outputs), None);
    let sample = &mut outputs[0].as_mut_slice::<f32>().unwrap()[99];
    *sample = f32::from_bits(sample.to_bits() + 1);
    assert!(matches!(fault(&expected, &outputs), Some(Fault::Inexact(first)) if first.at == [99]));
}

#[test]
fn flips_are_few_and_within_the_range_nearby() {
    let pipeline = threshold();
    let expected = expected(&pipeline, None);
    let reference = run(&pipeline, None);
    let flipped = |count: usize, by: fn(u8) -> u8| {
        let mut outputs = reference.clone();
        let samples = outputs[0].as_mut_slice::<u8>().unwrap();
        for sample in samples.iter_mut().step_by(7).take(count) {
            *sample = by(*sample);
        }
        fault(&expected, &outputs)
    };
    let allowed = (OUTLIERS * (SIDE * SIDE) as f64) as usize;
    assert_eq!(flipped(allowed, |sample| 255 - sample), None);
    assert!(matches!(flipped(allowed + 1, |sample| 255 - sample), Some(Fault::Outliers(_))));
}

#[test]
fn integers_that_roundings_reach_may_be_off_by_one() {
    let (x, y) = vars!(x, y);
    let level =
        func("level", (x, y), (Input::f32("input", 2).at((x, y)) * 1000.3 + 0.5).cast(Type::I32) * 1000);
    let pipeline = Pipeline::new("levels", [level]).unwrap();
    let expected = expected(&pipeline, Some(1e-6));
    let off_by = |by: i32| {
        let mut outputs = run(&pipeline, None);
        outputs[0].as_mut_slice::<i32>().unwrap()[5] += by;
        fault(&expected, &outputs)
    };
    assert_eq!(off_by(1), None);
    assert!(matches!(off_by(2_000_000), Some(Fault::OutOfRange { .. })));
}

#[test]
fn a_stated_tolerance_is_of_the_largest_sample() {
    let pipeline = blur();
    let expected = expected(&pipeline, Some(1e-3));
    let off = |by: f32| {
        let mut outputs = run(&pipeline, None);
        outputs[0].as_mut_slice::<f32>().unwrap().iter_mut().for_each(|sample| *sample += by);
        fault(&expected, &outputs)
    };
    assert_eq!(off(4e-4), None);
    assert!(matches!(off(1e-2), Some(Fault::Outliers(_) | Fault::OutOfRange { .. })));
}

proptest! {
    /// Corrupts from one sample to 5 % of them, anywhere and in the last row: out of range, NaN,
    /// infinite or poison.
    #[test]
    fn nothing_wrong_passes(
        places in proptest::collection::vec(0..(SIDE * SIDE) as usize, 0..(SIDE * SIDE / 20) as usize),
        last in 0..SIDE as usize,
        spoilt in prop_oneof![
            Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY), Just(f32::from_bits(u32::MAX)),
            Just(2.0), Just(-1.0), Just(1e30)
        ],
        stated in prop_oneof![Just(None), Just(Some(1e-6))],
    ) {
        let pipeline = blur();
        let expected = expected(&pipeline, stated);
        let mut outputs = run(&pipeline, Some(77));
        let samples = outputs[0].as_mut_slice::<f32>().unwrap();
        let count = samples.len();
        for place in places.into_iter().chain([count - 1 - last]) {
            samples[place] = spoilt;
        }
        match fault(&expected, &outputs) {
            Some(Fault::NotFinite { by_nature, .. }) => prop_assert!(!spoilt.is_finite() && !by_nature),
            Some(Fault::OutOfRange { .. }) => prop_assert!(spoilt.is_finite()),
            other => prop_assert!(false, "{other:?}"),
        }
    }
}

/// For each point, the sum of some terms that are far from zero.
fn sums(terms: i32, term: fn(Expr, Expr) -> Expr) -> Pipeline {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let r = rdom([(0, terms)]);
    let at = |x: Expr, y: Expr| input.at((x % SIDE as i32, y % SIDE as i32)) + 0.5;
    let (one, other) = (at(x + r.x, y + r.x / 7), at(x + r.x * 3, y + 0));
    let sums = func("sums", (x, y), 0.0).over(&r, |f| f.add((x, y), term(one, other))).reassociate();
    Pipeline::new("sums", [sums]).unwrap()
}

#[test]
fn long_sums_in_another_order_pass_only_where_the_order_is_free() {
    let terms: [fn(Expr, Expr) -> Expr; 2] = [|one, _| one, |one, other| one * other];
    for (number, term) in terms.into_iter().enumerate() {
        let pipeline = sums(600, term);
        let runs = (0..8).map(|seed| {
            let image = image();
            let evaluation = Evaluation::new(&pipeline).input("input", &image);
            evaluation.output("sums", image.region().clone()).reordered(seed).run()
        });
        let reordered =
            Expected::new(&pipeline, run(&pipeline, None), runs, None, Rounding::Reordered).unwrap();
        for rewrite in
            ["factor sums.1.rx outer 25", "factor sums.1.rx inner 32", "factor sums.1.rx outer 300"]
        {
            let rewritten = pipeline.rewritten(&[rewrite.parse().unwrap()]).unwrap();
            let outputs = run(&rewritten, None);
            let found = &reordered.closeness(&outputs)[0];
            assert_eq!(found.fault, None, "{rewrite}: {found}");
            assert!(found.used > 0.03, "the tolerance is not much wider than needed: {found}");
            match fault(&expected(&pipeline, None), &outputs) {
                Some(Fault::Inexact(_)) => {
                    assert_eq!(number, 0, "a sum of inputs rounds the same in both builds")
                }
                Some(Fault::Outliers(_) | Fault::OutOfRange { .. }) => assert_eq!(number, 1),
                other => panic!("{rewrite}: {other:?}"),
            }
        }
        assert!(fault(&reordered, &run(&sums(599, term), None)).is_some(), "the last term is missing");
    }
}
