//! Random pipelines under random schedules and under those that a search finds.

use std::fs;

use warploom::fuzz::{Case, Failure, Seen};
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::schedule::Schedule;

use crate::place::Place;

/// A case whose pipeline was changed so that it reads a Func where it is undefined.
const UNDEFINED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/undefined.json");

/// A case that passes.
fn case() -> Case {
    let x = vars!(x);
    let input = Input::u8("input", 1);
    let pipeline = Pipeline::new("small", [func("output", x, input.at(x) / 3)]).unwrap();
    let request = Realisation::new(&pipeline)
        .input("input", Region::of_extents(&[7]))
        .output("output", Region::of_extents(&[7]));
    let device = Device::preset("h200").unwrap();
    let schedule = Problem::new(&pipeline, &request, &device).unwrap().default_schedule();
    Case { pipeline, request, schedule, seed: 3 }
}

#[test]
fn a_run_is_the_same_on_any_number_of_threads() {
    let place = Place::new();
    let run = |threads: usize| {
        let mut report =
            place.json(&format!("fuzz --pipelines 6 --schedules 2 --stages 2..5 --threads {threads} --json"));
        report["seconds"] = 0.into();
        report
    };
    let report = run(1);
    assert_eq!((&report["schema"], &report["on"]), (&"warploom.fuzz/1".into(), &"sim".into()));
    assert_eq!((&report["pairs"], &report["failed"]), (&12.into(), &0.into()));
    assert!(report["coverage"].as_array().unwrap().iter().any(|line| line["decision"] == "inlined"));
    assert_eq!(report, run(3));

    let text = place.run("fuzz --pipelines 2 --schedules 1 --stages 2..3 --coverage --device h200");
    assert_eq!((text.code, text.err.as_str()), (0, ""));
    assert!(text.out.starts_with("2 pairs of 2 pipelines simulated for H200, seed 1, in "), "{}", text.out);
    assert!(text.out.contains("\nregisters "), "{}", text.out);
    assert!(!place.path("fuzz-failures").exists());
}

/// Pairs with nothing to check are counted by reason, and too many of them are a failure.
#[test]
fn skipped_pairs_have_reasons() {
    let place = Place::new();
    let line = "fuzz --dynamic --pipelines 6 --schedules 2 --seed 4 --stages 4..7 --device h200";
    let report = place.json(&format!("{line} --json"));
    let skipped = report["skipped"].as_u64().unwrap();
    let skips = report["skips"].as_array().unwrap();
    assert_eq!(skips.iter().map(|skip| skip["count"].as_u64().unwrap()).sum::<u64>(), skipped, "{report}");
    assert!(skipped > 0 && report["passed"] == true && report["failed"] == 0, "{report}");
    let text = place.run(line);
    let first = format!("schedule {:016x}: ", skips[0]["schedule_seed"].as_u64().unwrap());
    let sentences = text.out.lines().filter(|line| line.starts_with("skipped ") && line.contains(" pair"));
    assert_eq!((text.code, sentences.count()), (0, skips.len()), "{}", text.out);
    assert!(text.out.contains(&first), "{}", text.out);

    let strict = place.run(&format!("{line} --max-skipped 0%"));
    assert_eq!(strict.code, 1);
    let expected = format!("error: {skipped} of 12 pairs (");
    assert!(strict.err.starts_with(&expected), "{}", strict.err);
    assert!(strict.err.ends_with("were skipped, more than the 0 % of --max-skipped; the report says why\n"));
    let wrong = place.run("fuzz --pipelines 1 --max-skipped 20");
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.err.contains("write a number from 0 to 100 and a percent sign, as in 20%"),
        "{}",
        wrong.err
    );
}

#[test]
fn mutants_are_counted_and_survivors_listed() {
    let place = Place::new();
    let line = "fuzz --mutate 4 --stages 2..4 --seed 6 --device h200";
    let run = |threads: usize| place.json(&format!("{line} --threads {threads} --json"));
    let report = run(1);
    assert_eq!((&report["schema"], &report["kernels"]), (&"warploom.fuzz.mutate/1".into(), &4.into()));
    assert_eq!(report, run(3));
    let rows = report["mutants"].as_array().unwrap();
    let sum = |field: &str| rows.iter().map(|row| row[field].as_u64().unwrap()).sum::<u64>();
    let noticed: u64 = ["refused", "stopped", "wrong"].into_iter().map(sum).sum();
    let survivors = report["survivors"].as_array().unwrap();
    assert_eq!(sum("mutants"), noticed + survivors.len() as u64);
    assert!(noticed > 0 && !survivors.is_empty(), "{report}");

    let text = place.run(line);
    assert_eq!((text.code, text.err.as_str()), (0, ""));
    let seed = survivors[0]["pipeline_seed"].as_u64().unwrap();
    assert!(text.out.contains(&format!("  pipeline {seed:016x}, schedule ")), "{}", text.out);
    assert!(text.out.contains("\nbarrier removed "), "{}", text.out);
}

