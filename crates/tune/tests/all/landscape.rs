//! Strategies on a landscape whose times are a formula.

use std::collections::BTreeSet;
use std::path::Path;

use warploom_cost::Analytic;
use warploom_lang::{Input, Pipeline, Realisation, Region, func, rdom, vars};
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_strategy::{Coordinate, Point, Space};
use warploom_target::Device;
use warploom_tune::compare::Curve;
use warploom_tune::explore::{MODEL, names};
use warploom_tune::landscape::{
    Contender, Definition, Landscape, LandscapeError, Limits, Outcome, Played, Provenance,
};
use warploom_tune::sample::Sizes;

const TEMPLATE: &str = "
mm
  kernel out   block x 64, y 64
    prod.0     threads x 16, y 16  serial x 4, y 4         unroll  private
    over prod.1.r 8
      A.stage  flat                                                shared
      B.stage  flat                                                shared
      prod.1   threads x 16, y 16  serial r all, x 4, y 4  unroll  private
    out        threads x 16, y 16  serial x 4, y 4         unroll
";

/// A product of 64x64 matrices on an H200.
fn source() -> Provenance {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::f32("A", 2), Input::f32("B", 2));
    let r = rdom!(r: (0, 64));
    let [k] = r.vars();
    let prod = func("prod", (x, y), 0.0_f32).over(&r, |f| f.add((x, y), a.at((k, y)) * b.at((x, k))));
    let pipeline = Pipeline::new("mm", [func("out", (x, y), prod.at((x, y)))]).expect("it is a pipeline");
    let square = Region::of_extents(&[64, 64]);
    let request = Realisation::new(&pipeline).input("A", square.clone()).input("B", square.clone());
    let sizes = Sizes::of(&request.output("out", square));
    let device = Device::preset("h200").expect("a known device");
    Provenance { pipeline, sizes, device, versions: vec!["warploom 0".to_owned()], measured: (7, 8) }
}

fn problem(source: &Provenance) -> Problem {
    let request = source.sizes.realise(&source.pipeline);
    Problem::new(&source.pipeline, &request, &source.device).expect("the request fits")
}

fn definition(source: &Provenance) -> Definition {
    let template = Schedule::parse(TEMPLATE, &source.pipeline).unwrap_or_else(|errors| panic!("{errors}"));
    Definition { template, axes: Vec::new(), limits: Limits::default() }
}

/// The fastest point has blocks of 32x8 threads with 2x8 points each, and 16 values. Some others fail.
fn outcome(point: &Point) -> Outcome {
    let factor = |axis: usize, slot: usize| match &point.at[axis] {
        Coordinate::Factors(factors) => factors[slot],
        other => panic!("{other:?}"),
    };
    let off = |axis, slot, best: u64| f64::from(factor(axis, slot).ilog2().abs_diff(best.ilog2()));
    let steps = 4.0 * off(0, 1, 32) + 3.0 * off(0, 2, 2) + 5.0 * off(1, 1, 8) + 2.0 * off(1, 2, 8);
    let min_us = 10.0 + steps + 1.5 * off(2, 1, 16);
    let is_bad = factor(0, 2) == 8 && factor(1, 2) == 1;
    match is_bad {
        true => Outcome::Failed("wrong".to_owned()),
        false => Outcome::Time { min_us, median_us: min_us + 0.5 },
    }
}

/// The landscape, of which some points may be left out.
fn landscape(is_recorded: impl Fn(&Point) -> bool) -> Landscape {
    let source = source();
    let definition = definition(&source);
    let (_, all) = definition.points(&problem(&source)).expect("it is right");
    let count = all.len();
    let recorded: Vec<Point> = all.into_iter().filter(is_recorded).collect();
    let missing = count - recorded.len();
    let outcomes = recorded.into_iter().map(|point| (point.clone(), outcome(&point))).collect();
    Landscape::new(source, definition, outcomes, missing).expect("all points belong to it")
}

