//! Says why a run failed: a sentence on standard error, or with `--json` one object on standard output.

use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::{Mutex, PoisonError};

use clap::error::ErrorKind;
use warploom::lang::visible_lines;

use crate::error::{Error, Kind};
use crate::report::{self, Declared as _};

/// The first panic of a run with `--json`, which is printed when the run has ended.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// How a run says that it failed.
#[derive(Clone, Copy)]
pub(crate) struct Failures {
    json: bool,
}

report! {
    struct Failure<'a> = "warploom.error/1" {
        error: &'a str, "one sentence for people; its words may change";
        kind: &'static str, "what went wrong, from the table below; never changes";
        code: u8, "the exit code";
    }
}

impl Failures {
    /// Takes `--json` from arguments that may not parse.
    pub(crate) fn of(arguments: &[OsString]) -> Failures {
        let mut flags = arguments.iter().take_while(|argument| *argument != "--");
        Failures { json: flags.any(|argument| argument == "--json") }
    }

    /// Says what went wrong, unless the report says it already or nobody is left to tell.
    pub(crate) fn report(self, error: &Error, out: &mut dyn Write) {
        match error {
            Error::Arguments(error) if !self.json || !error.use_stderr() => error.print().unwrap_or_default(),
            Error::Arguments(error) => self.print(&sentence(error), Kind::Usage, out),
            error => match error.kind() {
                Kind::Closed => {}
                // Standard output itself has failed.
                Kind::Output => complain(&error.to_string()),
                _ if self.json && error.is_in_the_report() => {}
                kind => self.print(&error.to_string(), kind, out),
            },
        }
    }

    /// Reports a panic. With `--json` it is kept for [`Failures::report_panic`], because the program may go on.
    pub(crate) fn note_panic(self, panic: &PanicHookInfo<'_>) {
        if warploom::fuzz::note_panic(panic) {
            return;
        }
        let message = warploom::fuzz::panic_message(panic.payload());
        let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
        let place = place.unwrap_or_default();
        let sentence = format!("internal error: {message}{place}; this is a bug, please report it");
        match self.json {
            true => {
                PANIC.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(sentence);
            }
            false => complain(&sentence),
        }
    }

    /// Says that a panic ended the run.
    pub(crate) fn report_panic(self, out: &mut dyn Write) {
        if let Some(sentence) = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.print(&sentence, Kind::Internal, out);
        }
    }

    fn print(self, sentence: &str, kind: Kind, out: &mut dyn Write) {
        if !self.json {
            return complain(sentence);
        }
        let failure = Failure { error: sentence, kind: kind.name(), code: kind.code() };
        // The exit code still says it if standard output is closed.
        report::json_line(out, Failure::NAME, &failure).unwrap_or_default();
    }
}

/// Prints one error message to standard error.
fn complain(message: &str) {
    // If standard error is closed, there is nowhere to report it.
    writeln!(io::stderr(), "error: {}", visible_lines(message)).unwrap_or_default();
}

/// What is wrong with the arguments, without the summary of the usage.
fn sentence(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "an argument or command is missing; --help lists them".to_owned();
    }
    let text = error.render().to_string();
    let ends = ["\n\nUsage:", "\n\nFor more information"].map(|end| text.find(end).unwrap_or(text.len()));
    let text = &text[..ends.into_iter().min().unwrap_or(text.len())];
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let parts = text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    parts.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};
    use serde_json::Value as Json;

    use super::*;

    fn program() -> Command {
        let run = Command::new("run").arg(Arg::new("app").required(true)).arg(Arg::new("seed").long("seed"));
        Command::new("warploom").subcommand_required(true).arg_required_else_help(true).subcommand(run)
    }

    fn answer(line: &str, error: &Error) -> String {
        let mut out = Vec::new();
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Failures::of(&words).report(error, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn wrong_arguments_are_one_sentence() {
        for (line, expected) in [
            (
                "warploom run a --sed 3",
                "unexpected argument '--sed' found; tip: a similar argument exists: '--seed'",
            ),
            ("warploom run", "the following required arguments were not provided: <app>"),
            ("warploom", "an argument or command is missing; --help lists them"),
            ("warploom fly", "unrecognized subcommand 'fly'"),
        ] {
            let error = program().try_get_matches_from(line.split_whitespace()).unwrap_err();
            assert_eq!(sentence(&error), expected, "{line}");
        }
    }

    #[test]
    fn every_kind_is_described() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
        let page = std::fs::read_to_string(page).unwrap();
        let kinds = [
            Kind::Usage,
            Kind::File,
            Kind::Pipeline,
            Kind::NoGpu,
            Kind::Gpu,
            Kind::NothingMeasured,
            Kind::Verification,
            Kind::Fuzz,
            Kind::Internal,
        ];
        for kind in kinds {
            let row = format!("| `{}` | {} | ", kind.name(), kind.code());
            assert!(page.contains(&row), "docs/json.md has no row {row}");
        }
    }

    #[test]
    fn json_is_asked_for_before_a_double_dash() {
        let error = Error::NoFile { file: "a\u{1b}.json".to_owned() };
        let text = answer("warploom explain a.json --json", &error);
        assert_eq!(text.lines().count(), 1);
        let said: Json = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({
            "schema": Failure::NAME, "error": "there is no file a\u{1b}.json; check its path", "kind": "file", "code": 2,
        });
        assert_eq!(said, expected);
        assert_eq!(answer("warploom explain -- --json", &error), "");
        assert_eq!(answer("warploom explain a.json", &error), "");
    }

    #[test]
    fn a_report_is_the_only_answer() {
        let (failed, count, names) = (1, 2, "harris".to_owned());
        assert_eq!(answer("warploom verify x --json", &Error::Verification { failed, count, names }), "");
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(answer("warploom apps --json", &Error::Output(closed)), "");
    }
}
