//! Runs the cases of a file.

use similar::TextDiff;

use crate::answer::answer;
use crate::args::Args;
use crate::file::{Case, Section, parse, replaced};
use crate::subjects;

/// How the cases ended.
#[derive(Default)]
pub struct Summary {
    pub passed: usize,
    pub blessed: usize,
    /// Where each of the others stands, and what is wrong with it.
    pub failures: Vec<String>,
}

/// Runs a file's cases; the result is its new text, if some were blessed.
pub fn file(name: &str, text: &str, args: &Args, summary: &mut Summary) -> Option<String> {
    let cases = match parse(text) {
        Ok(cases) => cases,
        Err(error) => {
            summary.failures.push(format!("{name}.test: {error}"));
            return None;
        }
    };
    let mut changes = Vec::new();
    for case in &cases {
        let title = format!("{name}: {}", case.title);
        if !args.wants(&title) {
            continue;
        }
        if args.list {
            println!("{title}: test");
            continue;
        }
        let failure = match differences(case) {
            Ok(found) if found.is_empty() => {
                summary.passed += 1;
                continue;
            }
            Ok(found) if args.bless => {
                summary.blessed += 1;
                changes.extend(found);
                continue;
            }
            Ok(found) => found.iter().map(shown).collect(),
            Err(message) => message,
        };
        summary.failures.push(format!("{name}.test:{}: {}\n{failure}", case.line, case.title));
    }
    if changes.is_empty() {
        return None;
    }
    let blessed = replaced(text, &changes).map_err(|error| format!("{name}.test: {error}"));
    blessed.map_err(|failure| summary.failures.push(failure)).ok()
}

/// The sections of a case that are not what they should be, with what they should be.
///
/// # Errors
/// A message, if the case has no such sections.
fn differences(case: &Case) -> Result<Vec<(&Section, String)>, String> {
    let subject = subjects::find(&case.subject).ok_or_else(|| {
        format!("`{}` is not a pipeline or program of subjects.rs; use one of those, or add it", case.subject)
    })?;
    let mut found = Vec::new();
    for section in &case.sections {
        let actual = answer(&subject, &case.input, section.kind).map_err(|error| error.to_string())?;
        if actual.trim_end() != section.text {
            found.push((section, actual.trim_end().to_owned()));
        }
    }
    Ok(found)
}

/// What differs in a section, with a few lines around it.
fn shown((section, actual): &(&Section, String)) -> String {
    let (expected, actual) = (format!("{}\n", section.text), format!("{actual}\n"));
    let diff = TextDiff::from_lines(&expected, &actual);
    let name = section.kind.name();
    diff.unified_diff().context_radius(2).header(&format!("expected {name}"), "found").to_string()
}
