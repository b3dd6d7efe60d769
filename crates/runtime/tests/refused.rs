//! What the compiler refuses, so that no safe call can break memory: each file of `refused` is one way to try.
//!
//! The messages are those of the Rust that continuous integration uses; another one words them differently, and the test
//! is skipped there. `TRYBUILD=overwrite cargo test -p warploom-runtime --test refused` writes them anew.

use std::process::Command;

/// The Rust whose messages the files hold.
const RUST: &str = "1.95.";

#[test]
fn unsound_uses_do_not_compile() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("there is a compiler");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.starts_with(&format!("rustc {RUST}")) {
        eprintln!(
            "SKIPPED unsound_uses_do_not_compile: the messages are those of Rust {RUST}x, not of {version}"
        );
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
