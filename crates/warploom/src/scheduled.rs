//! A pipeline under one schedule.

use warploom_codegen::build::{BuildError, build_with};
use warploom_codegen::ir::Program;
use warploom_codegen::lower;
use warploom_cost::CostModel;
use warploom_schedule::schedule::{Problem, Schedule};
use warploom_tune::explain::Explanation;
use warploom_tune::one_shot::{OneShot, for_any_size};

use crate::export::{ExportError, ExportOptions, Package};

/// A pipeline under one schedule: its kernels, for the sizes of a problem or for all sizes of ranges.
#[derive(Clone, Debug)]
pub struct Scheduled {
    pub(crate) problem: Problem,
    /// The same pipeline at ranges of sizes, if the kernels are for these.
    pub(crate) any_size: Option<Problem>,
    /// The problem of the pipeline that the schedule describes.
    rewritten: Problem,
    pub(crate) schedule: Schedule,
    pub(crate) program: Program,
}

impl Scheduled {
    /// Builds the kernels of a schedule, for all sizes of `any_size` if that is given. Every run then gives the strides of
    /// inputs and outputs, as it does for `pitched` kernels.
    ///
    /// # Errors
    /// If the schedule is not legal, or its kernels cannot be built.
    pub fn new(
        problem: Problem,
        any_size: Option<Problem>,
        schedule: Schedule,
        pitched: bool,
    ) -> Result<Scheduled, BuildError> {
        let options = lower::Options { pitched: pitched || any_size.is_some(), ..lower::Options::default() };
        let program = build_with(any_size.as_ref().unwrap_or(&problem), &schedule, options)?;
        let rewritten = problem.rewritten(&schedule.rewrites)?;
        Ok(Scheduled { problem, any_size, rewritten, schedule, program })
    }

    /// The kernels that a search found: for all sizes of `any_size`, those of its best schedule that is legal at all of them.
    ///
    /// # Errors
    /// If no schedule that was found can be built.
    pub fn found(
        problem: Problem,
        any_size: Option<Problem>,
        found: &OneShot,
        pitched: bool,
    ) -> Result<Scheduled, BuildError> {
        let (schedule, program) = match &any_size {
            Some(any_size) => for_any_size(any_size, &found.outcome)?,
            None if pitched => return Scheduled::new(problem, None, found.schedule.clone(), true),
            None => (found.schedule.clone(), found.program.clone()),
        };
        let rewritten = problem.rewritten(&schedule.rewrites)?;
        Ok(Scheduled { problem, any_size, rewritten, schedule, program })
    }

    /// The problem of the pipeline that the schedule describes, at one choice of sizes.
    pub fn problem(&self) -> &Problem {
        &self.rewritten
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The kernels.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The decisions and predicted costs of every kernel, at the sizes of [`problem`](Scheduled::problem).
    ///
    /// # Errors
    /// If the schedule is not legal at these sizes.
    pub fn explanation(&self, model: &dyn CostModel) -> Result<Explanation, BuildError> {
        self.rewritten.check(&self.schedule).map_err(BuildError::Illegal)?;
        Ok(Explanation::new(&self.rewritten, &self.schedule, model)?)
    }

    /// A package of the kernels, which is not compiled yet.
    ///
    /// # Errors
    /// If the kernels are not right for all devices.
    pub fn package(&self, options: &ExportOptions) -> Result<Package, ExportError> {
        let problem = self.any_size.as_ref().unwrap_or(&self.problem);
        Package::new(problem, &self.schedule, &self.program, options)
    }
}
