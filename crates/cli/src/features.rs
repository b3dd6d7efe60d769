//! Says which Cargo feature a command or flag needs, if the program was built without it.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::Error;

/// Commands with their features.
const COMMANDS: [(&str, &str); 4] =
    [("collect", "train"), ("train", "train"), ("evaluate", "train"), ("farm", "farm")];

/// The flags of the feature `train`, each with its command.
const FLAGS: [(&str, &str); 3] = [("tune", "--retrain"), ("tune", "--weights"), ("suite", "--retrain")];

/// The error for arguments that do not parse.
pub(crate) fn explained(error: clap::Error, arguments: &[OsString]) -> Error {
    let has = |feature| match feature {
        "farm" => cfg!(all(feature = "farm", unix)),
        _ => cfg!(feature = "train"),
    };
    match left_out(&error, arguments).filter(|(_, feature)| !has(*feature)) {
        Some((what, feature)) => Error::LeftOut { what, feature },
        None => Error::Arguments(error),
    }
}

/// The unknown command or flag and its feature, if a feature would add it.
fn left_out(error: &clap::Error, arguments: &[OsString]) -> Option<(String, &'static str)> {
    let unknown = |kind| match error.get(kind) {
        Some(ContextValue::String(unknown)) => Some(unknown.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let command = unknown(ContextKind::InvalidSubcommand)?;
            let (_, feature) = COMMANDS.iter().find(|(known, _)| *known == command)?;
            Some((format!("`warploom {command}`"), feature))
        }
        ErrorKind::UnknownArgument => {
            let flag = unknown(ContextKind::InvalidArg)?;
            let mut flags = FLAGS.iter().filter(|(_, known)| *known == flag);
            let (command, flag) = flags.find(|(command, _)| arguments.iter().any(|word| word == command))?;
            Some((format!("`warploom {command} {flag}`"), "train"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left out, according to a program that has only `tune` and `compile`.
    fn said(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let program = clap::Command::new("warploom").subcommands(["tune", "compile"].map(clap::Command::new));
        left_out(&program.try_get_matches_from(&words).unwrap_err(), &words).map(|(what, _)| what)
    }

    #[test]
    fn only_what_the_feature_adds_is_left_out() {
        assert_eq!(said("warploom train --data x").as_deref(), Some("`warploom train`"));
        assert_eq!(said("warploom help evaluate").as_deref(), Some("`warploom evaluate`"));
        assert_eq!(said("warploom tune --retrain").as_deref(), Some("`warploom tune --retrain`"));
        assert_eq!(said("warploom tune --weights=a").as_deref(), Some("`warploom tune --weights`"));
        for other in
            ["warploom trains", "warploom compile --retrain", "warploom tune --retains", "warploom tune x"]
        {
            assert_eq!(said(other), None, "{other}");
        }
    }
}
