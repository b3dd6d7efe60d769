//! What all stores of records promise: every test runs with a file and with a PostgreSQL server.

use std::path::Path;
use std::thread;

use warploom_lang::{Input, Pipeline, Realisation, Region, Var, func};
use warploom_target::Device;
use warploom_tune::records::{
    Claim, FinishedIteration, Imported, ProblemId, Records, RunKey, RunStep, StepOutcome, Trial,
};
use warploom_tune::sample::{Sample, Shard, Sizes, Status};

use crate::harness::trials::{device, failed, pipeline, request, trial, versions};
use crate::harness::{self, Make, Open};

type Test = fn(Make<'_>);

macro_rules! tests {
    ($($test:ident)*) => { &[$((stringify!($test), $test)),*] };
}

const CONTRACT: &[(&str, Test)] = tests! {
    trials_come_back_as_they_were_and_only_once
    problems_are_told_apart_by_all_that_changes_times
    what_is_timed_again_decides
    iterations_are_kept_by_run
    steps_are_asked_once_and_answered_once
    many_connections_write_at_once
    exported_trials_can_be_imported
    trials_are_samples_and_samples_trials
    every_text_comes_back
    schedules_are_claimed_once
    pipelines_with_other_names_are_others
    records_are_copied
};

/// Runs all tests, and names those that fail.
fn keep_the_contract(store: impl Fn() -> Box<dyn Open> + Sync) {
    let failed: Vec<&str> = thread::scope(|scope| {
        let run = |(name, test): &(&'static str, Test)| {
            let (name, test, store) = (*name, *test, &store);
            (name, scope.spawn(move || test(store)))
        };
        let started: Vec<_> = CONTRACT.iter().map(run).collect();
        started.into_iter().filter_map(|(name, test)| test.join().is_err().then_some(name)).collect()
    });
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn files_keep_the_contract() {
    keep_the_contract(harness::file);
}

#[test]
fn postgres_keeps_the_contract() {
    let Some(server) = harness::Running::start("postgres_keeps_the_contract") else { return };
    keep_the_contract(|| server.store());
}

impl dyn Open + '_ {
    /// The records with the problem of these tests.
    fn problem(&self) -> (Records, ProblemId) {
        let mut records = self.open();
        let problem = harness::trials::problem(&mut records);
        (records, problem)
    }
}

fn asked(point: &str) -> RunStep {
    RunStep::new(point.to_owned(), Some(format!("hash of {point}")), StepOutcome::Asked)
}

fn trials_come_back_as_they_were_and_only_once(store: Make<'_>) {
    let place = store();
    let (mut records, problem) = place.problem();
    let trials = [
        trial("a", 20.0),
        trial("b", 10.0),
        failed("c", Status::Wrong("all of it".into())),
        failed("d", Status::TimedOut("10 s".into())),
        failed("e", Status::Crashed("signal 11".into())),
        failed("f", Status::Spilled("16 bytes".into())),
        failed("g", Status::NotCompiled("no".into())),
    ];
    for trial in &trials {
        assert!(records.record(problem, trial).unwrap());
    }
    assert!(!records.record(problem, &trial("a", 1.0)).unwrap(), "the first stays");
    drop(records);

    let (records, again) = place.problem();
    assert_eq!(again, problem);
    let mut read = records.trials(Some(problem)).unwrap();
    for trial in &mut read {
        assert_eq!(records.trial(trial.id).unwrap().as_ref(), Some(&*trial));
        trial.id = 0;
    }
    assert_eq!(read, trials);
    assert_eq!(records.trial(99).unwrap(), None);
    let best: Vec<String> =
        records.best(problem, 5).unwrap().into_iter().map(|trial| trial.sample.schedule).collect();
    assert_eq!(best, ["b", "a"]);
    let found = records.find(problem, "c").unwrap().unwrap();
    assert_eq!(found.sample.status.kind(), "wrong");
    assert_eq!(records.find(problem, "z").unwrap(), None);
    let found = records.pipeline(pipeline().structural_hash()).unwrap().unwrap();
    assert_eq!(found.to_json(), pipeline().to_json());
}

fn problems_are_told_apart_by_all_that_changes_times(store: Make<'_>) {
    let place = store();
    let (mut records, problem) = place.problem();
    let of = |records: &mut Records, width, device: &str, versions: &[String]| {
        records.problem(&pipeline(), &request(width), &Device::preset(device).unwrap(), versions).unwrap()
    };
    assert_ne!(of(&mut records, 101, "h200", &versions()), problem);
    assert_ne!(of(&mut records, 100, "a100", &versions()), problem);
    let mut other = versions();
    other[2] = "driver 4".into();
    assert_eq!(of(&mut records, 100, "h200", &other), problem, "drivers change no machine code");
    other[1] = "nvrtc 9".into();
    assert_ne!(of(&mut records, 100, "h200", &other), problem);
    records.record(problem, &trial("a", 20.0)).unwrap();
    records.record(problem, &failed("b", Status::Failed("no".into()))).unwrap();
    let problems = records.problems().unwrap();
    assert_eq!(problems.len(), 4);
    let found = problems.iter().find(|found| found.id == problem).unwrap();
    assert_eq!((found.trials, found.valid, found.best_us), (2, 1, Some(20.0)));
    assert_eq!((found.name.as_str(), &found.sizes), ("twice", &Sizes::of(&request(100))));
}

fn what_is_timed_again_decides(store: Make<'_>) {
    let place = store();
    let (mut records, problem) = place.problem();
    records.record(problem, &trial("lucky", 9.9)).unwrap();
    records.record(problem, &trial("steady", 10.0)).unwrap();
    let trials = records.best(problem, 2).unwrap();
    records.set_retimed(&[(trials[0].id, 10.5), (trials[1].id, 10.0)]).unwrap();
    assert_eq!(records.best(problem, 1).unwrap()[0].sample.schedule, "steady");
    let steady = records.best(problem, 1).unwrap()[0].id;
    records.set_status(steady, &Status::Wrong("at the full size".into())).unwrap();
    assert_eq!(records.best(problem, 1).unwrap()[0].sample.schedule, "lucky");
}

fn iterations_are_kept_by_run(store: Make<'_>) {
    let place = store();
    let (mut records, problem) = place.problem();
    let (one, other) = (RunKey("seed 1".into()), RunKey("seed 2".into()));
    records.record(problem, &trial("before", 1.0)).unwrap();
    let begun = records.run(problem, &one).unwrap();
    assert_eq!((begun.finished, begun.last_trial, begun.weights.is_none()), (0, 1, true));
    let weights = warploom_cost::Weights::random(7);
    records.record(problem, &trial("in the first iteration", 1.0)).unwrap();
    let first = records.finish_iteration(problem, &one, 1, Some(&weights)).unwrap();
    assert_eq!((first.finished, first.last_trial), (1, 2));
    records.record(problem, &trial("in the second", 1.0)).unwrap();
    // Another process was slower.
    let same = records.finish_iteration(problem, &one, 1, None).unwrap();
    assert_eq!((same.last_trial, same.weights.unwrap().unwrap().to_bytes()), (2, weights.to_bytes()));
    let last = records.run(problem, &one).unwrap();
    assert_eq!((last.finished, last.last_trial), (1, 2));
    assert_eq!(records.run(problem, &other).unwrap().finished, 0);
    // What has begun is not finished.
    let finished = FinishedIteration { run: one, number: 1, last_trial: 2 };
    assert_eq!(records.iterations(problem).unwrap(), [finished]);
}

fn steps_are_asked_once_and_answered_once(store: Make<'_>) {
    let place = store();
    let (mut records, problem) = place.problem();
    let (one, other) = (RunKey("opevo seed=1".into()), RunKey("opevo seed=2".into()));
    let refused = RunStep {
        message: "too many threads".into(),
        ..RunStep::new("c".into(), None, StepOutcome::Refused)
    };
    let question = [asked("a"), asked("b"), refused];
    assert_eq!(records.ask_steps(problem, &one, 0, &question).unwrap(), question);
    // What is stored stays, whoever asks.
    let known = asked("a").of_trial(&Trial { id: 9, ..trial("a", 3.0) }, false);
    assert_eq!(records.ask_steps(problem, &one, 0, &[known]).unwrap(), question[..1]);

    for schedule in ["a", "b"] {
        records.record(problem, &trial(schedule, 0.1 + 0.2)).unwrap();
    }
    let spilled = Trial { id: 2, ..failed("b", Status::Spilled("12 bytes".into())) };
    let answers = [
        asked("a").of_trial(&Trial { id: 1, ..trial("a", 0.1 + 0.2) }, true),
        asked("b").of_trial(&spilled, true),
    ];
    assert_eq!((answers[0].outcome, answers[0].time_us), (StepOutcome::Measured, Some(0.1 + 0.2)));
    assert_eq!((answers[1].outcome, answers[1].message.as_str()), (StepOutcome::Failed, "spilled"));
    assert_eq!(records.answer_steps(problem, &one, 0, &answers).unwrap(), answers);
    let later = asked("a").of_trial(&Trial { id: 1, ..trial("a", 7.0) }, true);
    assert_eq!(records.answer_steps(problem, &one, 0, &[later]).unwrap(), answers[..1], "answered twice");

    records.ask_steps(problem, &one, 3, &[asked("d")]).unwrap();
    assert!(records.steps(problem, &other).unwrap().is_empty());
    drop(records);
    let (records, _) = place.problem();
    let expected: Vec<RunStep> = answers.into_iter().chain([question[2].clone(), asked("d")]).collect();
    assert_eq!(records.steps(problem, &one).unwrap(), expected);
}

fn many_connections_write_at_once(store: Make<'_>) {
    let place = store();
    thread::scope(|scope| {
        for writer in 0..4 {
            let place = &place;
            scope.spawn(move || {
                let (mut records, problem) = place.problem();
                for number in 0..25 {
                    // Every other schedule is also another's.
                    let name = format!("{}-{number}", if number % 2 == 0 { writer } else { 9 });
                    records.record(problem, &trial(&name, 1.0)).unwrap();
                }
            });
        }
    });
    let (records, problem) = place.problem();
    assert_eq!(records.trials(Some(problem)).unwrap().len(), 4 * 13 + 12);
}

fn exported_trials_can_be_imported(store: Make<'_>) {
    let (from, to) = (store(), store());
    let (mut records, problem) = from.problem();
    records.record(problem, &trial("a", 20.0)).unwrap();
    records.record(problem, &failed("b", Status::Numeric("a bit".into()))).unwrap();
    let mut lines = Vec::new();
    assert_eq!(records.export(None, &mut lines, Path::new("out")).unwrap(), 2);
    let (mut other, there) = to.problem();
    other.record(there, &trial("a", 30.0)).unwrap();
    let imported = other.import(lines.as_slice(), Path::new("in")).unwrap();
    assert_eq!(imported, Imported { new: 1, known: 1 });
    assert_eq!(other.trials(Some(there)).unwrap()[1].sample, records.trials(None).unwrap()[1].sample);

    let text = String::from_utf8(lines).unwrap();
    let broken = text.replace("\"numeric\"", "\"odd\"") + "\n";
    let error = other.import(broken.as_bytes(), Path::new("in.jsonl")).unwrap_err().to_string();
    assert!(error.starts_with("line 3 of in.jsonl"), "{error}");
    let no_pipeline: String = text.lines().skip(1).map(|line| line.to_owned() + "\n").collect();
    assert!(other.import(no_pipeline.as_bytes(), Path::new("in.jsonl")).is_err());
}

fn trials_are_samples_and_samples_trials(store: Make<'_>) {
    let (from, to) = (store(), store());
    let (mut records, problem) = from.problem();
    records.record(problem, &trial("a", 20.0)).unwrap();
    records.record(problem, &failed("b", Status::Crashed("signal 9".into()))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.samples");
    assert_eq!(records.export_samples(None, &file).unwrap(), 2);
    let shard = Shard::read(&file).unwrap();
    assert_eq!(shard.samples, records.shard(None).unwrap().samples);
    let mut other = to.open();
    assert_eq!(other.import_samples(&file).unwrap(), Imported { new: 2, known: 0 });
    assert_eq!(other.import_samples(&file).unwrap(), Imported { new: 0, known: 2 });
    assert_eq!(other.shard(None).unwrap().samples, shard.samples);
}

/// Texts that are long, strange, or mean something to a database.
fn every_text_comes_back(store: Make<'_>) {
    let place = store();
    let (mut records, problem) = place.problem();
    let long = "x".repeat(100_000);
    let texts = [
        "",
        "\0",
        "a\0b\u{1}c\u{1}0",
        "\u{1}",
        "'; DROP TABLE trials; --",
        "$1 ?1",
        "\\x00",
        "\u{1f600}",
        &long,
    ];
    for text in texts {
        let crashed = Status::Crashed(text.to_owned());
        assert!(records.record(problem, &failed(text, crashed)).unwrap());
    }
    let run = RunKey(long.clone());
    records.run(problem, &run).unwrap();
    let finished = records.finish_iteration(problem, &run, 1, None).unwrap();
    assert_eq!(finished.finished, 1);
    records.ask_steps(problem, &run, 0, &[asked(&long), asked("\0")]).unwrap();
    drop(records);

    let (records, problem) = place.problem();
    let read = records.trials(Some(problem)).unwrap();
    let schedules: Vec<&str> = read.iter().map(|trial| trial.sample.schedule.as_str()).collect();
    assert_eq!(schedules, texts);
    let messages: Vec<&str> = read.iter().map(|trial| trial.sample.status.message()).collect();
    assert_eq!(messages, texts);
    assert_eq!(records.steps(problem, &run).unwrap(), [asked(&long), asked("\0")]);
    assert_eq!(records.iterations(problem).unwrap()[0].run, run);
    assert!(records.find(problem, "a\0b\u{1}c\u{1}0").unwrap().is_some());
}

/// Schedules are texts: with the names of another pipeline, the same text would mean something else.
fn pipelines_with_other_names_are_others(store: Make<'_>) {
    let named = |x: &str, y: &str| {
        let (x, y) = (Var::new(x), Var::new(y));
        let input = Input::f32("input", 2);
        Pipeline::new("p", [func("p", (x, y), input.at((x, y)) + input.at((x, 0)))]).unwrap()
    };
    let (one, swapped) = (named("x", "y"), named("y", "x"));
    assert_eq!(one.structural_hash(), swapped.structural_hash());
    let region = Region::of_extents(&[8, 8]);
    let place = store();
    let mut records = place.open();
    let mut of = |pipeline: &Pipeline| {
        let request = Realisation::new(pipeline).input("input", region.clone()).output("p", region.clone());
        let id = records.problem(pipeline, &request, &device(), &versions()).unwrap();
        assert_eq!(records.problem(pipeline, &request, &device(), &versions()).unwrap(), id);
        let mut sample = trial("kernel p  threads x", 1.0).sample;
        sample.sizes = Sizes::of(&request);
        assert!(records.record(id, &Trial::new(sample, None, 0.0)).unwrap(), "each has its own");
        id
    };
    let (first, second) = (of(&one), of(&swapped));
    assert_ne!(first, second);
    let names = |records: &Records, id| {
        let trial = records.trials(Some(id)).unwrap().pop().unwrap();
        let pipeline = records.pipeline(trial.sample.pipeline).unwrap().unwrap();
        assert_eq!(records.key(&pipeline).unwrap(), trial.sample.pipeline);
        pipeline.names_hash()
    };
    let expected = [one.names_hash(), swapped.names_hash()];
    assert_eq!([names(&records, first), names(&records, second)], expected);

    let mut lines = Vec::new();
    records.export(None, &mut lines, Path::new("out")).unwrap();
    let other = store();
    let mut other = other.open();
    assert_eq!(other.import(lines.as_slice(), Path::new("in")).unwrap(), Imported { new: 2, known: 0 });
    let shard = other.shard(None).unwrap();
    let of = |sample: &Sample| shard.pipelines[&sample.pipeline].names_hash();
    assert_eq!(shard.samples.iter().map(of).collect::<Vec<_>>(), expected);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("both.samples");
    assert_eq!(records.export_samples(None, &file).unwrap(), 2);
    assert_eq!(Shard::read(&file).unwrap().samples, shard.samples);
}

fn schedules_are_claimed_once(store: Make<'_>) {
    let place = store();
    let (mut one, problem) = place.problem();
    assert_eq!(one.claim(problem, "a").unwrap(), Claim::Granted);
    assert_eq!(one.claim(problem, "a").unwrap(), Claim::Granted, "one's own");
    one.record(problem, &trial("a", 1.0)).unwrap();
    assert_eq!(one.claim(problem, "a").unwrap(), Claim::Finished);
    assert_eq!(one.claim(problem, "b").unwrap(), Claim::Granted);
    one.release_claims().unwrap();
    assert_eq!(one.claim(problem, "b").unwrap(), Claim::Granted);
}

fn records_are_copied(store: Make<'_>) {
    let from = store();
    let (mut records, problem) = from.problem();
    let run = RunKey("a run".into());
    records.run(problem, &run).unwrap();
    for schedule in ["a", "b", "c"] {
        records.record(problem, &trial(schedule, 5.0)).unwrap();
    }
    let weights = warploom_cost::Weights::random(7);
    records.finish_iteration(problem, &run, 1, Some(&weights)).unwrap();
    let last = records.find(problem, "c").unwrap().unwrap();
    records.ask_steps(problem, &run, 0, &[asked("a"), asked("c")]).unwrap();
    let answers = [asked("a"), asked("c").of_trial(&last, true)];
    records.answer_steps(problem, &run, 0, &answers).unwrap();
    records.record(problem, &trial("d", 5.0)).unwrap();

    for to in [store(), Box::new(harness::in_a_file())] {
        let (mut other, there) = to.problem();
        other.record(there, &trial("b", 9.0)).unwrap();
        assert_eq!(other.copy_from(&records).unwrap(), Imported { new: 3, known: 1 });
        assert_eq!(other.copy_from(&records).unwrap(), Imported { new: 0, known: 4 });
        let [a, b, c] = ["a", "b", "c"].map(|schedule| other.find(there, schedule).unwrap().unwrap());
        assert_eq!(b.time_us(), Some(9.0), "what is there stays");
        assert_eq!(a.sample, trial("a", 5.0).sample);
        let steps = other.steps(there, &run).unwrap();
        assert_eq!((steps[1].trial, steps[1].time_us), (Some(c.id), Some(5.0)));
        let state = other.run(there, &run).unwrap();
        assert_eq!((state.finished, state.last_trial), (1, c.id));
        assert_eq!(state.weights.unwrap().unwrap().to_bytes(), weights.to_bytes());
    }
}
