//! A legal schedule with its plan, made once and kept.

use thiserror::Error;
use warploom_lang::brief::shown;
use warploom_schedule::Schedule;

use crate::legality::violation::Violation;
use crate::plan::Plan;
use crate::problem::{Problem, RewrittenError};

/// A legal schedule with its plan. Lowering, features, explanations and pages read it.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The problem of the pipeline after the schedule's rewrites.
    pub problem: Problem,
    /// The schedule.
    pub schedule: Schedule,
    /// What it comes to.
    pub plan: Plan,
}

/// Why a schedule has no plan.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum PlanError {
    /// The schedule rewrites the pipeline in a way that is not possible, or not at these sizes.
    #[error(transparent)]
    Rewritten(#[from] RewrittenError),
    /// The schedule is not legal. Lists every violation.
    #[error("the schedule is illegal: {}", shown(.0, "\n"))]
    Illegal(Vec<Violation>),
}

impl Problem {
    /// Rewrites the problem as a schedule says, and plans the schedule.
    ///
    /// # Errors
    /// If the problem cannot be rewritten so, or the schedule is illegal.
    pub fn planned(&self, schedule: Schedule) -> Result<Planned, PlanError> {
        let problem = self.rewritten(&schedule.rewrites)?;
        let plan = tracing::debug_span!("legality").in_scope(|| problem.check(&schedule));
        Ok(Planned { problem, plan: plan.map_err(PlanError::Illegal)?, schedule })
    }
}
