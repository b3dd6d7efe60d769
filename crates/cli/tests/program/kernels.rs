//! Kernels: schedules, the simulator, and what is said where there is no GPU.

use crate::place::Place;

/// Golden data and a schedule of the app.
fn schedules() -> String {
    format!("{}/../../apps/schedules", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn golden_data_is_met_in_the_simulator() {
    let golden = format!("{}/../../apps/golden", env!("CARGO_MANIFEST_DIR"));
    let report = Place::new().json(&format!(
        "verify {golden} --app unsharp --app harris --on sim --schedule {} --json",
        schedules()
    ));
    assert_eq!((&report["on"], &report["passed"]), (&"sim".into(), &true.into()));
    for app in report["apps"].as_array().unwrap() {
        assert_eq!(app["outputs"][0]["differing"], 0, "{app}");
    }
}

#[test]
fn every_app_has_a_default_schedule() {
    let golden = format!("{}/../../apps/golden", env!("CARGO_MANIFEST_DIR"));
    let report = Place::new().json(&format!("verify {golden} --on sim --schedule default --json"));
    assert_eq!(report["apps"].as_array().unwrap().len(), warploom_apps::APPS.len());
    assert_eq!(report["passed"], true);
}

#[test]
fn the_simulator_counts() {
    let report = Place::new().json(&format!("sim copy --schedule {} --size 512x256 --json", schedules()));
    let arrays = &report["kernels"][0]["arrays"];
    assert!(arrays.to_string().contains("\"sectors\":16384"), "{arrays}");
    for size in ["133x1", "1x133", "1x1"] {
        let ran = Place::new().run(&format!("sim blur --schedule {} --size {size}", schedules()));
        assert_eq!(ran.code, 0, "{size}: {}", ran.err);
    }
    let text = Place::new().run(&format!("sim blur --schedule {} --size 65x33 --counters", schedules()));
    assert!(text.said().contains("bit for bit") && text.out.contains("conflicts"), "{}", text.out);
}

#[test]
fn a_run_can_be_simulated() {
    let ran =
        Place::new().run(&format!("run blur --size 40x30 --generate --on sim --schedule {}", schedules()));
    assert!(ran.said().contains("on the simulator"), "{}", ran.out);
}
