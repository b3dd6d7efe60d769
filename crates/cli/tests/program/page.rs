//! Pages of results.

use std::fs;
#[cfg(unix)]
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::process::{Command, Stdio};

#[cfg(unix)]
use serde_json::Value as Json;
use warploom::plan::Problem;
use warploom::target::Device;
use warploom::tune::records::{Records, Trial};
use warploom::tune::sample::{Origin, Sample, Sizes, Status, Times};

use crate::place::Place;

const TUNE: &str = "tune blur --size 200x120 --samples 8 --beam 4 --passes 2 --iterations 2 --fake";
const SUITE: &str = "suite --apps harris,unsharp --sizes small --fake fake --compare anchors.json";

/// A folder with a database of one problem and results of two modes.
pub fn measured() -> Place {
    let place = Place::new();
    let anchors = r#"{ "device": "it", "apps": {
        "harris": { "halide_manual_us": 100, "anderson2021_us": 200 },
        "unsharp": { "halide_manual_us": 3 } } }"#;
    fs::write(place.path("anchors.json"), anchors).unwrap();
    let commands = [
        format!("{TUNE} fake:crash=20,wrong=20,spill=20"),
        format!("{SUITE} --mode default -o results"),
        format!("{SUITE} --mode top5 --samples 4 -o results"),
    ];
    for command in commands {
        let ran = place.run(&command);
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
    }
    place
}

/// Makes `report.html` of all of it.
pub const BOTH: &str = "report results/suite-default.json results/suite-top5.json tuning.db --device h200";

#[test]
fn a_page_has_all_that_was_measured() {
    let place = measured();
    let ran = place.run(BOTH);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("report.html: 2 sections, "), "{}", ran.out);
    let html = fs::read_to_string(place.path("report.html")).unwrap();
    for part in ["The suite on fake", "blur at 200x120", "warploom report results/suite-default.json"] {
        assert!(html.contains(part), "{part}");
    }
    let trials = place.json("records list blur --json");
    let trials = trials["trials"].as_array().unwrap();
    let count = |status: &str| trials.iter().filter(|trial| trial["status"] == status).count();
    let valid = count("ok");
    assert!(valid > 0 && valid < trials.len(), "{trials:?}");
    let steps = html.matches("class=\"step\"").count();
    // Each valid trial is a dot that leads to its row, and the best is marked.
    assert_eq!(html.matches("<title>trial ").count(), valid + 1 + steps);
    assert_eq!(html.matches("<a href=\"#trial-2-").count(), valid + 1 + steps);
    assert_eq!(html.matches("<tr id=\"trial-2-").count(), valid);
    assert!(html.contains(&format!("Not drawn: {} invalid", trials.len() - valid)));
    for status in ["crashed", "wrong", "spilled"] {
        let row = format!("<td>{status}</td><td class=\"number\">{}</td>", count(status));
        assert_eq!(html.contains(&row), count(status) > 0, "{row}");
    }
    let best = place.run("records best blur").out;
    assert!(html.contains(&format!("<pre tabindex=\"0\">{best}</pre>")), "the winner's schedule: {best}");
    assert!(html.contains("<nav id=\"summary\"") && html.contains("times as fast as the default schedules"));
    assert!(html.contains("The winner against the runner-up") && html.contains("<pre class=\"diff\""));
    assert!(html.contains("Where the time of the winner goes"));
    // The loop nests of the winner, and of both apps in both modes.
    assert_eq!(html.matches("us predicted by the ").count(), 5);
    assert_eq!(html.matches("class=\"mark\"").count(), 2, "two iterations");

    let json = place.json("report tuning.db -o one.html --json");
    assert_eq!((&json["schema"], &json["file"]), (&"warploom.report/1".into(), &"one.html".into()));
    assert_eq!(json["sections"], serde_json::json!([{ "kind": "tuned", "title": "blur at 200x120" }]));
    let html = fs::read_to_string(place.path("one.html")).unwrap();
    assert!(html.contains("this program does not know the device; name one like it with --device"));
}

