//! Tuning with a device that is made up: what is found, what is kept, and what survives.
//!
//! This is a program with a `main` of its own, as it is its own worker.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a test says what it does")]

mod harness;
mod made_up;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use warploom_codegen::printer::{Build, PRINTER};
use warploom_cost::{Analytic, Weights};
use warploom_target::Device;
use warploom_tune::autotune::{AutotuneOptions, Autotuned, autotune};
use warploom_tune::given::given;
use warploom_tune::measure::MeasureError;
use warploom_tune::records::{Records, RecordsError, Trial};
use warploom_tune::retrain::Retrain;
use warploom_tune::sample::{Origin, Shard, Status};
use warploom_tune::top::top;
use warploom_tune::tuning::{Ended, Event, Task, TuneError, Tuned};
use warploom_tune::worker::{self, BenchOptions, OpenBench, WorkerProgram};

use made_up::{bench, place, subjects, trials, workload};

const TESTS: [(&str, fn()); 13] = [
    ("the_best_of_five_wins", the_best_of_five_wins),
    ("schedules_that_are_given_are_measured_once", schedules_that_are_given_are_measured_once),
    ("five_that_spill_or_fail_make_room_for_others", five_that_spill_or_fail_make_room_for_others),
    ("autotuning_finds_more_and_repeats_nothing", autotuning_finds_more_and_repeats_nothing),
    ("faults_cost_one_trial_each", faults_cost_one_trial_each),
    ("what_is_wrong_at_the_full_size_does_not_win", what_is_wrong_at_the_full_size_does_not_win),
    ("the_model_learns_and_goes_on_learning", the_model_learns_and_goes_on_learning),
    ("a_stop_keeps_everything", a_stop_keeps_everything),
    ("killed_tuners_lose_nothing", killed_tuners_lose_nothing),
    ("two_tuners_share_the_work", two_tuners_share_the_work),
    ("a_full_disk_still_has_a_winner", a_full_disk_still_has_a_winner),
    ("a_lost_gpu_still_has_a_winner", a_lost_gpu_still_has_a_winner),
    (
        "schedules_that_cannot_be_used_make_room_and_are_told",
        schedules_that_cannot_be_used_make_room_and_are_told,
    ),
];

fn main() {
    worker::entry();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, records, fake] = arguments.as_slice()
        && role == "be-a-tuner"
    {
        let tuned = tune(Path::new(records), fake, &options(3)).tuned;
        assert!(matches!(tuned.ended, Ended::Finished), "{:?}", tuned.ended);
        return;
    }
    harness::run(&TESTS);
}

fn options(iterations: usize) -> AutotuneOptions {
    // Without finals, what is timed is what is tried.
    AutotuneOptions { iterations, samples: 8, finalists: 1, initial: None }
}

fn tune(records: &Path, fake: &str, options: &AutotuneOptions) -> Autotuned {
    let mut records = Records::open(records).unwrap();
    let subjects = subjects();
    bench(fake)
        .with(|bench| autotune(&subjects.task(), options, bench, &mut records, None, &mut |_| {}).unwrap())
}

fn tune_top(records: &Path, fake: &str, count: usize) -> Tuned {
    tune_top_in(&mut Records::open(records).unwrap(), fake, count)
}

fn tune_top_in(records: &mut Records, fake: &str, count: usize) -> Tuned {
    let subjects = subjects();
    bench(fake).with(|bench| top(&subjects.task(), count, bench, records, &mut |_| {}).unwrap())
}

/// The status of every schedule.
fn statuses(records: &Path) -> BTreeMap<String, &'static str> {
    let trials = trials(records);
    let count = trials.len();
    let statuses: BTreeMap<String, &'static str> =
        trials.into_iter().map(|trial| (trial.sample.schedule, trial.sample.status.kind())).collect();
    assert_eq!(statuses.len(), count, "a schedule has two trials");
    statuses
}

