//! The one path from a pipeline and a schedule to something that runs.

use thiserror::Error;
use tracing::debug_span;
use warploom_codegen::ir::Program;
use warploom_codegen::lower::{LowerError, lower};
use warploom_codegen::verify::{VerifyError, verify};
use warploom_lang::brief::shown;
use warploom_lang::{BoundsError, Pipeline, Realisation, infer};
use warploom_schedule::schedule::{Schedule, Violation, check};
use warploom_target::Device;

/// The version of what schedules are made into. To be raised by every change after which a schedule's kernels are others:
/// times that were measured before are then no longer taken for its own.
pub const CODEGEN: u32 = 1;

/// Why a schedule could not be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The sizes or parameters don't fit the pipeline.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The schedule breaks rules.
    #[error("the schedule cannot be used: {}", shown(.0, "\n"))]
    Illegal(Vec<Violation>),
    /// The schedule could not be lowered.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// Lowering made a mistake.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

/// Checks a schedule and lowers it to kernels for a device, at the sizes of a realisation.
pub fn build(
    pipeline: &Pipeline,
    schedule: &Schedule,
    request: &Realisation,
    device: &Device,
) -> Result<Program, BuildError> {
    let regions = debug_span!("regions").in_scope(|| infer(pipeline, request))?;
    let checked = debug_span!("legality").in_scope(|| check(schedule, pipeline, &regions, device));
    checked.map_err(BuildError::Illegal)?;
    let program = lower(pipeline, schedule, request, device)?;
    verify(&program)?;
    Ok(program)
}