/// A database of one problem of an app, for a device that the program knows.
fn database_of(place: &Place, app: &str, size: &[i64], times: &[f64]) {
    let app = warploom_apps::find(app).unwrap();
    let mut settings = warploom::app::Settings::defaults(app);
    for (setting, extent) in app.sizes.iter().zip(size) {
        assert!(settings.set(&setting.name, *extent as f64));
    }
    let pipeline = app.pipeline(&settings).unwrap();
    let request = app.shapes_at(&settings).realisation(&pipeline);
    let device = Device::preset("h200").unwrap();
    let problem = Problem::new(&pipeline, &request, &device).unwrap();
    let mut records = Records::open(place.path("made.db")).unwrap();
    let id = records.problem(&pipeline, &request, &device, &["one".to_owned()]).unwrap();
    for (number, time) in times.iter().enumerate() {
        let default = number == 0;
        let schedule = match default {
            true => problem.default_schedule(),
            false => problem.random_schedule(number as u64),
        };
        let sample = Sample {
            pipeline: pipeline.structural_hash(),
            sizes: Sizes::of(&request),
            schedule: schedule.to_text(&pipeline),
            origin: if default { Origin::Default } else { Origin::Search },
            device: device.name.clone(),
            fingerprint: device.fingerprint(),
            versions: vec!["one".to_owned()],
            status: Status::Measured,
            verified: true,
            times: Some(Times { min: *time, median: *time, runs: 10 }),
            kernels: Vec::new(),
            compile_ms: 1.0,
        };
        assert!(records.record(id, &Trial::new(sample, Some(0.8 * time), 0.01)).unwrap());
    }
}

#[test]
fn a_page_of_five_trials_says_what_was_gained() {
    let place = Place::new();
    database_of(&place, "harris", &[640, 480], &[40.0, 21.0, 20.0, 25.0, 30.0]);
    let ran = place.run("report made.db");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let html = fs::read_to_string(place.path("report.html")).unwrap();
    assert!(html.contains("The winners are measured to be 2.00 times as fast"), "{html}");
    // The best time, that of the default schedule, the speedup, and the share of the floor, which only the sizes tell.
    let row = html.split("<tr>").find(|row| row.contains("href=\"#section-1\"")).unwrap();
    let cells: Vec<&str> =
        row.split("class=\"number\">").skip(1).map(|cell| cell.split('<').next().unwrap()).collect();
    assert_eq!((&cells[..3], cells[4]), (&["20.00", "40.00", "2.00x"][..], "5"));
    assert!(cells[3].ends_with(" %"), "{cells:?}");
    assert!(html.contains("The second best is trial 2: 21.00 us, 5.0 % slower."), "{html}");
    assert!(html.contains("<ol class=\"decisions\">\n<li><code>") && html.contains("<del>-"), "{html}");
    assert_eq!(html.matches("<circle class=\"point").count(), 5);
    for tick in 0..=5 {
        assert!(html.contains(&format!("text-anchor=\"middle\">{tick}</text>")), "{tick}");
    }
}

#[test]
fn problems_without_trials_are_listed() {
    let place = Place::new();
    database_of(&place, "harris", &[640, 480], &[]);
    database_of(&place, "unsharp", &[640, 480], &[30.0]);
    let ran = place.run("report made.db");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("report.html: 2 sections, "), "{}", ran.out);
    let html = fs::read_to_string(place.path("report.html")).unwrap();
    assert!(html.contains("Nothing has been measured for this problem yet."));
    assert!(
        html.contains("Only one trial is valid, so there is nothing to draw: trial 1: predicted 24.00 us")
    );
}

