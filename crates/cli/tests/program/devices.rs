//! Which GPU kernels are generated for: the one that is there, the one that a manifest names, or the one that is given.

use std::fs;

use warploom::target::Device;

use crate::place::{Place, Ran};

/// A note that `auto` is no GPU of this machine.
const NO_GPU: &str = "note: this machine has no GPU, so kernels are generated for h200; choose another with --device NAME \
     (`warploom devices --presets` lists them)\n";

fn has_gpu() -> bool {
    warploom::runtime::Gpu::new(0).is_ok()
}

fn succeeded(ran: &Ran) -> &Ran {
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran
}

#[test]
fn without_a_gpu_auto_is_a_preset_and_a_note_says_so() {
    if has_gpu() {
        return;
    }
    let place = Place::new();
    for command in [
        "compile blur --schedule default --size 64x48",
        "explain blur --schedule default --size 64x48",
        "compile blur --schedule default --size 64x48 --emit cuda",
    ] {
        let given = place.run(&format!("{command} --device h200"));
        assert_eq!((given.code, given.err.as_str()), (0, ""), "{command}");
        for auto in [command.to_owned(), format!("{command} --device auto")] {
            let ran = place.run(&auto);
            assert_eq!(
                (ran.code, ran.err.as_str(), ran.out.as_str()),
                (0, NO_GPU, given.out.as_str()),
                "{auto}"
            );
        }
        assert_eq!(succeeded(&place.run(&format!("-q {command}"))).err, "", "{command}");
        place.json(&format!("{command} --json"));
    }
}

#[test]
fn a_gpu_without_weights_of_its_own_is_said_with_what_to_do() {
    let place = Place::new();
    let ran = place.run("explain blur --schedule default --size 64x48 --device a100");
    let note = &succeeded(&ran).err;
    assert!(note.starts_with("note: the weights are for H200 (") && note.lines().count() == 1, "{note}");
    for help in ["`warploom tune`", "--model analytic", "--model FILE"] {
        assert!(note.contains(help), "{note}");
    }
    let analytic = "explain blur --schedule default --size 64x48 --device a100 --model analytic";
    assert_eq!(succeeded(&place.run(analytic)).err, "");
}

#[test]
fn a_note_is_said_once_for_what_runs_and_never_for_the_rest() {
    if has_gpu() {
        return;
    }
    let place = Place::new();
    place.copy_golden(&["hist", "unsharp"]);
    for command in [
        "sim blur --schedule default --size 64x48",
        "run blur --generate --on sim --schedule default --size 64x48",
        "verify golden --on sim --schedule default",
        "fuzz --pipelines 1 --schedules 1",
    ] {
        assert_eq!(succeeded(&place.run(command)).err, NO_GPU, "{command}");
        assert_eq!(succeeded(&place.run(&format!("{command} --device t4"))).err, "", "{command}");
    }
    for command in ["run blur --size 64x48 --generate", "verify golden", "devices --presets"] {
        assert_eq!(succeeded(&place.run(command)).err, "", "{command}");
    }
    let described = place.run("devices --describe auto");
    assert_eq!(described.code, 4);
    assert!(described.err.ends_with("name a preset, for example --describe h200\n"), "{}", described.err);
}

#[test]
fn with_a_gpu_auto_is_that_gpu() {
    if !has_gpu() {
        return;
    }
    let place = Place::new();
    let described: serde_json::Value =
        serde_json::from_str(&place.run("devices --describe auto").out).unwrap();
    let ran = place.run("explain blur --schedule default --size 64x48 --model analytic");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains(&format!(" for {} (", described["name"].as_str().unwrap())), "{}", ran.out);
}

/// A folder `out` with what `compile` writes for a GPU that this machine does not have.
fn compiled(device: &str) -> Place {
    let place = Place::new();
    succeeded(&place.run(&format!(
        "compile blur --schedule default --size 64x48 --model analytic -o out --device {device}"
    )));
    place
}

const EXPLAIN: &str = "explain blur --size 64x48 --model analytic --schedule";
const SIM: &str = "sim blur --size 64x48 --schedule";

#[test]
fn explain_and_sim_take_the_device_of_the_manifest() {
    let place = compiled("t4");
    for schedule in ["out", "out/blur.schedule"] {
        for command in [EXPLAIN, SIM] {
            let ran = place.run(&format!("{command} {schedule}"));
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{command} {schedule}");
            assert!(ran.out.contains(" for T4"), "{}", ran.out);
            assert_eq!(place.json(&format!("{command} {schedule} --json"))["device"], "T4");
        }
    }
}

#[test]
fn a_given_device_wins_over_the_manifest() {
    let place = compiled("t4");
    for command in [EXPLAIN, SIM] {
        let same = place.run(&format!("{command} out --device t4"));
        assert_eq!((same.code, same.err.as_str()), (0, ""), "{command}");
        let other = format!("{command} out --device a100");
        let ran = place.run(&other);
        let note = "note: out/blur.json was made for T4, but --device selects A100\n";
        assert_eq!((ran.code, ran.err.as_str()), (0, note), "{other}");
        assert!(ran.out.contains(" for A100"), "{}", ran.out);
        assert_eq!(succeeded(&place.run(&format!("{other} -q"))).err, "");
        assert_eq!(place.json(&format!("{other} --json"))["device"], "A100");
    }
}

#[test]
fn a_device_that_only_its_description_knows_must_be_given_again() {
    let place = Place::new();
    fs::write(place.path("mine.json"), place.run("devices --describe t4").out.replace("T4", "my own"))
        .unwrap();
    succeeded(
        &place.run("compile blur --schedule default --size 64x48 --model analytic -o out --device mine.json"),
    );
    for command in [EXPLAIN, SIM] {
        let ran = place.run(&format!("{command} out"));
        let error = "error: out/blur.json was made for `my own`, which is neither a preset nor a GPU of this machine; \
                     give its description with --device FILE.json, or another device\n";
        assert_eq!((ran.code, ran.err.as_str(), ran.out.as_str()), (2, error, ""), "{command}");
        let given = place.run(&format!("{command} out --device mine.json"));
        assert_eq!((given.code, given.err.as_str()), (0, ""), "{command}");
    }
}

#[test]
fn other_json_beside_a_schedule_is_no_manifest() {
    let place = compiled("t4");
    for other in ["{}", "[", r#"{ "schema": "warploom.suite/2", "device": "T4" }"#, r#"{ "device": "T4" }"#] {
        fs::write(place.path("out/blur.json"), other).unwrap();
        let ran = place.run(&format!("{EXPLAIN} out"));
        let auto = place.run(&format!("{EXPLAIN} out --device auto"));
        assert_eq!((ran.code, ran.err, ran.out), (0, auto.err, auto.out), "{other}");
    }
}

#[test]
fn the_page_on_devices_lists_the_presets() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/devices.md");
    let page = fs::read_to_string(page).unwrap();
    let table = page.split("\n| preset |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows: Vec<Vec<&str>> = table.lines().skip(2).map(|row| row.split(" | ").collect()).collect();
    let listed = rows.iter().map(|row| format!("{} {}", row[0].trim_start_matches("| "), row[1]));
    let presets = Device::presets();
    let presets = presets
        .iter()
        .map(|device| format!("{} {}.{}", device.name, device.compute.major, device.compute.minor));
    assert_eq!(listed.collect::<Vec<_>>(), presets.collect::<Vec<_>>());
    for (row, device) in rows.iter().zip(Device::presets()) {
        assert_eq!(row[4] == "its own", warploom::model_for(&device).warning.is_none(), "{row:?}");
    }
}