fn the_best_of_five_wins() {
    let place = place();
    let tuned = tune_top(&place.records, "fake:noise=3", 5);
    assert!(matches!(tuned.ended, Ended::Finished));
    assert_eq!((tuned.progress.done, tuned.shown.len()), (5, 5));
    let winner = tuned.winner.unwrap();
    assert_eq!(winner.trial, tuned.shown[0]);
    assert!(winner.checked_at_full_size && winner.trial.sample.verified);
    let times: Vec<f64> = tuned.shown.iter().map(|trial| trial.time_us().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(
        tuned.shown.iter().filter(|trial| trial.retimed_us.is_some()).count(),
        3,
        "three are timed in turns"
    );
    assert!(tuned.shown.iter().all(|trial| trial.predicted_us.is_some()));

    let again = tune_top(&place.records, "fake:noise=3", 5);
    assert_eq!(again.progress.done, 0, "nothing is measured twice");
    assert_eq!(again.shown.len(), 5);
}

fn schedules_that_are_given_are_measured_once() {
    let place = place();
    let subjects = subjects();
    let task = subjects.task();
    let problem = task.subject.problem(&Device::preset("h200").unwrap()).unwrap();
    let schedule = problem.default_schedule();
    let twice = vec![(schedule.clone(), Origin::Default, None), (schedule.clone(), Origin::Given, Some(7.0))];
    let mut records = Records::open(&place.records).unwrap();
    let tuned =
        bench("fake:spill=100").with(|bench| given(&task, twice, bench, &mut records, &mut |_| {}).unwrap());
    assert_eq!((tuned.progress.done, trials(&place.records).len()), (1, 1));
    let winner = tuned.winner.unwrap();
    assert_eq!((winner.schedule, winner.checked_at_full_size), (schedule, true));
}

fn five_that_spill_or_fail_make_room_for_others() {
    let place = place();
    let tuned = tune_top(&place.records, "fake:spill=40,wrong=10,crash=10,seed=2", 5);
    let valid = tuned.shown.iter().filter(|trial| trial.time_us().is_some()).count();
    assert!(tuned.shown.len() > 5 && valid <= 5, "{valid} of {}", tuned.shown.len());
    assert!(valid >= 3, "{valid}");
    assert_eq!(tuned.progress.invalid, tuned.shown.len() - valid);
    assert!(tuned.winner.unwrap().checked_at_full_size);

    let place = self::place();
    let tuned = tune_top(&place.records, "fake:wrong=100", 5);
    assert!(tuned.winner.is_none(), "what is wrong never wins");
}

fn autotuning_finds_more_and_repeats_nothing() {
    let place = place();
    let log = place.folder.path().join("log");
    let fake = format!("fake:log={}", log.display());
    let two = tune(&place.records, &fake, &options(2));
    assert_eq!(two.iterations, 2);
    let tried = trials(&place.records).len();
    assert_eq!((two.tuned.progress.done, tried > 8), (tried, true));
    // The same again does nothing, and more goes on.
    assert_eq!(tune(&place.records, &fake, &options(2)).tuned.progress.done, 0);
    let four = tune(&place.records, &fake, &options(4));
    assert!(four.tuned.progress.done > 0 && four.iterations == 4);
    statuses(&place.records);
    let times = trials(&place.records).iter().filter_map(Trial::time_us).fold(f64::INFINITY, f64::min);
    assert_eq!(four.tuned.winner.unwrap().trial.time_us(), Some(times));
    let lines = fs::read_to_string(log).unwrap();
    let different: BTreeSet<&str> = lines.lines().collect();
    assert_eq!(lines.lines().count(), different.len(), "something was timed twice");
}

const FAULTS: &str = "fake:crash=6,hang=2,garbage=4,fault=4,wrong=6,refuse=3,compile-crash=3,compile-garbage=3,\
                      compile-refuse=3,spill=10,seed=5";

fn faults_cost_one_trial_each() {
    let place = place();
    let tuned = tune(&place.records, FAULTS, &AutotuneOptions { finalists: 4, ..options(3) }).tuned;
    assert!(matches!(tuned.ended, Ended::Finished), "{:?}", tuned.ended);
    let kinds: BTreeSet<&str> = statuses(&place.records).into_values().collect();
    assert!(kinds.len() >= 4 && kinds.contains("crashed"), "{kinds:?}");
    assert!(tuned.progress.invalid > 3);
    let winner = tuned.winner.unwrap();
    assert!(winner.trial.sample.verified);
}

/// Weights that are another each time.
struct Learner {
    calls: u64,
    started_from: Vec<Option<Vec<u8>>>,
}

impl Retrain for Learner {
    fn retrain(
        &mut self,
        samples: &Shard,
        _: &Device,
        initial: Option<&Weights>,
    ) -> Result<Weights, Box<dyn Error + Send + Sync>> {
        assert!(!samples.samples.is_empty() && samples.pipelines.len() == 1);
        self.calls += 1;
        self.started_from.push(initial.map(Weights::to_bytes));
        if self.calls == 2 {
            return Err("made up".into());
        }
        Ok(Weights::random(self.calls))
    }
}

/// Half of all programs, at whichever size, are wrong in 5 % of their samples when they are built for speed.
fn what_is_wrong_at_the_full_size_does_not_win() {
    let reference = workload(300).reference().unwrap();
    let mut won = 0;
    for seed in 0..4 {
        let fake = format!("fake:timing-wrong=50,samples=50,seed={seed}");
        let tuned = tune_top_in(&mut Records::in_memory().unwrap(), &fake, 4);
        let Some(winner) = tuned.winner.filter(|winner| winner.checked_at_full_size) else { continue };
        won += 1;
        let subjects = subjects();
        let outputs = bench(&fake).with(|bench| {
            let subject = &subjects.subject;
            let program = subject.build(&winner.schedule, bench.device).unwrap();
            let program =
                (bench.compile)(&PRINTER.describe_in_parts(&program, Build::Timing)).unwrap().program;
            bench.machine.run(subject, &program).unwrap()
        });
        let right: Vec<u8> =
            reference[0].as_slice::<f32>().unwrap().iter().flat_map(|sample| sample.to_le_bytes()).collect();
        assert!(outputs[0] == right, "seed {seed}");
    }
    assert!(won > 0);
}

fn the_model_learns_and_goes_on_learning() {
    let place = place();
    let subjects = subjects();
    let mut records = Records::open(&place.records).unwrap();
    let mut learner = Learner { calls: 0, started_from: Vec::new() };
    let (mut retrained, mut notes) = (0, Vec::new());
    let mut run = |iterations: usize| {
        let mut observer = |event: &Event<'_>| match event {
            Event::Retrained { before, after } => {
                retrained += 1;
                assert!(before.is_some_and(|regret| regret >= 1.0) && after.is_some());
            }
            Event::Note(note) => notes.push(note.clone()),
            _ => {}
        };
        bench("fake").with(|bench| {
            let (task, options) = (subjects.task(), options(iterations));
            autotune(&task, &options, bench, &mut records, Some(&mut learner), &mut observer).unwrap()
        })
    };
    let first = run(3);
    assert_eq!(first.weights.unwrap().to_bytes(), Weights::random(3).to_bytes());
    let second = run(4);
    assert_eq!(second.iterations, 4);
    assert_eq!(retrained, 3);
    assert!(notes[0].contains("made up") && notes[1].contains("after 3 of 4"), "{notes:?}");
    let of = |seed| Some(Weights::random(seed).to_bytes());
    assert_eq!(learner.started_from, [None, of(1), of(1), of(3)]);
}

