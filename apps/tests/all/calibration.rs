//! The ranges of predicted times, on samples of pipelines that the weights were not trained on.

use std::fs;
use std::path::{Path, PathBuf};

use warploom::cost::{Ranges, Weights};
use warploom::lang::Pipeline;
use warploom::plan::Problem;
use warploom::schedule::Schedule;
use warploom::target::Device;
use warploom::tune::one_shot::predicted_us;
use warploom::tune::picks::{Pick, Picks, SHORT_US, is_held_out, picks};
use warploom::tune::sample::Shard;

/// The schedules that the shipped weights pick for the held-out pipelines.
fn held_out_picks() -> Vec<Pick> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../training/data");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "samples"));
    files.sort();
    let shards: Vec<Shard> = files.iter().map(|file| Shard::read(file).unwrap()).collect();
    let device = Device::preset("h200").unwrap();
    let held_out = |pipeline: &Pipeline| {
        warploom_apps::find(pipeline.name()).is_none() && is_held_out(pipeline.structural_hash())
    };
    let Picks { picks, unusable } = picks(&shards, &device, &*warploom::model_for(&device).model, &held_out);
    assert_eq!(unusable, 0, "every sample can be read");
    picks
}

fn fit(picks: &[Pick]) -> Ranges {
    let times: Vec<(f64, f64)> = picks.iter().map(|pick| (pick.predicted_us, pick.measured_us)).collect();
    Ranges::fit(&times, &[SHORT_US]).unwrap()
}

/// How many picks lie in their ranges.
fn inside(picks: &[Pick], ranges: &Ranges) -> usize {
    let lies = |pick: &&Pick| {
        let range = ranges.of(pick.predicted_us);
        range.is_some_and(|range| (range.low_us..=range.high_us).contains(&pick.measured_us))
    };
    picks.iter().filter(lies).count()
}

#[test]
fn nine_of_ten_pipelines_lie_in_the_range() {
    let picks = held_out_picks();
    assert!(picks.len() > 200, "{}", picks.len());
    // Each half is tested with ranges that were fitted to the other. The lowest bits of the hashes say what is held out.
    let (first, second): (Vec<Pick>, Vec<Pick>) = picks.iter().partition(|pick| pick.pipeline >> 3 & 1 == 0);
    let (of_first, of_second) = (inside(&second, &fit(&first)), inside(&first, &fit(&second)));
    let share = (of_first + of_second) as f64 / picks.len() as f64;
    assert!(
        (0.85..0.95).contains(&share),
        "{share}: {of_first} of {}, {of_second} of {}",
        second.len(),
        first.len()
    );

    // The weights come with ranges that are fitted to both.
    let weights = Weights::from_bytes(warploom::models::MODELS[0].bytes).unwrap();
    let (shipped, fitted) = (weights.ranges().unwrap(), fit(&picks));
    for (shipped, fitted) in shipped.bands().iter().zip(fitted.bands()) {
        assert_eq!((shipped.below_us, shipped.count), (fitted.below_us, fitted.count));
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-4;
        assert!(close(shipped.low, fitted.low) && close(shipped.high, fitted.high), "{shipped:?} {fitted:?}");
    }
    assert_eq!(shipped.bands().len(), fitted.bands().len());
    assert!(shipped.known_us().0 < 6.0 && shipped.known_us().1 > 1e3, "{:?}", shipped.known_us());

    // A range that is too narrow would be noticed, and so would one that is too wide.
    let all = fit(&picks);
    let scaled = |factor: f64| {
        let lies = |pick: &&Pick| {
            let range = all.of(pick.predicted_us).unwrap();
            (range.low_us * factor..=range.high_us / factor).contains(&pick.measured_us)
        };
        picks.iter().filter(lies).count() as f64 / picks.len() as f64
    };
    assert!(scaled(1.2) < 0.85 && scaled(0.6) > 0.95, "{} {}", scaled(1.2), scaled(0.6));
}

/// The schedules that searches found for random pipelines which nobody had measured before, as users of `compile` get them.
fn searched_picks() -> Vec<Pick> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../training/data/later/h200-picks-0.samples");
    let shard = Shard::read(file).unwrap();
    let device = Device::preset("h200").unwrap();
    let model = warploom::model_for(&device).model;
    let measured = shard.samples.iter().filter_map(|sample| {
        let pipeline = &shard.pipelines[&sample.pipeline];
        let problem = Problem::new(pipeline, &sample.sizes.realise(pipeline), &device).unwrap();
        let schedule = Schedule::parse(&sample.schedule, pipeline).unwrap();
        let predicted_us = predicted_us(&problem, &schedule, &*model).unwrap();
        Some(Pick { pipeline: sample.pipeline, predicted_us, measured_us: sample.times?.min })
    });
    measured.collect()
}

#[test]
fn what_searches_find_lies_in_the_range_as_often() {
    let weights = Weights::from_bytes(warploom::models::MODELS[0].bytes).unwrap();
    let ranges = weights.ranges().unwrap();
    let mut picks = searched_picks();
    let all = picks.len();
    picks.retain(|pick| ranges.of(pick.predicted_us).is_some());
    assert!(all > 150 && picks.len() > 120, "{} of {all}", picks.len());
    let share = inside(&picks, ranges) as f64 / picks.len() as f64;
    assert!((0.85..0.95).contains(&share), "{share} of {}", picks.len());
}
