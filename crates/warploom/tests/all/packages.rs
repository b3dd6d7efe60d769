//! What the packages of this workspace need so that `cargo package --workspace` works and a registry accepts them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use crate::metadata::{array, cargo, metadata, text};

/// The most bytes of a package that the registry accepts, compressed. Files are added up as they are, so packages stay well
/// below it.
const MOST_BYTES: u64 = 10_000_000;

/// The files of every package besides its sources.
const PAGES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Whether a package is published. cargo packages nothing that depends on a package with `publish = false`, so one of these
/// has the mark that `cargo release` reads instead.
fn is_published(package: &Value) -> bool {
    package["publish"].is_null() && package["metadata"]["release"]["release"] != false
}

/// The dependencies that stay in the manifest of a package: all but those of tests that have no version.
fn kept(package: &Value) -> impl Iterator<Item = &Value> {
    let is_kept = |dependency: &&Value| dependency["kind"] != "dev" || dependency["req"] != "*";
    array(&package["dependencies"]).filter(is_kept)
}

/// Packages that say too little about themselves, or depend on what the registry does not have.
fn unpublishable(metadata: &Value) -> Vec<String> {
    let published: BTreeMap<&str, bool> =
        array(&metadata["packages"]).map(|package| (text(&package["name"]), is_published(package))).collect();
    let mut found = Vec::new();
    for package in array(&metadata["packages"]) {
        let name = text(&package["name"]);
        let fields = ["description", "license", "repository", "readme"];
        let missing = fields.iter().filter(|field| package[**field].as_str().is_none_or(str::is_empty));
        found.extend(missing.map(|field| format!("{name} has no `{field}`")));
        for dependency in kept(package) {
            let used = text(&dependency["name"]);
            if dependency["req"] == "*" {
                found.push(format!("{name} needs any version of {used}"));
            }
            if published[name] && published.get(used) == Some(&false) {
                found.push(format!("{name} is published, but {used} is not"));
            }
        }
    }
    found
}

/// Packages of which none can be packaged first, because each needs another one.
fn circular(metadata: &Value) -> Vec<&str> {
    let mut open: BTreeMap<&str, &Value> =
        array(&metadata["packages"]).map(|package| (text(&package["name"]), package)).collect();
    loop {
        let waits = |package| kept(package).any(|needed| open.contains_key(text(&needed["name"])));
        let ready: Vec<&str> =
            open.iter().filter(|(_, package)| !waits(package)).map(|(name, _)| *name).collect();
        if ready.is_empty() {
            return open.into_keys().collect();
        }
        open.retain(|name, _| !ready.contains(name));
    }
}

/// The folder of a package.
fn folder(package: &Value) -> &Path {
    Path::new(text(&package["manifest_path"])).parent().expect("a manifest is in a folder")
}

/// The files that `cargo package` takes, by their paths in the package.
fn files(package: &Value) -> BTreeSet<PathBuf> {
    let output = cargo()
        .args([
            "package",
            "--list",
            "--allow-dirty",
            "--offline",
            "--quiet",
            "--package",
            text(&package["name"]),
        ])
        .current_dir(folder(package))
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "cargo package --list: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("paths are UTF-8").lines().map(PathBuf::from).collect()
}

/// The paths in calls of `include_str!` and `include_bytes!`, relative to the source.
fn included(source: &str) -> impl Iterator<Item = &str> {
    let calls = ["include_str!(\"", "include_bytes!(\""];
    calls.into_iter().flat_map(|call| source.split(call).skip(1)).filter_map(|rest| rest.split('"').next())
}

/// A path without `..`; `None` if it leads out of the package.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if plain.pop() => {}
            Component::ParentDir => return None,
            part => plain.push(part),
        }
    }
    Some(plain)
}

/// What sources of a package include that is not in the package.
fn left_behind(package: &Value, files: &BTreeSet<PathBuf>) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
        let source = std::fs::read_to_string(folder(package).join(file)).expect("a source can be read");
        let beside = file.parent().expect("a file is in a folder");
        let missing = included(&source)
            .filter(|path| !inside(&beside.join(path)).is_some_and(|path| files.contains(&path)));
        found.extend(
            missing.map(|path| format!("{}: {} includes {path}", text(&package["name"]), file.display())),
        );
    }
    found
}

/// The bytes of those files that are in the package's folder; cargo makes the others, which are small.
fn bytes(package: &Value, files: &BTreeSet<PathBuf>) -> u64 {
    files.iter().filter_map(|file| folder(package).join(file).metadata().ok()).map(|file| file.len()).sum()
}

#[test]
fn packages_can_be_published_in_some_order() {
    let all = metadata(&["--no-deps"]);
    let found = unpublishable(&all);
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(circular(&all), [""; 0]);
    let published = |name: &str| {
        is_published(array(&all["packages"]).find(|package| package["name"] == name).expect("it is ours"))
    };
    assert!(published("warploom") && !published("warploom-training") && !published("warploom-cli"));
}

#[test]
fn packages_hold_what_they_need_and_little_else() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for package in array(&metadata(&["--no-deps"])["packages"]) {
        let (name, files) = (text(&package["name"]), files(package));
        assert!(PAGES.iter().all(|page| files.contains(Path::new(page))), "{name}: {files:?}");
        for licence in &PAGES[1..] {
            let [own, shared] =
                [folder(package), &root].map(|folder| std::fs::read_to_string(folder.join(licence)).ok());
            assert!(own.is_some() && own == shared, "{name}: {licence} is not the one of the repository");
        }
        assert_eq!(left_behind(package, &files), [""; 0]);
        let bytes = bytes(package, &files);
        assert!((1..MOST_BYTES).contains(&bytes), "{name} has {bytes} bytes");
    }
}

#[test]
fn what_cannot_be_published_is_found() {
    let package = |name: &str, publish: Value, dependencies: Value| {
        json!({
            "name": name, "description": "d", "license": "MIT", "repository": "r", "readme": "README.md",
            "publish": publish, "metadata": null, "dependencies": dependencies,
        })
    };
    let uses = |name: &str, kind: Value, req: &str| json!({ "name": name, "kind": kind, "req": req });
    let mut private = package("private", Value::Null, json!([]));
    private["metadata"] = json!({ "release": { "release": false } });
    private["description"] = Value::Null;
    let all = json!({ "packages": [
        package("one", Value::Null, json!([uses("two", "dev".into(), "^1"), uses("serde", Value::Null, "^1")])),
        package("two", Value::Null, json!([uses("one", Value::Null, "^1"), uses("private", "dev".into(), "*")])),
        package("three", Value::Null, json!([uses("private", Value::Null, "*"), uses("four", "build".into(), "^1")])),
        package("four", json!([]), json!([uses("private", Value::Null, "^1")])),
        private,
    ]});
    assert_eq!(
        unpublishable(&all),
        [
            "three needs any version of private",
            "three is published, but private is not",
            "three is published, but four is not",
            "private has no `description`",
        ]
    );
    assert_eq!(circular(&all), ["one", "two"]);
}

#[test]
fn includes_are_found_and_followed() {
    let source = "const A: &str = include_str!(\"a.c\");\nf(include_bytes!(\"../../b.bin\"), \"c\")";
    assert_eq!(included(source).collect::<Vec<_>>(), ["a.c", "../../b.bin"]);
    assert_eq!(inside(Path::new("src/deep/../a.c")), Some(PathBuf::from("src/a.c")));
    assert_eq!(inside(Path::new("src/../../b.bin")), None);
}