#[test]
fn searched_schedules_are_right() {
    let place = Place::new();
    let run = |threads: usize| {
        let line = format!("fuzz --search --samples 2 --pipelines 6 --threads {threads} --json");
        let mut report = place.json(&line);
        let longest = report["search"]["longest_search_seconds"].as_f64().unwrap();
        assert!(longest >= report["search"]["mean_search_seconds"].as_f64().unwrap() && longest > 0.0);
        for time in ["longest_search_seconds", "mean_search_seconds"] {
            report["search"][time] = 0.into();
        }
        report["seconds"] = 0.into();
        report
    };
    let report = run(1);
    assert_eq!((&report["failed"], &report["pipelines"]), (&0.into(), &6.into()));
    let (pairs, search) = (report["pairs"].as_u64().unwrap(), &report["search"]);
    assert_eq!((&search["searches"], &search["fallbacks"]), (&6.into(), &serde_json::json!([])));
    assert!((7..=18).contains(&pairs) && search["candidates"].as_u64().unwrap() >= pairs, "{report}");
    assert!(report["compiled"].is_null());
    assert_eq!(report, run(3));

    let text = place.run("fuzz --search --samples 1 --pipelines 1 --schedules 1 --device h200");
    assert_eq!((text.code, text.err.as_str()), (0, ""));
    assert!(text.out.starts_with("1 pairs of 1 pipeline simulated for H200, seed 1, in "), "{}", text.out);
    assert!(text.out.contains("\n1 searches found "), "{}", text.out);
    assert!(text.said().contains(" 0 fallbacks to the default"), "{}", text.out);
}

#[test]
fn nvrtc_kernels_are_compiled() {
    if !warploom::runtime::testing::has_nvrtc("nvrtc_kernels_are_compiled") {
        return;
    }
    let place = Place::new();
    let report = place.json("fuzz --search --samples 1 --pipelines 2 --stages 2..4 --compile --json");
    let compiled = &report["compiled"];
    assert_eq!(report["failed"], 0);
    // Some pairs have kernels with indices of 64 bits too.
    let (pairs, programs) = (report["pairs"].as_u64().unwrap(), compiled["programs"].as_u64().unwrap());
    assert!((pairs..=2 * pairs).contains(&programs), "{report}");
    assert!(compiled["kernels"].as_u64().unwrap() >= compiled["programs"].as_u64().unwrap(), "{report}");
}

#[test]
fn what_was_found_is_replayed() {
    let place = Place::new();
    let seen = Seen::failed("H200", &Failure::Numeric("made up".to_owned()));
    case().save(&seen, place.path("cases/a.json")).unwrap();
    fs::write(place.path("cases/notes.txt"), "").unwrap();
    let ran = place.run("fuzz --replay cases");
    assert_eq!((ran.code, ran.out.as_str()), (0, "cases/a.json passed (was numeric)\nall 1 case passed\n"));

    // A schedule that was changed breaks rules, which is no mistake of the compiler.
    let unplaced = Case { schedule: Schedule::default(), ..case() };
    unplaced.save(&seen, place.path("changed.json")).unwrap();
    let ran = place.run("fuzz --device h200 --replay cases/a.json changed.json");
    assert_eq!(ran.code, 3);
    assert!(
        ran.said().contains("changed.json refused (was numeric): the schedule is refused: "),
        "{}",
        ran.out
    );
    let expected = "cases have an illegal schedule, or a pipeline that reads undefined values; \
                    correct or remove them\n";
    assert_eq!(ran.err, format!("error: 1 of 2 {expected}"));

    let ran = place.run_with(["fuzz", "--device", "h200", "--replay", UNDEFINED]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.said().contains(" refused (was fault): the simulator stopped: not initialised: "),
        "{}",
        ran.out
    );
    assert_eq!(ran.err, format!("error: 1 of 1 {expected}"));

    let illegal = Seen::failed("H200", &Failure::Illegal(Vec::new()));
    unplaced.save(&illegal, place.path("cases/b.json")).unwrap();
    let ran = place.run("fuzz --device h200 --replay cases/a.json cases/b.json");
    assert_eq!(ran.code, 1);
    assert!(
        ran.said().contains("cases/b.json illegal (was illegal): the schedule is refused: "),
        "{}",
        ran.out
    );
    assert_eq!(ran.err, "error: 1 of 2 cases failed; please report them with their files\n");

    let report = place.run("fuzz --replay cases --json");
    assert_eq!(report.code, 1);
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!((&report["passed"], &report["cases"][1]["outcome"]), (&false.into(), &"illegal".into()));
}

#[test]
fn mistakes_are_answered() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    fs::write(place.path("broken.json"), "{}").unwrap();
    for (command, expected) in [
        ("fuzz --device h200 --replay empty", "empty contains no files named *.json"),
        ("fuzz --device h200 --replay broken.json", "broken.json does not contain a case: missing field"),
        ("fuzz --device h200 --replay nowhere.json", "cannot read nowhere.json"),
        ("fuzz --stages 5..2", "as in 2..12"),
        ("fuzz --device abacus", "abacus"),
        ("fuzz --samples 3", "--search"),
        ("fuzz --mutate 3 --search", "cannot be used with"),
        ("sim harris --schedule random:x", "`x` is not a seed; write a whole number"),
    ] {
        let ran = place.run(command);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command}");
        assert!(ran.err.starts_with("error: ") && ran.err.contains(expected), "{}", ran.err);
    }
}

#[test]
fn random_schedules_follow_from_their_seed() {
    let place = Place::new();
    let counters = |seed: u64| {
        place.json(&format!("sim harris --size 40x30 --schedule random:{seed} --json"))["kernels"].clone()
    };
    let first = counters(1);
    assert_eq!(first, counters(1));
    assert!((2..6).any(|seed| counters(seed) != first));

    place.copy_golden(&["hist"]);
    let ran = place.run("verify golden --on sim --schedule random:3");
    assert_eq!(ran.code, 0, "{}", ran.err);
}
