//! Databases of trials: what is kept, what is refused, and several users at once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use tempfile::TempDir;
use warploom_lang::{Input, Pipeline, Realisation, Region, func, vars};
use warploom_target::Device;
use warploom_tune::records::{
    Claim, FinishedIteration, Imported, ProblemId, Records, RecordsError, RunKey, Step, StepOutcome, Trial,
};
use warploom_tune::sample::{KernelUse, Origin, Sample, Shard, Sizes, Status, Times};

fn pipeline() -> Pipeline {
    let x = vars!(x);
    let input = Input::f32("input", 1);
    Pipeline::new("twice", [func("twice", x, input.at(x) * 2.0)]).unwrap()
}

fn request(width: i64) -> Realisation {
    let region = Region::of_extents(&[width]);
    Realisation::new(&pipeline()).input("input", region.clone()).output("twice", region)
}

fn versions() -> Vec<String> {
    ["warploom 1", "nvrtc 2", "driver 3"].map(str::to_owned).to_vec()
}

fn device() -> Device {
    Device::preset("h200").unwrap()
}

fn trial(schedule: &str, microseconds: f64) -> Trial {
    let sample = Sample {
        pipeline: pipeline().structural_hash(),
        sizes: Sizes::of(&request(100)),
        schedule: schedule.to_owned(),
        origin: Origin::Search,
        device: device().name,
        fingerprint: device().fingerprint(),
        versions: versions(),
        status: Status::Measured,
        verified: true,
        times: Some(Times { min: microseconds, median: microseconds * 1.01, runs: 20 }),
        kernels: vec![KernelUse {
            name: "k".into(),
            registers: 40,
            spill_stores: 0,
            spill_loads: 0,
            shared: 1024,
        }],
        compile_ms: 12.5,
    };
    Trial::new(sample, Some(microseconds * 0.9), 0.02)
}

fn failed(schedule: &str, status: Status) -> Trial {
    let mut trial = trial(schedule, 1.0);
    trial.sample.status = status;
    trial.sample.times = None;
    trial
}

struct Place {
    _folder: TempDir,
    path: std::path::PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tuning.db");
    Place { _folder: folder, path }
}

fn open(path: &Path) -> (Records, ProblemId) {
    let mut records = Records::open(path).unwrap();
    let problem = records.problem(&pipeline(), &request(100), &device(), &versions()).unwrap();
    (records, problem)
}

#[test]
fn trials_come_back_as_they_were_and_only_once() {
    let place = place();
    let (mut records, problem) = open(&place.path);
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

    let (records, again) = open(&place.path);
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

#[test]
fn problems_are_told_apart_by_all_that_changes_times() {
    let place = place();
    let (mut records, problem) = open(&place.path);
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

#[test]
fn what_is_timed_again_decides() {
    let place = place();
    let (mut records, problem) = open(&place.path);
    records.record(problem, &trial("lucky", 9.9)).unwrap();
    records.record(problem, &trial("steady", 10.0)).unwrap();
    let trials = records.best(problem, 2).unwrap();
    records.set_retimed(trials[0].id, 10.5).unwrap();
    records.set_retimed(trials[1].id, 10.0).unwrap();
    assert_eq!(records.best(problem, 1).unwrap()[0].sample.schedule, "steady");
    let steady = records.best(problem, 1).unwrap()[0].id;
    records.set_status(steady, &Status::Wrong("at the full size".into())).unwrap();
    assert_eq!(records.best(problem, 1).unwrap()[0].sample.schedule, "lucky");
}

#[test]
fn iterations_are_kept_by_run() {
    let place = place();
    let (mut records, problem) = open(&place.path);
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

fn asked(point: &str) -> Step {
    Step::new(point.to_owned(), Some(format!("hash of {point}")), StepOutcome::Asked)
}

#[test]
fn steps_are_asked_once_and_answered_once() {
    let place = place();
    let (mut records, problem) = open(&place.path);
    let (one, other) = (RunKey("opevo seed=1".into()), RunKey("opevo seed=2".into()));
    let refused =
        Step { message: "too many threads".into(), ..Step::new("c".into(), None, StepOutcome::Refused) };
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
    let (records, _) = open(&place.path);
    let expected: Vec<Step> = answers.into_iter().chain([question[2].clone(), asked("d")]).collect();
    assert_eq!(records.steps(problem, &one).unwrap(), expected);
}

/// A database as the program made it before there were steps.
fn first_version(path: &Path) {
    let (mut records, problem) = open(path);
    records.record(problem, &trial("old", 2.0)).unwrap();
    drop(records);
    let other = rusqlite::Connection::open(path).unwrap();
    other.execute_batch("DROP TABLE steps; PRAGMA user_version = 1").unwrap();
}

#[test]
fn databases_of_the_first_version_are_upgraded() {
    let place = place();
    first_version(&place.path);
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| drop(open(&place.path))))));
    let (mut records, problem) = open(&place.path);
    assert_eq!(records.trials(None).unwrap().len(), 1, "nothing is lost");
    let run = RunKey("random seed=0".into());
    assert_eq!(records.ask_steps(problem, &run, 0, &[asked("a")]).unwrap(), [asked("a")]);
    let other = rusqlite::Connection::open(&place.path).unwrap();
    let version: i64 = other.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 2);
}

