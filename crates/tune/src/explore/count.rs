//! Counts trials, and decides when a run ends.

use std::collections::HashMap;

use warploom_strategy::Verdict;

use crate::records::{RunStep, StepOutcome};
use crate::tuning::Tally;

/// The most points of a question, so that strategies without batches of their own get regular feedback.
const BATCH: usize = 64;

/// A strategy that asks for this many points in a row without a new schedule has nothing left to find.
const IDLE: usize = 2000;

/// The steps of a run so far. Repeated and refused schedules are not trials.
pub(crate) struct Count {
    trials: usize,
    pub tally: Tally,
    /// The times of the trials, in order.
    pub times: Vec<Option<f64>>,
    /// The verdicts so far, by the hash of the schedule.
    verdicts: HashMap<String, Verdict>,
    /// The steps since the last trial.
    idle: usize,
}

impl Count {
    /// The counters of a run of `trials` trials.
    pub fn new(trials: usize) -> Count {
        Count { trials, tally: Tally::default(), times: Vec::new(), verdicts: HashMap::new(), idle: 0 }
    }

    /// The most points of the next question; 0 if there are no trials left.
    pub fn next(&self) -> usize {
        self.trials.saturating_sub(self.tally.trials).min(BATCH)
    }

    /// Whether the strategy has found nothing new for too long.
    pub fn is_idle(&self) -> bool {
        self.idle >= IDLE
    }

    /// Whether the verdict on a schedule with this hash was told.
    pub fn knows(&self, schedule_hash: &str) -> bool {
        self.verdicts.contains_key(schedule_hash)
    }

    /// Counts a step and gives its verdict.
    pub fn add(&mut self, step: &RunStep) -> Verdict {
        let RunStep { schedule_hash, outcome, time_us, .. } = step;
        let told = schedule_hash.as_ref().and_then(|hash| self.verdicts.get(hash)).cloned();
        let verdict = match outcome {
            StepOutcome::Refused => Verdict::Refused,
            StepOutcome::Repeated => told.unwrap_or(Verdict::Failed),
            _ => time_us.map_or(Verdict::Failed, Verdict::Time),
        };
        let tally = &mut self.tally;
        tally.steps += 1;
        tally.trials += usize::from(outcome.is_trial());
        tally.repeated += usize::from(*outcome == StepOutcome::Repeated);
        tally.refused += usize::from(*outcome == StepOutcome::Refused);
        tally.best_us = [tally.best_us, *time_us].into_iter().flatten().reduce(f64::min);
        self.idle = if outcome.is_trial() { 0 } else { self.idle + 1 };
        self.times.extend(outcome.is_trial().then_some(*time_us));
        if let Some(hash) = schedule_hash {
            self.verdicts.entry(hash.clone()).or_insert_with(|| verdict.clone());
        }
        verdict
    }
}