#[test]
#[cfg(unix)]
fn a_watched_page_follows_its_sources() {
    let place = Place::new();
    let mut watching = place
        .command()
        .args(["report", "made.db", "--watch", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut objects = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut notes = BufReader::new(watching.stderr.take().unwrap()).lines();
    assert_eq!(notes.next().unwrap().unwrap(), "waiting for results in made.db");
    assert!(!place.path("report.html").exists());

    database_of(&place, "harris", &[640, 480], &[40.0, 20.0]);
    let mut next = || -> Json { serde_json::from_str(&objects.next().unwrap().unwrap()).unwrap() };
    let titles = |object: &Json| object["sections"].as_array().unwrap().len();
    // The database is there before its trials are.
    let mut first = next();
    let page = || fs::read_to_string(place.path("report.html")).unwrap();
    while !page().contains("the best of 2 trials") {
        first = next();
    }
    assert_eq!((&first["schema"], titles(&first)), (&"warploom.report/1".into(), 1));
    assert!(page().contains("location.reload"));
    database_of(&place, "unsharp", &[640, 480], &[30.0, 10.0]);
    let mut second = next();
    while !page().contains("10.00 us, the best of 2 trials") {
        second = next();
    }
    assert_eq!(titles(&second), 2);

    let pid = watching.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(watching.wait().unwrap().code(), Some(0));
    assert!(!page().contains("location.reload") && page().contains("the best of 2 trials"));
}

#[test]
fn watching_what_is_no_result_ends() {
    let place = Place::new();
    fs::write(place.path("text.txt"), "no results").unwrap();
    let ran = place.run("report text.txt --watch");
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("error: text.txt is neither a database"), "{}", ran.err);
}

#[test]
fn apps_that_are_not_known_have_their_schedules() {
    let place = Place::new();
    let results = serde_json::json!({
        "schema": "warploom.suite/2", "mode": "top5", "device": "H200", "versions": ["one"], "command": "c",
        "date": "2026-01-31", "apps": [{
            "app": "<nobody's>", "sizes": {}, "status": "ok", "message": "", "checked_at_full_size": true,
            "min_us": 5.0, "kernels": 1, "spilled_bytes": 0, "compile_seconds": 1.0, "search_seconds": 1.0,
            "anchor": {}, "schedule": "nobody\n  kernel output\n",
        }],
    });
    fs::write(place.path("results.json"), results.to_string()).unwrap();
    let ran = place.run("report results.json -o page.html");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let html = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(
        html.contains("This program does not have the app.") && html.contains("nobody\n  kernel output\n")
    );
    assert!(html.contains("&lt;nobody&#39;s&gt;") && !html.contains("<nobody"));
}

#[test]
fn what_is_no_result_is_said_so() {
    let place = Place::new();
    fs::write(place.path("text.txt"), "no results").unwrap();
    fs::write(place.path("empty.db"), "").unwrap();
    fs::write(place.path("other.json"), r#"{ "schema": "warploom.apps/1" }"#).unwrap();
    fs::write(place.path("newer.json"), r#"{ "schema": "warploom.suite/9" }"#).unwrap();
    fs::write(place.path("older.json"), r#"{ "schema": "warploom.suite/1", "apps": [] }"#).unwrap();
    fs::write(place.path("half.json"), r#"{ "schema": "warploom.suite/2", "mode": 3 }"#).unwrap();
    fs::write(place.path("odd.db"), b"SQLite format 3\0 and then nothing".repeat(99)).unwrap();
    fs::write(place.path("none.jsonl"), "").unwrap();
    assert_eq!(place.run("records import none.jsonl --records new.db").code, 0);
    let sentences = [
        ("absent.db", "there is no file absent.db; check its path"),
        (
            "text.txt",
            "text.txt is neither a database of records nor results of `warploom suite`; give one of those",
        ),
        (
            "other.json",
            "other.json is neither a database of records nor results of `warploom suite`; give one of those",
        ),
        ("empty.db", "empty.db contains nothing to report; measure something first, or remove it"),
        ("new.db", "new.db contains nothing to report; measure something first, or remove it"),
        (
            "newer.json",
            "newer.json contains results in the format `warploom.suite/9`, which cannot be read: this program reads \
             `warploom.suite/2`; use a newer program",
        ),
        (
            "older.json",
            "older.json contains results in the format `warploom.suite/1` of an older program, but this one reads \
             `warploom.suite/2`; run `warploom suite` again, or use the program that wrote them",
        ),
        ("odd.db", "odd.db is not a database of records; give another one"),
        (
            "new.db -o new.db",
            "the page would overwrite new.db, which is one of its inputs; name another file with -o",
        ),
        ("new.db --device toaster", "unknown device `toaster`; the presets are "),
    ];
    for (arguments, sentence) in sentences {
        let ran = place.run(&format!("report {arguments}"));
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments}: {}", ran.err);
        assert!(ran.err.starts_with(&format!("error: {sentence}")), "{arguments}: {}", ran.err);
    }
    let half = place.run("report half.json");
    assert!(half.code == 2 && half.err.contains("`warploom.suite/2`, which cannot be read"), "{}", half.err);
    assert_eq!(place.run("report").code, 2);
    assert_eq!(fs::read(place.path("empty.db")).unwrap(), b"", "files that are no results stay as they are");
    assert!(!place.path("report.html").exists());
}

#[test]
fn a_page_that_cannot_be_written_leaves_nothing() {
    let place = Place::new();
    assert_eq!(place.run(&format!("{TUNE} fake")).code, 0);
    let ran = place.run("report tuning.db -o nowhere/page.html");
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("error: cannot write nowhere/page.html: "), "{}", ran.err);
    fs::create_dir(place.path("folder")).unwrap();
    let ran = place.run("report tuning.db -o folder");
    assert_eq!(ran.code, 2, "{}", ran.err);
    let left = fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}
