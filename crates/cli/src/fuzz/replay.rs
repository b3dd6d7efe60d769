//! `warploom fuzz --replay`: checks saved cases again.

use std::io::Write;
use std::path::PathBuf;

use warploom::fuzz::{Case, Checker, Failure, FailureKind, Seen, Skip, Verdict};
use warploom::plan::Problem;
use warploom::target::Device;

use crate::error::Error;
use crate::folder::files_of;
use crate::report::{Declared as _, Format, json, text};
use crate::show;

/// The outcome of a case whose file is at fault.
const REFUSED: &str = "refused";

report! {
    struct Report = "warploom.fuzz.replay/1" {
        passed: bool, "whether no case failed";
        cases: Vec<Replayed>, "the cases";
    }

    struct Replayed = "replayed case" {
        file: PathBuf, "its file";
        outcome: &'static str, "`passed`, `skipped`, `ill-conditioned`, `refused` or the kind of failure";
        before: String, "the outcome that the file records";
        message: Option<String>, "what happened";
    }
}

pub(super) fn replay(
    paths: &[PathBuf],
    device: &Device,
    check: &Checker<'_>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut cases = Vec::new();
    for file in files_of(paths, &["json"])? {
        let replayed = replay_one(file, device, check)?;
        if !format.json {
            text(out, &replayed.text())?;
        }
        cases.push(replayed);
    }
    let count = cases.len();
    let failed = cases.iter().filter(|case| !case.is_fine()).count();
    let refused = cases.iter().filter(|case| case.outcome == REFUSED).count();
    if format.json {
        json(out, Report::NAME, &Report { passed: failed == 0, cases })?;
    } else if failed == 0 {
        text(out, &format!("all {} passed\n", show::count(count, "case")))?;
    }
    match failed - refused {
        0 if refused == 0 => Ok(()),
        0 => Err(Error::RefusedCases { refused, count }),
        failed => Err(Error::Fuzz { failed: failed as u64, count: count as u64, what: "cases" }),
    }
}

fn replay_one(file: PathBuf, device: &Device, check: &Checker<'_>) -> Result<Replayed, Error> {
    let (case, seen) = Case::load(&file)?;
    let (outcome, message) = match check(&case) {
        Ok(Verdict::Passed) => ("passed", None),
        Ok(Verdict::IllConditioned(why)) => ("ill-conditioned", Some(why)),
        Ok(Verdict::PassedPartly(skips)) => ("passed", skips.first().map(Skip::to_string)),
        Ok(Verdict::Skipped(skip)) => ("skipped", Some(skip.to_string())),
        Err(failure) if is_refused(&case, &failure, &seen, device, check) => {
            (REFUSED, Some(failure.to_string()))
        }
        Err(failure) => (failure.kind().name(), Some(failure.to_string())),
    };
    Ok(Replayed { file, outcome, before: seen.kind, message })
}

/// Whether the file is at fault, not the compiler. Cases written by the fuzzer have a legal
/// schedule and a pipeline that defines everything it reads; a file edited since may have neither.
fn is_refused(case: &Case, failure: &Failure, seen: &Seen, device: &Device, check: &Checker<'_>) -> bool {
    if let Failure::Illegal(_) = failure {
        return seen.kind != FailureKind::Illegal.name();
    }
    let Some(undefined) = failure.undefined(&case.pipeline) else { return false };
    let Ok(problem) = Problem::new(&case.pipeline, &case.request, device) else { return false };
    let plain = Case { schedule: problem.default_schedule(), ..case.clone() };
    check(&plain).is_err_and(|failure| failure.undefined(&case.pipeline) == Some(undefined))
}

impl Replayed {
    fn is_fine(&self) -> bool {
        matches!(self.outcome, "passed" | "skipped" | "ill-conditioned")
    }

    fn text(&self) -> String {
        let Replayed { file, outcome, before, message } = self;
        let message = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        format!("{} {outcome} (was {before}){message}\n", show::path(file))
    }
}
