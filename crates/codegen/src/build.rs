//! Compiles a pipeline under a schedule to kernels.

use thiserror::Error;
use tracing::debug_span;
use warploom_lang::BoundsError;
use warploom_lang::brief::shown;
use warploom_plan::{Problem, RewrittenError, Violation};
use warploom_schedule::Schedule;

use crate::instance::{InstanceError, Strides};
use crate::ir::Program;
use crate::lower::{LowerError, Options, lower, lower_with_points};
use crate::points::Points;
use crate::verify::{VerifyError, verify};

/// Version of the code generator. Increment it with every change that alters the kernels of a
/// schedule: times measured with earlier versions then no longer apply.
pub const CODEGEN: u32 = 8;

/// Why a build failed.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The sizes or Params do not fit the pipeline, so there is no [`Problem`] to build.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The schedule rewrites the pipeline in a way that is not possible, or not at these sizes.
    #[error(transparent)]
    Rewritten(#[from] RewrittenError),
    /// The schedule is not legal. Lists every violation.
    #[error("the schedule is illegal: {}", shown(.0, "\n"))]
    Illegal(Vec<Violation>),
    /// Lowering failed: a kernel would be too large, exceed a device limit or need wider indices.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The kernels cannot run at the sizes that they are scheduled for.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// The lowered program failed verification. This is a bug in lowering.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

/// Rewrites a problem as a schedule says, checks the schedule, lowers it to kernels and verifies the result.
///
/// # Errors
///
/// If the schedule is not legal or cannot be lowered.
pub fn build(problem: &Problem, schedule: &Schedule) -> Result<Program, BuildError> {
    build_with(problem, schedule, Options::default())
}

/// Like [`build`], with lowering options.
///
/// # Errors
///
/// As for [`build`].
pub fn build_with(problem: &Problem, schedule: &Schedule, options: Options) -> Result<Program, BuildError> {
    let problem = problem.rewritten(&schedule.rewrites)?;
    let plan = debug_span!("legality").in_scope(|| problem.check(schedule));
    let program = lower(&problem, &plan.map_err(BuildError::Illegal)?, options)?;
    match &program.sizes {
        None => verify(&program)?,
        Some(_) => {
            let typical = problem.sizes().map_or(&[][..], |sizes| &sizes.request.typical_sizes);
            verify(&program.at(typical, &Strides::default())?)?;
        }
    }
    Ok(program)
}

/// Like [`build`], with the points that the accesses of the kernels touch.
///
/// # Errors
///
/// As for [`build`].
pub fn build_with_points(problem: &Problem, schedule: &Schedule) -> Result<(Program, Points), BuildError> {
    let problem = problem.rewritten(&schedule.rewrites)?;
    let plan = problem.check(schedule).map_err(BuildError::Illegal)?;
    let (program, points) = lower_with_points(&problem, &plan, Options::default())?;
    verify(&program)?;
    Ok((program, points))
}