#[test]
fn files_that_are_no_records_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let refused = |path: &Path| Records::open(path).unwrap_err();

    fs::write(file("text.db"), "this is no database at all".repeat(100)).unwrap();
    assert!(matches!(refused(&file("text.db")), RecordsError::NotRecords { .. }));

    let other = rusqlite::Connection::open(file("other.db")).unwrap();
    other.execute_batch("CREATE TABLE addresses (name TEXT)").unwrap();
    assert!(matches!(refused(&file("other.db")), RecordsError::NotRecords { .. }));

    drop(open(&file("later.db")));
    rusqlite::Connection::open(file("later.db")).unwrap().pragma_update(None, "user_version", 7).unwrap();
    let later = refused(&file("later.db"));
    assert!(matches!(later, RecordsError::Newer { found: 7, .. }), "{later}");

    assert!(matches!(refused(&file("no/such/folder.db")), RecordsError::Open { .. }));
    assert!(matches!(Records::open_existing(file("none.db")), Err(RecordsError::Open { .. })));
    assert!(!file("none.db").exists());
}

/// SQLite itself would take these for databases that are forgotten, or whose locks are ignored.
#[test]
fn a_path_is_that_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let names =
        ["file:a.db?mode=memory", "file:b.db?nolock=1", "file:c.db?vfs=unix-none", ":memory:", "file:d.db"];
    for name in names {
        let path = folder.path().join(name);
        let relative = Path::new(name);
        let (mut records, problem) = open(&path);
        records.record(problem, &trial("kept", 3.0)).unwrap();
        drop(records);
        assert!(path.is_file(), "{name}");
        assert_eq!(Records::open_existing(&path).unwrap().trials(None).unwrap().len(), 1, "{name}");
        // Relative ones are the case that SQLite reads otherwise.
        assert!(matches!(Records::open_existing(relative), Err(RecordsError::Open { .. })), "{name}");
    }
    for reserved in ["postgres://me:secret@host/trials", "postgresql://host/trials"] {
        for opened in [Records::open(reserved), Records::open_existing(reserved)] {
            let error = opened.unwrap_err();
            assert!(
                matches!(error, RecordsError::Reserved { .. }) && !error.to_string().contains("secret"),
                "{error}"
            );
        }
    }
    for nothing in ["", "no/such/folder/a.db", "."] {
        assert!(matches!(Records::open(nothing), Err(RecordsError::Open { .. })), "{nothing}");
    }
    let mut records = Records::in_memory().unwrap();
    let problem = records.problem(&pipeline(), &request(100), &device(), &versions()).unwrap();
    records.record(problem, &trial("gone", 3.0)).unwrap();
    assert_eq!(records.trials(None).unwrap().len(), 1);
}

