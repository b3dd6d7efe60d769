//! Compiles a pipeline under a schedule to kernels.

use thiserror::Error;
use warploom_lang::BoundsError;
use warploom_plan::{PlanError, Planned, Problem};
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
    /// The schedule is illegal, or rewrites the pipeline in a way that is not possible.
    #[error(transparent)]
    Plan(#[from] PlanError),
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
    build_planned(&problem.planned(schedule.clone())?, options)
}

/// Lowers a schedule that was planned, and verifies the result.
///
/// # Errors
///
/// If it cannot be lowered.
pub fn build_planned(planned: &Planned, options: Options) -> Result<Program, BuildError> {
    let Planned { problem, plan, .. } = planned;
    let program = lower(problem, plan, options)?;
    match &program.sizes {
        None => verify(&program)?,
        Some(_) => {
            let typical = problem.sizes().map_or(&[][..], |sizes| &sizes.request.typical_sizes);
            verify(&program.at(typical, &Strides::default())?)?;
        }
    }
    Ok(program)
}

/// Like [`build_planned`], with the points that the accesses of the kernels touch.
///
/// # Errors
///
/// As for [`build_planned`].
pub fn build_with_points(planned: &Planned) -> Result<(Program, Points), BuildError> {
    let (program, points) = lower_with_points(&planned.problem, &planned.plan, Options::default())?;
    verify(&program)?;
    Ok((program, points))
}
