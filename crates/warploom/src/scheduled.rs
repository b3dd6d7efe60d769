//! A pipeline under one schedule.

use warploom_codegen::build::{BuildError, build_planned};
use warploom_codegen::ir::Program;
use warploom_codegen::lower;
use warploom_cost::CostModel;
use warploom_plan::{Planned, Problem};
use warploom_schedule::Schedule;
use warploom_tune::explain::Explanation;
use warploom_tune::one_shot::{OneShot, for_any_size};

use crate::export::{ExportError, ExportOptions, Package};

/// A pipeline under one schedule: its kernels, for the sizes of a problem or for all sizes of ranges.
#[derive(Clone, Debug)]
pub struct Scheduled {
    pub(crate) problem: Problem,
    /// The same pipeline at ranges of sizes, if the kernels are for these.
    pub(crate) any_size: Option<Problem>,
    /// The schedule at the sizes of the problem.
    pub(crate) planned: Planned,
    pub(crate) program: Program,
}

impl Scheduled {
    /// Builds the kernels of a schedule, for all sizes of `any_size` if that is given. Every run then gives the strides
    /// of inputs and outputs, as for `pitched` kernels.
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
        let at_all_sizes =
            any_size.as_ref().map(|any_size| any_size.planned(schedule.clone())).transpose()?;
        let planned = problem.planned(schedule)?;
        let program = build_planned(at_all_sizes.as_ref().unwrap_or(&planned), options)?;
        Ok(Scheduled { problem, any_size, planned, program })
    }

    /// The kernels of a search: for all sizes of `any_size`, those of its best schedule that is legal at all of them.
    ///
    /// # Errors
    /// If no schedule that was found can be built.
    pub fn found(
        problem: Problem,
        any_size: Option<Problem>,
        found: &OneShot,
        pitched: bool,
    ) -> Result<Scheduled, BuildError> {
        let (planned, program) = match &any_size {
            Some(any_size) => {
                let (at_all_sizes, program) = for_any_size(any_size, &found.outcome)?;
                (problem.planned(at_all_sizes.schedule)?, program)
            }
            None if pitched => return Scheduled::new(problem, None, found.planned.schedule.clone(), true),
            None => (found.planned.clone(), found.program.clone()),
        };
        Ok(Scheduled { problem, any_size, planned, program })
    }

    /// The schedule with its plan, at the sizes of the problem.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }

    /// The problem of the pipeline that the schedule describes, at one choice of sizes.
    pub fn problem(&self) -> &Problem {
        &self.planned.problem
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.planned.schedule
    }

    /// The kernels.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The decisions and predicted costs of every kernel, at the sizes of [`problem`](Scheduled::problem).
    pub fn explanation(&self, model: &dyn CostModel) -> Explanation {
        Explanation::new(&self.planned, model)
    }

    /// A package of the kernels, which is not compiled yet.
    ///
    /// # Errors
    /// If the kernels do not suit all devices.
    pub fn package(&self, options: &ExportOptions) -> Result<Package, ExportError> {
        let problem = self.any_size.as_ref().unwrap_or(&self.problem);
        Package::new(problem, self.schedule(), &self.program, options)
    }
}
