//! Formats numbers for people.

use std::ffi::OsString;

use warploom::records;
pub(crate) use warploom::show::*;

/// The command that is running, without passwords of servers.
pub(crate) fn command() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(word).collect();
    format!("warploom {}", words.join(" "))
}

/// A word of a command line. A URL may follow a flag and `=`.
fn word(word: OsString) -> String {
    let text = word.to_string_lossy();
    match text.split_once('=').filter(|(flag, _)| flag.starts_with("--")) {
        Some((flag, value)) => format!("{flag}={}", records::shown(value)),
        None => records::shown(&word),
    }
}
