//! Names of everything in a pipeline: those that are accepted come back from every text, the others are refused.

use std::fs;

use crate::place::{Place, Ran};
use warploom::prelude::*;

const SIZE: &str = "--size 64x48";

/// Two kernels at least, with a reduction and a copy.
fn pipeline(name: &str, [x, y, r]: [&str; 3], stage: &str) -> Pipeline {
    let (x, y) = (Var::new(x), Var::new(y));
    let input = Input::f32("input", 2);
    let r = RDom::new(vec![RRange::new(r, 0, 4)]);
    let edge = input.repeat_edge();
    let total = func(stage, (x, y), 0.0).over(&r, |f| f.add((x, y), edge.at((x + r.x, y))));
    let out = func("out", (x, y), total.at((x, y)) * 2.0);
    Pipeline::new(name, [out]).unwrap()
}

/// Runs a command on a pipeline whose JSON is changed.
fn changed(place: &Place, from: &str, to: &str) -> Ran {
    let json = pipeline("plain", ["x", "y", "r"], "total").to_json();
    let json = json.replace(from, to);
    fs::write(place.path("changed.json"), json).unwrap();
    place.run(&format!("compile changed.json {SIZE} --device h200 --schedule default"))
}

#[test]
fn what_is_found_under_odd_names_is_kept() {
    let place = Place::new();
    let odd = pipeline(" größe  3d*/\t\"x\"", ["x.0", "shared", "r.`.16"], "kernel.0");
    fs::write(place.path("odd.json"), odd.to_json()).unwrap();
    let flags = format!("{SIZE} --device h200");
    let search = "--samples 3 --beam 2 --passes 1";
    let compiled = place.run(&format!("compile odd.json {flags} {search} -o out --name odd"));
    assert_eq!(compiled.code, 0, "{}", compiled.err);
    let tuned = place.run(&format!("tune odd.json {SIZE} {search} --top 2 --fake fake -o best"));
    assert_eq!(tuned.code, 0, "{}{}", tuned.out, tuned.err);
    let mut best = fs::read_dir(place.path("best")).unwrap().map(|file| file.unwrap().path());
    let best = best.find(|file| file.extension().is_some_and(|it| it == "schedule")).unwrap();
    for schedule in ["out/odd.schedule", best.strip_prefix(place.path("")).unwrap().to_str().unwrap()] {
        let ran = place.run(&format!("sim odd.json {flags} --schedule {schedule}"));
        assert_eq!(ran.code, 0, "{schedule}: {}", ran.err);
    }
}

#[test]
fn names_that_no_text_can_hold_are_refused() {
    let place = Place::new();
    let long = "x".repeat(70_000);
    let too_long = "has 70000 bytes, but a name may have at most 1024; choose a shorter one";
    let variable =
        "be the name of a variable of `total`; use no white space, `,` or `#`, and no number before a dot";
    let of_pipeline =
        "cannot be the name of a pipeline; use one or more words on one line, without `,` and `#`";
    let cases = [
        ("\"plain\"", "\"\"".to_owned(), of_pipeline),
        ("\"plain\"", "\"#c\"".to_owned(), of_pipeline),
        ("\"plain\"", "\"a\\nb\"".to_owned(), "`a<U+000A>b` cannot be the name of a pipeline"),
        ("\"plain\"", format!("\"{long}\""), too_long),
        ("\"r\"", "\"\"".to_owned(), variable),
        ("\"r\"", "\"#c\"".to_owned(), variable),
        ("\"r\"", "\"0.x\"".to_owned(), variable),
        ("\"r\"", format!("\"{long}\""), too_long),
        ("\"x\"", "\"a b\"".to_owned(), "cannot be the name of a variable of"),
        ("\"total\"", format!("\"{long}\""), too_long),
        ("\"input\"", format!("\"{long}\""), too_long),
        (
            "\"out\"",
            "\"total.1\"".to_owned(),
            "`total.1` is the name of a Func and of stage 1 of `total`; rename the Func",
        ),
        (
            "\"out\"",
            "\"input.stage\"".to_owned(),
            "`input.stage` is the name of a Func and of the copy of the input `input`; rename the Func",
        ),
    ];
    for (from, to, sentence) in cases {
        let ran = changed(&place, from, &to);
        assert_eq!(ran.code, 3, "{from}: {}", ran.err);
        assert!(ran.err.contains(sentence), "{from}: {}", ran.err);
        assert!(ran.err.len() < 2_000, "{} bytes", ran.err.len());
    }
    assert_eq!(changed(&place, "\"total\"", "\"other.1\"").code, 0);
    let named = place
        .run(&format!("compile changed.json {SIZE} --device h200 --schedule default -o out --name {long}"));
    assert_eq!(named.code, 2, "{}", named.err);
    assert!(named.err.contains("the name of a package has 70000 bytes"), "{}", named.err);
}

