//! A process that works for a farm: it proposes candidates, compiles them, runs them, or several of these.
//!
//! | module | subject |
//! | --- | --- |
//! | `agent` | the state that the threads of the process share: the connection, open tasks, the end |
//! | `compile` | threads that compile |
//! | `ready` | threads that make candidates ready for a GPU |
//! | `run` | threads that own a GPU |
//! | `record` | a thread that writes the results of GPUs |
//! | `propose` | threads that propose candidates for a run |
//! | `crew` | a run's view of all workers |
//!
//! All threads share one connection. The kernel compiler and the GPUs are in processes of their own
//! ([`warploom_tune::worker`]), so their crashes are seen here and cost one candidate.

mod agent;
mod compile;
mod crew;
mod propose;
mod ready;
mod record;
mod run;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thiserror::Error;
use warploom_target::Device;
use warploom_tune::measure::{Check, Subject};
use warploom_tune::records::{Records, RecordsError};
use warploom_tune::tuning::{Crew, TuneError};
use warploom_tune::worker::{Fake, OpenBench, Patience, WorkerError, WorkerProgram};

use crate::address::Address;
use crate::queue::workers::JoinError;

pub use crate::launch::roles::{Role, Roles};
pub use agent::work;

/// An opened task.
#[derive(Clone)]
pub struct Opened {
    /// The pipeline with its data.
    pub subject: Arc<Subject>,
    /// The same pipeline at a size with known outputs.
    pub small: Option<Arc<Check>>,
    /// The tolerance that the pipeline's author states.
    pub tolerance: Option<f64>,
}

/// The program's knowledge of tasks, which a farm passes on as text.
pub trait Workshop: Sync {
    /// Opens a task, for a device.
    ///
    /// # Errors
    /// A sentence, if the task cannot be read.
    fn open(&self, task: &str, device: &Device) -> Result<Opened, String>;

    /// Proposes candidates for a task, until all work is done or `site.stop` is true.
    ///
    /// # Errors
    /// If the task cannot go on.
    fn propose(&self, task: &str, site: Site<'_>) -> Result<Proposed, ProposeError>;
}

/// The surroundings of a proposer.
pub struct Site<'a> {
    /// The device that candidates are for.
    pub device: &'a Device,
    /// The versions of trials.
    pub versions: &'a [String],
    /// The farm's records. Writes to them count only while no other process has taken over.
    pub records: Records,
    /// The farm's workers.
    pub crew: &'a mut dyn Crew,
    /// Replaces the task by a more specific one: workers open that one, and a process that takes over continues with
    /// it. Must be called before anything is measured.
    pub settle: &'a mut dyn FnMut(&str) -> Result<(), RecordsError>,
    /// When to end.
    pub stop: &'a AtomicBool,
    /// The time for which the run has been tuned already, by this process and others.
    pub age: Duration,
}

/// How proposing ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Proposed {
    /// All work was done; contains the result as a sentence.
    Finished(String),
    /// This process was asked to end.
    Interrupted,
}

/// Why candidates cannot be proposed any more.
#[derive(Debug, Error)]
pub enum ProposeError {
    /// The records cannot be used, or another process has taken over.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The task itself fails, and would fail again.
    #[error("{0}")]
    Task(String),
}

/// Options of a worker.
pub struct Options {
    /// The farm's server.
    pub address: Address,
    /// The roles of the process.
    pub roles: Roles,
    /// The executable that is started to compile and to run.
    pub program: WorkerProgram,
    /// The digest of this program.
    pub digest: String,
    /// A fake device, for tests.
    pub fake: Option<Fake>,
    /// Time limits of worker processes.
    pub patience: Patience,
    /// Number of candidates that are compiled at once.
    pub threads: usize,
    /// Number of runs that candidates are proposed for at once.
    pub runs: usize,
    /// Whether it ends when no run is left.
    pub until_done: bool,
}

/// Why a worker ended before it was asked to.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkError {
    /// It cannot join.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The queue cannot be used.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A compiler or a GPU cannot be used any more.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// Nothing can be measured here any more.
    #[error(transparent)]
    Tune(Box<TuneError>),
    /// A task cannot be worked on here.
    #[error("run {run} cannot be worked on here: {why}")]
    Task {
        /// The run.
        run: i64,
        /// The reason.
        why: String,
    },
    /// Nothing can be compiled any more.
    #[error("{0}")]
    Lost(String),
    /// A thread ended unexpectedly.
    #[error("a thread of this worker panicked; please report it")]
    Panicked,
}

impl From<TuneError> for WorkError {
    fn from(error: TuneError) -> WorkError {
        WorkError::Tune(Box::new(error))
    }
}

/// An event of a worker.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum News {
    /// It has joined, with this number.
    Joined(i64),
    /// It proposes candidates for a run.
    Proposing {
        /// The run.
        run: i64,
        /// Name of the pipeline.
        name: String,
        /// The number of processes that have done so before.
        before: i64,
    },
    /// A run has ended, or continues elsewhere.
    Ended {
        /// The run.
        run: i64,
        /// Name of the pipeline.
        name: String,
        /// The result.
        how: String,
    },
}

/// The work of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Candidates that it compiled.
    pub compiled: u64,
    /// Trials that it recorded.
    pub recorded: u64,
}

/// The GPUs of a worker; `None` if it runs nothing.
pub type Gpus<'a> = Option<&'a mut OpenBench>;
