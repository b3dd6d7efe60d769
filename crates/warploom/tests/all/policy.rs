//! What may be depended on, as `.deny.toml` says, and the oldest Rust that a package can be built with.
//!
//! `cargo deny check` reads the same file and knows of advisories too; this needs nothing but cargo.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toml::Table;

use crate::metadata::{array, closure, host, metadata, text};

/// The policy.
fn policy() -> Table {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.deny.toml");
    std::fs::read_to_string(file).expect("the policy is there").parse().expect("it is TOML")
}

/// All packages of this workspace and what they depend on.
fn all() -> Value {
    metadata(&["--offline", "--filter-platform", &host()])
}

fn entries<'a>(policy: &'a Table, section: &str, list: &str) -> Vec<&'a toml::Value> {
    let entries = policy.get(section).and_then(|section| section.get(list)).and_then(toml::Value::as_array);
    entries.map(|entries| entries.iter().collect()).unwrap_or_default()
}

fn field<'a>(entry: &'a toml::Value, name: &str) -> &'a str {
    let field = entry.get(name).and_then(toml::Value::as_str);
    field.unwrap_or_else(|| panic!("{entry} has no `{name}`"))
}

fn named(package: &Value) -> String {
    format!("{}@{}", text(&package["name"]), text(&package["version"]))
}

/// Whether a licence is allowed: names with `OR`, `AND`, `WITH` and parentheses; an old form has `/` in place of `OR`.
struct Licence<'a> {
    words: Vec<String>,
    next: usize,
    allowed: &'a dyn Fn(&str) -> bool,
}

impl Licence<'_> {
    fn is_allowed(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
        let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let words = spaced.split_whitespace().map(str::to_owned).collect();
        let mut licence = Licence { words, next: 0, allowed };
        let allowed = licence.any();
        allowed && licence.next == licence.words.len()
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.words.get(self.next).is_some_and(|next| next == word);
        self.next += usize::from(found);
        found
    }

    fn any(&mut self) -> bool {
        let mut allowed = self.both();
        while self.takes("OR") {
            allowed |= self.both();
        }
        allowed
    }

    fn both(&mut self) -> bool {
        let mut allowed = self.one();
        while self.takes("AND") {
            allowed &= self.one();
        }
        allowed
    }

    fn one(&mut self) -> bool {
        if self.takes("(") {
            let allowed = self.any();
            return self.takes(")") && allowed;
        }
        let mut name = self.words.get(self.next).cloned().unwrap_or_default();
        self.next += 1;
        if self.takes("WITH") {
            name = format!("{name} WITH {}", self.words.get(self.next).cloned().unwrap_or_default());
            self.next += 1;
        }
        (self.allowed)(&name)
    }
}

/// Packages under licences that are not allowed.
fn unlicensed(policy: &Table, metadata: &Value) -> Vec<String> {
    let listed = |list: &toml::Value, name: &str| {
        list.as_array().is_some_and(|list| list.iter().any(|licence| licence.as_str() == Some(name)))
    };
    let of = |list: &str, package: &str| {
        entries(policy, "licenses", list).into_iter().find(|entry| field(entry, "crate") == package)
    };
    let refused = array(&metadata["packages"]).filter(|package| {
        let name = text(&package["name"]);
        let exception = of("exceptions", name).and_then(|entry| entry.get("allow"));
        let allowed = |licence: &str| {
            listed(&policy["licenses"]["allow"], licence)
                || exception.is_some_and(|list| listed(list, licence))
        };
        let clarified = of("clarify", name).map(|entry| field(entry, "expression"));
        let expression = clarified.or(package["license"].as_str());
        !expression.is_some_and(|expression| Licence::is_allowed(expression, &allowed))
    });
    refused.map(|package| format!("{}: {}", named(package), package["license"])).collect()
}

/// Packages from elsewhere than the registry that is allowed, those of this workspace aside.
fn strangers(policy: &Table, metadata: &Value) -> Vec<String> {
    let members: BTreeSet<&str> = array(&metadata["workspace_members"]).map(text).collect();
    let allowed: Vec<String> = entries(policy, "sources", "allow-registry")
        .iter()
        .filter_map(|registry| Some(format!("registry+{}", registry.as_str()?)))
        .collect();
    let strange = array(&metadata["packages"]).filter(|package| match package["source"].as_str() {
        Some(source) => !allowed.iter().any(|known| known == source),
        None => !members.contains(text(&package["id"])),
    });
    strange.map(named).collect()
}

