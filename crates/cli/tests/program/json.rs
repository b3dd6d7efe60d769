//! What `--json` prints, against its description in `docs/json.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::documented::{Compared, Documented};
use crate::place::{Place, Ran};

const SEARCH: &str = "--samples 2 --beam 2 --passes 1";

/// One run for every report that needs no GPU, in this order in one folder.
const COMMANDS: [&str; 48] = [
    "apps",
    "apps --export harris.json",
    "graph blur",
    "run blur --size 16x8 --generate -o blur.npy",
    "run blur --size 16x8 --generate --trace trace.html --schedule default",
    "run brighten --size 16x8 --input input=blur.npy",
    "compile blur --size 64x48 SEARCH -o out",
    "compile blur --size 64x48 SEARCH -o out --device h200,a100",
    "compile blur --size 64x48 --schedule default --emit schedule,nest,cuda,features",
    "compile hist --size 640x480 --schedule default",
    "compile blur --dynamic W=64..8192,H=64..8192 --schedule default",
    "explain blur --size 64x48 --schedule out",
    "explain blur --dynamic W=64..8192,H=64..8192 --schedule default",
    "explain iir_blur --size 640x480 --schedule default",
    "explain nl_means --size 640x480 --schedule SCHEDULES",
    "explain blur --size 64x48 --schedule out --decisions",
    "explain unsharp --size 64x48 --schedule SCHEDULES --against default",
    "explain blur --size 64x48 --schedule out --html blur.html",
    "explain unsharp --schedule SCHEDULES",
    "verify golden/harris",
    "sim blur --size 32x16 --schedule default",
    "sim hist --size 32x16 --schedule default",
    "accuracy harris",
    "tune blur --size 64x48 SEARCH --top 2 --fake fake",
    "tune blur --size 64x48 SEARCH --iterations 2 --fake fake:crash=20,spill=20",
    "tune blur --size 64x48 SEARCH --iterations 3 --fake fake:crash=20,spill=20",
    "tune brighten --size 64x48 SEARCH --top 1 --fake fake",
    "tune blur --size 64x48 SEARCH --strategy random --trials 4 --fake fake",
    "suite --apps blur --sizes small --samples 2 --fake fake",
    "suite --set operators --rows moments*128x2304 --samples 2 --fake fake",
    "suite --strategies random,opevo --apps blur --sizes small --samples 2 --trials 30 --seeds 2 --fake fake",
    "records list",
    "records list blur",
    "records show 1",
    "records best blur",
    "records export all.jsonl",
    "records import all.jsonl --records other.db",
    "landscape record blur --size 64x48 --template SCHEDULES/blur.schedule --limits threads=256..256,along=4,points=4 --dry-run --fake fake",
    "landscape record blur --size 64x48 --template SCHEDULES/blur.schedule --limits threads=256..256,along=4,points=4 --fake fake:wrong=30 -o blur.landscape",
    "landscape show blur.landscape",
    "report tuning.db -o page.html",
    "fuzz --pipelines 2 --schedules 1 --device h200",
    "fuzz --pipelines 2 --schedules 1 --device h200 --search",
    "fuzz --dynamic --pipelines 6 --schedules 2 --seed 4 --stages 4..7 --device h200",
    "fuzz --replay CASE --device h200",
    "fuzz --mutate 1 --device h200",
    "devices --presets",
    "manual -o pages",
];

/// Parts of reports about failures, which other tests make.
const ELSEWHERE: [&str; 5] =
    ["accuracy error", "failed app", "fuzz failure", "fuzz ill-conditioned", "mismatch"];

#[test]
fn every_report_has_a_section_and_an_example() {
    let page = Documented::read();
    let mut written = BTreeSet::new();
    for folder in ["crates/cli/src", "crates/results/src"] {
        schemas(&repository().join(folder), &mut written);
    }
    let described: BTreeSet<String> = page.reports().into_iter().map(str::to_owned).collect();
    let undescribed: Vec<&String> = written.difference(&described).collect();
    assert!(undescribed.is_empty(), "docs/json.md has no section for {undescribed:?}");
    let stale: Vec<&String> = described.difference(&written).collect();
    assert!(stale.is_empty(), "docs/json.md describes {stale:?}, which no command prints");
    let mut compared = Compared::default();
    for schema in &described {
        let examples = page.examples(schema);
        assert!(!examples.is_empty(), "docs/json.md has no example of `{schema}`");
        examples.iter().for_each(|example| page.report(example, &mut compared));
    }
    let Compared { faults, .. } = compared;
    assert!(
        faults.is_empty(),
        "examples of docs/json.md differ from their tables:\n- {}",
        faults.join("\n- ")
    );
}

