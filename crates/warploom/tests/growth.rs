//! Pipelines of thousands of Funcs: no walk exhausts the stack, nothing grows much faster than they do, and a search
//! ends when its time is up.
//!
//! Limits of time have margins for machines that are busy with other things. These tests are a program of their own because
//! one of them measures the most memory that its process has had.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::thread;
use std::time::{Duration, Instant};

use warploom::codegen::build::{BuildError, build, build_planned};
use warploom::codegen::lower::{self, LowerError};
use warploom::codegen::printer::{Build, PRINTER};
use warploom::cost::{Analytic, Featurizer};
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::randpipe::Shape;
use warploom::schedule::{Schedule, StageRef};
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
        self.problem.default_schedule()
    }

    /// The schedule of one kernel with everything inlined.
    fn all_inlined(&self) -> Schedule {
        let pipeline = self.problem.pipeline();
        let output = pipeline.outputs()[0];
        let inlined = pipeline.funcs().keys().filter(|func| *func != output);
        let kernel = StageRef { func: output, stage: 0 };
        let root = vec![self.problem.default_kernel(kernel)];
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
            assert!(PRINTER.print(&program, Build::Timing).len() > 10 * funcs);
            assert_eq!(Featurizer::new(&large.problem).of_schedule(&schedule).len(), 1);
            let model = Analytic::new(large.problem.device());
            let explanation = Explanation::new(&large.problem.planned(schedule).unwrap(), &model);
            assert!(explanation.to_string().contains("kernel"));
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
    assert_eq!(shot.planned.schedule, large.default());
    assert!(shot.predicted_us > 0.0);
}

/// A pipeline of `outputs` chains of Funcs of many dimensions, the last one with several stages.
struct Grid {
    dims: usize,
    outputs: usize,
    stages: usize,
    chain: usize,
}

impl Grid {
    /// Of so many dimensions, the first have three points: 2^40 in a Func are the most.
    const SEVERAL: usize = 25;

    fn extents(&self) -> Vec<i64> {
        match self.dims {
            1 => vec![4096],
            _ => (0..self.dims).map(|d| if d < Self::SEVERAL { 3 } else { 1 }).collect(),
        }
    }

    fn large(&self) -> Large {
        let vars: Vec<Var> = (0..self.dims).map(|d| Var::new(format!("x{d}"))).collect();
        let input = Input::f32("input", self.dims);
        let made: Vec<Func> = (0..self.outputs).map(|output| self.output(output, &input, &vars)).collect();
        let names = (0..self.outputs).map(|output| format!("f{output}_{}", self.chain - 1));
        let pipeline = Pipeline::new("grid", made).unwrap();
        let region = Region::of_extents(&self.extents());
        let request = Realisation::new(&pipeline).input("input", region.clone());
        let request = names.fold(request, |request, name| request.output(&name, region.clone()));
        Large::of(&pipeline, &request)
    }

    fn output(&self, output: usize, input: &Input, vars: &[Var]) -> Func {
        let at = || vars.to_vec();
        let mut last = func(format!("f{output}_0"), at(), input.at(at()) * (output as f32));
        for number in 1..self.chain {
            last = func(format!("f{output}_{number}"), at(), last.at(at()) * 0.5 + input.at(at()));
        }
        for _ in 1..self.stages {
            last = last.update(|own| own.set(at(), own.at(at()) * 0.5 + 1.0));
        }
        last
    }
}

/// The most memory that the process has had; `None` where the system does not say.
fn peak_megabytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().unwrap() / 1024)
}

/// Sums to single points, all of which could be rewritten in many ways.
fn sums(outputs: usize) -> Large {
    let (input, r) = (Input::f32("input", 1), rdom!(r: (0, 100_000)));
    let sum = |number: usize| {
        let term = input.at(r.x) * (number as f32);
        func(format!("sum{number}"), (), 0.0).over(&r, |own| own.add((), term)).reassociate()
    };
    let pipeline = Pipeline::new("sums", (0..outputs).map(sum)).unwrap();
    let request = Realisation::new(&pipeline).input("input", Region::of_extents(&[100_000]));
    let names = (0..outputs).map(|number| format!("sum{number}"));
    let request = names.fold(request, |request, name| request.output(&name, Region::of_extents(&[])));
    Large::of(&pipeline, &request)
}

#[test]
fn rewrites_of_hundreds_of_sums_keep_the_time_limit() {
    let limit = Duration::from_millis(500);
    let large = sums(200);
    let started = Instant::now();
    let outcome = large.search(limit);
    let elapsed = started.elapsed();
    assert!(elapsed < limit.mul_f64(1.1) + Duration::from_secs(4), "{elapsed:?}");
    assert_eq!(outcome.stop, StopReason::TimeLimit);
    assert!(large.is_legal(&outcome.best));
}

#[test]
fn nothing_is_exponential_in_dimensions_outputs_stages_or_chains() {
    let limit = Duration::from_millis(500);
    let grid = [(1, 1, 1, 1), (1, 10_000, 1, 1), (1, 1, 300, 1), (8, 1, 1, 4), (16, 4, 3, 2), (22, 1, 1, 1)];
    let grid = grid.into_iter().chain([(25, 1, 2, 3), (29, 1, 1, 1), (64, 1, 1, 1), (64, 20, 2, 4)]);
    for (dims, outputs, stages, chain) in grid {
        let name = format!("{dims} dimensions, {outputs} outputs, {stages} stages, chains of {chain}");
        let large = Grid { dims, outputs, stages, chain }.large();
        let started = Instant::now();
        let outcome = large.search(limit);
        let elapsed = started.elapsed();
        assert!(elapsed < limit.mul_f64(1.1) + Duration::from_secs(4), "{name}: {elapsed:?}");
        let planned = large.problem.planned(outcome.best).unwrap();
        let program = build_planned(&planned, lower::Options::default()).unwrap();
        assert!(!PRINTER.print(&program, Build::Timing).is_empty(), "{name}");
        let model = Analytic::new(large.problem.device());
        let explained = Explanation::new(&planned, &model);
        assert!(explained.predicted_us > 0.0, "{name}");
        // The machine may be busy with other things.
        assert!(started.elapsed() < Duration::from_secs(12), "{name}: {:?}", started.elapsed());
        // Each edit of a random schedule plans all kernels anew.
        if outputs <= 100 {
            assert!(large.is_legal(&large.problem.random_schedule(1)), "{name}");
        }
    }
    assert!(peak_megabytes().is_none_or(|peak| peak < 2_000), "{:?} MB", peak_megabytes());
}