/// A name of a pipeline may be longer than that of a file.
#[test]
fn long_names_are_shortened_for_files() {
    let place = Place::new();
    for letters in [232, 241, 300, 1024] {
        let name = "p".repeat(letters);
        fs::write(place.path("long.json"), pipeline(&name, ["x", "y", "r"], "total").to_json()).unwrap();
        let flags = format!("{SIZE} --samples 2 --beam 2 --passes 1");
        let tuned = place.run(&format!("tune long.json {flags} --top 1 --fake fake -o best"));
        assert_eq!(tuned.code, 0, "{letters}: {}", tuned.err);
        let compiled = place.run(&format!("compile long.json {flags} --device h200 -o out"));
        assert_eq!(compiled.code, 0, "{letters}: {}", compiled.err);
        // The folder stands for the schedule in it.
        let ran = place.run(&format!("sim long.json {SIZE} --device h200 --schedule out"));
        assert_eq!(ran.code, 0, "{letters}: {}", ran.err);
        assert_eq!(fs::read_dir(place.path("best")).unwrap().count() % 5, 0, "{letters}");
        for folder in ["best", "out"] {
            fs::remove_dir_all(place.path(folder)).unwrap();
        }
    }
    let name = "p".repeat(300);
    let named = place.run(&format!("compile local_laplacian --samples 100000 -o out --name {name}"));
    assert_eq!(named.code, 2, "{}", named.err);
    assert!(named.err.contains("the name of a package has 300 bytes"), "{}", named.err);
    assert!(named.err.contains("a name may have at most 240"), "{}", named.err);
    assert!(!place.path("out").exists());
}

/// Comments, empty lines and a layout of one's own.
#[test]
fn violations_name_the_line_that_somebody_wrote() {
    let place = Place::new();
    let schedule = "\
# made by hand

blur inline edge  # nothing to see

   kernel output block x 64,
                       y 16
      # the rows first
      blur_x flat shared

      output threads x 64, y 64 serial y 4   # too many
";
    fs::write(place.path("mine.schedule"), schedule).unwrap();
    let scheduled =
        ["explain blur", "sim blur", "compile blur", "compile blur -o out", "run blur --generate --on sim"];
    let scheduled = scheduled.map(|command| format!("{command} --schedule"));
    let record = "landscape record blur --fake fake";
    let templates = [
        "tune blur --fake fake --strategy random",
        &format!("{record} -o a"),
        &format!("{record} --dry-run"),
    ];
    let templates = templates.map(|command| format!("{command} --template"));
    for command in scheduled.into_iter().chain(templates) {
        let ran = place.run(&format!("{command} mine.schedule --size 640x480"));
        assert_eq!(ran.code, 3, "{command}: {}", ran.err);
        assert!(ran.err.contains("mine.schedule: "), "{command}: {}", ran.err);
        let places: Vec<&str> = ran.err.lines().filter(|line| line.contains("--> ")).map(str::trim).collect();
        assert!(places.contains(&"--> line 10, column 7"), "{command}: {}", ran.err);
        assert!(places.iter().all(|at| at.contains("line 5,") || at.contains("line 10,")), "{}", ran.err);
        assert!(
            ran.err.contains("10 |       output threads x 64, y 64 serial y 4   # too many"),
            "{}",
            ran.err
        );
    }
}
