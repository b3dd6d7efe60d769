//! Where results go: checked before anything is computed, and nothing is left where a command fails.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value as Json;

use crate::place::Place;
use crate::read_only::{run as run_as_nobody, set_mode};

/// A search that takes much longer than a test may.
const LONG: &str = "--samples 100000 --passes 50 --beam 2000";

/// Commands that write to a place, by what stands before the place. None of them gets as far as the search or the device.
fn to_folders() -> Vec<String> {
    let mut commands = vec![
        format!("compile local_laplacian {LONG} -o"),
        format!("compile local_laplacian {LONG} --emit cuda --out"),
        format!("tune local_laplacian {LONG} --fake fake -o"),
        "suite --fake fake --samples 100000 -o".to_owned(),
        "suite --fake fake --set operators --samples 100000 -o".to_owned(),
        "suite --fake fake --strategies random --trials 100000 -o".to_owned(),
        "fuzz --pipelines 1000000 -o".to_owned(),
        "fuzz --pipelines 1000000 --out".to_owned(),
    ];
    if cfg!(feature = "train") {
        commands.extend(["collect -o".to_owned(), "train --data none --hold-out all -o".to_owned()]);
    }
    commands
}

fn to_files() -> Vec<String> {
    let mut commands = vec![
        "explain local_laplacian --html".to_owned(),
        "run harris --generate --trace".to_owned(),
        "run harris --generate -o".to_owned(),
        "run harris --generate --out".to_owned(),
        "report none.db -o".to_owned(),
        "apps --export harris=".to_owned(),
        "landscape record blur --size 64x48 --template none.schedule --fake fake -o".to_owned(),
        "records export".to_owned(),
        "tune local_laplacian --fake fake --records".to_owned(),
        "suite --fake fake --records".to_owned(),
        "landscape record blur --size 64x48 --template none.schedule --fake fake -o a.landscape --records"
            .to_owned(),
        "records import none.jsonl --records".to_owned(),
    ];
    if cfg!(feature = "train") {
        commands.extend(["collect a.schedule -o".to_owned(), "train --data none -o".to_owned()]);
    }
    commands
}

fn with(command: &str, place: &str) -> String {
    let space = if command.ends_with('=') { "" } else { " " };
    format!("{command}{space}{place}")
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        all.push(path.display().to_string());
        if path.is_dir() && !path.is_symlink() {
            all.extend(files(&path));
        }
    }
    all.sort();
    all
}

#[test]
fn places_that_cannot_be_written_are_refused_at_once() {
    let place = Place::new();
    fs::write(place.path("a.json"), "a file").unwrap();
    fs::create_dir(place.path("b.json")).unwrap();
    symlink("nowhere", place.path("link.json")).unwrap();
    let long = format!("no/such/{}/folder", "x".repeat(300));
    let before = files(&place.path(""));
    let refused = |command: String, said: &str| {
        let ran = place.run(&command);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command}: {}", ran.err);
        assert!(ran.err.starts_with("error: cannot ") && ran.err.contains(said), "{command}: {}", ran.err);
        assert_eq!(files(&place.path("")), before, "{command} leaves nothing");
    };
    for command in to_folders() {
        refused(with(&command, "a.json"), "not a folder");
        refused(with(&command, "a.json/deep/er"), "a.json is not a folder");
        refused(with(&command, "link.json/deeper"), "link.json is not a folder");
        refused(with(&command, &long), "300 bytes, and names of files have at most 255");
        refused(with(&command, "/proc/none"), "/proc/none");
    }
    for command in to_files() {
        let (is_a_folder, missing) = match command.contains("--records") {
            true => ("Is a directory", "No such file"),
            false => ("it is a folder", "there is no folder no"),
        };
        refused(with(&command, "b.json"), is_a_folder);
        refused(with(&command, "no/such.json"), missing);
        if !command.contains("--records") && !command.starts_with("records") {
            refused(with(&command, &format!("{}.json", "x".repeat(300))), "305 bytes, and names of files");
            refused(with(&command, "/proc/none.json"), "/proc/none.json");
        }
    }
}