#[test]
fn what_others_have_put_into_records_is_refused() {
    let foreign = [
        ("table", "CREATE TABLE odd (name TEXT)"),
        ("view", "CREATE VIEW odd AS SELECT * FROM trials"),
        ("trigger", "CREATE TRIGGER odd AFTER INSERT ON trials BEGIN DELETE FROM trials; END"),
        ("index", "CREATE INDEX odd ON trials (origin)"),
    ];
    for (kind, statement) in foreign {
        let place = place();
        drop(open(&place.path));
        let other = rusqlite::Connection::open(&place.path).unwrap();
        other.execute_batch(statement).unwrap();
        for opened in [Records::open(&place.path), Records::open_existing(&place.path)] {
            let error = opened.unwrap_err();
            assert!(matches!(error, RecordsError::Foreign { .. }), "{error}");
            assert!(error.to_string().contains(&format!("contain a {kind} `odd`")), "{error}");
        }
        other.execute_batch(&format!("DROP {kind} odd; ANALYZE")).unwrap();
        Records::open(&place.path).unwrap();
    }
}

/// Two trials as lines of JSON.
fn exported() -> String {
    let place = place();
    let (mut records, problem) = open(&place.path);
    records.record(problem, &trial("a", 20.0)).unwrap();
    records.record(problem, &failed("b", Status::Wrong("all of it".into()))).unwrap();
    let mut lines = Vec::new();
    records.export(None, &mut lines, Path::new("out")).unwrap();
    String::from_utf8(lines).unwrap()
}

#[test]
fn numbers_that_nothing_can_have_been_measured_as_are_not_imported() {
    let text = exported();
    let (place, mut lines) = (place(), text.lines());
    let (pipeline, whole) = (lines.next().unwrap(), lines.next().unwrap());
    let mut records = Records::open(&place.path).unwrap();
    let mut import = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut trial = serde_json::from_str(whole).unwrap();
        change(&mut trial);
        records.import(format!("{pipeline}\n{trial}\n").as_bytes(), Path::new("in.jsonl"))
    };
    let numbers = [
        ("/times/min", vec![-1e308, 0.0, 1e300]),
        ("/times/median", vec![-1.0, 1e300, 19.0]),
        ("/predicted_us", vec![-1e308, 0.0, 1e300]),
        ("/retimed_us", vec![-1e308, 0.0]),
        ("/spread", vec![-0.5, 1e300]),
        ("/compile_ms", vec![-1.0, 1e300]),
    ];
    for (place, values) in numbers {
        for value in values {
            let imported = import(&|trial| *trial.pointer_mut(place).unwrap() = value.into());
            let error = imported.expect_err(place).to_string();
            assert!(
                error.starts_with("line 2 of in.jsonl is not a record: its "),
                "{place} {value}: {error}"
            );
        }
    }
    let others = [
        ("/times/runs", serde_json::json!(0)),
        ("/times", serde_json::json!(null)),
        ("/measured_at", serde_json::json!(u64::MAX)),
        ("/kernels/0/registers", serde_json::json!(1_000_000)),
        ("/kernels/0/shared", serde_json::json!(u32::MAX)),
        ("/sizes/inputs", serde_json::json!([])),
        ("/sizes/outputs/0/0/extent", serde_json::json!(-4)),
        ("/sizes/outputs/0/0/extent", serde_json::json!(i64::MAX)),
        ("/sizes/inputs/0/0/min", serde_json::json!(i64::MAX)),
        ("/sizes/params", serde_json::json!([["f32", 0]])),
    ];
    for (place, value) in others {
        let imported = import(&|trial| {
            *trial.pointer_mut(place).unwrap_or_else(|| panic!("there is no {place}")) = value.clone();
        });
        assert!(imported.is_err(), "{place} {value}");
    }
    assert_eq!(import(&|_| {}).unwrap(), Imported { new: 1, known: 0 });
}

#[test]
fn samples_are_looked_at_too() {
    let (from, to) = (place(), place());
    let (mut records, problem) = open(&from.path);
    records.record(problem, &trial("a", 20.0)).unwrap();
    records.record(problem, &trial("b", -1e308)).unwrap();
    let file = from.path.with_file_name("mine.samples");
    records.export_samples(None, &file).unwrap();
    let mut other = Records::open(&to.path).unwrap();
    let error = other.import_samples(&file).unwrap_err().to_string();
    assert!(error.starts_with("sample 2 of ") && error.contains("its shortest time is -1e308"), "{error}");
    assert!(other.trials(None).unwrap().is_empty(), "all or nothing");
}

