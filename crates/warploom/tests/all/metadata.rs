//! What cargo says about this workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// All packages that building `package` builds, tests aside.
pub fn closure<'a>(metadata: &'a Value, package: &str) -> Vec<&'a Value> {
    let packages: BTreeMap<&str, &Value> =
        array(&metadata["packages"]).map(|found| (text(&found["id"]), found)).collect();
    let nodes: BTreeMap<&str, &Value> =
        array(&metadata["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let is_it = |(_, found): &(&&str, &&Value)| text(&found["name"]) == package;
    let mut open: Vec<&str> = packages.iter().filter(is_it).map(|(id, _)| *id).collect();
    let mut seen: BTreeSet<&str> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        for dependency in array(&nodes[id]["deps"]) {
            let built = array(&dependency["dep_kinds"]).any(|kind| kind["kind"] != "dev");
            let id = text(&dependency["pkg"]);
            if built && seen.insert(id) {
                open.push(id);
            }
        }
    }
    seen.into_iter().map(|id| packages[id]).collect()
}

/// The cargo that runs this test.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// What `cargo metadata` says about this workspace.
pub fn metadata(arguments: &[&str]) -> Value {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

/// The target that this test was built on. Asking for it alone keeps cargo from fetching the
/// packages of all other platforms.
pub fn host() -> String {
    let output = cargo().arg("-vV").output().expect("cargo can be run");
    let version = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("cargo -vV names its host").to_string()
}

pub fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("an array").iter()
}

pub fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}
