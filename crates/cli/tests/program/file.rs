//! Pipelines from files.

use std::fs;
use std::path::Path;

use warploom::app::Settings;

use crate::place::Place;

const QUICK: &str = "--samples 2 --passes 1 --beam 2";

/// A folder with the pipeline of an app in `APP.json`.
fn place_with(app: &str) -> Place {
    let place = Place::new();
    let app = warploom_apps::BASICS.iter().find(|known| known.name == app).unwrap();
    let pipeline = app.pipeline(&Settings::defaults(app)).unwrap();
    fs::write(place.path(&format!("{}.json", app.name)), pipeline.to_json()).unwrap();
    place
}

#[test]
fn a_pipeline_is_compiled_as_the_app_is() {
    let place = place_with("brighten");
    let given = "--size input=64x48,output=64x48 --param gain=1.5 --param offset=-0.1";
    let ran = place.run(&format!("compile brighten.json {given} {QUICK} --emit cuda -o file"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("brighten at input=64x48, output=64x48 for "), "{}", ran.out);
    assert_eq!(place.run(&format!("compile brighten --size 64x48 {QUICK} --emit cuda -o app")).code, 0);
    let ran = place.run(&format!("compile brighten.json --size 64x48 {given} {QUICK} --emit cuda -o one"));
    assert_eq!(ran.code, 0, "one size is for all: {}", ran.err);
    let (code, err) = {
        let ran = place.run("run brighten.json --size 64x48 --param gain=1.5 --generate");
        (ran.code, ran.err)
    };
    assert!(code == 2 && err.contains("give one with --param offset=VALUE"), "{err}");
    let read = |folder: &str| fs::read_to_string(place.path(folder).join("brighten.cu")).unwrap();
    assert_eq!([read("file"), read("one")], [read("app"), read("app")]);
}

#[test]
fn a_file_runs_as_the_app_does() {
    let place = Place::new();
    let ran = place.run("apps --export brighten.json");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(
        ran.out.ends_with("warploom compile brighten.json --size input=8192x8192,output=8192x8192\n"),
        "{}",
        ran.out
    );
    // The values of the app's Params are defaults of the file.
    let both = ["brighten", "brighten.json"].map(|subject| {
        let output = format!("{}.npy", subject.replace('.', "_"));
        let input = "--input input=in.npy";
        if subject == "brighten" {
            assert_eq!(place.run("run copy --size 40x30 --generate -o in.npy").code, 0);
        }
        let report = place.json(&format!("run {subject} {input} -o output={output} --json"));
        assert_eq!((&report["app"], &report["inputs"][0]["file"]), (&"brighten".into(), &"in.npy".into()));
        fs::read(place.path(&output)).unwrap()
    });
    assert_eq!(both[0], both[1]);
    let other = place.run("run brighten.json --input in.npy --param gain=2 -o other.npy");
    assert_eq!(other.code, 0, "{}", other.err);
    assert_ne!(fs::read(place.path("other.npy")).unwrap(), both[0]);
    let ran = place.run("run brighten.json --input in.npy --size 20x20");
    assert!(ran.code == 2 && ran.err.contains("in.npy has extents 40x30"), "{}", ran.err);
}

#[test]
fn a_folder_of_arrays_verifies_a_pipeline_of_a_file() {
    let place = Place::new();
    place.copy_golden(&["unsharp"]);
    let params = fs::read_to_string(place.path("golden/unsharp/params.json")).unwrap();
    // A pipeline in the folder itself, and one that is named on the command line.
    let sigma = r#""sigma": "#;
    let value = params.split_once(sigma).map(|(_, rest)| rest.split([',', '}', '\n']).next().unwrap().trim());
    let set = value.map(|value| format!(" --set sigma={value}")).unwrap_or_default();
    assert_eq!(place.run(&format!("apps --export unsharp=golden/unsharp/mine.json{set}")).code, 0);
    let named: serde_json::Value = serde_json::from_str(&params).unwrap();
    let mut own = named.clone();
    own["generator_params"] = serde_json::json!({});
    own["app"] = "mine.json".into();
    fs::write(place.path("golden/unsharp/params.json"), own.to_string()).unwrap();
    for on in ["", "--on sim --schedule default"] {
        let ran = place.run(&format!("verify golden {on}"));
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("unsharp") && ran.out.contains("all 1 app passed"), "{}", ran.out);
    }
    own["app"] = "unsharp".into();
    fs::write(place.path("golden/unsharp/params.json"), own.to_string()).unwrap();
    let ran = place.run("verify golden --app golden/unsharp/mine.json");
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    own["app"] = "lost.json".into();
    fs::write(place.path("golden/unsharp/params.json"), own.to_string()).unwrap();
    let ran = place.run("verify golden");
    assert!(ran.code == 2 && ran.err.contains("lost.json"), "{}", ran.err);
}

