//! Saved cases, checked again.

use std::path::PathBuf;

use warploom::fuzz::{Case, CaseError, Checker, Failure, FailureKind, Seen, Skip, Verdict};
use warploom::plan::Problem;
use warploom::show;
use warploom::target::Device;

/// The outcome of a case whose file is at fault.
const REFUSED: &str = "refused";

report! {
    /// The outcomes of saved cases.
    pub struct Report = "warploom.fuzz.replay/1" {
        pub passed: bool, "whether no case failed";
        pub cases: Vec<Replayed>, "the cases";
    }

    /// The outcome of a saved case.
    pub struct Replayed = "replayed case" {
        file: PathBuf, "its file";
        outcome: &'static str, "`passed`, `skipped`, `ill-conditioned`, `refused` or the kind of failure";
        before: String, "the outcome that the file records";
        message: Option<String>, "what happened";
    }
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
    /// Checks a saved case again.
    ///
    /// # Errors
    /// If the file holds none.
    pub fn new(file: PathBuf, device: &Device, check: &Checker<'_>) -> Result<Replayed, CaseError> {
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

    /// Whether the file is at fault.
    pub fn is_refused(&self) -> bool {
        self.outcome == REFUSED
    }

    /// Whether it has not failed.
    pub fn is_fine(&self) -> bool {
        matches!(self.outcome, "passed" | "skipped" | "ill-conditioned")
    }

    /// The outcome for a terminal.
    pub fn text(&self) -> String {
        let Replayed { file, outcome, before, message } = self;
        let message = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        format!("{} {outcome} (was {before}){message}\n", show::path(file))
    }
}
