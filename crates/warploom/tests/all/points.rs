//! Random points of spaces of schedules: the legal ones give the reference's bits in the simulator.

#[path = "../../../search/tests/all/drawn.rs"]
mod drawn;

use drawn::{Draw, product};
use warploom::fuzz::{Case, Verdict};
use warploom::plan::{MAX_SIZE, Problem, size};
use warploom::prelude::*;
use warploom::randpipe::{self, random_pipeline};
use warploom::search::points::{Open, Schedules};

/// Random pipelines, and the points of each that are tried.
const PIPELINES: u64 = 30;
const POINTS: usize = 30;

/// What became of the points that were tried.
#[derive(Default, Debug)]
struct Counts {
    passed: usize,
    /// No schedule, because the rules refuse it.
    illegal: usize,
    /// Not run, because the simulator would take long.
    long: usize,
}

/// Simulates the legal ones of some points near the origins and anywhere.
fn simulated(problem: &Problem, space: &Schedules, seed: u64, counts: &mut Counts) {
    let mut draw = Draw(seed);
    for number in 0..POINTS {
        let point = if number % 2 == 0 { draw.near(space) } else { draw.point(space) };
        let Ok(schedule) = space.schedule(&point) else {
            counts.illegal += 1;
            continue;
        };
        let rewritten = problem.rewritten(&schedule.rewrites).expect("the template could");
        if size(&rewritten, &schedule) > MAX_SIZE {
            counts.long += 1;
            continue;
        }
        let (pipeline, request) = (problem.pipeline().clone(), problem.request().clone());
        let text = schedule.to_text(&pipeline);
        let case = Case { pipeline, request, schedule, seed };
        match case.check(problem.device()) {
            Ok(Verdict::Passed) => counts.passed += 1,
            Ok(other) => panic!("seed {seed}: {other:?}\n{text}{}", case.pipeline),
            Err(failure) => panic!("seed {seed}: {failure}\n{text}{}", case.pipeline),
        }
    }
}

#[test]
fn points_of_random_pipelines_are_right() {
    let device = Device::preset("h200").expect("it is a preset");
    let mut all = Counts::default();
    for seed in 0..PIPELINES {
        let options = randpipe::Options { stages: 2..=6, ..randpipe::Options::default() };
        let random = random_pipeline(seed, &options);
        let problem = Problem::new(&random.pipeline, &random.request, &device).expect("it can run");
        let mut schedules = vec![problem.default_schedule()];
        schedules.extend((0..3).map(|of| problem.random_schedule(of)));
        let space = Schedules::new(&problem, &schedules, Open::ALL).expect("all are legal");
        simulated(&problem, &space, seed, &mut all);
    }
    println!("{all:?}");
    assert!(all.passed > 400 && all.long <= 20, "{all:?}");
}

#[test]
fn tilings_of_products_are_right() {
    for (side, open) in [(24, Open::TILES), (24, Open::ALL), (27, Open::ALL)] {
        let (problem, schedule) = product(side);
        let space = Schedules::new(&problem, [&schedule], open).expect("it is legal");
        let mut counts = Counts::default();
        simulated(&problem, &space, 1, &mut counts);
        assert!(counts.passed > POINTS / 4 && counts.long == 0, "{side}: {counts:?}");
    }
}