/// All but the one that is not bound to a template.
fn bound() -> Vec<&'static str> {
    names().into_iter().filter(|name| *name != MODEL).collect()
}

fn contenders() -> Vec<Contender> {
    bound().into_iter().map(|name| contender(name, "")).collect()
}

fn contender(strategy: &str, settings: &str) -> Contender {
    Contender { strategy: strategy.to_owned(), settings: settings.to_owned() }
}

fn model() -> Analytic {
    Analytic::new(&Device::preset("h200").expect("a known device"))
}

#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mm.landscape");
    let written = landscape(|point| point.at[2] != Coordinate::Factors(vec![2, 32]));
    assert!(written.missing > 50);
    written.write(&file).unwrap();
    let read = Landscape::read(&file).unwrap();
    let parts = |Provenance { pipeline, sizes, device, versions, measured }: &Provenance| {
        (pipeline.to_json(), sizes.clone(), device.clone(), versions.clone(), *measured)
    };
    assert_eq!(parts(&read.source), parts(&written.source));
    assert_eq!((read.definition.clone(), read.missing), (written.definition.clone(), written.missing));
    assert!(read.points().eq(written.points()));
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.len() < 20_000, "{}", bytes.len());
    // Any file that was changed is refused.
    let parse = |bytes: &[u8]| Landscape::parse(bytes, Path::new("a.landscape")).unwrap_err().to_string();
    let changed = |at: usize| {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        parse(&changed)
    };
    assert!(changed(0).contains("not a landscape") && changed(18).contains("later version"));
    assert!((22..bytes.len()).step_by(97).all(|at| changed(at).contains("damaged")));
    assert!(parse(&bytes[..10]).contains("not a landscape") && parse(&bytes[..1000]).contains("damaged"));
}

#[test]
fn what_was_not_recorded_is_refused() {
    let landscape = landscape(|point| point.at[2] != Coordinate::Factors(vec![2, 32]));
    let with = |x: [u64; 3], y: [u64; 3], r: [u64; 2]| {
        let at = [x.to_vec(), y.to_vec(), r.to_vec()].map(Coordinate::Factors).to_vec();
        Point { template: 0, at }
    };
    let known = with([1, 32, 2], [1, 8, 8], [4, 16]);
    assert_eq!(landscape.outcome(&known).and_then(Outcome::time_us), Some(10.0));
    assert_eq!(landscape.refusal(&known), None);
    assert_eq!(landscape.refusal(&landscape.origin(0)), None);
    let refused = |point: Point| landscape.refusal(&point).is_some() && landscape.outcome(&point).is_none();
    assert!(refused(with([1, 32, 2], [1, 8, 8], [2, 32])), "left out");
    assert!(refused(with([1, 32, 2], [1, 32, 2], [4, 16])), "1024 threads");
    assert!(refused(with([1, 32, 2], [1, 8, 9], [4, 16])), "no point");
}

/// The shortest time of the first so many trials.
fn best_us(played: &Played, trials: usize) -> Option<f64> {
    Curve::new(0, &played.times_us).best_after(trials)
}

#[test]
fn all_strategies_are_the_same_on_any_number_of_threads() {
    let (landscape, model) = (landscape(|_| true), model());
    let run = |threads: usize| -> Vec<Played> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| landscape.compare(&contenders(), &[0, 1], 120, &model)).unwrap()
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one, three);
    assert_eq!(one.len(), 2 * bound().len());
    let best = landscape.times_us()[0];
    for (name, curves) in bound().into_iter().zip(one.chunks(2)) {
        assert!(curves[0].times_us != curves[1].times_us, "{name}: seeds differ");
        for curve in curves {
            assert!(curve.key.starts_with(name) && curve.times_us.len() == 120, "{}", curve.key);
            assert_eq!(curve.tally.trials, 120);
            assert!(best_us(curve, 120).unwrap() >= best);
            assert_eq!(best_us(curve, 120), curve.tally.best_us);
            assert!(best_us(curve, 10).unwrap_or(f64::INFINITY) >= best_us(curve, 120).unwrap());
        }
    }
}

