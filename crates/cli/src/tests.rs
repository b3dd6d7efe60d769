//! Tests of the program with apps that differ from the suite's: several outputs, tuples, no sizes.

mod mutations;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use serde_json::Value as Json;
use tempfile::TempDir;
use warploom::app::{Settings, Shapes, setting};
use warploom::interp::npy;
use warploom::lang::Type;
use warploom::prelude::*;

use super::*;

/// Two outputs, one of them a pair, over boxes that do not start at the origin.
fn pair() -> App {
    let build = |settings: &Settings| {
        let x = vars!(x);
        let (input, by, on) = (Input::u8("input", 1), Param::f32("by"), Param::new("on", Type::Bool));
        let scale = settings.number("scale") as f32;
        let [a, b] = [input.at(x), input.at(x + 1)].map(|v| v.f32() * scale);
        let both = func("both", x, vec![&a + &b, &a - &b]);
        let far = func("far", x, select(&on, a * &by, 0.0));
        Pipeline::new("pair", [both, far])
    };
    App::new("pair", build)
        .about("sum and difference of neighbours")
        .sizes([setting("n", 8.0)])
        .structure([setting("scale", 1.0)])
        .params([setting("by", 2.0), setting("on", 1.0)])
        .shapes(|settings| {
            let n = settings.int("n");
            let from_one = |extent| Region(vec![Range::new(1, extent)]);
            Shapes::new([("input", from_one(n + 1))], [("both", from_one(n)), ("far", from_one(n))])
        })
        .inputs(|request| {
            let first = request.seed as u8;
            Buffer::from_fn(request.region.clone(), |at| at[0] as u8 + first).unwrap()
        })
        .operations(|_| 1.0)
        .tolerance(1e-6)
}

/// An app with no more than a name and a pipeline of one point, one whose pipeline cannot be built, one with a Param without a
/// default, and one whose definition panics.
fn small() -> [App; 4] {
    [
        App::new("point", |_| Pipeline::new("point", [func("output", (), 7.0)])),
        App::new("broken", |_| {
            let x = vars!(x);
            Pipeline::new("broken", [func("output", x, Input::f32("input", 2).at(x))])
        }),
        App::new("forgetful", |_| {
            Pipeline::new("forgetful", [func("output", (), &Param::f32("lost") + 1.0)])
        }),
        App::new("panics", |_| panic!("on purpose")),
    ]
}

fn run(arguments: &str) -> Result<String, Error> {
    let arguments = std::iter::once("warploom").chain(arguments.split_whitespace()).map(OsString::from);
    let mut out = Vec::new();
    let apps: Vec<App> = std::iter::once(pair()).chain(small()).collect();
    execute(&apps, arguments, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn json(arguments: &str) -> Json {
    serde_json::from_str(&run(arguments).unwrap()).unwrap()
}

fn sentence(arguments: &str) -> (String, u8) {
    let error = run(arguments).unwrap_err();
    (error.to_string(), error.exit_code())
}

#[test]
fn every_value_of_a_tuple_is_an_output() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let [sum, difference, far] = ["sum.npy", "difference.npy", "far.npy"].map(file);
    let report = json(&format!(
        "run pair --generate --size 3 --param by=10 --seed 1 -o both.1={difference} -o {sum} -o {far} --json"
    ));
    let names: Vec<&Json> =
        report["outputs"].as_array().unwrap().iter().map(|output| &output["name"]).collect();
    assert_eq!(names, ["both.0", "both.1", "far"]);
    assert_eq!(npy::read(sum).unwrap().as_slice(), Some(&[5.0_f32, 7.0, 9.0][..]));
    assert_eq!(npy::read(difference).unwrap().as_slice(), Some(&[-1.0_f32, -1.0, -1.0][..]));
    assert_eq!(npy::read(far).unwrap().as_slice(), Some(&[20.0_f32, 30.0, 40.0][..]));
}

#[test]
fn a_size_follows_from_a_file() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("in.npy").display().to_string();
    npy::write(&file, &Buffer::from_vec(Region::of_extents(&[5]), vec![1_u8, 2, 4, 8, 16]).unwrap()).unwrap();
    let report = json(&format!("run pair --input {file} --param on=0 --json"));
    assert_eq!(report["settings"]["n"], 4.0);
    assert_eq!(report["outputs"][0]["region"][0], serde_json::json!({ "min": 1, "extent": 4 }));
    assert_eq!(report["outputs"][0]["max"], 24.0);
    assert_eq!(report["outputs"][2]["max"], 0.0);

    let (message, code) = sentence(&format!("run pair --input {file} --size 7"));
    let message = message.replace(&file, "in.npy");
    assert_eq!(
        message,
        "in.npy has extents 5, but input `input` of `pair` has 8 at n=7; give a file that fits"
    );
    assert_eq!(code, exit::USAGE);
}

