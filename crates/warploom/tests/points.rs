//! Random points of spaces of schedules: the legal ones give the reference's bits in the simulator.

#[path = "../../search/tests/common/points.rs"]
mod drawn;

use drawn::{Draw, product};
use warploom::fuzz::{Case, Verdict};
use warploom::prelude::*;
use warploom::randpipe::{self, random_pipeline};
use warploom::schedule::schedule::{MAX_SIZE, Problem, Schedule, size};
use warploom::search::points::{Open, Schedules};

/// Random pipelines, and the points of each that are tried.
const PIPELINES: u64 = 30;
const POINTS: usize = 30;

/// Simulates the legal ones of some points near the origins and anywhere. Returns how many passed.
fn passed(problem: &Problem, space: &Schedules, seed: u64) -> usize {
    let (mut draw, mut passed) = (Draw(seed), 0);
    for number in 0..POINTS {
        let point = if number % 2 == 0 { draw.near(space) } else { draw.point(space) };
        let Ok(schedule) = space.schedule(&point) else { continue };
        let rewritten = problem.rewritten(&schedule.rewrites).expect("the template could");
        // The simulator would take long for these.
        if size(&rewritten, &schedule) > MAX_SIZE {
            continue;
        }
        let (pipeline, request) = (problem.pipeline().clone(), problem.request().clone());
        let text = schedule.to_text(&pipeline);
        let case = Case { pipeline, request, schedule, seed };
        match case.check(problem.device()) {
            Ok(Verdict::Passed) => passed += 1,
            Ok(Verdict::Skipped(_) | Verdict::IllConditioned(_)) => {}
            Err(failure) => panic!("seed {seed}: {failure}\n{text}{}", case.pipeline),
        }
    }
    passed
}

#[test]
fn points_of_random_pipelines_are_right() {
    let device = Device::preset("h200").expect("it is a preset");
    let mut all = 0;
    for seed in 0..PIPELINES {
        let options = randpipe::Options { stages: 2..=6, ..randpipe::Options::default() };
        let random = random_pipeline(seed, &options);
        let problem = Problem::new(&random.pipeline, &random.request, &device).expect("it can run");
        let mut schedules = vec![Schedule::default_for(&problem)];
        schedules.extend((0..3).map(|of| Schedule::random(&problem, of)));
        let space = Schedules::new(&problem, &schedules, Open::ALL).expect("all are legal");
        all += passed(&problem, &space, seed);
    }
    assert!(all > 400, "{all}");
}

#[test]
fn tilings_of_products_are_right() {
    for (side, open) in [(24, Open::TILES), (24, Open::ALL), (27, Open::ALL)] {
        let (problem, schedule) = product(side);
        let space = Schedules::new(&problem, [&schedule], open).expect("it is legal");
        let passed = passed(&problem, &space, 1);
        assert!(passed > POINTS / 4, "{side}: {passed}");
    }
}
