//! A whole run with a machine that is made up, and what its files hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use warploom::app::Settings;
use warploom::check::of_app;
use warploom::cost::Analytic;
use warploom::fuzz::Case;
use warploom::runtime::TimingOptions;
use warploom::target::{Device, Program};
use warploom::tune::measure::{Compiled, Failure, Machine, Subject, Timed};
use warploom::tune::sample::{Origin, Shard, Status, Times};
use warploom_training::collect::{Bench, CollectError, Options, Summary, collect};

/// Takes as long as it likes; results are all zeros.
struct Fake {
    fault_at: usize,
    timed: usize,
}

impl Machine for Fake {
    fn time(&mut self, _: &Arc<Subject>, program: &Program, _: &TimingOptions) -> Result<Timed, Failure> {
        self.timed += 1;
        if self.timed == self.fault_at {
            return Err(Failure::Fault("made up".to_owned()));
        }
        let time = program.bytes() as f64 / 1e6;
        Ok(Timed { times: Times { min: time, median: time, runs: 5 }, spread: 0.0 })
    }

    fn run(&mut self, _: &Arc<Subject>, program: &Program) -> Result<Vec<Vec<u8>>, Failure> {
        use warploom::target::program::Role;
        let outputs = program.buffers.iter().filter(|buffer| matches!(buffer.role, Role::Output { .. }));
        Ok(outputs.map(|buffer| vec![0; buffer.bytes()]).collect())
    }

    fn restore(&mut self) {}
}

fn options() -> Options {
    Options { pipelines: 2, per_pipeline: 8, per_app: 3, seed: 5, verify: 0.0, threads: 2, time_limit: None }
}

fn run(options: &Options, fault_at: usize, out: &Path) -> (Summary, Result<(), CollectError>) {
    let device = Device::preset("h200").expect("it is known");
    let apps = [warploom_apps::find("copy").expect("it is there").clone()];
    let given = ["copy\n  kernel output block x 32, y 8 threads x 32, y 8\n".to_owned()];
    let mut machine = Fake { fault_at, timed: 0 };
    let model = Analytic::new(&device);
    let bench = Bench {
        device: &device,
        model: &model,
        compile: &|program| {
            let (kernels, time) = Default::default();
            Ok(Compiled { program: program.clone(), kernels, time })
        },
        timing: TimingOptions::collection(),
        machine: &mut machine,
    };
    collect(options, &apps, &given, bench, out, &mut |_| {})
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it is").path());
    entries.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

#[test]
fn pipelines_and_apps_are_measured() {
    let folder = tempfile::tempdir().expect("there is room");
    let (summary, ended) = run(&options(), 0, folder.path());
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(summary.pipelines, 3);
    assert_eq!(summary.measured, summary.samples);
    let shards = files(folder.path(), ".samples");
    assert_eq!(shards.len(), 1);
    let shard = Shard::read(&shards[0]).expect("it is whole");
    assert_eq!((shard.pipelines.len(), shard.samples.len() as u64), (3, summary.samples));
    for pipeline in shard.pipelines.keys() {
        let samples: Vec<_> = shard.samples.iter().filter(|sample| sample.pipeline == *pipeline).collect();
        let from = |origin| samples.iter().filter(|sample| sample.origin == origin).count();
        assert_eq!(from(Origin::Default), 1);
        assert!(from(Origin::Search) >= 1);
        let texts: std::collections::BTreeSet<&str> =
            samples.iter().map(|sample| sample.schedule.as_str()).collect();
        assert_eq!(texts.len(), samples.len(), "each schedule once");
    }
    assert!(shard.samples.iter().any(|sample| sample.origin == Origin::Random));
    let again = run(&options(), 0, folder.path()).0;
    assert_eq!(again.samples, summary.samples);
    assert_eq!(files(folder.path(), ".samples").len(), 2, "nothing is overwritten");
}

#[test]
fn what_was_measured_before_a_fault_is_kept() {
    let folder = tempfile::tempdir().expect("there is room");
    let (summary, ended) = run(&options(), 6, folder.path());
    assert!(matches!(ended, Err(CollectError::Measure(_))));
    assert_eq!((summary.samples, summary.measured, summary.failed), (6, 5, 1));
    let file = &files(folder.path(), ".samples")[0];
    assert_eq!(Shard::read(file).expect("it is whole").samples.len(), 6);
    let bytes = std::fs::read(file).expect("it is there");
    for end in (24..bytes.len()).step_by(61) {
        let torn = folder.path().join("torn");
        std::fs::write(&torn, &bytes[..end]).expect("there is room");
        assert!(Shard::read(&torn).expect("what is there is whole").samples.len() <= 6);
    }
}

#[test]
fn wrong_results_are_written_as_cases() {
    let folder = tempfile::tempdir().expect("there is room");
    let options = Options { verify: 1.0, per_app: 0, per_pipeline: 3, ..options() };
    let (summary, ended) = run(&options, 0, folder.path());
    assert!(ended.is_ok(), "{ended:?}");
    assert!(summary.verified > 0 && summary.wrong > 0, "{summary:?}");
    let cases = files(folder.path(), ".json");
    assert_eq!(cases.len() as u64, summary.wrong);
    let (case, seen) = Case::load(&cases[0]).expect("it is a case");
    assert_eq!(seen.kind, "wrong");
    assert!(case.inputs().is_ok());
    let shard = Shard::read(&files(folder.path(), ".samples")[0]).expect("it is whole");
    assert!(shard.samples.iter().any(|sample| matches!(sample.status, Status::Wrong(_))));
}

#[test]
fn apps_have_small_sizes() {
    let without = warploom_apps::APPS.iter().filter(|app| {
        let pipeline = app.pipeline(&Settings::defaults(app)).expect("it is right");
        of_app(app, &pipeline).is_none()
    });
    let without: Vec<&str> = without.map(|app| app.name.as_str()).collect();
    assert!(without.is_empty(), "{without:?}");
}