#[test]
fn an_app_without_sizes_runs() {
    assert_eq!(json("run point --json")["outputs"][0]["mean"], 7.0);
    assert!(run("run point").unwrap().contains("output  1 point  f32     7    7     7"));
    let expected = "`point` has no size `4x4`; it has no sizes".to_owned();
    assert_eq!(sentence("run point --size 4x4"), (expected, exit::USAGE));
}

#[test]
fn fractions_are_refused_only_where_they_would_be_lost() {
    assert_eq!(json("run pair --generate --set scale=0.5 --json")["settings"]["scale"], 0.5);
}

#[test]
fn a_pipeline_that_cannot_be_built_is_said_so() {
    let (message, code) = sentence("graph broken");
    assert!(message.starts_with("`broken` cannot be built: `input` is called with 1 index"), "{message}");
    assert_eq!(code, exit::PIPELINE);

    let expected = "`forgetful` has no value for its Param lost; give one with --param lost=VALUE";
    assert_eq!(sentence("run forgetful"), (expected.to_owned(), exit::PIPELINE));
}

/// Runs a command on these apps: the error, and what was printed before.
fn failing(apps: &[App], arguments: &str) -> (Error, String) {
    let arguments = std::iter::once("warploom").chain(arguments.split_whitespace()).map(OsString::from);
    let mut out = Vec::new();
    let error = execute(apps, arguments, &mut out).unwrap_err();
    (error, String::from_utf8(out).unwrap())
}

#[test]
fn apps_that_cannot_be_built_do_not_hide_the_others() {
    let apps: Vec<App> = small().into_iter().chain([pair()]).collect();
    let (error, text) = failing(&apps, "apps");
    let names: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.starts_with(&["point", "forgetful", "pair"]), "{text}");
    let message = error.to_string();
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines[0].starts_with("`broken` cannot be built: `input` is called with 1 index"), "{message}");
    assert!(lines[1].starts_with("  --> ") && lines[1].contains("tests.rs:"), "{message}");
    assert!(lines[2].starts_with("`panics` panicked: on purpose"), "{message}");
    assert_eq!(error.exit_code(), exit::PIPELINE);

    let (error, text) = failing(&apps, "apps --json");
    assert!(error.is_in_the_report());
    let report: Json = serde_json::from_str(&text).unwrap();
    documented::Documented::read().check(&report);
    let names = |list: &str| -> Vec<String> {
        let items = report[list].as_array().unwrap().iter();
        items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("apps"), ["point", "forgetful", "pair"]);
    assert_eq!(names("failed"), ["broken", "panics"]);
}

#[test]
fn two_apps_with_one_name_are_refused() {
    let line = line!() + 1;
    let (one, other) = (App::new("same", |_| panic!()), App::new("same", |_| panic!()));
    for command in ["apps", "run same", "compile point"] {
        let (error, text) = failing(&[pair(), one.clone(), other.clone()], command);
        let message = error.to_string();
        assert!(message.starts_with("two apps are named `same`; rename one\n  --> "), "{message}");
        assert_eq!(message.matches(&format!("tests.rs:{line}:")).count(), 2, "{message}");
        assert_eq!((error.exit_code(), text.as_str()), (exit::PIPELINE, ""));
    }
}

