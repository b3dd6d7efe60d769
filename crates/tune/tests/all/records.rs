//! Databases of trials: what is kept, what is refused, and several users at once.

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use tempfile::TempDir;
use warploom_lang::{Input, Pipeline, Realisation, Region, func, vars};
use warploom_target::Device;
use warploom_tune::records::{
    Claim, Imported, ProblemId, Records, RecordsError, RunKey, RunStep, StepOutcome, Trial,
};
use warploom_tune::sample::{KernelUse, Origin, Sample, Sizes, Status, Times};

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

struct RecordsPlace {
    _folder: TempDir,
    path: std::path::PathBuf,
}

fn place() -> RecordsPlace {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tuning.db");
    RecordsPlace { _folder: folder, path }
}

fn open(path: &Path) -> (Records, ProblemId) {
    let mut records = Records::open(path).unwrap();
    let problem = records.problem(&pipeline(), &request(100), &device(), &versions()).unwrap();
    (records, problem)
}

fn asked(point: &str) -> RunStep {
    RunStep::new(point.to_owned(), Some(format!("hash of {point}")), StepOutcome::Asked)
}

/// The tables as the program made them once, the first time and later.
const ONCE: [&str; 2] =
    [include_str!("../../src/records/sqlite/001.sql"), include_str!("../../src/records/sqlite/002.sql")];

/// A database as an earlier version of the program made it, with something in each table.
fn of_version(path: &Path, version: usize) {
    let (mut records, problem) = open(path);
    records.record(problem, &trial("old", 2.0)).unwrap();
    let run = RunKey("random seed=0".into());
    records.run(problem, &run).unwrap();
    records.finish_iteration(problem, &run, 1, None).unwrap();
    records.ask_steps(problem, &run, 0, &[asked("a")]).unwrap();
    drop(records);
    let now = rusqlite::Connection::open(path).unwrap();
    let tables = ["pipelines", "problems", "trials", "iterations", "steps"];
    let kept = &tables[..tables.len() - usize::from(version < 2)];
    for table in kept {
        now.execute_batch(&format!("ALTER TABLE {table} RENAME TO new_{table}")).unwrap();
    }
    now.execute_batch("DROP TABLE claims; DROP TABLE IF EXISTS steps").unwrap();
    now.execute_batch(&ONCE[..version].concat()).unwrap();
    for table in kept {
        now.execute_batch(&format!("INSERT INTO {table} SELECT * FROM new_{table}")).unwrap();
    }
    for table in kept.iter().rev() {
        now.execute_batch(&format!("DROP TABLE new_{table}")).unwrap();
    }
    let claim =
        "INSERT INTO claims (problem, schedule_hash, host, process, expires) VALUES (1, 'b', 'h', 1, 9)";
    now.execute_batch(claim).unwrap();
    now.pragma_update(None, "user_version", version as i64).unwrap();
}

#[test]
fn databases_of_all_versions_are_upgraded() {
    for version in 1..=ONCE.len() {
        let place = place();
        of_version(&place.path, version);
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| drop(open(&place.path))))));
        let (mut records, problem) = open(&place.path);
        let trials = records.trials(Some(problem)).unwrap();
        assert_eq!(trials.len(), 1, "nothing is lost");
        assert_eq!(trials[0].sample, trial("old", 2.0).sample);
        let run = RunKey("random seed=0".into());
        assert_eq!(records.iterations(problem).unwrap()[0].run, run);
        let steps = if version < 2 { vec![] } else { vec![asked("a")] };
        assert_eq!(records.steps(problem, &run).unwrap(), steps);
        assert_eq!(records.ask_steps(problem, &run, 0, &[asked("a")]).unwrap(), [asked("a")]);
        assert_eq!(records.claim(problem, "b").unwrap(), Claim::Granted);
        let other = rusqlite::Connection::open(&place.path).unwrap();
        let now: i64 = other.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(now, 3);
    }
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
                matches!(error, RecordsError::OfServer { .. }) && !error.to_string().contains("secret"),
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
            assert!(
                matches!(
                    error,
                    RecordsError::Damaged { .. } | RecordsError::Store { .. } | RecordsError::Row { .. }
                ),
                "{error}"
            );
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
    let this: String = other.query_row("SELECT holder FROM claims", [], |row| row.get(0)).unwrap();
    let here = this.split_once(' ').unwrap().1;
    let held_by = |process: u32, host: &str, expires: i64| {
        let held = "UPDATE claims SET holder = ?1, expires = ?2";
        other.execute(held, rusqlite::params![format!("{process} {host}"), expires]).unwrap();
    };
    // The parent of this process lives; nobody has the largest number.
    held_by(std::os::unix::process::parent_id(), here, i64::MAX);
    assert_eq!(records.claim(problem, "a").unwrap(), Claim::Taken);
    held_by(u32::MAX, here, i64::MAX);
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
    let claim = "UPDATE claims SET holder = '1 another machine', expires = ?1";
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
