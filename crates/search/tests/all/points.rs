//! Schedules as points: a template gives back the schedule that it was made from, every point is legal or refused with a
//! sentence, and the spaces of tiles have the sizes that are known for them.

use std::fmt::{Display, Formatter};
use std::time::Instant;

use warploom::app::App;
use warploom_plan::Problem;
use warploom_randpipe::random_pipeline;
use warploom_schedule::Schedule;
use warploom_search::Options;
use warploom_search::points::{Open, Refusal, Schedules, TemplateError};
use warploom_strategy::{Axis, Coordinate, Point, Space};

use crate::common::{h200, named, of_app, searched};
use crate::drawn::{Draw, primes, product};

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

impl Display for Tally {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let each = self.micros / (self.legal + self.refused) as u128;
        write!(f, "{:.0} % legal, {each} us for a point", 100.0 * self.share())
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

/// The default schedule and the one that was written by hand.
fn known_schedules(app: &App, problem: &Problem) -> [Schedule; 2] {
    let path = format!("{}/../../apps/schedules/{}.schedule", env!("CARGO_MANIFEST_DIR"), app.name);
    let written = std::fs::read_to_string(path).expect("every app has a schedule");
    let written = Schedule::parse(&written, problem.pipeline()).expect("it is right");
    [problem.default_schedule(), written]
}

#[test]
fn schedules_of_all_apps_are_points() {
    for app in warploom_apps::APPS.iter().chain(warploom_apps::BASICS.iter()) {
        let problem = of_app(app, &[]);
        let space =
            Schedules::new(&problem, &known_schedules(app, &problem), Open::ALL).expect("all are legal");
        let tally = check_space(&problem, &space, 60, 1);
        let axes: Vec<usize> = space.all().iter().map(|of| of.axes().len()).collect();
        println!("{}: axes {axes:?}, {tally}", app.name);
        assert!(tally.legal > 0, "{}", app.name);
    }
}

#[test]
fn searched_schedules_are_points() {
    for name in ["unsharp", "harris", "hist", "cuda_mat_mul", "conv_layer", "max_filter"] {
        let problem = named(name);
        let options = Options { beam: 4, passes: 2, samples: 2, rewrites: 1, ..Options::default() };
        let found = searched(&problem, &options).candidates.into_iter().take(6);
        let schedules: Vec<Schedule> = found.map(|candidate| candidate.schedule).collect();
        for open in [Open::ALL, Open::TILES, Open::FEW_TILES, Open { padding: false, ..Open::ALL }] {
            let space = Schedules::new(&problem, &schedules, open).expect("all are legal");
            let tally = check_space(&problem, &space, 200, 2);
            println!("{name}, {open:?}: {} templates, {tally}", space.templates());
            assert!(tally.legal > 0, "{name}");
        }
    }
}

#[test]
fn schedules_of_random_pipelines_are_points() {
    let mut sum = Tally::default();
    for seed in 0..80 {
        let random = random_pipeline(seed, &warploom_randpipe::Options::default());
        let problem = Problem::new(&random.pipeline, &random.request, &h200()).expect("it can run");
        let mut schedules = vec![problem.default_schedule()];
        schedules.extend((0..6).map(|of| problem.random_schedule(of)));
        let space = Schedules::new(&problem, &schedules, Open::ALL).expect("all are legal");
        let tally = check_space(&problem, &space, 60, seed);
        (sum.legal, sum.refused) = (sum.legal + tally.legal, sum.refused + tally.refused);
        sum.micros += tally.micros;
    }
    println!("random pipelines: {sum}");
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
fn spaces_without_rounds_are_smaller() {
    let (problem, schedule) = product(1024);
    let space = Schedules::new(&problem, [&schedule], Open::FEW_TILES).expect("it is legal");
    let count = space.axes(0).iter().map(Axis::count).product::<u128>();
    assert_eq!(count, u128::from(factorisations(1024, 3)).pow(2) * 11);
    assert_eq!(space.origin(0).at, [factors(&[16, 16, 4]), factors(&[16, 16, 4]), factors(&[128, 8])]);
    let at = vec![factors(&[8, 32, 4]), factors(&[32, 4, 8]), factors(&[64, 16])];
    let point = Point { template: 0, at };
    let few = space.schedule(&point).expect("it is legal");
    let wide = Schedules::new(&problem, [&schedule], Open::TILES).expect("it is legal");
    let at = vec![factors(&[8, 1, 32, 4]), factors(&[32, 1, 4, 8]), factors(&[64, 16])];
    assert_eq!(few, wide.schedule(&Point { template: 0, at }).expect("it is legal"));
    assert_eq!(space.point(&few), Some(point));
    // Two rounds of the threads along x are not in the smaller space.
    let at = vec![factors(&[8, 2, 16, 4]), factors(&[32, 1, 4, 8]), factors(&[64, 16])];
    let rounds = wide.schedule(&Point { template: 0, at }).expect("it is legal");
    assert_eq!(space.point(&rounds), None);
}

#[test]
fn closed_axes_stay_where_the_template_is() {
    let (problem, schedule) = product(1024);
    let space = || Schedules::new(&problem, [&schedule], Open::ALL).expect("it is legal");
    let closed = space().only(&["prod.1.r".to_owned(), "out.y".to_owned()]).expect("it has them");
    let names: Vec<&str> = closed.axes(0).iter().map(Axis::name).collect();
    assert_eq!(names, ["out.y", "prod.1.r"], "in the order of the template");
    assert_eq!(closed.schedule(&closed.origin(0)), Ok(schedule.clone()));
    let at = vec![factors(&[8, 1, 16, 8]), factors(&[64, 2, 8])];
    let moved = closed.schedule(&Point { template: 0, at: at.clone() }).expect("it is legal");
    let whole = space();
    let mut point = whole.origin(0);
    for (axis, at) in names.iter().zip(at) {
        let number = whole.axes(0).iter().position(|other| other.name() == *axis).expect("it is open");
        point.at[number] = at;
    }
    assert_eq!(whole.schedule(&point), Ok(moved));
    let unknown = space().only(&["out.z".to_owned()]).expect_err("it has none");
    assert!(unknown.to_string().starts_with("the template has no axis `out.z`; there are out.x, "));
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
        println!("{open:?}: {} axes, {tally}", space.axes(0).len());
        assert!(tally.share() > least, "{tally:?}");
    }
}

fn factors(factors: &[u64]) -> Coordinate {
    Coordinate::Factors(factors.to_vec())
}

/// Four factors for each dimension and three for the reduction are all the numbers of a tiled product.
#[test]
fn factors_are_the_tiles_of_a_product() {
    let (problem, schedule) = product(1024);
    let space =
        Schedules::new(&problem, [&schedule], Open { parts: true, ..Open::TILES }).expect("it is legal");
    let at = vec![factors(&[8, 2, 16, 4]), factors(&[16, 1, 8, 8]), factors(&[64, 4, 4])];
    let schedule = space.schedule(&Point { template: 0, at: at.clone() }).expect("it is legal");
    let expected = "mm
  kernel out   block x 128, y 64
    prod.0     threads x 16, y 8  serial x 4, y 8       unroll  private
    over prod.1.r 16
      A.stage  flat                                             shared
      B.stage  flat                                             shared
      prod.1   threads x 16, y 8  serial r 4, x 4, y 8  unroll  private
    out        threads x 16, y 8  serial x 4, y 8       unroll
";
    assert_eq!(text(&problem, &schedule), expected);
    assert_eq!(space.point(&schedule), Some(Point { template: 0, at }));
}

/// The position of the axis with this name.
fn axis(space: &Schedules, wanted: &str) -> usize {
    let name = |axis: &Axis| match axis {
        Axis::Factors { name, .. }
        | Axis::Order { name, .. }
        | Axis::Numbers { name, .. }
        | Axis::Choice { name, .. } => name == wanted,
    };
    space.axes(0).iter().position(name).unwrap_or_else(|| panic!("{wanted}: {:?}", space.axes(0)))
}

#[test]
fn inputs_are_copied_where_a_point_says() {
    let (problem, schedule) = product(64);
    let space = Schedules::new(&problem, [&schedule], Open::ALL).expect("it is legal");
    let copied = |place: u16| {
        let mut point = space.origin(0);
        point.at[axis(&space, "out A.stage")] = Coordinate::Index(place);
        text(&problem, &space.schedule(&point).expect("it is legal"))
    };
    let words = |text: &str| {
        text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    };
    let lines: Vec<Vec<String>> = (0..3).map(|place| words(&copied(place))).collect();
    assert_eq!(lines[0], ["mm", "kernel", "prod.0", "over", "B.stage", "prod.1", "out"]);
    assert_eq!(lines[1], ["mm", "kernel", "prod.0", "A.stage", "over", "B.stage", "prod.1", "out"]);
    assert_eq!(copied(2), text(&problem, &schedule));
}

/// Rounds along x are unrolled in the kernel's own nest and in those that follow it.
#[test]
fn points_interleave_where_a_point_says() {
    let (problem, schedule) = product(64);
    let space = Schedules::new(&problem, [&schedule], Open::ALL).expect("it is legal");
    let mut point = space.origin(0);
    point.at[axis(&space, "out.x")] = factors(&[1, 2, 8, 4]);
    point.at[axis(&space, "out interleave")] = Coordinate::Index(1);
    let interleaved = space.schedule(&point).expect("it is legal");
    let words = text(&problem, &interleaved).matches("interleave").count();
    assert_eq!(words, 3, "{}", text(&problem, &interleaved));
    assert_eq!(space.point(&interleaved), Some(point.clone()));
    // Points that are not unrolled cannot; those of `prod` still are.
    point.at[axis(&space, "out unroll")] = Coordinate::Index(0);
    let words = text(&problem, &space.schedule(&point).expect("it is legal")).matches("interleave").count();
    assert_eq!(words, 2);
    // A template of interleaved points is one of others too.
    let other = Schedules::new(&problem, [&interleaved], Open::ALL).expect("it is legal");
    assert!(other.point(&schedule).is_some());
}

/// Some numbers of this schedule are no factors: 32 threads share blocks of 26 points. They stay if something else changes.
#[test]
fn numbers_that_are_no_factors_stay() {
    let app = warploom_apps::find("nl_means").expect("a known app");
    let problem = of_app(app, &[]);
    let [_, schedule] = known_schedules(app, &problem);
    let space = Schedules::new(&problem, [&schedule], Open::ALL).expect("it is legal");
    let mut point = space.origin(0);
    point.at[axis(&space, "non_local_means blocks")] = Coordinate::Index(1);
    let changed = text(&problem, &space.schedule(&point).expect("it is legal"));
    let without = |text: String| text.replace("  blocks 2", "");
    assert_eq!(without(changed), without(text(&problem, &schedule)));
}

#[test]
fn different_points_may_have_one_schedule() {
    let (problem, schedule) = product(64);
    let space = Schedules::new(&problem, [&schedule], Open::ALL).expect("it is legal");
    let mut point = space.origin(0);
    for dim in ["out.x", "out.y"] {
        point.at[axis(&space, dim)] = factors(&[4, 1, 16, 1]);
    }
    // Each thread has one point, so the order of its loops says nothing.
    let mut other = point.clone();
    other.at[axis(&space, "out serial")] = Coordinate::Order(vec![1, 0]);
    assert_ne!(point, other);
    assert_eq!(space.schedule(&point).expect("it is legal"), space.schedule(&other).expect("it is legal"));
}

#[test]
fn what_is_not_in_a_space_is_refused() {
    let (problem, schedule) = product(64);
    let space = Schedules::new(&problem, [&schedule], Open::ALL).expect("it is legal");
    let origin = space.origin(0);
    let (x, order) = (axis(&space, "out.x"), axis(&space, "out block"));
    let others = [
        (x, factors(&[1, 1, 16, 3])),
        (x, factors(&[4, 16])),
        (x, factors(&[u64::MAX, 2, 2, 16])),
        (x, Coordinate::Index(0)),
        (order, Coordinate::Order(vec![0, 0])),
        (order, Coordinate::Order(vec![0, 1, 2])),
        (axis(&space, "out blocks"), Coordinate::Index(8)),
        (axis(&space, "out unroll"), Coordinate::Index(2)),
    ];
    for (position, at) in others {
        let mut point = origin.clone();
        point.at[position] = at;
        assert_eq!(space.schedule(&point), Err(Refusal::Elsewhere), "{point:?}");
    }
    let short = Point { at: origin.at[1..].to_vec(), ..origin.clone() };
    assert_eq!(space.schedule(&short), Err(Refusal::Elsewhere));
    assert_eq!(space.schedule(&Point { template: 1, ..origin.clone() }), Err(Refusal::Elsewhere));
    let mut point = origin;
    point.at[x] = factors(&[1, 1, 64, 1]);
    point.at[axis(&space, "out.y")] = factors(&[1, 1, 64, 1]);
    let refusal = space.refusal(&point).expect("a block has no 4096 threads");
    assert!(refusal.contains("4096 threads"), "{refusal}");
    assert_eq!(space.point(&problem.default_schedule()), None);
}

#[test]
fn spaces_are_made_of_legal_schedules() {
    let (problem, schedule) = product(64);
    assert_eq!(Schedules::new(&problem, [], Open::ALL).err(), Some(TemplateError::Empty));
    let mut broken = schedule.clone();
    broken.root.clear();
    let error = Schedules::new(&problem, [&schedule, &broken], Open::ALL).expect_err("nothing is computed");
    assert!(error.to_string().starts_with("only a legal schedule has a template"), "{error}");
    let mut other = schedule.clone();
    other.kernels_mut().for_each(|kernel| kernel.block.reverse());
    let both = Schedules::new(&problem, [&schedule, &other], Open::ALL).expect("both are legal");
    assert_eq!((both.templates(), both.point(&other).map(|point| point.template)), (1, Some(0)));
}
