//! Problems of pipelines and their schedules in files, with errors that name both.

use std::path::Path;

use thiserror::Error;
use warploom_codegen::build::{BuildError, build};
use warploom_codegen::ir::Program;
use warploom_lang::brief::shown;
use warploom_lang::files::{self, ReadError};
use warploom_lang::{Pipeline, Realisation};
use warploom_plan::{PlanError, Problem, Violation};
use warploom_schedule::{Schedule, Written};
use warploom_target::Device;

/// Why a pipeline has no kernels under a schedule.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the words of the sentences")]
pub enum ScheduleFileError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file has mistakes.
    #[error("{file} is not a schedule of this pipeline:\n{errors}")]
    Schedule { file: String, errors: String },
    /// The schedule breaks rules.
    #[error("`{app}` cannot be built: the schedule is illegal: {file}: {violations}")]
    Illegal { file: String, app: String, violations: String },
    /// The kernels cannot be built.
    #[error("`{app}` cannot be built: {error}")]
    Build { app: String, error: Box<BuildError> },
}

/// Lowers a schedule to kernels.
///
/// # Errors
/// If the schedule is illegal.
pub fn build_program(problem: &Problem, schedule: &Schedule) -> Result<Program, ScheduleFileError> {
    build(problem, schedule).map_err(|error| unbuilt(problem.pipeline(), error))
}

/// A pipeline at some sizes on a device.
///
/// # Errors
/// If the sizes do not fit the pipeline.
pub fn problem(
    pipeline: &Pipeline,
    request: &Realisation,
    device: &Device,
) -> Result<Problem, ScheduleFileError> {
    Problem::new(pipeline, request, device).map_err(|error| unbuilt(pipeline, error.into()))
}

/// The problem of the pipeline that a schedule describes.
///
/// # Errors
/// If a rewrite of the schedule cannot be applied.
pub fn rewritten(problem: &Problem, schedule: &Schedule) -> Result<Problem, ScheduleFileError> {
    let rewritten = problem.rewritten(&schedule.rewrites);
    rewritten.map_err(|error| unbuilt(problem.pipeline(), PlanError::from(error).into()))
}

/// The error of a pipeline whose kernels cannot be built.
pub fn unbuilt(pipeline: &Pipeline, error: BuildError) -> ScheduleFileError {
    ScheduleFileError::Build { app: pipeline.name().to_owned(), error: Box::new(error) }
}

/// Reads a schedule with its places in a file.
///
/// # Errors
/// If the file cannot be read, or is not a schedule of the pipeline.
pub fn read_written(path: &Path, pipeline: &Pipeline) -> Result<Written, ScheduleFileError> {
    let file = path.display().to_string();
    let text = files::read_text(path)?;
    Written::parse(&text, pipeline)
        .map_err(|errors| ScheduleFileError::Schedule { file, errors: errors.to_string() })
}

/// Reads a schedule from a file and checks it, so that violations show the lines of the file.
///
/// # Errors
/// If the file cannot be read, or holds no legal schedule.
pub fn read_legal(path: &Path, problem: &Problem) -> Result<Schedule, ScheduleFileError> {
    legal(path, read_written(path, problem.pipeline())?, problem)
}

/// Checks a schedule that was read from a file.
///
/// # Errors
/// If the schedule is illegal.
pub fn legal(path: &Path, written: Written, problem: &Problem) -> Result<Schedule, ScheduleFileError> {
    let checked = rewritten(problem, &written.schedule)?.check(&written.schedule);
    match checked {
        Ok(_) => Ok(written.schedule),
        Err(violations) => {
            let violations = shown(&Violation::all_in(&written.spots, violations), "\n");
            let (file, app) = (path.display().to_string(), problem.pipeline().name().to_owned());
            Err(ScheduleFileError::Illegal { file, app, violations })
        }
    }
}
