//! `warploom apps`, `warploom graph` and help.

use crate::place::Place;

#[test]
fn apps_are_listed() {
    let ran = Place::new().run("apps");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let said = ran.said();
    assert!(said.starts_with("app Funcs inputs and outputs settings unsharp "), "{}", ran.out);
    let harris = ran.out.lines().find(|line| line.starts_with("harris ")).unwrap();
    let harris: Vec<&str> = harris.split_whitespace().collect();
    assert_eq!(harris[..2], ["harris", "12"]);
    assert!(harris[2..].starts_with(&["input:f32[3]", "->"]) && harris.contains(&"size"), "{}", ran.out);
    assert!(ran.out.contains("levels*=8"), "a Param that fixes a region is marked: {}", ran.out);
    assert!(ran.out.contains("\n* fixed when the pipeline is compiled"));
}

#[test]
fn apps_are_listed_as_json() {
    let listing = Place::new().json("apps --json");
    assert_eq!(listing["schema"], "warploom.apps/1");
    let apps = listing["apps"].as_array().unwrap();
    assert_eq!(apps.len(), warploom_apps::APPS.len() + warploom_apps::BASICS.len());
    let laplacian = apps.iter().find(|app| app["name"] == "local_laplacian").unwrap();
    assert_eq!(laplacian["stages"], 102);
    assert_eq!(laplacian["inputs"][0]["types"][0], "u16");
    assert_eq!(laplacian["structure"][0]["name"], "pyramid_levels");
    let params = laplacian["params"].as_array().unwrap();
    let specialised: Vec<bool> = params.iter().map(|param| param["specialised"] == true).collect();
    assert_eq!(specialised, [true, false, false]);
    assert_eq!(params[0]["type"], "i32");
    assert_eq!(params[0]["default"], 8.0);
}

#[test]
fn a_graph_is_printed() {
    let place = Place::new();
    let text = place.run("graph harris");
    assert_eq!((text.code, text.err.as_str()), (0, ""));
    assert!(["gray", "Sxx", "output"].iter().all(|func| text.out.contains(func)), "{}", text.out);

    let dot = place.run("graph harris --dot");
    assert_eq!((dot.code, dot.err.as_str()), (0, ""));
    assert!(dot.out.starts_with("digraph"), "{}", dot.out);
}

#[test]
fn a_graph_is_printed_as_json() {
    let place = Place::new();
    let graph = place.json("graph harris --json");
    assert_eq!(graph["schema"], "warploom.graph/1");
    let funcs = graph["funcs"].as_array().unwrap();
    assert_eq!(funcs.len(), 12);
    let output = &funcs[11];
    assert_eq!((&output["name"], &output["output"]), (&"output".into(), &true.into()));
    assert_eq!(output["reads"], serde_json::json!(["det", "trace"]));
    assert_eq!(funcs[0]["reads"], serde_json::json!(["input"]));

    let count = |levels| {
        let graph = place.json(&format!("graph local_laplacian --set pyramid_levels={levels} --json"));
        graph["funcs"].as_array().unwrap().len()
    };
    assert_eq!(count(8), 102);
    assert!(count(2) < 40);
}

#[test]
fn help_has_examples() {
    let place = Place::new();
    for command in ["apps", "graph", "run", "compile", "explain", "verify", "report"] {
        let ran = place.run(&format!("{command} --help"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        assert!(ran.out.contains(&format!("Examples:\n  warploom {command}")), "{}", ran.out);
        assert!(ran.out.contains("--json"), "{}", ran.out);
    }
    let version = place.run("--version");
    assert_eq!(version.out, format!("warploom {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn devices_need_not_be_there() {
    let place = Place::new();
    let presets = place.run("devices --presets");
    assert_eq!((presets.code, presets.err.as_str()), (0, ""));
    let own: Vec<&str> = presets.out.lines().filter(|line| line.contains("its own")).collect();
    assert!(own.len() == 1 && own[0].contains("H200"), "{}", presets.out);
    assert_eq!(place.json("devices --presets --json")["schema"], "warploom.devices.presets/1");
    if warploom::runtime::Gpu::new(0).is_err() {
        let none = place.run("devices");
        assert_eq!(none.code, 4);
        assert!(none.err.contains("driver") && none.err.contains("kernel compiler: "), "{}", none.err);
    }
}

#[test]
fn no_command_is_a_mistake() {
    let ran = Place::new().run("");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("Usage: warploom [OPTIONS] <COMMAND>"));
}

#[test]
fn nothing_is_coloured() {
    let place = Place::new();
    let texts = ["--help", "run --help", "run", "apps", "run haris"].map(|arguments| place.run(arguments));
    assert!(texts.iter().all(|ran| !ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}')));
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_takes_nothing_is_a_mistake() {
    use std::fs::File;
    use std::process::{Command, Stdio};

    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let output = command.arg("apps").stdout(Stdio::from(full)).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.starts_with("error: cannot write to standard output: "), "{err}");
}