#[test]
fn damage_is_said_and_never_panics() {
    let place = place();
    let (mut records, problem) = open(&place.path);
    for number in 0..200 {
        records.record(problem, &trial(&format!("{number} {}", "x".repeat(500)), 10.0)).unwrap();
    }
    drop(records);
    let whole = fs::read(&place.path).unwrap();
    let mut damaged = 0;
    for page in 1..whole.len() / 4096 {
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0x5a);
        fs::write(&place.path, bytes).unwrap();
        let read = Records::open(&place.path).and_then(|records| records.trials(None));
        if let Err(error) = read {
            assert!(matches!(error, RecordsError::Damaged { .. } | RecordsError::Sqlite { .. }), "{error}");
            damaged += 1;
        }
    }
    assert!(damaged > 10, "{damaged}");
}

#[test]
fn a_full_disk_keeps_what_was_committed() {
    let place = place();
    let (mut records, problem) = open(&place.path);
    records.limit_growth(10).unwrap();
    let long = "x".repeat(3000);
    let mut kept = 0;
    let error = loop {
        match records.record(problem, &trial(&format!("{kept} {long}"), 10.0)) {
            Ok(new) => kept += usize::from(new),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, RecordsError::Full { .. }), "{error}");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert!(kept > 3);
    drop(records);
    let (mut records, problem) = open(&place.path);
    assert_eq!(records.trials(Some(problem)).unwrap().len(), kept);
    assert!(records.record(problem, &trial("there is room again", 1.0)).unwrap());
}

#[test]
fn schedules_are_claimed_once() {
    let place = place();
    let (mut records, problem) = open(&place.path);
    assert_eq!(records.claim(problem, "a").unwrap(), Claim::Granted);
    assert_eq!(records.claim(problem, "a").unwrap(), Claim::Granted, "one's own");
    let other = rusqlite::Connection::open(&place.path).unwrap();
    let here: String = other.query_row("SELECT host FROM claims", [], |row| row.get(0)).unwrap();
    let held_by = |process: u32, host: &str, expires: i64| {
        other
            .execute(
                "UPDATE claims SET process = ?1, host = ?2, expires = ?3",
                rusqlite::params![process, host, expires],
            )
            .unwrap();
    };
    // The parent of this process lives; nobody has the largest number.
    held_by(std::os::unix::process::parent_id(), &here, i64::MAX);
    assert_eq!(records.claim(problem, "a").unwrap(), Claim::Taken);
    held_by(u32::MAX, &here, i64::MAX);
    assert_eq!(records.claim(problem, "a").unwrap(), Claim::Granted, "its process has ended");
    held_by(u32::MAX, "another machine", i64::MAX);
    assert_eq!(records.claim(problem, "a").unwrap(), Claim::Taken);
    held_by(u32::MAX, "another machine", 1);
    assert_eq!(records.claim(problem, "a").unwrap(), Claim::Granted, "it is too old");
    records.record(problem, &trial("a", 1.0)).unwrap();
    assert_eq!(records.claim(problem, "a").unwrap(), Claim::Finished);
    assert_eq!(records.claim(problem, "b").unwrap(), Claim::Granted);
    records.release_claims().unwrap();
    let left: i64 = other.query_row("SELECT count(*) FROM claims", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[test]
fn no_claim_holds_for_longer_than_claims_do() {
    let place = place();
    let (mut records, problem) = open(&place.path);
    assert_eq!(records.claim(problem, "a").unwrap(), Claim::Granted);
    let other = rusqlite::Connection::open(&place.path).unwrap();
    let expires = || other.query_row("SELECT expires FROM claims", [], |row| row.get::<_, i64>(0)).unwrap();
    let usual = expires();
    let claim = "UPDATE claims SET host = 'another machine', expires = ?1";
    other.execute(claim, [i64::MAX]).unwrap();
    assert_eq!(records.claim(problem, "a").unwrap(), Claim::Taken);
    assert!((usual..usual + 60).contains(&expires()), "{usual} {}", expires());
    other.execute(claim, [usual - 100]).unwrap();
    assert_eq!(records.claim(problem, "a").unwrap(), Claim::Taken);
    assert_eq!(expires(), usual - 100, "it is not made longer");
}

#[test]
fn many_make_the_same_file_at_once() {
    for _ in 0..50 {
        let (place, start) = (place(), Barrier::new(8));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    Records::open(&place.path).unwrap();
                });
            }
        });
    }
}

