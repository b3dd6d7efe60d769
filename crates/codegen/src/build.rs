//! Builds a pipeline and a schedule into kernels.

use thiserror::Error;
use tracing::debug_span;
use warploom_lang::brief::shown;
use warploom_lang::{BoundsError, Pipeline, Realisation, infer};
use warploom_schedule::schedule::{Schedule, Violation, check};
use warploom_target::Device;

use crate::ir::Program;
use crate::lower::{LowerError, Options, lower_with};
use crate::verify::{VerifyError, verify};

/// Version of the code generator. Raise it with every change that alters the kernels of a schedule;
/// times measured with earlier versions then no longer apply.
pub const CODEGEN: u32 = 2;

/// Why a schedule could not be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The sizes or Params do not fit the pipeline.
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

/// Checks a schedule, lowers it to kernels for a device at the sizes of `request`, and verifies the
/// result.
pub fn build(
    pipeline: &Pipeline,
    schedule: &Schedule,
    request: &Realisation,
    device: &Device,
) -> Result<Program, BuildError> {
    build_with(pipeline, schedule, request, device, Options::default())
}

/// [`build`] with options of lowering.
///
/// # Errors
///
/// As [`build`].
pub fn build_with(
    pipeline: &Pipeline,
    schedule: &Schedule,
    request: &Realisation,
    device: &Device,
    options: Options,
) -> Result<Program, BuildError> {
    let regions = debug_span!("regions").in_scope(|| infer(pipeline, request))?;
    let checked = debug_span!("legality").in_scope(|| check(schedule, pipeline, &regions, device));
    checked.map_err(BuildError::Illegal)?;
    let program = lower_with(pipeline, schedule, request, device, options)?;
    verify(&program)?;
    Ok(program)
}
