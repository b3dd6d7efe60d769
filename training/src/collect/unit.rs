//! The schedules of a unit, and their candidates.

use std::collections::VecDeque;
use std::sync::Arc;

use warploom::cost::CostModel;
use warploom::lang::Pipeline;
use warploom::schedule::Schedule;
use warploom::target::Device;
use warploom::tune::measure::{Candidate, Check, Subject};
use warploom::tune::sample::Origin;

use super::mixed;

/// The inputs that determine the schedules of a unit, besides the unit itself. The same recipe makes the same schedules
/// if its searches end before their time limits.
#[derive(Clone, Copy)]
pub struct Recipe<'a> {
    /// The device to measure on.
    pub device: &'a Device,
    /// The cost model of the schedule search.
    pub model: &'a dyn CostModel,
    /// Seed of the pipelines and schedules.
    pub seed: u64,
    /// Fraction of samples whose results are compared, from 0 to 1.
    pub verify: f64,
}

/// A schedule to measure.
#[derive(Clone, PartialEq, Debug)]
pub struct Selected {
    /// The schedule.
    pub schedule: Schedule,
    /// How it was found.
    pub origin: Origin,
    /// Whether its results are compared.
    pub verify: bool,
}

/// The schedules of a unit.
#[derive(Clone, PartialEq, Debug)]
pub struct Selection {
    /// The schedules to measure.
    pub schedules: Vec<Selected>,
    /// Number of schedules that were skipped because they would run or compile for too long.
    pub skipped: u64,
}

impl Recipe<'_> {
    /// Selects a random share of the schedules for a comparison of their results.
    pub(super) fn selected(&self, pipeline: &Pipeline, schedules: Vec<(Schedule, Origin)>) -> Vec<Selected> {
        let hash = pipeline.structural_hash() as u64;
        let chance = |position: usize| mixed(&[self.seed, hash, position as u64]) as f64 / u64::MAX as f64;
        let selected = |(position, (schedule, origin))| {
            let verify = chance(position) < self.verify;
            Selected { schedule, origin, verify }
        };
        schedules.into_iter().enumerate().map(selected).collect()
    }
}

/// Candidates for the schedules of a subject. `check` is called at most once, and only if needed.
pub(super) fn candidates(
    subject: &Arc<Subject>,
    schedules: Vec<Selected>,
    check: impl FnOnce() -> Option<Check>,
) -> VecDeque<Candidate> {
    let is_needed = schedules.iter().any(|selected| selected.verify);
    let check = is_needed.then(check).flatten().map(Arc::new);
    let candidate = |Selected { schedule, origin, verify }: Selected| {
        let checks = check.iter().filter(|_| verify).cloned().collect();
        Candidate { subject: subject.clone(), schedule, origin, predicted_us: None, checks }
    };
    schedules.into_iter().map(candidate).collect()
}
