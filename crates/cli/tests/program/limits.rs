//! Files that claim too much or never end: one sentence and exit code 2.

use std::fs;
use std::process::Command;

use crate::place::Place;

/// What the program says to a command that is refused.
fn refusal(place: &Place, command: &str) -> String {
    let ran = place.run(command);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command}: {}", ran.err);
    ran.err
}

/// 46 bytes, which hold a text of 2^60.
#[test]
fn samples_with_a_length_that_is_made_up_are_damaged() {
    let place = Place::new();
    let start = b"warploom samples\x01\0\0\0\x16\0\0\0\0\0\xfd";
    fs::write(place.path("a.samples"), [&start[..], &(1_u64 << 60).to_le_bytes(), &[0; 11]].concat())
        .unwrap();
    let said = refusal(&place, "records import a.samples --records new.db");
    assert_eq!(said, "error: a.samples is damaged after 0 samples\n");
}

#[test]
fn files_that_are_too_large_are_not_read() {
    let place = Place::new();
    for name in ["a.json", "a.schedule", "a.npy", "a.png"] {
        fs::File::create(place.path(name)).unwrap().set_len(1 << 40).unwrap();
    }
    let said = |command: &str| refusal(&place, command);
    let text = "is too large: 16 MiB is the limit for a text file; give a smaller file\n";
    assert_eq!(said("compile a.json --size 8x8"), format!("error: a.json {text}"));
    assert_eq!(said("fuzz --device h200 --replay a.json"), format!("error: a.json {text}"));
    assert_eq!(said("report a.json"), format!("error: a.json {text}"));
    assert_eq!(said("compile blur --device a.json"), format!("error: a.json {text}"));
    assert_eq!(said("compile blur --device h200 --schedule a.schedule"), format!("error: a.schedule {text}"));
    let weights = "error: a.npy is too large: 16 MiB is the limit for a weights file; give a smaller file\n";
    assert_eq!(said("compile blur --device h200 --model a.npy"), weights);
    let array = "error: a.npy is too large: 64 GiB is the limit for a .npy file; give a smaller file\n";
    assert_eq!(said("run harris --input a.npy -o b.npy"), array);
    let picture = "error: a.png is too large: 512 MiB is the limit for a picture file; give a smaller file\n";
    assert_eq!(said("run harris --input a.png -o b.npy"), picture);
}

/// Nobody writes to the pipe, so that a program that opens it would wait for ever.
#[cfg(unix)]
#[test]
fn pipes_are_not_waited_for() {
    let place = Place::new();
    for name in ["a.json", "a.schedule", "a.npy", "a.png", "a.samples", "a.jsonl"] {
        assert!(Command::new("mkfifo").arg(place.path(name)).status().unwrap().success());
    }
    for (command, file) in [
        ("compile a.json --size 8x8", "a.json"),
        ("compile blur --device h200 --schedule a.schedule", "a.schedule"),
        ("compile blur --device a.json", "a.json"),
        ("compile blur --device h200 --model a.json", "a.json"),
        ("run harris --input a.npy -o b.npy", "a.npy"),
        ("run harris --input a.png -o b.npy", "a.png"),
        ("fuzz --device h200 --replay a.json", "a.json"),
        ("report a.json", "a.json"),
        ("suite --compare a.json --fake fake", "a.json"),
        ("records import a.samples --records new.db", "a.samples"),
        ("records import a.jsonl --records new.db", "a.jsonl"),
    ] {
        let said = refusal(&place, command);
        let expected =
            format!("error: {file} is not a regular file; save its contents to a regular file first\n");
        assert_eq!(said, expected, "{command}");
    }
}

#[test]
fn folders_are_no_files() {
    let place = Place::new();
    for name in ["a", "a.json", "a.npy", "a.png"] {
        fs::create_dir(place.path(name)).unwrap();
    }
    for (command, file) in [
        ("compile a.json --size 8x8", "a.json"),
        ("compile blur --device a.json", "a.json"),
        ("compile blur --device h200 --model a", "a"),
        ("compile blur --device h200 --fix a", "a"),
        ("run harris --input a.npy -o b.npy", "a.npy"),
        ("run harris --input a.png -o b.npy", "a.png"),
        ("tune blur --fake fake --strategy random --template a", "a"),
        ("tune blur --fake fake --init a", "a"),
        ("landscape record blur --fake fake --dry-run --template a", "a"),
        ("landscape show a", "a"),
        ("suite --compare a --fake fake", "a"),
    ] {
        assert_eq!(
            refusal(&place, command),
            format!("error: {file} is a folder; give a file\n"),
            "{command}"
        );
    }
}

#[test]
fn deep_json_is_refused() {
    let place = Place::new();
    let deep = "[".repeat(1 << 20);
    fs::write(place.path("a.json"), format!("{{\"format\": \"warploom-pipeline\", \"exprs\": {deep}"))
        .unwrap();
    fs::write(place.path("b.json"), format!("{{\"format\": \"warploom-case\", \"pipeline\": {deep}"))
        .unwrap();
    fs::write(place.path("c.json"), format!("{{\"schema\": \"warploom.suite/2\", \"apps\": {deep}")).unwrap();
    for command in ["compile a.json", "fuzz --replay b.json", "report c.json", "compile blur --device a.json"]
    {
        refusal(&place, command);
    }
}