#[test]
fn every_output_is_as_the_page_says() {
    let page = Documented::read();
    let place = Place::new();
    place.copy_golden(&["harris"]);
    let mut seen = BTreeSet::new();
    for command in COMMANDS.map(completed) {
        let ran = place.run(&format!("{command} --json"));
        assert_eq!(ran.code, 0, "{command}: {}{}", ran.out, ran.err);
        for report in reports(&command, &ran) {
            seen.extend(page.check(&report));
        }
    }
    seen.extend(page.check(&cache_info(&place)));
    let mut compared = Compared::default();
    for schema in page.reports() {
        page.examples(schema).iter().for_each(|example| page.report(example, &mut compared));
    }
    seen.extend(compared.seen);
    let elsewhere = |row: &&String| ELSEWHERE.iter().any(|name| row.starts_with(&format!("{name}: ")));
    let unseen: Vec<String> = page.rows().difference(&seen).filter(|row| !elsewhere(row)).cloned().collect();
    assert!(unseen.is_empty(), "these rows of docs/json.md are in no output and in no example: {unseen:#?}");
}

#[test]
fn an_error_is_one_object_on_standard_output() {
    let place = Place::new();
    fs::write(place.path("text.json"), "words").unwrap();
    fs::write(place.path("wrong.schedule"), "blur\n  kernel nothing\n").unwrap();
    let mut commands = vec![
        ("run haris", 2, "usage"),
        ("run blur --seeds 3", 2, "usage"),
        ("compile", 2, "usage"),
        ("fly", 2, "usage"),
        ("sim blur", 2, "usage"),
        ("run blur --input absent.png", 2, "file"),
        ("compile text.json --size 8x8", 2, "file"),
        ("records list", 2, "file"),
        ("verify absent", 2, "file"),
        ("compile blur --schedule wrong.schedule", 3, "pipeline"),
        ("tune blur --fake fake --records text.json", 2, "file"),
        ("suite --apps nobody --fake fake", 2, "usage"),
    ];
    if warploom::runtime::Gpu::new(0).is_err() {
        commands.extend([("bench blur --schedule default", 4, "no_gpu"), ("devices", 4, "no_gpu")]);
    }
    let page = Documented::read();
    for (command, code, kind) in commands {
        let ran = place.run(&format!("{command} --json"));
        assert_eq!((ran.code, ran.err.as_str()), (code, ""), "{command}: {}", ran.out);
        assert_eq!(ran.out.lines().count(), 1, "{command}: {}", ran.out);
        let report: Json = serde_json::from_str(&ran.out).unwrap();
        page.check(&report);
        assert_eq!((&report["kind"], &report["code"]), (&kind.into(), &code.into()), "{command}");
        let said = place.run(command);
        let sentence = report["error"].as_str().unwrap();
        let first = |text: &str| text.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        assert_eq!((said.code, said.out.as_str()), (code, ""), "{command} without --json");
        assert!(said.err.contains(&first(sentence)), "{command}: {sentence}\n{}", said.err);
    }
    let missing = one(&place.run("records --json"), 2);
    assert_eq!(missing["kind"], "usage", "help is not an answer in JSON: {missing}");
    let help = place.run("run --json --help");
    assert!(help.code == 0 && help.out.starts_with("Run a pipeline"), "{}", help.out);
}

#[test]
fn a_report_that_something_failed_is_the_only_object() {
    let page = Documented::read();
    let place = Place::new();
    place.copy_golden(&["harris"]);
    let output = place.path("golden/harris/output.npy");
    let mut bytes = fs::read(&output).unwrap();
    let middle = bytes.len() / 2 / 4 * 4;
    bytes[middle..middle + 4].copy_from_slice(&1000.0_f32.to_le_bytes());
    fs::write(&output, bytes).unwrap();
    let verified = one(&place.run("verify golden --json"), 6);
    assert_eq!(verified["passed"], false);
    assert_eq!(verified["apps"][0]["outputs"][0]["first_mismatch"]["expected"], 1000.0);
    assert!(page.check(&verified).contains("mismatch: at"));

    let suite =
        one(&place.run("-q suite --apps blur --sizes small --samples 2 --fake fake:wrong=100 --json"), 6);
    assert_eq!(suite["apps"][0]["status"], "wrong");
    page.check(&suite);
}

