//! Pipelines of thousands of Funcs: no walk exhausts the stack, nothing grows much faster than they do, and a search
//! ends when its time is up.
//!
//! Limits of time have margins for machines that are busy with other things.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::thread;
use std::time::{Duration, Instant};

use warploom::codegen::build::{BuildError, build};
use warploom::codegen::cuda::{Build, print};
use warploom::codegen::lower::LowerError;
use warploom::cost::{Analytic, Featurizer};
use warploom::prelude::*;
use warploom::randpipe::Shape;
use warploom::schedule::schedule::{Problem, Schedule, StageRef};
use warploom::search::{Options, Outcome, StopReason, search};
use warploom::tune::explain::Explanation;
use warploom::tune::one_shot::one_shot;

/// A large pipeline at a size.
struct Large {
    problem: Problem,
}

impl Large {
    fn new(shape: Shape, funcs: usize) -> Large {
        let (pipeline, request) = shape.pipeline(funcs).unwrap();
        Large::of(&pipeline, &request)
    }

    fn of(pipeline: &Pipeline, request: &Realisation) -> Large {
        Large { problem: Problem::new(pipeline, request, &Device::preset("h200").unwrap()).unwrap() }
    }

    fn default(&self) -> Schedule {
        Schedule::default_for(&self.problem)
    }

    /// The schedule of one kernel with everything inlined.
    fn all_inlined(&self) -> Schedule {
        let pipeline = self.problem.pipeline();
        let output = pipeline.outputs()[0];
        let inlined = pipeline.funcs().keys().filter(|func| *func != output);
        let kernel = StageRef { func: output, stage: 0 };
        let root = vec![Schedule::default_kernel(&self.problem, kernel)];
        Schedule { inlined: inlined.collect(), root, ..Schedule::default() }
    }

    fn is_legal(&self, schedule: &Schedule) -> bool {
        self.problem.check(schedule).is_ok()
    }

    fn search(&self, limit: Duration) -> Outcome {
        let options = Options { time_limit: Some(limit), threads: 2, ..Options::default() };
        search(&self.problem, &Analytic::new(self.problem.device()), &options, &|_| {})
    }
}

/// Runs something on a thread with the stack that threads have by default in a program, or less.
fn with_little_stack(run: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn ten_thousand_funcs_have_kernels_by_default() {
    with_little_stack(|| {
        for shape in Shape::ALL {
            let large = Large::new(shape, 10_000);
            let schedule = large.default();
            let program = build(&large.problem, &schedule).unwrap();
            assert_eq!(program.kernels.len(), schedule.root.len(), "{shape:?}");
            let pipeline = large.problem.pipeline();
            let read = Schedule::parse(&schedule.to_text(pipeline), pipeline).unwrap();
            assert_eq!(read, schedule, "{shape:?}");
        }
    });
}

#[test]
fn the_default_schedule_of_five_thousand_funcs_is_there_in_time() {
    for shape in Shape::ALL {
        let large = Large::new(shape, 5_000);
        let started = Instant::now();
        let schedule = large.default();
        assert!(started.elapsed() < Duration::from_secs(6), "{shape:?}: {:?}", started.elapsed());
        assert!(large.is_legal(&schedule));
        assert!(started.elapsed() < Duration::from_secs(20), "{shape:?}: {:?}", started.elapsed());
    }
}

#[test]
fn thousands_of_funcs_can_be_inlined_in_each_other() {
    with_little_stack(|| {
        for (shape, funcs) in [(Shape::Chain, 10_000), (Shape::Fibonacci, 3_000)] {
            let large = Large::new(shape, funcs);
            let schedule = large.all_inlined();
            assert!(large.is_legal(&schedule));
            let program = build(&large.problem, &schedule).unwrap();
            assert_eq!(program.kernels.len(), 1);
            assert!(print(&program, Build::Timing).len() > 10 * funcs);
            assert_eq!(Featurizer::new(&large.problem).of_schedule(&schedule).len(), 1);
            let model = Analytic::new(large.problem.device());
            let explanation = Explanation::new(&large.problem, &schedule, &model);
            assert!(explanation.unwrap().to_string().contains("kernel"));
        }
    });
}

/// Funcs that each read the one before at two points of their own: inlined, no two of them are the same.
fn doubling(funcs: usize) -> Large {
    let x = vars!(x);
    let mut last = func("f0", x, x.f32());
    for number in 1..funcs {
        let far = 3 * number as i32;
        last = func(format!("f{number}"), x, last.at(x % 1009 + far) + last.at(x * 5 % 1013 + far));
    }
    let output = format!("f{}", funcs - 1);
    let pipeline = Pipeline::new("doubling", [last]).unwrap();
    let request = Realisation::new(&pipeline).output(&output, Region::of_extents(&[256]));
    Large::of(&pipeline, &request)
}

#[test]
fn a_kernel_that_would_grow_exponentially_is_refused() {
    let large = doubling(40);
    let schedule = large.all_inlined();
    assert!(large.is_legal(&schedule));
    let error = build(&large.problem, &schedule).unwrap_err();
    assert!(matches!(error, BuildError::Lower(LowerError::TooLong { .. })), "{error}");
    // It has kernels all the same.
    assert!(build(&large.problem, &large.default()).is_ok());
}

#[test]
fn a_search_ends_when_its_time_is_up() {
    let limit = Duration::from_secs(2);
    let cases = [
        Large::new(Shape::Fibonacci, 200),
        Large::new(Shape::Chain, 700),
        Large::new(Shape::Chain, 5_000),
        Large::new(Shape::Fan, 2_000),
        Large::new(Shape::Stencils, 5_000),
        doubling(40),
    ];
    for large in &cases {
        let pipeline = large.problem.pipeline();
        let (name, funcs) = (pipeline.name(), pipeline.funcs().len());
        let started = Instant::now();
        let outcome = large.search(limit);
        // A tenth and a second more are promised; the rest is for machines that have other things to do.
        let elapsed = started.elapsed();
        assert!(elapsed < limit.mul_f64(1.1) + Duration::from_secs(4), "{name} {funcs}: {elapsed:?}");
        assert!(large.is_legal(&outcome.best), "{name} {funcs}");
        assert!(elapsed < limit || outcome.stop == StopReason::TimeLimit, "{name} {funcs}");
        build(&large.problem, &outcome.best).unwrap();
    }
}

#[test]
fn without_time_there_is_the_default_schedule() {
    let large = Large::new(Shape::Stencils, 300);
    let options = Options { time_limit: Some(Duration::ZERO), ..Options::default() };
    let model = Analytic::new(large.problem.device());
    let shot = one_shot(&large.problem, &model, &options, &|_| {}).unwrap();
    assert_eq!(shot.outcome.stop, StopReason::TimeLimit);
    assert_eq!(shot.schedule, large.default());
    assert!(shot.predicted_us > 0.0);
}
