//! What all ways of tuning share: what is tuned, how it goes, and what comes out.
//!
//! [`top()`](crate::top::top) measures the few best predicted schedules, [`autotune()`](crate::autotune::autotune) searches
//! and measures until it is told to stop. Both claim candidates in [`Records`](crate::records::Records), measure them with a
//! [`Bench`](crate::worker::Bench), and at the end time the best in turns, so that noise does not pick the winner.

mod finals;
mod full_check;
mod session;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;
use thiserror::Error;
use warploom_cost::CostModel;
use warploom_lang::BoundsError;
use warploom_schedule::schedule::Schedule;
use warploom_search as search;

use crate::measure::{Check, MeasureError, Subject};
use crate::records::{RecordsError, Trial};

pub(crate) use session::{Proposal, Session};

/// What is tuned, and how schedules for it are found.
pub struct Task<'a> {
    /// The pipeline with its sizes and data.
    pub subject: Arc<Subject>,
    /// The same at a size at which the reference's results are known; every candidate is compared there.
    pub small: Option<Arc<Check>>,
    /// How far kernels built for speed may be off at the full size, as a fraction of an output's largest sample. Without it,
    /// four times as far as those of the default schedule are.
    pub tolerance: Option<f64>,
    /// What predicts times.
    pub model: &'a dyn CostModel,
    /// How to search.
    pub search: search::Options,
    /// When to stop.
    pub deadline: Option<Instant>,
    /// Stops after the trial at hand when it becomes true.
    pub stop: &'a AtomicBool,
}

/// How tuning goes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Something that users should know.
    Note(String),
    /// A search for candidates begins.
    Searching {
        /// Which, from 0.
        iteration: usize,
        /// Of how many.
        of: usize,
    },
    /// Candidates are about to be measured.
    Planned {
        /// How many.
        candidates: usize,
        /// How many others have trials already.
        known: usize,
    },
    /// A candidate was measured and recorded.
    Measured {
        /// What became of it.
        trial: &'a Trial,
        /// How far this run is.
        progress: Progress,
    },
    /// The model was trained on everything measured.
    Retrained {
        /// How much slower than the best the schedule is that the model before picks among those measured.
        before: Option<f64>,
        /// The same for the new one.
        after: Option<f64>,
    },
    /// The best are timed in turns.
    Retiming {
        /// How many.
        finalists: usize,
    },
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Progress {
    /// Trials of this run.
    pub done: usize,
    /// How many there will be, as far as is known.
    pub expected: usize,
    /// Those of this run that failed or were not run.
    pub invalid: usize,
    /// The shortest time known, microseconds.
    pub best_us: Option<f64>,
}

/// Why tuning ended.
#[derive(Debug)]
pub enum Ended {
    /// Everything was done.
    Finished,
    /// The time was up.
    TimeLimit,
    /// It was told to stop.
    Stopped,
    /// Something failed; what was measured before is recorded.
    Failed(TuneError),
}

/// What tuning came to.
#[derive(Debug)]
pub struct Tuned {
    /// The best schedule that is known and right; `None` if there is none.
    pub winner: Option<Winner>,
    /// The trials to be shown, the fastest first, those that failed last.
    pub shown: Vec<Trial>,
    /// What was done.
    pub progress: Progress,
    /// Why it ended.
    pub ended: Ended,
}

/// The best schedule.
#[derive(Debug)]
pub struct Winner {
    /// It.
    pub schedule: Schedule,
    /// What was measured of it.
    pub trial: Trial,
    /// Whether its results at the full size were compared with those of the default schedule.
    pub checked_at_full_size: bool,
}

/// Why tuning failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The sizes or Params don't fit the pipeline.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// Trials could not be recorded.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Nothing can be measured any more.
    #[error(transparent)]
    Measure(#[from] MeasureError),
}

/// What hears how it goes.
pub type Observer<'a> = &'a mut dyn FnMut(&Event<'_>);
