//! Schedules as points: a template gives back the schedule that it was made from, every point is legal or refused with a
//! sentence, and the spaces of tiles have the sizes that are known for them.

use std::time::Instant;

use warploom_randpipe::random_pipeline;
use warploom_schedule::schedule::{Problem, Schedule};
use warploom_search::Options;
use warploom_search::points::{Open, Refusal, Schedules};
use warploom_strategy::{Axis, Point, Space};

use crate::common::{h200, named, searched};
use crate::drawn::{Draw, primes, product};

mod common;
#[path = "common/points.rs"]
mod drawn;

/// What came of some points.
#[derive(Default, Debug)]
struct Tally {
    legal: usize,
    refused: usize,
    micros: u128,
}

impl Tally {
    fn share(&self) -> f64 {
        self.legal as f64 / (self.legal + self.refused) as f64
    }
}

/// The text of a schedule is its identity in records.
fn text(problem: &Problem, schedule: &Schedule) -> String {
    schedule.to_text(problem.pipeline())
}

/// Checks that origins are what templates were made from, and that points of all kinds are legal or refused.
fn check_space(problem: &Problem, space: &Schedules, points: usize, seed: u64) -> Tally {
    for (number, template) in space.all().iter().enumerate() {
        let origin = space.origin(number as u16);
        let schedule = space.schedule(&origin).expect("an origin is legal");
        assert_eq!(text(problem, &schedule), text(problem, template.origin()));
        assert_eq!(space.point(&schedule), Some(origin));
    }
    let (mut draw, mut tally) = (Draw(seed), Tally::default());
    for number in 0..points {
        let point = if number % 2 == 0 { draw.near(space) } else { draw.point(space) };
        check_point(problem, space, &point, &mut tally);
    }
    tally
}

fn check_point(problem: &Problem, space: &Schedules, point: &Point, tally: &mut Tally) {
    let started = Instant::now();
    let found = space.schedule(point);
    tally.micros += started.elapsed().as_micros();
    assert_eq!(space.refusal(point), found.as_ref().err().map(Refusal::to_string));
    match found {
        Ok(schedule) => {
            tally.legal += 1;
            assert!(problem.is_legal(&schedule), "{}", text(problem, &schedule));
            let again = space.point(&schedule).unwrap_or_else(|| panic!("{}", text(problem, &schedule)));
            assert_eq!(space.schedule(&again), Ok(schedule));
        }
        Err(refusal) => {
            tally.refused += 1;
            assert_ne!(refusal, Refusal::Elsewhere);
            assert!(refusal.to_string().len() > 20, "{refusal}");
        }
    }
}

#[test]
fn schedules_of_apps_are_points() {
    for name in
        ["blur", "unsharp", "harris", "hist", "cuda_mat_mul", "conv_layer", "max_filter", "nl_means", "bgu"]
    {
        let problem = named(name);
        let path = format!("{}/../../apps/schedules/{name}.schedule", env!("CARGO_MANIFEST_DIR"));
        let written = std::fs::read_to_string(path).expect("every app has a schedule");
        let written = Schedule::parse(&written, problem.pipeline()).expect("it is right");
        let options = Options { beam: 4, passes: 2, samples: 2, rewrites: 1, ..Options::default() };
        let found = searched(&problem, &options);
        let mut schedules = vec![Schedule::default_for(&problem), written];
        schedules.extend(found.candidates.into_iter().take(4).map(|candidate| candidate.schedule));
        for open in [Open::ALL, Open::TILES, Open { padding: false, ..Open::ALL }] {
            let space = Schedules::new(&problem, &schedules, open).expect("all are legal");
            let tally = check_space(&problem, &space, 200, 1);
            let axes: Vec<usize> = space.all().iter().map(|of| of.axes().len()).collect();
            println!(
                "{name} {open:?}: axes {axes:?}, {:.0} % legal, {} us a point",
                100.0 * tally.share(),
                tally.micros / 200
            );
            assert!(tally.legal > 0, "{name}");
        }
    }
}

#[test]
fn schedules_of_random_pipelines_are_points() {
    let mut sum = Tally::default();
    for seed in 0..60 {
        let random = random_pipeline(seed, &warploom_randpipe::Options::default());
        let problem = Problem::new(&random.pipeline, &random.request, &h200()).expect("it can run");
        let mut schedules = vec![Schedule::default_for(&problem)];
        schedules.extend((0..6).map(|of| Schedule::random(&problem, of)));
        let space = Schedules::new(&problem, &schedules, Open::ALL).expect("all are legal");
        let tally = check_space(&problem, &space, 60, seed);
        (sum.legal, sum.refused) = (sum.legal + tally.legal, sum.refused + tally.refused);
    }
    println!("{:.0} % of {sum:?} legal", 100.0 * sum.share());
    assert!(sum.share() > 0.1, "{sum:?}");
}

/// The number of ordered factorisations: each prime is shared out among the slots on its own.
fn factorisations(product: u64, slots: u64) -> u64 {
    let mut count = 1;
    for prime in primes(product).chunk_by(|a, b| a == b) {
        let power = prime.len() as u64;
        count *= (1..slots).fold(1, |choose, i| choose * (power + i) / i);
    }
    count
}

/// Published sizes of the space of tiles of square products.
#[test]
fn products_have_the_known_number_of_tilings() {
    for (side, expected) in [(512, 484_000), (1024, 899_756), (2048, 1_589_952)] {
        let (problem, schedule) = product(side);
        let space = Schedules::new(&problem, [&schedule], Open::TILES).expect("it is legal");
        let slots = |axis: &Axis| match axis {
            Axis::Factors { product, slots, .. } => (*product, *slots as u64),
            other => panic!("{other:?}"),
        };
        let axes: Vec<(u64, u64)> = space.axes(0).iter().map(slots).collect();
        let side = side as u64;
        assert_eq!(axes, [(side, 4), (side, 4), (side, 2)]);
        assert_eq!(
            axes.iter().map(|(product, slots)| factorisations(*product, *slots)).product::<u64>(),
            expected
        );
        let wider =
            Schedules::new(&problem, [&schedule], Open { parts: true, ..Open::TILES }).expect("it is legal");
        assert_eq!(wider.axes(0).iter().map(slots).collect::<Vec<_>>(), [(side, 4), (side, 4), (side, 3)]);
    }
}

#[test]
fn many_tilings_of_a_product_are_legal() {
    let (problem, schedule) = product(1024);
    for (open, least) in [(Open::TILES, 0.1), (Open::ALL, 0.1)] {
        let space = Schedules::new(&problem, [&schedule], open).expect("it is legal");
        let (mut draw, mut tally) = (Draw(3), Tally::default());
        for _ in 0..1000 {
            let point = draw.point(&space);
            check_point(&problem, &space, &point, &mut tally);
        }
        println!(
            "{open:?}: {} axes, {:.0} % legal, {} us a point",
            space.axes(0).len(),
            100.0 * tally.share(),
            tally.micros / 1000
        );
        assert!(tally.share() > least, "{tally:?}");
    }
}