#[test]
fn a_complete_search_finds_the_best_and_asks_for_everything_once() {
    let landscape = landscape(|_| true);
    let count = landscape.points().count();
    let failed = landscape.points().filter(|(_, outcome)| outcome.time_us().is_none()).count();
    assert!(count > 500 && failed > 10, "{count} {failed}");
    for complete in [contender("g-bfs", "rho=all"), contender("random", "")] {
        let curve = landscape.run(&complete, 1, usize::MAX, &model()).unwrap();
        assert_eq!((curve.times_us.len(), curve.tally.repeated), (count, 0), "{}", curve.key);
        assert_eq!(curve.times_us.iter().filter(|time| time.is_none()).count(), failed);
        assert_eq!(best_us(&curve, usize::MAX), Some(10.0));
        let mut times: Vec<f64> = curve.times_us.into_iter().flatten().collect();
        times.sort_by(f64::total_cmp);
        assert_eq!(times, landscape.times_us());
    }
}

#[test]
fn strategies_that_learn_are_better_than_chance() {
    let landscape = landscape(|_| true);
    let seeds: Vec<u64> = (0..10).collect();
    let mean = |strategy: &str, settings: &str| {
        let curves = landscape.compare(&[contender(strategy, settings)], &seeds, 60, &model()).unwrap();
        curves.iter().filter_map(|curve| best_us(curve, 60)).sum::<f64>() / 10.0
    };
    let random = mean("random", "");
    for strategy in ["opevo", "g-bfs", "anneal-q"] {
        let found = mean(strategy, "");
        assert!(found < random - 0.5, "{strategy}: {found}, random: {random}");
    }
}

#[test]
fn definitions_are_checked() {
    let source = source();
    let problem = problem(&source);
    let right = definition(&source);
    let of = |axes: &[&str], limits: &str| {
        let axes = axes.iter().map(|&axis| axis.to_owned()).collect();
        let definition = Definition { axes, limits: limits.parse().unwrap(), ..right.clone() };
        definition.points(&problem).map(|(_, points)| points)
    };
    let outside = of(&[], "threads=32..128").unwrap_err();
    assert!(
        matches!(outside, LandscapeError::Outside { .. }) && outside.to_string().contains("threads=32..128")
    );
    let unknown = of(&["out.z"], "").unwrap_err().to_string();
    assert_eq!(unknown, "the template has no axis `out.z`; there are out.x, out.y, prod.1.r");
    // Limits concern open axes alone.
    let along = of(&["out.y"], "threads=2..32").unwrap();
    let factors: BTreeSet<Vec<u64>> = along
        .iter()
        .map(|point| match &point.at[..] {
            [Coordinate::Factors(factors)] => factors.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [1u64, 2, 4, 8].into_iter().flat_map(|points| {
        let threads = (1..=5).map(|power| 1u64 << power).filter(move |threads| threads * points <= 64);
        threads.map(move |threads| vec![64 / threads / points, threads, points])
    });
    assert_eq!(factors, expected.collect());
    assert_eq!(along[0].at, [Coordinate::Factors(vec![1, 16, 4])], "the template comes first");
}

#[test]
fn strategies_need_the_template() {
    let origin = landscape(|_| true).origin(0);
    let without = landscape(|point| *point != origin);
    let error = without.run(&contender("random", ""), 0, 10, &model()).unwrap_err();
    assert!(matches!(error, LandscapeError::NoOrigin), "{error}");
    let unknown = landscape(|_| true).run(&contender("model", ""), 0, 10, &model()).unwrap_err();
    assert!(unknown.to_string().contains("there is no strategy `model`"), "{unknown}");
}
