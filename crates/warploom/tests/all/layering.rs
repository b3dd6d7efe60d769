//! The direction of dependencies: which of our packages may use which, who may use burn, and who may name CUDA.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::metadata::{array, closure, host, metadata, text};

/// Every package, without the prefix `warploom-`, and the packages that it may use: normal and build
/// dependencies, not those of tests. A package that is not here must not exist. `warploom` may use all
/// crates of the compiler, and `models`, so that whoever adds the library has trained weights.
const MAY_USE: &[(&str, &[&str])] = &[
    ("target", &[]),
    ("lang", &[]),
    ("interp", &["lang"]),
    ("schedule", &["lang"]),
    ("plan", &["schedule", "lang", "target"]),
    ("codegen", &["plan", "schedule", "lang", "target"]),
    ("sim", &["codegen", "interp", "lang", "target"]),
    ("cost", &["plan", "schedule", "lang", "target"]),
    ("strategy", &[]),
    ("search", &["strategy", "cost", "plan", "schedule", "lang", "target"]),
    ("runtime", &["target"]),
    (
        "tune",
        &[
            "target", "lang", "interp", "schedule", "plan", "codegen", "sim", "cost", "strategy", "search",
            "runtime",
        ],
    ),
    ("farm", &["target", "lang", "schedule", "cost", "runtime", "tune"]),
    ("randpipe", &["lang"]),
    ("tensor", &["lang"]),
    ("fuzz", &["randpipe", "sim", "interp", "schedule", "plan", "codegen", "lang", "target"]),
    (
        "warploom",
        &[
            "target", "lang", "interp", "schedule", "plan", "codegen", "sim", "cost", "strategy", "search",
            "runtime", "tune", "farm", "randpipe", "tensor", "fuzz", "models",
        ],
    ),
    ("report", &[]),
    ("results", &["warploom", "apps", "report"]),
    ("cli", &["warploom", "apps", "report", "results", "training"]),
    ("apps", &["warploom"]),
    ("training", &["warploom", "apps"]),
    ("models", &[]),
    ("benches", &["warploom", "apps"]),
];

/// The folders of the CUDA back end: its printer and its driver.
const CUDA: &[&str] = &["crates/codegen/src/cuda/", "crates/runtime/src/cuda/"];

/// Other files that name it: those that choose the back end in use, and the errors of drivers.
const MAY_NAME_CUDA: &[&str] = &[
    "crates/codegen/src/lib.rs",
    "crates/codegen/src/printer.rs",
    "crates/runtime/src/error.rs",
    "crates/runtime/src/lib.rs",
];

/// What breaks the table, one line each.
fn violations(metadata: &Value) -> Vec<String> {
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let ours: BTreeSet<&str> = array(&metadata["packages"]).map(|package| text(&package["name"])).collect();
    let mut found = Vec::new();
    for package in array(&metadata["packages"]) {
        let name = text(&package["name"]);
        let Some(may_use) = allowed.get(short(name)) else {
            found.push(format!("{name} is not in the table"));
            continue;
        };
        for dependency in array(&package["dependencies"]).filter(|dependency| dependency["kind"] != "dev") {
            let used = text(&dependency["name"]);
            if ours.contains(used) && !may_use.contains(&short(used)) {
                found.push(format!("{name} must not use {used}"));
            }
        }
    }
    found
}

fn short(name: &str) -> &str {
    name.strip_prefix("warploom-").unwrap_or(name)
}

fn names<'a>(packages: &[&'a Value]) -> Vec<&'a str> {
    let mut names: Vec<&str> = packages.iter().map(|package| text(&package["name"])).collect();
    names.sort_unstable();
    names
}

fn assert_no_burn(metadata: &Value, package: &str) {
    let built = names(&closure(metadata, package));
    assert!(built.contains(&"warploom-lang"), "{package} builds {built:?}");
    let burn: Vec<&&str> = built.iter().filter(|name| name.starts_with("burn")).collect();
    assert!(burn.is_empty(), "{package} holds {burn:?}");
}

