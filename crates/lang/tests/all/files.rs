//! Reading untrusted files: what is accepted and what is rejected.

use std::fs;
use std::io::{self, Read};
use std::process::Command;

use tempfile::TempDir;
use warploom_lang::Pipeline;
use warploom_lang::files::{self, ALL, Limit, NESTING, ReadError, TEXT, Unit};

const FEW: Limit = Limit { what: "a test", most: 5, unit: Unit::Bytes };

#[test]
fn a_file_is_read_up_to_its_limit() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "12345").unwrap();
    assert_eq!(files::read(&path, FEW).unwrap(), b"12345");
    fs::write(&path, "123456").unwrap();
    let error = files::read(&path, FEW).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{} is too large: 5 bytes is the limit for a test; give a smaller file", path.display())
    );
    assert!(matches!(files::read(folder.path().join("b"), FEW), Err(ReadError::System { .. })));
    let error = files::read(folder.path(), FEW).unwrap_err();
    assert_eq!(error.to_string(), format!("{} is a folder; give a file", folder.path().display()));
}

/// A sparse file takes no memory.
#[test]
fn a_huge_file_is_refused_before_it_is_read() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("huge.json");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(files::read_text(&path), Err(ReadError::TooLarge { limit: TEXT, .. })));
}

/// The pipe has no writer, so opening it would block forever.
#[cfg(unix)]
#[test]
fn what_has_no_end_is_refused() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe, "/dev/zero".into()] {
        let error = files::read(&path, FEW).unwrap_err();
        assert!(matches!(error, ReadError::Special { .. }), "{error}");
    }
}

#[test]
fn text_is_utf8() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.json");
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(files::read_text(&path).unwrap_err().to_string().contains("utf-8"));
}

#[test]
fn a_stream_is_read_up_to_its_limit() {
    let zeros = |count| io::repeat(0).take(count);
    assert_eq!(files::read_stream(zeros(5), FEW).unwrap(), Some(vec![0; 5]));
    assert_eq!(files::read_stream(zeros(6), FEW).unwrap(), None);
    assert_eq!(files::read_stream(io::repeat(0), FEW).unwrap(), None);
}

#[test]
fn json_is_nested_up_to_its_limit() {
    let nested = |levels: u64| "[".repeat(levels as usize) + &"]".repeat(levels as usize);
    let read = |levels| serde_json::from_str::<serde_json::Value>(&nested(levels));
    assert!(read(NESTING.most).is_ok());
    assert!(read(NESTING.most + 1).unwrap_err().to_string().contains("recursion limit"));
    // Unknown entries are skipped without being stored, at any depth.
    for key in ["exprs", "unknown"] {
        let deep = format!("{{\"format\": \"warploom-pipeline\", \"{key}\": {}", "[".repeat(1 << 20));
        assert!(Pipeline::from_json(&deep).is_err());
    }
}

/// The table in the document contains every limit once, in order, and nothing else.
#[test]
fn the_document_lists_all_limits() {
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md")).unwrap();
    let rows = document.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.map(|row| row.split(" | ").take(2).collect::<Vec<_>>().join(": "));
    let rows: Vec<String> = rows.filter(|row| row != "what: the most" && !row.starts_with("---")).collect();
    let limits: Vec<String> = ALL.iter().map(|limit| format!("{}: {limit}", limit.what)).collect();
    assert_eq!(rows, limits);
}
