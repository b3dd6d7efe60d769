//! Case files: what is written is what is read, and every recorded case passes.

use std::fs;
use std::path::Path;

use warploom_fuzz::{Case, CaseError, Reason, Seen, Verdict};
use warploom_lang::{Region, Value};

use crate::support::*;

#[test]
fn a_case_is_what_its_file_says() {
    let mut case = case();
    let seen = Seen::failed("H200", &made_up());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/case.json");
    for gain in [0.3, -0.0, f32::MAX, 1e-42, f32::NAN, f32::INFINITY] {
        case.request = case.request.param("gain", gain);
        case.save(&seen, &path).unwrap();
        let (read, read_seen) = Case::load(&path).unwrap();
        assert_eq!(read.pipeline.to_json(), case.pipeline.to_json());
        assert_eq!(read.request, case.request);
        assert_eq!((&read.schedule, read.seed, &read_seen), (&case.schedule, case.seed, &seen));
        assert_eq!(read.to_text(&seen), fs::read_to_string(&path).unwrap());
    }
}

#[test]
fn files_are_made_to_be_read() {
    let case = case();
    let text = case.to_text(&Seen::failed("H200", &made_up()));
    assert!(text.lines().all(|line| line.len() < 200), "{text}");
    assert!(text.contains("\n  \"seed\": 5,\n"), "{text}");
    assert!(text.contains(r#""mask": [{"extent":20,"min":-3},{"extent":12,"min":-2}]"#), "{text}");
    let listing = case.pipeline.to_string();
    for line in listing.lines().chain(case.schedule.to_text(&case.pipeline).lines()) {
        assert!(text.contains(line), "{line}");
    }
}

#[test]
fn mistakes_in_files_are_answered() {
    let text = case().to_text(&Seen::failed("H200", &made_up()));
    for (from, to, expected) in [
        ("{\n", "[", "write such files with Case::save"),
        ("\"version\": 1", "\"version\": 2", "it is warploom-case version 2, but this program reads"),
        ("{\"gain\":", "{\"gian\":", "has no input, output or Param named `gian`"),
        ("\"extent\":20,\"min\":-3", "\"extent\":2,\"min\":-3", "needs"),
        ("kernel out", "kernel uot", "its schedule cannot be read"),
    ] {
        assert!(text.contains(from), "{from}");
        let problem = Case::parse(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(problem.contains(expected), "{problem}");
    }
    let missing = Case::load("nowhere.json").unwrap_err();
    assert!(matches!(missing, CaseError::Read { .. }), "{missing}");
}

#[test]
fn inputs_follow_from_the_seed() {
    let mut case = case();
    let inputs = case.inputs().unwrap();
    assert_eq!(inputs, case.inputs().unwrap());
    assert_eq!(
        inputs[1].region(),
        &Region(vec![warploom_lang::Range::new(-3, 20), warploom_lang::Range::new(-2, 12)])
    );
    case.seed += 1;
    assert_ne!(inputs, case.inputs().unwrap());
}

#[test]
fn a_case_passes_under_hand_written_and_default_schedules() {
    let case = case();
    assert_eq!(case.check(&device()).unwrap(), Verdict::Passed);
    let schedule = warploom_schedule::Schedule::parse(SCHEDULE, &case.pipeline);
    let scheduled = Case { schedule: schedule.unwrap_or_else(|errors| panic!("{errors}")), ..case };
    assert_eq!(scheduled.check(&device()).unwrap(), Verdict::Passed);
}

#[test]
fn what_is_wrong_is_found() {
    let good = case();
    let wrong = good.check_with(|run| {
        let mut outputs = run.expected.clone();
        outputs[1].set(&[3, 1], Value::from(7.0_f32)).unwrap();
        run.compare(&outputs).map(|()| Verdict::Passed)
    });
    let message = wrong.unwrap_err().to_string();
    assert!(
        message.starts_with("`other` differs from the reference at (3, 1): 7.0 instead of "),
        "{message}"
    );
    assert!(message.ends_with("(1 of 30 samples differ)"), "{message}");

    let mut unplaced = good.clone();
    unplaced.schedule.root.pop();
    assert_eq!(unplaced.check(&device()).unwrap_err().symptom(), "illegal Missing");

    let panicked = good.check_with(|_| panic!("made up")).unwrap_err();
    assert_eq!(panicked.to_string(), "panic: made up");

    let mut unfit = good;
    unfit.request = unfit.request.input("mask", Region::of_extents(&[1, 1]));
    let Verdict::Skipped(skip) = unfit.check(&device()).unwrap() else { panic!("it does not fit") };
    assert_eq!(skip.reason, Reason::Sizes, "{skip}");
}

/// Every mistake that was ever found stays found.
#[test]
fn recorded_cases_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let files: Vec<_> = files.collect();
    assert!(!files.is_empty());
    for path in files {
        let (case, _) = Case::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let verdict = case.check(&device()).unwrap_or_else(|failure| panic!("{}: {failure}", path.display()));
        assert_eq!(verdict, Verdict::Passed, "{}", path.display());
    }
}