#[test]
fn dependencies_keep_to_the_table() {
    let found = violations(&metadata(&["--no-deps"]));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_library_holds_no_burn() {
    assert_no_burn(&metadata(&["--filter-platform", &host()]), "warploom");
}

#[test]
fn the_program_without_training_holds_no_burn() {
    assert_no_burn(&metadata(&["--filter-platform", &host(), "--no-default-features"]), "warploom-cli");
}

/// A workspace of three packages, where `lang` has a dependency of the given kind on `used`.
fn made_up(used: &str, kind: Value) -> Value {
    serde_json::json!({ "packages": [
        { "name": "warploom-lang", "dependencies": [{ "name": used, "kind": kind }] },
        { "name": "warploom-interp", "dependencies": [{ "name": "warploom-lang", "kind": null }] },
        { "name": "warploom", "dependencies": [{ "name": "warploom-interp", "kind": null }] },
    ]})
}

#[test]
fn a_bad_edge_is_found() {
    let bad = ["warploom-lang must not use warploom-interp"];
    assert_eq!(violations(&made_up("warploom-interp", Value::Null)), bad);
    assert_eq!(violations(&made_up("warploom-interp", "build".into())), bad);
    assert_eq!(violations(&made_up("warploom", Value::Null)), ["warploom-lang must not use warploom"]);
}

#[test]
fn tests_and_the_world_may_be_used() {
    assert!(violations(&made_up("warploom-interp", "dev".into())).is_empty());
    assert!(violations(&made_up("serde", Value::Null)).is_empty());
}

#[test]
fn a_package_outside_the_table_is_found() {
    let metadata = serde_json::json!({ "packages": [{ "name": "warploom-odds", "dependencies": [] }] });
    assert_eq!(violations(&metadata), ["warploom-odds is not in the table"]);
}

#[test]
fn a_closure_follows_all_but_tests() {
    let kind = |kind: Value| serde_json::json!([{ "kind": kind }]);
    let metadata = serde_json::json!({
        "packages": [
            { "id": "1", "name": "warploom" },
            { "id": "2", "name": "warploom-cost" },
            { "id": "3", "name": "burn-flex" },
            { "id": "4", "name": "insta" },
            { "id": "5", "name": "burn" },
        ],
        "resolve": { "nodes": [
            { "id": "1", "deps": [
                { "pkg": "2", "dep_kinds": kind(Value::Null) },
                { "pkg": "4", "dep_kinds": kind("dev".into()) },
            ]},
            { "id": "2", "deps": [{ "pkg": "3", "dep_kinds": kind("build".into()) }] },
            { "id": "3", "deps": [] },
            { "id": "4", "deps": [{ "pkg": "5", "dep_kinds": kind(Value::Null) }] },
            { "id": "5", "deps": [] },
        ]},
    });
    assert_eq!(names(&closure(&metadata, "warploom")), ["burn-flex", "warploom", "warploom-cost"]);
}

#[test]
fn the_table_names_only_packages_that_it_has() {
    let known: BTreeSet<&str> = MAY_USE.iter().map(|(name, _)| *name).collect();
    assert_eq!(known.len(), MAY_USE.len(), "a package stands twice in the table");
    for (name, may_use) in MAY_USE {
        assert!(may_use.iter().all(|used| known.contains(used)), "{name}");
    }
}

/// Whether a line of code names items of the CUDA back end or of cudarc. Words for users, such as `--on cuda`, are others.
fn names_cuda(line: &str) -> bool {
    let code = line.trim_start();
    let is_type = |rest: &str| rest.starts_with(char::is_uppercase);
    !code.starts_with("//")
        && (["cudarc", "cuda::", "nvrtc::"].iter().any(|path| code.contains(path))
            || code.split("Cuda").skip(1).any(is_type))
}

/// All files below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn nothing_but_its_printer_and_its_driver_names_cuda() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let sources = crates.chain(["apps", "training"].map(|name| root.join(name))).map(|path| path.join("src"));
    let mut found = Vec::new();
    for path in sources.filter(|folder| folder.is_dir()).flat_map(|folder| files(&folder)) {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        if CUDA.iter().any(|folder| name.starts_with(folder)) || MAY_NAME_CUDA.contains(&name.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let lines = text.lines().zip(1..).filter(|(line, _)| names_cuda(line));
        found.extend(lines.map(|(line, number)| format!("{name}:{number}: {}", line.trim())));
    }
    assert!(found.is_empty(), "name the back end in use instead:\n{}", found.join("\n"));
}

#[test]
fn names_of_cuda_are_told_from_words() {
    for line in ["use crate::cuda::Cuda;", "nvrtc::version()", "stream: &CudaStream,", "use cudarc::driver;"]
    {
        assert!(names_cuda(line), "{line}");
    }
    for line in
        ["// cuda::Cuda prints it", "Emit::Cuda => \"cuda\",", "mod cuda_mat_mul;", "const CUDA: u32 = 1;"]
    {
        assert!(!names_cuda(line), "{line}");
    }
}