fn a_stop_keeps_everything() {
    let place = place();
    let subjects = subjects();
    let mut records = Records::open(&place.records).unwrap();
    let stopped = bench("fake").with(|bench| {
        let mut observer = |event: &Event<'_>| {
            if matches!(event, Event::Measured { progress, .. } if progress.done == 3) {
                subjects.stop.store(true, Ordering::Relaxed);
            }
        };
        autotune(&subjects.task(), &options(5), bench, &mut records, None, &mut observer).unwrap()
    });
    assert!(matches!(stopped.tuned.ended, Ended::Stopped));
    assert_eq!((stopped.tuned.progress.done, trials(&place.records).len()), (3, 3));
    assert!(stopped.tuned.winner.unwrap().checked_at_full_size);
    let whole = tune(&place.records, "fake", &options(1));
    assert!(whole.tuned.progress.done > 0 && whole.iterations == 1);

    let late = Task { deadline: Some(Instant::now()), ..self::subjects().task().detached() };
    let ended = bench("fake").with(|bench| {
        autotune(&late, &options(9), bench, &mut records, None, &mut |_| {}).unwrap().tuned.ended
    });
    assert!(matches!(ended, Ended::TimeLimit));
}

trait Detached {
    /// With parts that live for ever.
    fn detached(self) -> Task<'static>;
}