#[test]
fn a_case_brings_its_sizes() {
    let place = Place::new();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/cases");
    let mut files: Vec<_> = fs::read_dir(cases).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    fs::copy(
        files.iter().find(|file| file.extension().is_some_and(|e| e == "json")).unwrap(),
        place.path("a.json"),
    )
    .unwrap();
    let ran = place.run(&format!("compile a.json {QUICK}"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.said().contains(" us predicted by the "), "{}", ran.out);
}

#[test]
fn positions_beyond_all_indices_are_refused() {
    let place = place_with("blur");
    let ends = "9223372036854775807:67x48,output=64x48";
    for (boxes, sentence) in [
        (format!("input={ends}"), "`input` has positions from 9223372036854775807 to 9223372036854775807"),
        (
            "input=66x48,output=9223372036854775800:64x48".to_owned(),
            "`output` has positions from 9223372036854775800 to 9223372036854775807",
        ),
        (
            "input=-9223372036854775808:67x48,output=64x48".to_owned(),
            "`input` has positions from -9223372036854775808",
        ),
        ("input=9223372036854775807:0x48,output=64x48".to_owned(), "every extent must be from 1 to 2^30"),
        ("input=9223372036854775807:9223372036854775807x48,output=64x48".to_owned(), "`input` has extent"),
        ("input=9223372036854775807:-9223372036854775808x48,output=64x48".to_owned(), "`input` has extent"),
    ] {
        for command in ["compile blur.json --schedule default", "run blur.json --generate", "graph blur.json"]
        {
            let ran = place.run(&format!("{command} --size {boxes}"));
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command} {boxes}: {}", ran.err);
            assert!(ran.err.contains(sentence), "{command} {boxes}: {}", ran.err);
        }
    }
}

#[test]
fn mistakes_are_said() {
    let place = place_with("blur");
    fs::write(place.path("bad.json"), "{}").unwrap();
    let said = |arguments: &str| {
        let ran = place.run(arguments);
        assert_eq!(ran.out, "", "{arguments}");
        (ran.code, ran.err)
    };
    let (code, err) = said("compile nothing.json");
    assert!(code == 2 && err.contains("there is no file nothing.json"), "{err}");
    let (code, err) = said("compile bad.json --size input=8x8");
    assert!(code == 2 && err.contains("bad.json does not contain a pipeline: "), "{err}");
    let (code, err) = said("compile blur.json --size output=64x48");
    assert!(code == 2 && err.contains("no size was given for `input`"), "{err}");
    let (code, err) = said("compile blur.json");
    assert!(code == 2 && err.contains("as in --size input=640x480,output=640x480"), "{err}");
    let (code, err) = said("compile blur.json --size 64");
    assert!(code == 2 && err.contains("`input` has 2 dimensions, but `64` has 1"), "{err}");
    let (code, err) = said("compile blur.json --size 64by48");
    assert!(code == 2 && err.contains("`64by48` is not a size"), "{err}");
    let (code, err) = said("run blur.json");
    assert!(code == 2 && err.contains("no size was given for `input`"), "{err}");
    let (code, err) = said("compile blur.json --size input=64x48,output=64x48,lost=3");
    assert!(code == 2 && err.contains("`lost`"), "{err}");
    let (code, err) = said("compile blur.json --size input=64,output=64x48");
    assert!(code == 2 && err.contains("`input` has 2 dimensions but 1 were given"), "{err}");
    let (code, err) = said("compile blur.json --size input=64x48,output=64x48 --param by=1");
    assert!(code == 2 && err.contains("has no Param `by`"), "{err}");
    let (code, err) = said("compile blur.json --size input=64x48,output=64x48 --set levels=1");
    assert!(code == 2 && err.contains("remove --set"), "{err}");
}
