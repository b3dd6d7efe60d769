//! The reference data of the suite.

use std::path::Path;
use std::process::Command;

/// All 17 apps give the outputs that were recorded for them.
#[test]
fn every_app_passes() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps/golden");
    let run = Command::new(env!("CARGO_BIN_EXE_warploom")).arg("verify").arg(golden).arg("--json").output();
    let run = run.expect("the program starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).expect("it is JSON");
    let text = report.to_string();
    for app in warploom_apps::APPS.iter() {
        assert!(text.contains(&format!("\"{}\"", app.name)), "{} was not verified", app.name);
    }
}
