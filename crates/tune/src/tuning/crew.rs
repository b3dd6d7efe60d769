//! Measuring elsewhere: a crew of other processes builds, checks and times the proposals of a session, and records the
//! trials.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use warploom_runtime::TimingOptions;

use super::session::{Proposal, Session};
use super::{Event, Progress, TuneError};
use crate::records::{ProblemId, RecordsError, Trial};
use crate::sample::Origin;

/// Processes that measure for a session.
pub trait Crew {
    /// Lets the crew measure the schedules of an order that have no trial yet. Returns when all have one, or soon after
    /// `ended` has become true. `heard` is told of every new trial, and returns the progress of the session.
    ///
    /// # Errors
    /// If the crew cannot be reached.
    fn measure(
        &mut self,
        order: &Order,
        ended: &dyn Fn() -> bool,
        heard: &mut dyn FnMut(&Trial) -> Progress,
    ) -> Result<(), RecordsError>;

    /// Lets one of the crew run the final rounds of a problem; if it is lost, another one starts afresh. `None` if
    /// `ended` has become true before they were over.
    ///
    /// # Errors
    /// If the crew cannot be reached.
    fn finals(
        &mut self,
        problem: ProblemId,
        rounds: FinalRounds,
        ended: &dyn Fn() -> bool,
    ) -> Result<Option<Finals>, RecordsError>;
}

/// Schedules to measure.
#[derive(Debug)]
pub struct Order {
    /// Their problem.
    pub problem: ProblemId,
    /// The schedules, the most promising first.
    pub wanted: Vec<Wanted>,
    /// Whether results are compared at the full size.
    pub at_full_size: bool,
    /// Whether schedules that spill registers are recorded without being run.
    pub skip_spilling: bool,
    /// How they are timed.
    pub timing: TimingOptions,
}

/// A schedule to measure.
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    /// Its text.
    pub schedule: String,
    /// How it was found.
    pub origin: Origin,
    /// Predicted time, in microseconds.
    pub predicted_us: Option<f64>,
}

/// Options of the final rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FinalRounds {
    /// Number of the best schedules to check at the full size.
    pub count: usize,
    /// Whether these are timed in turns.
    pub retime: bool,
}

/// The result of the final rounds, besides the recorded times.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Finals {
    /// The schedules that passed the check at the full size.
    pub passed: Vec<String>,
    /// Messages for the user.
    pub notes: Vec<String>,
}

impl Session<'_, '_> {
    /// Lets the crew measure proposals.
    pub(super) fn order(&mut self, proposals: Vec<Proposal>, at_full_size: bool) -> Result<(), TuneError> {
        let wanted = proposals.iter().map(|proposal| Wanted {
            schedule: proposal.schedule.to_text(self.task.subject.pipeline()),
            origin: proposal.origin,
            predicted_us: proposal.predicted_us,
        });
        let order = Order {
            problem: self.id,
            wanted: wanted.collect(),
            at_full_size,
            skip_spilling: self.skip_spilling,
            timing: self.timing.clone(),
        };
        let Session { task, bench, progress, observer, .. } = self;
        let Some(crew) = &mut bench.crew else { return Ok(()) };
        let mut heard = |trial: &Trial| {
            progress.add(trial);
            observer(&Event::Measured { trial, progress: *progress });
            *progress
        };
        Ok(crew.measure(&order, &|| task.ended().is_some(), &mut heard)?)
    }

    /// Lets one of the crew run the final rounds.
    pub(super) fn order_finals(&mut self, rounds: FinalRounds) -> Result<(), TuneError> {
        let Session { task, bench, id, .. } = self;
        let Some(crew) = &mut bench.crew else { return Ok(()) };
        // After the time limit, the best schedules are checked and timed nevertheless.
        let stopped = || task.is_stopped() && rounds.retime;
        let Some(Finals { passed, notes }) = crew.finals(*id, rounds, &stopped)? else { return Ok(()) };
        for note in notes.into_iter().collect::<HashSet<_>>() {
            self.tell(&Event::Note(note));
        }
        passed.iter().for_each(|schedule| self.full.pass(schedule));
        Ok(())
    }
}