/// Kernels take most Params when they run, so compiling needs no values for them.
#[test]
fn only_params_that_bounds_need_are_asked_for_when_compiling() {
    let build = |_: &Settings| {
        let x = vars!(x);
        let (gain, by) = (Param::f32("gain"), Param::i32("by"));
        Pipeline::new("shift", [func("output", x, Input::f32("input", 1).at(x + &by) * &gain)])
    };
    let shapes = |_: &Settings| {
        Shapes::new([("input", Region::of_extents(&[64]))], [("output", Region::of_extents(&[32]))])
    };
    let app = App::new("shift", build).shapes(shapes);
    let (error, _) = failing(std::slice::from_ref(&app), "compile shift --schedule default");
    let expected = "`shift` has no value for its Param by; give one with --param by=VALUE";
    assert_eq!(error.to_string(), expected);
    let run = |apps: &[App], arguments: &str| {
        let arguments = std::iter::once("warploom").chain(arguments.split_whitespace()).map(OsString::from);
        let mut out = Vec::new();
        execute(apps, arguments, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    for command in ["compile", "explain"] {
        run(std::slice::from_ref(&app), &format!("{command} shift --schedule default --param by=3"));
    }
    let (error, _) = failing(std::slice::from_ref(&app), "sim shift --schedule default --param by=3");
    assert_eq!(error.to_string(), expected.replace("by", "gain"));
    run(&[app], "sim shift --schedule default --param by=3 --param gain=2");

    let folder = TempDir::new().unwrap();
    let file = folder.path().join("scaled.tc").display().to_string();
    let text = "def scaled(float(N) A, float gain, int32 d = 2) -> (C) { C(i) = gain * A(i + d) where i in 0:N - d }";
    std::fs::write(&file, text).unwrap();
    run(&[], &format!("compile {file} --size N=64 --schedule default"));
    let (error, _) = failing(&[], &format!("sim {file} --size N=64 --schedule default"));
    assert!(error.to_string().contains("gain"), "{error}");
}

/// A picture or array whose channels lie side by side fits an input that is stored so; otherwise the message
/// says what to do.
#[test]
fn layouts_of_files_are_understood() {
    let of = |order: Vec<usize>| {
        let build = move |_: &Settings| {
            let (x, y, c) = vars!(x, y, c);
            let image = Input::u8("image", 3).stored(order.clone());
            Pipeline::new("inverse", [func("output", (x, y, c), 255 - image.at((x, y, c)))])
        };
        let shapes = |settings: &Settings| {
            let region = Region::of_extents(&[settings.int("W"), settings.int("H"), 3]);
            Shapes::new([("image", region.clone())], [("output", region)])
        };
        App::new("inverse", build).sizes([setting("W", 8.0), setting("H", 8.0)]).shapes(shapes)
    };
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    // NumPy's shape is (4, 6, 3); the buffer has its axes in reverse.
    let side_by_side =
        Buffer::from_fn(Region::of_extents(&[3, 6, 4]), |at| (at[0] + 10 * at[1] + 70 * (at[2] % 3)) as u8);
    npy::write(file("hwc.npy"), &side_by_side.unwrap()).unwrap();
    let arguments = format!("warploom run inverse --input {} -o {}", file("hwc.npy"), file("out.npy"));
    let arguments: Vec<OsString> = arguments.split_whitespace().map(OsString::from).collect();
    execute(&[of(vec![2, 0, 1])], arguments, &mut Vec::new()).unwrap();
    let out = npy::read(file("out.npy")).unwrap();
    assert_eq!(out.region().extents(), [6, 4, 3]);
    assert_eq!(out.get(&[5, 1, 2]), Some(Value::from(255_u8 - (2 + 50 + 70))));

    let (error, _) = failing(&[of(vec![0, 1, 2])], &format!("run inverse --input {}", file("hwc.npy")));
    assert_eq!(
        error.to_string().replace(&file("hwc.npy"), "hwc.npy"),
        "hwc.npy has extents 3x6x4, but dimension 2 of input `image` of `inverse` has extent 3; transpose the array, \
         array.transpose(2, 0, 1), or declare the input .stored([2, 0, 1]), which takes the file as it is"
    );
    assert_eq!(error.exit_code(), exit::USAGE);

    // The channels of a picture are the last index of the notation of Tensor Comprehensions.
    let picture = side_by_side_picture();
    warploom::interp::picture::write(file("in.png"), &picture).unwrap();
    let text = "def inverse(uint8(H,W,3) I) -> (O) { O(y,x,c) = 255 - I(y,x,c) }";
    std::fs::write(file("inverse.tc"), text).unwrap();
    let arguments = format!("warploom run {} --input {}", file("inverse.tc"), file("in.png"));
    let arguments = format!("{arguments} -o {}", file("out.npy"));
    let arguments: Vec<OsString> = arguments.split_whitespace().map(OsString::from).collect();
    execute(&[], arguments, &mut Vec::new()).unwrap();
    let out = npy::read(file("out.npy")).unwrap();
    assert_eq!(out.region().extents(), [3, 6, 4]);
    assert_eq!(out.get(&[2, 5, 1]), Some(Value::from(255 - 122)));
}

/// A picture `(x, y, c)` of 6 x 4 pixels.
fn side_by_side_picture() -> Buffer {
    let sample = |at: &[i64]| (at[2] + 10 * at[0] + 70 * (at[1] % 3)) as u8;
    Buffer::from_fn(Region::of_extents(&[6, 4, 3]), sample).unwrap()
}

/// Writes a folder of reference data for `pair`.
fn write_golden(folder: &TempDir, outputs: &[&str]) {
    let array = serde_json::json!({ "shape": [3], "dtype": "float32", "halide_min": [1] });
    let outputs: serde_json::Map<_, _> =
        outputs.iter().map(|name| ((*name).to_owned(), array.clone())).collect();
    let params = serde_json::json!({
        "app": "pair",
        "inputs": { "input": { "shape": [4], "dtype": "uint8", "halide_min": [1] } },
        "scalars": { "by": { "type": "f32", "value": 2.0 }, "on": { "type": "bool", "value": true } },
        "outputs": outputs,
        "tolerance": { "abs": 0 },
    });
    let write = |name: &str, buffer: Buffer| {
        npy::write(folder.path().join(format!("{name}.npy")), &buffer).unwrap();
    };
    std::fs::write(folder.path().join("params.json"), params.to_string()).unwrap();
    let three = |samples: [f32; 3]| Buffer::from_vec(Region::of_extents(&[3]), samples.to_vec()).unwrap();
    write("input", Buffer::from_vec(Region::of_extents(&[4]), vec![1_u8, 2, 4, 8]).unwrap());
    write("both.0", three([3.0, 6.0, 12.0]));
    write("both.1", three([-1.0, -2.0, -4.0]));
    write("far", three([2.0, 4.0, 8.5]));
    write("near", three([0.0; 3]));
}

#[test]
fn every_output_is_verified() {
    let folder = TempDir::new().unwrap();
    write_golden(&folder, &["both.0", "both.1", "far"]);
    let mut out = Vec::new();
    let arguments = ["warploom", "verify", folder.path().to_str().unwrap()].map(OsString::from);
    let error = execute(&[pair()], arguments, &mut out).unwrap_err();
    assert_eq!(error.to_string(), "1 of 1 apps failed verification: pair");
    assert_eq!(error.exit_code(), exit::VERIFICATION);
    let text = String::from_utf8(out).unwrap();
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("3 3 3 9 0.5 1 1"), "{text}");
    assert!(
        said.contains(
            "far: 1 of 3 samples are beyond the tolerance, the first at (3) with 8.0 instead of 8.5"
        )
    );
    assert!(!text.contains("both.0:") && !text.contains("both.1:"), "{text}");
}

#[test]
fn outputs_and_reference_data_must_be_the_same() {
    for (outputs, expected) in [
        (&["both.0", "both.1"][..], "there is no reference data for the output `far`"),
        (
            &["both.0", "both.1", "far", "near"],
            "there is no output `near`; the outputs are both.0, both.1, far",
        ),
    ] {
        let folder = TempDir::new().unwrap();
        write_golden(&folder, outputs);
        let mut out = Vec::new();
        let arguments = ["warploom", "verify", folder.path().to_str().unwrap()].map(OsString::from);
        let error = execute(&[pair()], arguments, &mut out).unwrap_err();
        assert_eq!(error.exit_code(), exit::VERIFICATION);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_panic_is_one_object_in_json() {
    let process = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "tests::a_panic_in_a_process_of_its_own"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&process.stdout);
    assert!(process.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "a_panic_is_one_object_in_json starts it in a process, because it replaces the hook of panics"]
fn a_panic_in_a_process_of_its_own() {
    let arguments = ["warploom", "graph", "panics", "--json"].map(OsString::from).to_vec();
    let mut out = Vec::new();
    let code = answer(&small(), arguments, &mut out);
    let report: Json = serde_json::from_slice(&out).unwrap();
    assert_eq!((code, &report["kind"], &report["code"]), (exit::INTERNAL, &"internal".into(), &1.into()));
    let sentence = report["error"].as_str().unwrap();
    assert!(
        sentence.starts_with("internal error: on purpose (") && sentence.ends_with("please report it"),
        "{sentence}"
    );
    documented::Documented::read().check(&report);
}

/// Flags whose value depends on the command, although they mean the same.
const SEVERAL: [(&str, &[&str]); 2] =
    [("output", &["DIR", "FILE", "[NAME=]FILE"]), ("dynamic", &["", "RANGES"])];

/// Every flag of a command and its own commands, with its value.
fn flags(command: &clap::Command, found: &mut BTreeMap<String, BTreeSet<String>>) {
    for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
        let Some(long) = flag.get_long() else { continue };
        let takes = flag.get_action().takes_values();
        let value = flag.get_value_names().filter(|_| takes).and_then(<[_]>::first);
        let value = value.map_or(String::new(), |name| name.to_string());
        // A flag without a name for its value has its own.
        let value = if takes && value.is_empty() { long.to_uppercase() } else { value };
        found.entry(long.to_owned()).or_default().insert(value);
        if long == "output" {
            assert_eq!(flag.get_short(), Some('o'), "{}", command.get_name());
            assert_eq!(flag.get_all_aliases(), Some(vec!["out"]), "{}", command.get_name());
        }
        assert_ne!(long, "out", "{}: it is --output", command.get_name());
    }
    command.get_subcommands().for_each(|command| flags(command, found));
}

#[test]
fn flags_mean_one_thing() {
    let mut found = BTreeMap::new();
    flags(&super::Arguments::command(), &mut found);
    assert!(found.len() > 60, "{found:#?}");
    for (flag, values) in found {
        let several = SEVERAL.iter().find(|(name, _)| *name == flag).map_or(&[][..], |(_, values)| values);
        let strange = values.iter().filter(|value| !several.contains(&value.as_str())).count();
        assert!(values.len() == 1 || strange == 0, "--{flag} takes {values:?}");
    }
}

#[test]
fn old_spellings_are_still_taken() {
    for line in [
        "compile blur --out x",
        "suite --set operators",
        "suite --app blur",
        "fuzz --schedules 3 --out x",
        "verify golden --app harris --app blur",
        "accuracy --gpu --schedule default",
        "tune blur --strategy random --axes tiles",
    ] {
        let parsed = super::Arguments::command().try_get_matches_from(format!("warploom {line}").split(' '));
        assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
    }
}