/// Packages that are there in more than one version and not listed, and listed ones that are not.
fn repeated(policy: &Table, metadata: &Value) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for package in array(&metadata["packages"]) {
        versions.entry(text(&package["name"])).or_default().insert(named(package));
    }
    let listed: BTreeSet<&str> =
        entries(policy, "bans", "skip").into_iter().map(|entry| field(entry, "crate")).collect();
    let mut found = Vec::new();
    for all in versions.values() {
        let more: Vec<&String> = all.iter().filter(|one| !listed.contains(one.as_str())).collect();
        if more.len() > 1 {
            found.push(format!("more than one version: {more:?}"));
        }
    }
    let several: BTreeSet<&str> =
        versions.values().filter(|all| all.len() > 1).flatten().map(String::as_str).collect();
    found.extend(listed.difference(&several).map(|one| format!("{one} is listed in vain")));
    found
}

/// Packages that are banned, and dependencies of ours on any version of something.
fn banned(policy: &Table, metadata: &Value) -> Vec<String> {
    let banned: BTreeSet<&str> =
        entries(policy, "bans", "deny").into_iter().map(|entry| field(entry, "crate")).collect();
    let mut found = Vec::new();
    for package in array(&metadata["packages"]) {
        if banned.contains(text(&package["name"])) {
            found.push(named(package));
        }
        if package["source"].is_null() {
            let any = array(&package["dependencies"])
                .filter(|dependency| dependency["req"] == "*" && dependency["path"].is_null());
            found.extend(any.map(|dependency| format!("any version of {}", text(&dependency["name"]))));
        }
    }
    found
}

/// A version of Rust that can be compared.
fn version(text: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = text.split('.').map(|number| number.parse().expect("a number")).collect();
    numbers.resize(3, 0);
    numbers
}

/// What packages of ours are built with that needs a newer Rust than they say.
fn too_new(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for package in array(&metadata["packages"]).filter(|package| package["source"].is_null()) {
        let name = text(&package["name"]);
        let Some(least) = package["rust_version"].as_str() else {
            found.push(format!("{name} does not say what it needs"));
            continue;
        };
        for used in closure(metadata, name) {
            if let Some(needs) = used["rust_version"].as_str().filter(|needs| version(needs) > version(least))
            {
                found.push(format!("{name} says {least}, but {} needs {needs}", named(used)));
            }
        }
    }
    found
}

fn assert_none(found: &[String]) {
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn dependencies_keep_to_the_policy() {
    let (policy, all) = (policy(), all());
    assert_none(&unlicensed(&policy, &all));
    assert_none(&strangers(&policy, &all));
    assert_none(&repeated(&policy, &all));
    assert_none(&banned(&policy, &all));
}

#[test]
fn what_is_passed_over_is_there_and_has_a_reason() {
    let (policy, all) = (policy(), all());
    let there: BTreeSet<&str> = array(&all["packages"]).map(|package| text(&package["name"])).collect();
    for entry in entries(&policy, "advisories", "ignore") {
        let (about, _) = field(entry, "reason").split_once(": ").expect("a reason begins with a package");
        assert!(there.contains(about) && field(entry, "id").starts_with("RUSTSEC-"), "{entry}");
    }
    for (section, list) in [("advisories", "ignore"), ("bans", "skip"), ("bans", "deny")] {
        assert!(entries(&policy, section, list).iter().all(|entry| !field(entry, "reason").is_empty()));
    }
    for list in ["exceptions", "clarify"] {
        let entries = entries(&policy, "licenses", list);
        assert!(entries.iter().all(|entry| there.contains(field(entry, "crate"))), "{entries:?}");
    }
}

#[test]
fn no_dependency_needs_a_newer_rust_than_we_say() {
    let all = all();
    assert_none(&too_new(&all));
    let of = |name: &str| {
        let mut packages = array(&all["packages"]);
        packages.find(|package| package["name"] == name).expect("it is ours")["rust_version"].clone()
    };
    assert!(version(text(&of("warploom"))) < version(text(&of("warploom-training"))), "burn needs more");
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).expect("it is there");
    for name in ["warploom", "warploom-training"] {
        assert!(readme.contains(&format!("Rust {}", text(&of(name)))), "{name}");
    }
}

