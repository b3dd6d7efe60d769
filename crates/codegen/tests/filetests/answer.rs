//! What a case gives.

use std::fmt::Display;

use thiserror::Error;
use warploom_codegen::build::{BuildError, build_planned};
use warploom_codegen::ir::Program;
use warploom_codegen::lower::Options;
use warploom_codegen::printer::{Build, PRINTER};
use warploom_plan::{PlanError, Problem};
use warploom_schedule::Schedule;
use warploom_target::program::Code;

use crate::file::Kind;
use crate::predicted::{features, neighbours};
use crate::print::plan_text;
use crate::subjects::Subject;

/// Why a case does not have what its section holds.
#[derive(Debug, Error)]
pub enum AnswerError {
    #[error("the schedule cannot be read, so it has no `{expected}`; expect `parse errors`:\n{errors}")]
    Unreadable { expected: &'static str, errors: String },
    #[error("the schedule is illegal, so it has no `{expected}`; expect `violations`:\n{violations}")]
    Illegal { expected: &'static str, violations: String },
    #[error("the schedule is legal, so it has no `{0}`; remove the section, or expect a `plan`")]
    Legal(&'static str),
    #[error("a hand-made program has no schedule; remove it, and expect `cuda` or `description`")]
    NoSchedule,
    #[error("the builds differ; expect `cuda timing` and `cuda checking`")]
    BuildsDiffer,
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// What a section of a case must hold.
pub fn answer(subject: &Subject, input: &str, kind: Kind) -> Result<String, AnswerError> {
    match subject {
        Subject::Problem(problem) => of_schedule(problem, input, kind),
        Subject::Program(program) if input.is_empty() => {
            of_program(program, kind).unwrap_or(Err(AnswerError::NoSchedule))
        }
        Subject::Program(_) => Err(AnswerError::NoSchedule),
    }
}

fn of_schedule(problem: &Problem, input: &str, kind: Kind) -> Result<String, AnswerError> {
    let expected = kind.name();
    let schedule = match (Schedule::parse(&format!("{input}\n"), problem.pipeline()), kind) {
        (Err(errors), Kind::ParseErrors) => return Ok(errors.to_string()),
        (Err(errors), _) => return Err(AnswerError::Unreadable { expected, errors: errors.to_string() }),
        (Ok(schedule), _) => schedule,
    };
    let planned = match (problem.planned(schedule), kind) {
        (Err(PlanError::Illegal(violations)), Kind::Violations) => return Ok(listed(&violations)),
        (Err(PlanError::Illegal(violations)), _) => {
            return Err(AnswerError::Illegal { expected, violations: listed(&violations) });
        }
        (planned, _) => planned.map_err(BuildError::from)?,
    };
    match kind {
        Kind::ParseErrors | Kind::Violations => Err(AnswerError::Legal(expected)),
        Kind::Plan => Ok(plan_text(&planned.problem, &planned.plan)),
        Kind::Features => Ok(features(&planned)),
        Kind::Neighbours => Ok(neighbours(&planned)),
        _ => of_program(&build_planned(&planned, Options::default())?, kind)
            .ok_or(AnswerError::Legal(expected))?,
    }
}

/// What a program has of its own, if the section asks for that.
fn of_program(program: &Program, kind: Kind) -> Option<Result<String, AnswerError>> {
    let [checking, timing] = [Build::Checking, Build::Timing].map(|build| move || kernels(program, build));
    match kind {
        Kind::ParseErrors | Kind::Violations | Kind::Plan | Kind::Features | Kind::Neighbours => None,
        Kind::Cuda if checking() == timing() => Some(Ok(timing())),
        Kind::Cuda => Some(Err(AnswerError::BuildsDiffer)),
        Kind::CudaTiming => Some(Ok(timing())),
        Kind::CudaChecking => Some(Ok(checking())),
        Kind::Helpers => {
            let listing = PRINTER.print_lines(program, Build::Checking);
            Some(Ok(listing.text[listing.helpers].trim().to_owned()))
        }
        Kind::Description => {
            let mut program = PRINTER.describe(program, Build::Checking);
            program.validate().unwrap_or_else(|error| panic!("{error}"));
            program.code = Code::Virtual(String::new());
            Some(Ok(format!("{program:#?}")))
        }
    }
}

/// The text of a program without the functions that its kernels call.
fn kernels(program: &Program, build: Build) -> String {
    let mut listing = PRINTER.print_lines(program, build);
    listing.text.replace_range(listing.helpers, "");
    listing.text
}

fn listed(texts: &[impl Display]) -> String {
    texts.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n")
}
