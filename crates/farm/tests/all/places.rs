//! What is taken for a farm file, and what is left to others.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use warploom_farm::address_of;
use warploom_farm::farm_file::FarmFile;

const URL: &str = "postgres://warploom_worker:secret@10.0.0.1:5432/warploom";

#[test]
fn other_json_is_no_farm_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    let large = format!("{{\"url\": \"{URL}\", \"text\": \"{}\"}}", "x".repeat(1 << 20));
    for text in [
        "{\"schema\": \"warploom.suite/1\", \"apps\": []}",
        "{\"url\": \"https://example.com/postgres://\"}",
        "{\"url\": 7}",
        "{\"nested\": {\"url\": \"postgres://a/b\"}}",
        "[\"postgres://a/b\"]",
        "{\"url\": \"postgres://a/b\"",
        "{",
        "",
        &large,
    ] {
        fs::write(&path, text).unwrap();
        assert!(address_of(&path).unwrap().is_none(), "{:.60}", text);
    }
    assert!(address_of(folder.path()).unwrap().is_none());
    assert!(address_of(&folder.path().join("none")).unwrap().is_none());
}

#[test]
fn farm_files_are_known_by_their_url_and_must_be_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("farm.json");
    for url in [URL, "PostgreSQL://warploom_worker:secret@10.0.0.1:5432/warploom"] {
        FarmFile { url: url.to_owned(), ca: None }.write(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = address_of(&path).unwrap_err().to_string();
        assert!(error.contains("other users can open the farm file"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    FarmFile { url: URL.to_owned(), ca: None }.write(&path).unwrap();
    assert!(address_of(&path).unwrap().is_some());
}
