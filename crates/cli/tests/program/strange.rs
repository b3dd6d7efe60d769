//! Names from files that would make a terminal, or a reader of code, see something else.

use std::fs;

use warploom::lang::is_invisible;
use warploom::prelude::*;

use crate::place::{Place, Ran};

/// It clears the screen, is read backwards, hides itself and rings.
const STRANGE: &str = "a\u{1b}c\u{202e}b\u{9b}2K\u{8}c\u{200b}\u{2066}\u{7}d";

fn assert_visible(what: &str, text: &str) {
    let hidden = text.chars().find(|c| !matches!(c, '\n' | '\t') && is_invisible(*c));
    assert_eq!(hidden, None, "{what}: {text:?}");
}

fn assert_all_visible(command: &str, ran: &Ran) {
    assert_visible(command, &ran.out);
    assert_visible(command, &ran.err);
}

/// The name of a pipeline and of a dimension; those of Funcs, inputs and Params are letters and digits.
fn write_pipeline(place: &Place) {
    let (x, y) = (Var::new(STRANGE), Var::new("y"));
    let input = Input::f32("input", 2).repeat_edge();
    let out = func("out", (x, y), input.at((x - 1, y)) * &Param::f32("gain"));
    let pipeline = Pipeline::new(format!("pipe{STRANGE}"), [out]).unwrap();
    fs::write(place.path("strange.json"), pipeline.to_json()).unwrap();
    fs::write(place.path("refused.json"), pipeline.to_json().replace("gain", "g\\u202ea\\nin")).unwrap();
}

#[test]
fn names_from_files_show_what_they_are() {
    let place = Place::new();
    write_pipeline(&place);
    let device = place.run("devices --describe h200").out;
    let mut device: serde_json::Value = serde_json::from_str(&device).unwrap();
    device["name"] = format!("device{STRANGE}").into();
    fs::write(place.path("device.json"), device.to_string()).unwrap();
    let commands = [
        "compile strange.json --device device.json --schedule default -o out",
        "compile strange.json --schedule default --emit cuda",
        "compile strange.json --schedule default --json",
        "explain strange.json --device device.json --schedule default",
        "tune strange.json --samples 2 --beam 2 --passes 1 --top 1 --fake fake -v",
        "tune strange.json --samples 2 --beam 2 --passes 1 --top 1 --fake fake --json",
    ];
    for command in commands {
        let ran = place.run(&format!("{command} --size 64x48 --param gain=0.5"));
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
        assert_all_visible(command, &ran);
        let shown = ran.out.contains("<U+202E>") || ran.out.contains("\\u202e");
        assert!(shown || command.contains("-o"), "{command}: {}", ran.out);
    }
    for file in fs::read_dir(place.path("out")).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|it| ["cu", "c", "h"].iter().any(|code| it == *code)) {
            assert_visible(&file.display().to_string(), &fs::read_to_string(&file).unwrap());
        }
    }
    for command in
        ["records list", "records list --json", "records show 1", "records list 1", "records best nothing"]
    {
        assert_all_visible(command, &place.run(command));
    }
    assert!(place.run("records list").out.contains("pipea<U+001B>c<U+202E>b<U+009B>2K<U+0008>c"));
    // Mistakes quote names too.
    let unknown = place.run("explain strange.json --size 64x48 --param loss=1 --schedule default");
    assert_eq!(unknown.code, 2, "{}", unknown.out);
    assert_all_visible("an unknown Param", &unknown);
    assert!(unknown.err.contains("<U+202E>"), "{}", unknown.err);
    let refused = place.run("explain refused.json --size 64x48 --schedule default");
    assert!(refused.err.contains("`g<U+202E>a<U+000A>in` cannot be a name"), "{}", refused.err);
}

#[test]
fn paths_and_devices_take_one_line() {
    let place = Place::new();
    let one_line = |arguments: &[&str], shown: &str| {
        let ran = place.run_with(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
        assert!(ran.out.contains(shown), "{arguments:?}: {}", ran.out);
    };
    one_line(&["run", "blur", "--size", "8x8", "--generate", "-o", "o\nut.npy"], "  o<U+000A>ut.npy\n");
    let blur = ["compile", "blur", "--size", "8x8", "--device", "h200", "--schedule", "default"];
    one_line(&[&blur[..], &["-o", "f\nolder"]].concat(), "\nf<U+000A>older/blur.cu\n");
    let tune = ["tune", "blur", "--size", "64x48", "--fake", "fake", "--top", "1", "--samples", "2"];
    one_line(&[&tune[..], &["-o", "be\nst"]].concat(), "\nbe<U+000A>st/blur.cu\n");
    one_line(&["apps", "--export", "blur=p\nq.json"], "p<U+000A>q.json: ");
    let device = place.run("devices --describe h200").out;
    for (name, bytes) in [("evil\nname", 9), ("", 0), (&*"x".repeat(1025), 1025)] {
        let mut device: serde_json::Value = serde_json::from_str(&device).unwrap();
        device["name"] = name.into();
        fs::write(place.path("device.json"), device.to_string()).unwrap();
        let ran = place.run("compile blur --size 8x8 --schedule default --device device.json");
        assert_eq!(ran.code, 2, "{}", ran.err);
        let said = format!("the name of a device has {bytes} bytes; it must be one line of 1 to 1024 bytes");
        assert!(ran.err.contains(&said), "{}", ran.err);
    }
}

#[test]
fn names_of_reference_data_stay_in_their_folder() {
    let place = Place::new();
    place.copy_golden(&["harris"]);
    let file = place.path("golden/harris/params.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::create_dir(place.path("golden/elsewhere")).unwrap();
    fs::copy(place.path("golden/harris/output.npy"), place.path("golden/elsewhere/output.npy")).unwrap();
    let mut params: serde_json::Value = serde_json::from_str(&text).unwrap();
    let output = params["outputs"]["output"].take();
    params["outputs"] = serde_json::json!({ "../elsewhere/output": output });
    fs::write(&file, params.to_string()).unwrap();
    let ran = place.run("verify golden");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.err.contains(
            "`../elsewhere/output` cannot be the name of an array, which names a file in the same folder"
        ),
        "{}",
        ran.err
    );
}
