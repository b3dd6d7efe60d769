//! Turns chosen schedules into candidates.

use std::collections::VecDeque;
use std::sync::Arc;

use warploom::lang::Pipeline;
use warploom::schedule::schedule::Schedule;
use warploom::tune::measure::{Candidate, Check, Subject};
use warploom::tune::sample::Origin;

use super::{Collector, mixed};

/// A subject with the schedules to measure.
pub(super) struct Made {
    pub subject: Arc<Subject>,
    pub schedules: Vec<(Schedule, Origin, Option<Arc<Check>>)>,
}

impl Made {
    pub fn candidates(self) -> VecDeque<Candidate> {
        let Made { subject, schedules } = self;
        let candidate = |(schedule, origin, check): (_, _, Option<_>)| {
            let (subject, checks) = (subject.clone(), check.into_iter().collect());
            Candidate { subject, schedule, origin, predicted_us: None, checks }
        };
        schedules.into_iter().map(candidate).collect()
    }
}

impl Collector<'_> {
    /// Attaches a check to a random share of the schedules. `check` is called at most once, and
    /// only if needed.
    pub(super) fn checked(
        &self,
        pipeline: &Pipeline,
        schedules: Vec<(Schedule, Origin)>,
        check: impl Fn() -> Option<Check>,
    ) -> Vec<(Schedule, Origin, Option<Arc<Check>>)> {
        let hash = pipeline.structural_hash() as u64;
        let chance =
            |position: usize| mixed(&[self.options.seed, hash, position as u64]) as f64 / u64::MAX as f64;
        let mut made: Option<Option<Arc<Check>>> = None;
        let checked = schedules.into_iter().enumerate().map(|(position, (schedule, origin))| {
            let wanted = chance(position) < self.options.verify;
            let check = wanted.then(|| made.get_or_insert_with(|| check().map(Arc::new)).clone());
            (schedule, origin, check.flatten())
        });
        checked.collect()
    }
}
