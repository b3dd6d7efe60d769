//! The first ten minutes: every command, on an app and on a pipeline of one's own.

use std::fs;

use warploom::lang::{Input, Param, Pipeline, func, vars};

use crate::place::{Place, Ran};

/// A quick search.
const QUICK: &str = "--samples 2 --passes 1 --beam 2";

/// A folder with a pipeline of two stages, a Param with a default and one with a range.
fn place() -> Place {
    let place = Place::new();
    let (x, y) = vars!(x, y);
    let input = Input::f32("image", 2);
    let edge = input.repeat_edge();
    let (gain, offset) = (Param::f32("gain").default(1.5f32), Param::f32("offset").range(-1.0, 1.0f32));
    let wide = func("wide", (x, y), edge.at((x - 1, y)) + edge.at((x + 1, y)));
    let out = func("out", (x, y), wide.at((x, y - 1)) * &gain + wide.at((x, y + 1)) + &offset);
    let pipeline = Pipeline::new("mine", [out]).unwrap();
    fs::write(place.path("mine.json"), pipeline.to_json()).unwrap();
    place
}

fn succeed(place: &Place, command: &str) -> Ran {
    let ran = place.run(command);
    assert_eq!(ran.code, 0, "warploom {command}\n{}{}", ran.out, ran.err);
    ran
}

#[test]
fn every_command_takes_an_app_and_a_file() {
    let place = place();
    for (subject, name) in [("blur", "blur"), ("mine.json", "mine")] {
        let at = format!("{subject} --size 64x48");
        let all = [
            format!("graph {subject}"),
            format!("run {at} --generate"),
            format!("run {at} --generate --on sim --schedule default -o {name}.npy"),
            format!("run {at} --generate --trace {name}-trace.html --schedule default"),
            format!("sim {at} --schedule random:1 --counters"),
            format!("compile {at} {QUICK} --device a100 -o out"),
            format!("explain {at} --schedule out"),
            format!("explain {at} --schedule out --html {name}.html"),
            format!("explain {at} --schedule out --against default"),
            format!("tune {at} {QUICK} --top 2 --fake fake -o tuned"),
            format!(
                "suite --apps {subject} {} --mode top5 --samples 2 --fake fake -o results",
                size_of(subject)
            ),
            format!("report tuning.db results/suite-top5.json -o {name}-report.html --device h200"),
        ];
        for command in &all {
            let ran = succeed(&place, command);
            assert!(!ran.out.is_empty(), "{command}");
        }
        let explained = succeed(&place, &format!("explain {at} --schedule out"));
        assert!(
            explained.out.starts_with(&format!("{name} at ")) && explained.said().contains(" for A100 "),
            "{}",
            explained.out
        );
        let searched = succeed(&place, &format!("explain {at}"));
        assert!(searched.out.contains("kernel "), "{}", searched.out);
        for page in [format!("{name}.html"), format!("{name}-trace.html"), format!("{name}-report.html")] {
            assert!(fs::read_to_string(place.path(&page)).unwrap().starts_with("<!doctype html>"), "{page}");
        }
    }
}

/// The suite has its own sizes for apps; here the small ones are enough.
fn size_of(subject: &str) -> &'static str {
    if subject.ends_with(".json") { "--size 64x48" } else { "--sizes small" }
}

#[test]
fn no_flag_is_ignored() {
    let place = place();
    let cases = [
        ("run blur --size 8x8 --schedule default", "--schedule has no effect here: the reference evaluator"),
        ("run blur --size 8x8 --device a100", "--device has no effect here"),
        ("verify . --schedule default", "--schedule has no effect here"),
        (
            "run blur --size 8x8 --on sim --schedule default --model analytic",
            "only a search uses a cost model",
        ),
        ("bench blur --size 8x8 --schedule default --device a100", "generated for that GPU"),
        ("suite --mode one-shot --iterations 3", "add --mode autotune"),
        ("suite --mode top5 --schedules apps/schedules", "add --mode manual"),
        ("suite --size 64x48 --mode default", "--apps"),
        ("suite --size 64x48 --apps blur --mode default", "--size has no effect here"),
        ("sim blur --size 8x8", "`warploom sim` runs the kernels of a schedule; give one with --schedule"),
        ("bench blur --size 8x8", "`warploom bench` runs the kernels of a schedule"),
        ("run blur --size 8x8 --on sim", "--on sim runs the kernels of a schedule"),
        ("sim blur --size 8x8 --schedule seach", "did you mean `search`?"),
        ("sim blur --size 8x8 --schedule defualt", "did you mean `default`?"),
        ("sim blur --size 8x8 --schedule radnom", "did you mean `random:SEED`?"),
        ("apps --export haris.json", "did you mean `harris`?"),
        ("apps --export harris=harris.txt", "end its name with .json"),
    ];
    for (command, sentence) in cases {
        let ran = place.run(command);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command}");
        assert!(ran.err.contains(sentence), "{command}: {}", ran.err);
    }
}

#[test]
fn a_trailing_comma_is_one_error() {
    let place = place();
    fs::write(place.path("comma.schedule"), "copy\n  kernel output block x 16, y 4, threads x 16, y 4\n")
        .unwrap();
    let ran = place.run("sim copy --size 64x48 --schedule comma.schedule");
    let errors: Vec<&str> =
        ran.err.lines().filter(|line| line.contains("comma.schedule:") || line.contains("error")).collect();
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("comma"), "{}", ran.err);
    assert_eq!(errors.len(), 1, "{}", ran.err);
}