impl Detached for Task<'_> {
    fn detached(self) -> Task<'static> {
        let model: &'static Analytic = Box::leak(Box::new(Analytic::new(&Device::preset("h200").unwrap())));
        let Task { subject, small, tolerance, search, deadline, .. } = self;
        Task { subject, small, tolerance, model, search, deadline, stop: Box::leak(Box::default()) }
    }
}

/// A process that autotunes.
fn tuner(records: &Path, fake: &str) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["be-a-tuner".as_ref(), records.as_os_str(), fake.as_ref()]);
    command.stdout(Stdio::null()).spawn().unwrap()
}

fn killed_tuners_lose_nothing() {
    let (whole, killed) = (place(), place());
    let faults = FAULTS.replace("hang=2,", "");
    assert!(tuner(&whole.records, &faults).wait().unwrap().success());
    let log = killed.folder.path().join("log");
    let fake = format!("{faults},delay=10,log={}", log.display());
    let mut kills = 0;
    let mut seen = 0;
    let finished = loop {
        let mut child = tuner(&killed.records, &fake);
        // Later and later, and never at the same point.
        let until = Instant::now() + Duration::from_millis(60 + 47 * kills);
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if Instant::now() > until {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(3));
        };
        if let Some(status) = status {
            break status;
        }
        kills += 1;
        if killed.records.exists() {
            let now = trials(&killed.records).len();
            assert!(now >= seen, "{now} trials where there were {seen}");
            seen = now;
        }
    };
    assert!(finished.success() && kills >= 3, "{kills}");
    assert_eq!(statuses(&killed.records), statuses(&whole.records));
    // Only what a killed process was timing may have been timed again.
    let lines = fs::read_to_string(log).unwrap();
    let different: BTreeSet<&str> = lines.lines().collect();
    let repeated = lines.lines().count() - different.len();
    assert!(repeated <= kills as usize, "{repeated} after {kills} kills");
}

fn two_tuners_share_the_work() {
    let (alone, shared) = (place(), place());
    assert!(tuner(&alone.records, "fake").wait().unwrap().success());
    let logs = ["a", "b"].map(|name| shared.folder.path().join(name));
    let start = |log: &PathBuf| tuner(&shared.records, &format!("fake:delay=25,log={}", log.display()));
    let mut children = logs.each_ref().map(start);
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!(statuses(&shared.records), statuses(&alone.records));
    let logs = logs.map(|log| fs::read_to_string(log).unwrap_or_default());
    let timed: Vec<&str> = logs.iter().flat_map(|log| log.lines()).collect();
    let different: BTreeSet<&&str> = timed.iter().collect();
    assert_eq!(timed.len(), different.len(), "something was timed twice");
    assert!(logs.iter().all(|log| !log.is_empty()), "one did nothing");
}

fn a_full_disk_still_has_a_winner() {
    let place = place();
    let subjects = subjects();
    let mut records = Records::open(&place.records).unwrap();
    records.limit_growth(1).unwrap();
    let tuned = bench("fake").with(|bench| {
        autotune(&subjects.task(), &options(5), bench, &mut records, None, &mut |_| {}).unwrap().tuned
    });
    assert!(
        matches!(tuned.ended, Ended::Failed(TuneError::Records(RecordsError::Full { .. }))),
        "{:?}",
        tuned.ended
    );
    assert!(tuned.winner.is_some());
    drop(records);
    assert_eq!(trials(&place.records).len(), tuned.progress.done);
    let whole = tune(&place.records, "fake", &options(2)).tuned;
    assert!(matches!(whole.ended, Ended::Finished));
}

