//! A process that works for a farm: it proposes candidates, compiles them, or runs them, or several
//! of these.
//!
//! | module | subject |
//! | --- | --- |
//! | `agent` | what the threads of the process share: the connection, what is taken, when it ends |
//! | `compile` | threads that compile |
//! | `ready` | threads that make candidates ready for a GPU |
//! | `run` | threads that own a GPU |
//! | `record` | a thread that writes what GPUs have done |
//! | `propose` | threads that propose candidates for a run |
//! | `crew` | a run's view of all workers |
//!
//! All threads share one connection. The kernel compiler and the GPUs are in processes of their own
//! ([`warploom_tune::worker`]), so a crash of theirs is seen here and costs one candidate.

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

/// What a task is about.
#[derive(Clone)]
pub struct Opened {
    /// The pipeline with its data.
    pub subject: Arc<Subject>,
    /// The same at a size with known outputs.
    pub small: Option<Arc<Check>>,
    /// The tolerance that the pipeline's author states.
    pub tolerance: Option<f64>,
}

/// The program's knowledge of tasks: a farm passes them on as text.
pub trait Workshop: Sync {
    /// What a task is about, on a device.
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

/// Where candidates are proposed from.
pub struct Site<'a> {
    /// What they are for.
    pub device: &'a Device,
    /// The versions of trials.
    pub versions: &'a [String],
    /// The farm's records. What is written to them counts only while no other process has taken
    /// over.
    pub records: Records,
    /// The farm's workers.
    pub crew: &'a mut dyn Crew,
    /// Replaces the task by one that says more: workers open that one, and whoever takes over goes on
    /// with it. To be called before anything is measured.
    pub settle: &'a mut dyn FnMut(&str) -> Result<(), RecordsError>,
    /// When to end.
    pub stop: &'a AtomicBool,
    /// For how long the run has been tuned already, by this process and others.
    pub age: Duration,
}

/// How proposing ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Proposed {
    /// All work was done; what it came to, in a sentence.
    Finished(String),
    /// This process was told to end.
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

/// What a worker needs.
pub struct Options {
    /// The farm's server.
    pub address: Address,
    /// What the process does.
    pub roles: Roles,
    /// The executable that is started to compile and to run.
    pub program: WorkerProgram,
    /// The digest of this program.
    pub digest: String,
    /// A fake device, for tests.
    pub fake: Option<Fake>,
    /// Time limits of what is started.
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
        /// Why not.
        why: String,
    },
    /// Nothing can be compiled any more.
    #[error("{0}")]
    Lost(String),
    /// A thread ended in a way that it should not.
    #[error("a thread of this worker panicked; please report it")]
    Panicked,
}

impl From<TuneError> for WorkError {
    fn from(error: TuneError) -> WorkError {
        WorkError::Tune(Box::new(error))
    }
}

/// What a worker tells its user.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum News {
    /// It has joined under a number.
    Joined(i64),
    /// It proposes candidates for a run.
    Proposing {
        /// The run.
        run: i64,
        /// Name of the pipeline.
        name: String,
        /// How many processes have done so before.
        before: i64,
    },
    /// A run has ended, or goes on elsewhere.
    Ended {
        /// The run.
        run: i64,
        /// Name of the pipeline.
        name: String,
        /// What came of it.
        how: String,
    },
}

/// What a worker has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Candidates that it compiled.
    pub compiled: u64,
    /// Trials that it recorded.
    pub recorded: u64,
}

/// The GPUs of a worker; `None` if it runs nothing.
pub type Gpus<'a> = Option<&'a mut OpenBench>;