#[test]
fn licences_are_understood() {
    let allowed = |name: &str| ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].contains(&name);
    for good in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "MIT AND ISC", "(GPL-3.0 OR MIT) AND ISC"] {
        assert!(Licence::is_allowed(good, &allowed), "{good}");
    }
    assert!(Licence::is_allowed("Apache-2.0 WITH LLVM-exception", &allowed));
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "Apache-2.0",
        "(MIT",
        "MIT)",
        "MIT ISC",
        "GPL-3.0 OR (MIT AND GPL-3.0)",
    ] {
        assert!(!Licence::is_allowed(bad, &allowed), "{bad}");
    }
}

/// A workspace with one package of ours and others.
fn made_up(others: Value) -> Value {
    let ours = serde_json::json!({
        "id": "ours", "name": "ours", "version": "1.0.0", "license": "MIT", "source": null, "rust_version": "1.89",
        "dependencies": [{ "name": "one", "req": "^1" }],
    });
    let registry = "registry+https://github.com/rust-lang/crates.io-index";
    let others = array(&others).map(|other| {
        let mut package = serde_json::json!({ "license": "MIT", "source": registry, "dependencies": [] });
        let given = other.as_object().expect("an object").clone();
        package.as_object_mut().expect("an object").extend(given);
        package["id"] = named(&package).into();
        package
    });
    let packages: Vec<Value> = std::iter::once(ours).chain(others).collect();
    let dependencies = packages
        .iter()
        .skip(1)
        .map(|package| serde_json::json!({ "pkg": package["id"], "dep_kinds": [{ "kind": null }] }));
    let mut nodes = vec![serde_json::json!({ "id": "ours", "deps": dependencies.collect::<Vec<_>>() })];
    nodes.extend(
        packages.iter().skip(1).map(|package| serde_json::json!({ "id": package["id"], "deps": [] })),
    );
    serde_json::json!({ "packages": packages, "workspace_members": ["ours"], "resolve": { "nodes": nodes } })
}

#[test]
fn what_breaks_the_policy_is_found() {
    let policy: Table = r#"
        [licenses]
        allow = ["MIT"]
        exceptions = [{ crate = "three", allow = ["MPL-2.0"] }]
        [bans]
        deny = [{ crate = "four", reason = "bad" }]
        skip = [{ crate = "five@1.0.0", reason = "one" }, { crate = "six@1.0.0", reason = "one" }]
        [sources]
        allow-registry = ["https://github.com/rust-lang/crates.io-index"]
    "#
    .parse()
    .expect("it is TOML");
    let metadata = made_up(serde_json::json!([
        { "name": "one", "version": "1.0.0" },
        { "name": "one", "version": "2.0.0", "license": "GPL-3.0" },
        { "name": "two", "version": "1.0.0", "license": null },
        { "name": "three", "version": "1.0.0", "license": "MPL-2.0", "source": "git+https://example.com/three" },
        { "name": "four", "version": "1.0.0", "source": null, "rust_version": "1.90.0",
          "dependencies": [{ "name": "one", "req": "*" }] },
        { "name": "five", "version": "1.0.0", "rust_version": "1.89.0" },
        { "name": "five", "version": "2.0.0" },
    ]));
    assert_eq!(unlicensed(&policy, &metadata), ["one@2.0.0: \"GPL-3.0\"", "two@1.0.0: null"]);
    assert_eq!(strangers(&policy, &metadata), ["three@1.0.0", "four@1.0.0"]);
    let twice = "more than one version: [\"one@1.0.0\", \"one@2.0.0\"]";
    assert_eq!(repeated(&policy, &metadata), [twice, "six@1.0.0 is listed in vain"]);
    assert_eq!(banned(&policy, &metadata), ["four@1.0.0", "any version of one"]);
    assert_eq!(too_new(&metadata), ["ours says 1.89, but four@1.0.0 needs 1.90.0"]);
}