fn a_lost_gpu_still_has_a_winner() {
    let place = place();
    let copy = place.folder.path().join("worker");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let fake = "fake:crash=25,seed=1".parse().unwrap();
    let options = BenchOptions {
        worker: Some(WorkerProgram::new(&copy, ["warploom-worker".into()])),
        fake: Some(fake),
        threads: 1,
        ..BenchOptions::default()
    };
    let mut bench = OpenBench::open(&options).unwrap();
    fs::remove_file(copy).unwrap();
    let subjects = subjects();
    let mut records = Records::open(&place.records).unwrap();
    let tuned = bench.with(|bench| {
        autotune(&subjects.task(), &self::options(5), bench, &mut records, None, &mut |_| {}).unwrap().tuned
    });
    let lost = matches!(tuned.ended, Ended::Failed(TuneError::Measure(MeasureError::Lost(_))));
    assert!(lost, "{:?}", tuned.ended);
    let kinds: Vec<&str> = trials(&place.records).iter().map(|trial| trial.sample.status.kind()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "crashed").count(), 1, "{kinds:?}");
    assert_eq!(tuned.winner.is_some(), kinds.contains(&"ok"));
}

/// Trials of another version, or of a pipeline whose inner Funcs had other names.
fn schedules_that_cannot_be_used_make_room_and_are_told() {
    let place = place();
    let count = tune_top(&place.records, "fake", 3).shown.len();
    let subjects = subjects();
    let mut records = Records::open(&place.records).unwrap();
    let problem = records.problems().unwrap()[0].id;
    let valid = records.best(problem, 1).unwrap().remove(0);
    // The fastest four name a Func that there is not, or are illegal.
    let illegal = "blur\n  kernel blur block x 4096, y 4096 threads x 64, y 64\n";
    let texts =
        (0..3).map(|number| format!("blur\n  kernel gone{number} flat\n")).chain([illegal.to_owned()]);
    for (text, number) in texts.zip(1_u32..) {
        let mut made_up = valid.clone();
        made_up.sample.schedule = text;
        made_up.sample.times.as_mut().unwrap().min = 1e-3 * f64::from(number);
        made_up.retimed_us = None;
        assert!(records.record(problem, &made_up).unwrap());
    }
    let mut notes = Vec::new();
    let tuned = bench("fake").with(|bench| {
        let mut hear = |event: &Event<'_>| {
            if let Event::Note(note) = event {
                notes.push(note.clone());
            }
        };
        top(&subjects.task(), 3, bench, &mut records, &mut hear).unwrap()
    });
    assert!(matches!(tuned.ended, Ended::Finished), "{:?}", tuned.ended);
    assert!(count >= 3 && tuned.winner.is_some_and(|winner| winner.trial.time_us() > Some(1.0)));
    let told = "recorded schedules that cannot be used any more are left out: 4; one is that of trial ";
    assert!(notes.iter().any(|note| note.starts_with(told)), "{notes:?}");
    assert_eq!(notes.iter().filter(|note| note.contains("left out")).count(), 1, "{notes:?}");

    // Where no other trial is valid, the run says why it has no result.
    let failed = Status::Failed("made up".to_owned());
    for trial in records.best(problem, usize::MAX).unwrap() {
        if !trial.sample.schedule.contains("gone") {
            records.set_status(trial.id, &failed).unwrap();
        }
    }
    let tuned = bench("fake")
        .with(|bench| given(&subjects.task(), vec![], bench, &mut records, &mut |_| {}).unwrap());
    let Ended::Failed(TuneError::Unusable { count, why }) = tuned.ended else { panic!("{:?}", tuned.ended) };
    assert_eq!(count, 3);
    assert!(why.contains("`gone0` is not a stage of `blur`"), "{why}");
}