#[test]
fn places_without_permission_are_refused_at_once() {
    let place = Place::new();
    fs::copy(env!("CARGO_BIN_EXE_warploom"), place.path("program")).unwrap();
    fs::create_dir(place.path("kept")).unwrap();
    fs::write(place.path("kept/a.json"), "").unwrap();
    for (name, mode) in [("", 0o755), ("kept/a.json", 0o444), ("kept", 0o555)] {
        set_mode(&place.path(name), mode);
    }
    let before = files(&place.path(""));
    let folders =
        to_folders().into_iter().flat_map(|command| ["kept", "kept/new"].map(|to| with(&command, to)));
    let written = to_files()
        .into_iter()
        .flat_map(|command| ["kept/a.json", "kept/new.json"].map(|to| with(&command, to)));
    for command in folders.chain(written) {
        let ran = run_as_nobody(&place, &command);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command}: {}", ran.err);
        assert!(ran.err.contains("Permission denied"), "{command}: {}", ran.err);
        assert_eq!(files(&place.path("")), before, "{command} leaves nothing");
    }
    set_mode(&place.path("kept"), 0o755);
}

#[test]
fn what_fails_later_leaves_no_database() {
    let place = Place::new();
    for command in [
        "tune blur --size 64x48 --init none.bin --fake fake",
        "suite --apps blur --init none.bin --fake fake --records tuning.db -o out",
    ] {
        assert_eq!(place.run(command).code, 2, "{command}");
        assert_eq!(files(&place.path("")), [""; 0], "{command}");
    }
}

/// SQLite would take these for databases that are forgotten when the program ends, or that others may damage.
#[test]
fn records_are_kept_in_the_file_that_is_named() {
    let place = Place::new();
    let tune =
        "tune blur --size 200x120 --samples 4 --beam 4 --passes 2 --top 2 --fake fake --json --records";
    for file in ["file:m.db?mode=memory", "file:n.db?nolock=1", ":memory:"] {
        let ran = place.run(&format!("{tune} {file}"));
        assert_eq!(ran.code, 0, "{file}: {}", ran.err);
        assert!(place.path(file).is_file(), "{file}: {:?}", files(&place.path("")));
        let listed = place.json(&format!("records list --json --records {file}"));
        assert_eq!(listed["problems"][0]["trials"], 2, "{file}");
        assert_eq!(place.run(&format!("report {file} -o page.html")).code, 0, "{file}");
        assert_eq!(place.run(&format!("records export a.jsonl --records {file}")).code, 0);
        assert_eq!(place.run("records import a.jsonl --records file:copy.db?mode=memory").code, 0);
        fs::remove_file(place.path("a.jsonl")).unwrap();
    }
    assert!(place.path("file:copy.db?mode=memory").is_file());
    assert!(!place.path("m.db").exists() && !place.path("copy.db").exists());
}

/// Every command says at once what is wrong with the address of a server, and never shows a password.
#[cfg(feature = "farm")]
#[test]
fn addresses_of_servers_are_checked_first() {
    let place = Place::new();
    let says = |command: &str, address: &str, reason: &str| {
        let ran = place.run(&format!("{command} {address} --json"));
        let said: Json = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{command}: {}", ran.out));
        let sentence = said["error"].as_str().unwrap();
        assert_eq!((ran.code, said["kind"].as_str()), (2, Some("file")), "{command}");
        assert!(sentence.contains(reason), "{command}: {sentence}");
        assert!(!ran.out.contains("secret") && !ran.err.contains("secret"), "{sentence}");
    };
    let writing = [
        "tune blur --records",
        "suite --records",
        "landscape record blur --size 64x48 --template a.schedule -o a.landscape --records",
        "records import a.jsonl --records",
        "records copy",
    ];
    let reading = ["records list --records", "records export a.jsonl --records", "report"];
    for command in writing.iter().chain(&reading) {
        says(command, "postgres://me:secret@host/trials?sslmode=prefer", "sslmode");
    }
    for command in reading {
        says(command, "postgresql://me:secret@127.0.0.1:1/trials", "cannot reach the server");
    }
}