#[test]
fn a_stream_ends_with_its_error() {
    let page = Documented::read();
    let place = Place::new();
    let ran = place.run(&completed("tune blur --size 64x48 SEARCH --top 2 --fake fake:wrong=100 --json"));
    assert_eq!((ran.code, ran.err.as_str()), (5, ""), "{}", ran.out);
    let lines: Vec<Json> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter().for_each(|line| _ = page.check(line));
    let [.., finished, error] = lines.as_slice() else { panic!("{}", ran.out) };
    assert_eq!((&finished["event"], &finished["best"]), (&"finished".into(), &Json::Null));
    assert_eq!((&error["schema"], &error["kind"]), (&"warploom.error/1".into(), &"nothing_measured".into()));
}

#[test]
fn sizes_are_numbers() {
    let place = Place::new();
    let blur = place.json("explain blur --size 64x48 --schedule default --device h200 --json");
    assert_eq!(blur["sizes"], serde_json::json!({ "W": 64, "H": 48 }));
    let params = place.run(&completed("tune brighten --size 64x48 SEARCH --top 1 --fake fake -q"));
    assert_eq!(params.code, 0, "{}", params.err);
    let listed = place.json("records list --json");
    let params = listed["problems"][0]["params"].as_array().unwrap();
    assert!(params.iter().all(|param| param["type"] == "f32" && param["value"].is_f64()), "{params:?}");
}

/// The one object of a run that fails.
fn one(ran: &Ran, code: i32) -> Json {
    assert_eq!((ran.code, ran.err.as_str()), (code, ""), "{}", ran.out);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

/// The objects that a run prints: lines of `tune`, otherwise one.
fn reports(command: &str, ran: &Ran) -> Vec<Json> {
    let object =
        |text: &str| serde_json::from_str(text).unwrap_or_else(|error| panic!("{command}: {error}\n{text}"));
    match command.starts_with("tune ") {
        true => ran.out.lines().map(object).collect(),
        false => vec![object(&ran.out)],
    }
}

/// The cache, which other runs do without.
fn cache_info(place: &Place) -> Json {
    let mut command = place.command();
    command.env("WARPLOOM_CACHE_DIR", place.path("cache")).args(["cache", "info", "--json"]);
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

/// A command with what is written shorter in it.
fn completed(command: &str) -> String {
    let cases = repository().join("crates/fuzz/cases");
    let mut files: Vec<_> = fs::read_dir(cases).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let schedules = repository().join("apps/schedules");
    command
        .replace("SEARCH", SEARCH)
        .replace("SCHEDULES", schedules.to_str().unwrap())
        .replace("CASE", files[0].to_str().unwrap())
}

fn repository() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Adds all schemas that stand in the sources of a folder, as in `"warploom.apps/1"`.
fn schemas(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            schemas(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let literals = text.split("\"warploom.").skip(1).filter_map(|rest| rest.split('"').next());
        let versioned = literals
            .filter(|name| name.rsplit_once('/').is_some_and(|(_, version)| version.parse::<u32>().is_ok()));
        found.extend(versioned.map(|name| format!("warploom.{name}")));
    }
}

#[test]
fn what_differs_from_the_page_is_said() {
    let page = Documented::parse(
        "## `warploom.t/1`\n| field | type | unit | meaning |\n| --- | --- | --- | --- |\n\
         | `a` | integer or null | us | one |\n| `b` | array of [pair](#pair) | - | two |\n\
         ### `pair`\n| `x` | map of string | - | three |\n",
    );
    let faults = |json: Json| {
        let mut compared = Compared::default();
        page.report(&json, &mut compared);
        compared.faults
    };
    let none =
        faults(serde_json::json!({ "schema": "warploom.t/1", "a": null, "b": [{ "x": { "k": "v" } }] }));
    assert!(none.is_empty(), "{none:?}");
    let some =
        faults(serde_json::json!({ "schema": "warploom.t/1", "a": 1.5, "b": [{ "x": { "k": 1 }, "y": 2 }] }));
    assert_eq!(some.len(), 3, "{some:#?}");
    assert!(
        some.iter()
            .any(|fault| fault.starts_with("the output has `b[].y`, but the table of `pair` has no row `y`"))
    );
    assert!(some.contains(&"`a` is a number, but the table says integer or null".to_owned()), "{some:#?}");
    let missing = faults(serde_json::json!({ "schema": "warploom.t/1", "a": 1 }));
    assert!(
        missing[0].starts_with("the table of `warploom.t/1` has a row `b`, but the output has no such field")
    );
    assert!(faults(serde_json::json!({ "schema": "warploom.u/1" }))[0].starts_with("there is no section"));
}
