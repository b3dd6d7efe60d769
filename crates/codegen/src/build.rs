//! Builds a pipeline and a schedule into kernels.

use thiserror::Error;
use tracing::debug_span;
use warploom_lang::BoundsError;
use warploom_lang::brief::shown;
use warploom_schedule::schedule::{Problem, Schedule, Violation};

use crate::ir::Program;
use crate::lower::{LowerError, Options, lower};
use crate::verify::{VerifyError, verify};

/// Version of the code generator. Raise it with every change that alters the kernels of a schedule;
/// times measured with earlier versions then no longer apply.
pub const CODEGEN: u32 = 2;

/// Why a schedule could not be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The sizes or Params do not fit the pipeline, so there is no [`Problem`] to build.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The schedule is not legal; lists all violations.
    #[error("the schedule cannot be used: {}", shown(.0, "\n"))]
    Illegal(Vec<Violation>),
    /// The schedule could not be lowered.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The lowered program failed verification, which is a bug in lowering.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

/// Checks a schedule of a problem, lowers it to kernels and verifies the result.
///
/// # Errors
///
/// If the schedule is not legal, or cannot be lowered.
pub fn build(problem: &Problem, schedule: &Schedule) -> Result<Program, BuildError> {
    build_with(problem, schedule, Options::default())
}

/// [`build`] with options of lowering.
///
/// # Errors
///
/// As [`build`].
pub fn build_with(problem: &Problem, schedule: &Schedule, options: Options) -> Result<Program, BuildError> {
    let plan = debug_span!("legality").in_scope(|| problem.check(schedule));
    let program = lower(problem, &plan.map_err(BuildError::Illegal)?, options)?;
    verify(&program)?;
    Ok(program)
}
