//! Pipelines with constant tables: the evaluator's values, and kernels against it.

use warploom_fuzz::{Case, Verdict};
use warploom_interp::Evaluation;
use warploom_lang::*;
use warploom_plan::Problem;
use warploom_schedule::Schedule;

use crate::support::device;

/// Values looked up, a repeated pattern, and a sum whose distances and weights are tables.
fn pipeline() -> Pipeline {
    let (x, y) = vars!(x, y);
    let image = Input::u8("image", 2);
    let edge = image.repeat_edge();
    let gamma = table("gamma", std::array::from_fn::<f32, 256, _>(|i| (i * i) as f32 / 65025.0));
    let linear = func("linear", (x, y), gamma.at(edge.at((x, y)).i32()));
    let (distances, weights) = (table("distances", [-2, 0, 3]), table("weights", vec![0.25f32, 0.5, 0.25]));
    let r = rdom([(0, 3)]);
    let term = linear.at((x + distances.at(r.x), y)) * weights.at(r.x);
    let spread = func("spread", (x, y), 0.0).over(&r, |own| own.add((x, y), term));
    let dither = table("dither", [[0i16, 8, 2], [12, 4, -14]]);
    let out = func("out", (x, y), spread.at((x, y)) * 255.0 + dither.at((x % 3, y % 2)).f32());
    Pipeline::new("tables", [out]).unwrap()
}

fn case(schedule: impl FnOnce(&Problem) -> Schedule) -> Case {
    let pipeline = pipeline();
    let request = Realisation::new(&pipeline)
        .input("image", Region::of_extents(&[19, 9]))
        .output("out", Region(vec![Range::new(-3, 23), Range::new(1, 7)]));
    let schedule = schedule(&Problem::new(&pipeline, &request, &device()).unwrap());
    Case { pipeline, request, schedule, seed: 3 }
}

#[test]
fn the_evaluator_reads_tables() {
    let (x, y) = vars!(x, y);
    let rows = table("rows", [[1u16, 2, 3], [4, 5, 6]]);
    let shuffled = table("shuffled", [2, 0, 1]);
    let out = func("out", (x, y), rows.at((shuffled.at(x), y)));
    let pipeline = Pipeline::new("p", [out]).unwrap();
    for seed in [None, Some(1)] {
        let evaluation = Evaluation::new(&pipeline).output("out", Region::of_extents(&[3, 2]));
        let values = match seed {
            Some(seed) => evaluation.perturbed(seed).run(),
            None => evaluation.run(),
        };
        assert_eq!(values.unwrap()[0].as_slice::<u16>(), Some(&[3, 1, 2, 6, 4, 5][..]));
    }
}

#[test]
fn kernels_read_tables_as_the_evaluator_does() {
    let passed = |case: &Case| assert_eq!(case.check(&device()).unwrap(), Verdict::Passed);
    passed(&case(Problem::default_schedule));
    (0..40).for_each(|seed| passed(&case(|problem| problem.random_schedule(seed))));
}

#[test]
fn kernels_of_any_size_read_tables() {
    let mut passed = 0;
    for seed in 0..20 {
        let case = Case { seed, ..case(|problem| problem.random_schedule(seed)) };
        passed += usize::from(case.check_dynamic(&device(), &|_| Ok(())).unwrap() == Verdict::Passed);
    }
    assert!(passed > 5, "only {passed} could be checked");
}