#[test]
fn many_connections_write_at_once() {
    let place = place();
    thread::scope(|scope| {
        for writer in 0..4 {
            let path = &place.path;
            scope.spawn(move || {
                let (mut records, problem) = open(path);
                for number in 0..25 {
                    // Every other schedule is also another's.
                    let name = format!("{}-{number}", if number % 2 == 0 { writer } else { 9 });
                    records.record(problem, &trial(&name, 1.0)).unwrap();
                }
            });
        }
    });
    let (records, problem) = open(&place.path);
    assert_eq!(records.trials(Some(problem)).unwrap().len(), 4 * 13 + 12);
}

#[test]
fn exported_trials_can_be_imported() {
    let (from, to) = (place(), place());
    let (mut records, problem) = open(&from.path);
    records.record(problem, &trial("a", 20.0)).unwrap();
    records.record(problem, &failed("b", Status::Numeric("a bit".into()))).unwrap();
    let mut lines = Vec::new();
    assert_eq!(records.export(None, &mut lines, Path::new("out")).unwrap(), 2);
    let (mut other, there) = open(&to.path);
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

#[test]
fn trials_are_samples_and_samples_trials() {
    let (from, to) = (place(), place());
    let (mut records, problem) = open(&from.path);
    records.record(problem, &trial("a", 20.0)).unwrap();
    records.record(problem, &failed("b", Status::Crashed("signal 9".into()))).unwrap();
    let file = from.path.with_file_name("mine.samples");
    assert_eq!(records.export_samples(None, &file).unwrap(), 2);
    let shard = Shard::read(&file).unwrap();
    assert_eq!(shard.samples, records.shard(None).unwrap().samples);
    let mut other = Records::open(&to.path).unwrap();
    assert_eq!(other.import_samples(&file).unwrap(), Imported { new: 2, known: 0 });
    assert_eq!(other.import_samples(&file).unwrap(), Imported { new: 0, known: 2 });
    assert_eq!(other.shard(None).unwrap().samples, shard.samples);
}

/// A change of the database that Warploom would not make.
fn tampered(path: &Path, change: &str, value: impl rusqlite::ToSql) {
    rusqlite::Connection::open(path).unwrap().execute(change, [value]).unwrap();
}

#[test]
fn little_that_becomes_much_is_refused() {
    let place = place();
    let (mut records, problem) = open(&place.path);
    records.record(problem, &trial("a", 3.0)).unwrap();
    let hash = pipeline().structural_hash();
    assert!(records.pipeline(hash).unwrap().is_some());

    let mut packed = brotli::CompressorWriter::new(vec![1], 1 << 14, 5, 20);
    std::io::Write::write_all(&mut packed, &vec![b' '; 40 << 20]).unwrap();
    let packed = packed.into_inner();
    assert!(packed.len() < 1000, "{} bytes", packed.len());
    tampered(&place.path, "UPDATE pipelines SET content = ?1", packed);
    let error = records.pipeline(hash).unwrap_err();
    assert!(error.to_string().contains("a pipeline has more than 16 MiB when unpacked"), "{error}");

    tampered(&place.path, "UPDATE trials SET message = ?1", "x".repeat(17 << 20));
    let error = records.trials(None).unwrap_err();
    assert!(matches!(error, RecordsError::Field { .. }), "{error}");
    assert!(error.to_string().contains("a field of more than 16 MiB"), "{error}");
}

#[test]
fn a_line_without_end_is_refused() {
    let place = place();
    let (mut records, _) = open(&place.path);
    let endless = std::io::BufReader::new(std::io::repeat(b'['));
    let error = records.import(endless, Path::new("a.jsonl")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1 of a.jsonl is not a record: it is longer than 32 MiB, the limit for a line"
    );
}
