//! Pages of results.

use std::fs;

use crate::place::Place;

const TUNE: &str = "tune blur --size 200x120 --samples 8 --beam 4 --passes 2 --iterations 2 --fake";
const SUITE: &str =
    "suite --apps harris,unsharp --sizes small --samples 4 --fake fake --compare anchors.json";

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
        format!("{SUITE} --mode top5 -o results"),
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
    assert_eq!(html.matches("<title>trial ").count(), {
        let steps = html.matches("class=\"step\"").count();
        // Each valid trial is a dot, and the best is marked.
        valid + 1 + steps
    });
    assert!(html.contains(&format!("Not drawn: {} invalid", trials.len() - valid)));
    for status in ["crashed", "wrong", "spilled"] {
        let row = format!("<td>{status}</td><td class=\"number\">{}</td>", count(status));
        assert_eq!(html.contains(&row), count(status) > 0, "{row}");
    }
    let best = place.run("records best blur").out;
    assert!(html.contains(&format!("<pre tabindex=\"0\">{best}</pre>")), "the winner's schedule: {best}");
    // The loop nests of the winner, and of both apps in both modes.
    assert_eq!(html.matches("us predicted by the ").count(), 5);
    assert_eq!(html.matches("class=\"mark\"").count(), 2, "two iterations");

    let json = place.json("report tuning.db -o one.html --json");
    assert_eq!((&json["schema"], &json["file"]), (&"warploom.report/1".into(), &"one.html".into()));
    assert_eq!(json["sections"], serde_json::json!([{ "kind": "tuned", "title": "blur at 200x120" }]));
    let html = fs::read_to_string(place.path("one.html")).unwrap();
    assert!(html.contains("this program does not know the device; name one like it with --device"));
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
        ("odd.db", "odd.db is not a database of records; give another file"),
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
