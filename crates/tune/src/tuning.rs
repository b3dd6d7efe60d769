//! Types shared by all tuning modes: the task, progress events and the result.
//!
//! [`top()`](crate::top::top) measures the few schedules with the best predicted times.
//! [`autotune()`](crate::autotune::autotune) alternates searches and measurements for a number of
//! iterations. [`explore()`](crate::explore::explore) asks a strategy. All claim candidates in
//! [`Records`](crate::records::Records) and measure them with a [`Bench`](crate::worker::Bench). At
//! the end they time the best candidates in interleaved rounds, so that noise does not decide the
//! winner.

mod crew;
mod finals;
mod full_check;
mod member;
mod session;
mod unusable;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::Serialize;
use thiserror::Error;
use warploom_cost::CostModel;
use warploom_lang::BoundsError;
use warploom_schedule::Schedule;
use warploom_search as search;
use warploom_search::points::TemplateError;

use crate::landscape::LandscapeError;
use crate::measure::{Check, MeasureError, Subject};
use crate::records::{RecordsError, Trial};

pub use crew::{Crew, FinalRounds, Finals, Order, Wanted};
pub use member::{Assigned, Member, Nobody, build_assigned, refused, refused_by_compiler};
pub(crate) use session::{Proposal, Session};

/// The task: what to tune, and how to find schedules for it.
pub struct Task<'a> {
    /// The pipeline with its sizes and data.
    pub subject: Arc<Subject>,
    /// The same pipeline at a size with known reference outputs; every candidate is checked there.
    pub small: Option<Arc<Check>>,
    /// Tolerance at the full size for kernels built for speed, as a fraction of an output's largest
    /// sample. Without it, the tolerance is four times the deviation of the default schedule's
    /// timing build.
    pub tolerance: Option<f64>,
    /// The model that predicts times during the search.
    pub model: &'a dyn CostModel,
    /// Options of the search.
    pub search: search::Options,
    /// When to stop; `None` means no time limit.
    pub deadline: Option<Instant>,
    /// When it becomes true, tuning stops after the current trial.
    pub stop: &'a AtomicBool,
}

impl Task<'_> {
    /// The reason to stop now, if there is one.
    fn ended(&self) -> Option<Ended> {
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        match self.is_stopped() {
            true => Some(Ended::Stopped),
            false => late.then_some(Ended::TimeLimit),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A progress event of tuning.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A message for the user.
    Note(String),
    /// A search for candidates starts.
    Searching {
        /// Number of the iteration, from 0.
        iteration: usize,
        /// Total number of iterations.
        of: usize,
    },
    /// A strategy starts or continues.
    Exploring {
        /// The run: the strategy with its settings and seed, the space and the number of trials.
        run: &'a str,
        /// The templates of its space.
        templates: usize,
        /// The steps that the records have.
        recorded: usize,
    },
    /// A strategy was told the results of the points that it asked for.
    Stepped {
        /// All steps of the run.
        tally: Tally,
        /// The number of trials that the run may have.
        of: usize,
    },
    /// A set of candidates is about to be measured.
    Planned {
        /// Number of candidates to measure.
        candidates: usize,
        /// Number of further candidates that already have trials.
        known: usize,
    },
    /// A candidate was measured, and its trial was recorded.
    Measured {
        /// The recorded trial.
        trial: &'a Trial,
        /// Progress of this run, including this trial.
        progress: Progress,
    },
    /// The model was trained on all recorded trials.
    Retrained {
        /// Regret of the previous model: the time of the measured schedule that it ranks first,
        /// divided by the shortest time.
        before: Option<f64>,
        /// Regret of the new model.
        after: Option<f64>,
    },
    /// The best candidates are timed again, in interleaved rounds.
    Retiming {
        /// Number of finalists.
        finalists: usize,
    },
}

/// Progress of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Progress {
    /// Number of trials in this run.
    pub done: usize,
    /// Expected total number of trials, as far as is known.
    pub expected: usize,
    /// Number of trials in this run that failed or were not run.
    pub invalid: usize,
    /// The shortest time known, in microseconds.
    pub best_us: Option<f64>,
}

/// Why tuning ended.
#[derive(Debug)]
pub enum Ended {
    /// All work was done.
    Finished,
    /// The deadline passed.
    TimeLimit,
    /// The task's `stop` flag became true.
    Stopped,
    /// An error occurred; trials measured before it are recorded.
    Failed(TuneError),
}

/// The result of tuning.
#[derive(Debug)]
pub struct Tuned {
    /// The fastest known schedule with correct results; `None` if there is none.
    pub winner: Option<Winner>,
    /// The trials to show to the user, fastest first, failed ones last.
    pub shown: Vec<Trial>,
    /// Final progress of the run.
    pub progress: Progress,
    /// Why tuning ended.
    pub ended: Ended,
}

/// The fastest schedule.
#[derive(Debug)]
pub struct Winner {
    /// The schedule, parsed from the trial.
    pub schedule: Schedule,
    /// The recorded trial of the schedule.
    pub trial: Trial,
    /// Whether its outputs at the full size were compared with those of the default schedule.
    pub checked_at_full_size: bool,
}

/// Why tuning failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The sizes or Params don't fit the pipeline.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The records could not be read or written.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// No candidate can be measured any more.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// There is no such strategy, or it cannot be set like this.
    #[error(transparent)]
    Strategy(#[from] warploom_strategy::Error),
    /// A given schedule cannot be a template.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// There is no such landscape.
    #[error(transparent)]
    Landscape(Box<LandscapeError>),
    /// A schedule whose text reads back differently. This is a bug, found before anything is measured.
    #[error(
        "a schedule cannot be recorded, because its text does not read back ({why}); please report it:\n{text}"
    )]
    NotReadBack {
        /// The text.
        text: String,
        /// How it differs.
        why: String,
    },
    /// Trials are valid, but no schedule of them can be used.
    #[error(
        "{count} valid trials are recorded, but none of their schedules can be used any more; the fastest: {why}; \
         give another database"
    )]
    Unusable {
        /// The number of valid trials.
        count: usize,
        /// Why the fastest one cannot be used.
        why: String,
    },
    /// The strategy asks for another point than it did when the run was recorded.
    #[error(
        "step {step} of this run asks for another schedule than the records say, so the run cannot go on; \
         give another seed or another database"
    )]
    Diverged {
        /// The number of the step, from 0.
        step: usize,
    },
}

impl From<LandscapeError> for TuneError {
    fn from(error: LandscapeError) -> TuneError {
        TuneError::Landscape(Box::new(error))
    }
}

/// The steps of a strategy's run so far.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Tally {
    /// Points that the strategy asked for.
    pub steps: usize,
    /// Trials: points that were measured or found in the records.
    pub trials: usize,
    /// Points with the schedule of an earlier step.
    pub repeated: usize,
    /// Points that the rules refuse.
    pub refused: usize,
    /// Different points that the rules refused when the strategy looked at them. They are not steps, unless the
    /// strategy asked for them anyway.
    pub avoided: usize,
    /// The shortest time that the strategy was told, in microseconds.
    pub best_us: Option<f64>,
}

/// A callback that receives progress events.
pub type Observer<'a> = &'a mut dyn FnMut(&Event<'_>);
