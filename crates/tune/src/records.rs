//! A database of measurements that survives crashes.
//!
//! [`Records`] is a SQLite file. A [`Trial`] is the result of one schedule of a *problem*: a
//! pipeline at fixed sizes on a device, built by specific compiler versions. Each trial is
//! committed before the next one starts. A run that is killed loses at most the trial in progress,
//! and a later run measures nothing twice. Pipelines are stored once, keyed by hash.
//!
//! Several processes on one machine may share a file. Before a process compiles a schedule, it
//! *claims* it ([`Records::claim`]). If two processes want the same schedule, one measures it and
//! the other moves on. A claim ends with its trial or with its process. If it is unknown whether
//! the process is alive, the claim is a lease that expires after some minutes without renewal.
//!
//! [`Records::export`] and [`Records::import`] exchange trials as lines of JSON. Trials can also be
//! written to and read from sample files, which the cost model is trained on.

mod claims;
mod error;
mod exchange;
mod place;
mod rows;
mod runs;
mod schema;
mod sensible;
mod steps;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::Serialize;
use warploom_lang::files::FIELD;
use warploom_lang::{Pipeline, Realisation};
use warploom_target::Device;
use xxhash_rust::xxh3::xxh3_128;

use crate::sample::{Sample, Sizes, Status};

pub use claims::Claim;
pub use error::RecordsError;
pub use exchange::Imported;
pub use runs::{FinishedIteration, RunKey, RunState};
pub use steps::{Step, StepOutcome};

/// How long to wait for another process's write transaction.
const BUSY: Duration = Duration::from_secs(20);

/// A database of trials: a file, or one in memory that ends with the program.
///
/// ```
/// use warploom_tune::records::Records;
/// let folder = tempfile::tempdir()?;
/// let records = Records::open(folder.path().join("tuning.db"))?;
/// assert!(records.problems()?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Records {
    connection: Connection,
    path: PathBuf,
    owner: claims::Owner,
}

/// The key of a problem: a pipeline at fixed sizes on a device, built by specific versions. Trials
/// are comparable only within one problem.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct ProblemId(i64);

/// A schedule and its result.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// Row id in the database; 0 if it is not stored yet.
    pub id: i64,
    /// The schedule, its status, its times and how it was built.
    pub sample: Sample,
    /// Time that the model predicted before the measurement, in microseconds.
    pub predicted_us: Option<f64>,
    /// Interquartile range of the batch times, divided by their median.
    pub spread: f64,
    /// Time measured in the final rounds, interleaved with the other finalists, in microseconds.
    pub retimed_us: Option<f64>,
    /// When it was measured, in seconds since the Unix epoch.
    pub measured_at: u64,
}

/// A problem with a summary of its trials.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    /// Row id in the database.
    pub id: ProblemId,
    /// Name of the pipeline.
    pub name: String,
    /// Structural hash of the pipeline, in hexadecimal.
    pub pipeline: String,
    /// Sizes of inputs and outputs, and the Params.
    pub sizes: Sizes,
    /// Name of the device.
    pub device: String,
    /// Fingerprint of the device; devices with different fingerprints are different problems.
    pub fingerprint: String,
    /// Versions that the machine code depends on; the driver's is not among them.
    pub versions: Vec<String>,
    /// Number of trials, including failed ones.
    pub trials: u64,
    /// Number of trials that were timed and gave correct results.
    pub valid: u64,
    /// Shortest time of a valid trial, in microseconds.
    pub best_us: Option<f64>,
}

impl Trial {
    /// A trial of a sample that was measured just now.
    pub fn new(sample: Sample, predicted_us: Option<f64>, spread: f64) -> Trial {
        Trial { id: 0, sample, predicted_us, spread, retimed_us: None, measured_at: now() }
    }

    /// Time in microseconds if it was timed and is correct: the retimed value if there is one, else
    /// the shortest.
    pub fn time_us(&self) -> Option<f64> {
        let times = self.sample.times.filter(|_| self.sample.status == Status::Measured)?;
        Some(self.retimed_us.unwrap_or(times.min))
    }
}

impl Records {
    /// Opens a database, and creates it if it does not exist.
    ///
    /// The path is that of a file, whatever SQLite would make of it: `file:a.db?mode=memory` is a
    /// file of this name. Only what begins with `postgres://` or `postgresql://` is reserved.
    ///
    /// # Errors
    /// If the file cannot be created or read, is not a records database, or is on a network file
    /// system.
    pub fn open(path: impl AsRef<Path>) -> Result<Records, RecordsError> {
        Records::to_write(path.as_ref(), OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens an existing database, read-only if it is not writable.
    ///
    /// # Errors
    /// If it does not exist, cannot be read, is not a records database, or is on a network file
    /// system.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Records, RecordsError> {
        let path = path.as_ref();
        Records::to_write(path, OpenFlags::empty()).or_else(|error| match error {
            RecordsError::Open { .. } => Records::to_read(path).unwrap_or(Err(error)),
            _ => Err(error),
        })
    }

    /// An empty database without a file.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn in_memory() -> Result<Records, RecordsError> {
        let path = Path::new("memory");
        let connection = Connection::open_in_memory_with_flags(OpenFlags::default());
        let mut connection = limited(connection.map_err(|error| RecordsError::of(path, error))?, path)?;
        schema::prepare(&mut connection, path)?;
        Ok(Records::over(connection, path))
    }

    /// Returns the error that [`Records::open`] is sure to return for a path, as far as that is
    /// known without opening or creating anything.
    ///
    /// # Errors
    /// If the path is reserved, on a network file system, not writable, or in a folder that does
    /// not exist or is not writable.
    pub fn check(path: impl AsRef<Path>) -> Result<(), RecordsError> {
        let path = path.as_ref();
        place::check(path)?;
        place::check_writable(path)
    }

    /// Returns an error if a path is reserved for something else than a file.
    ///
    /// # Errors
    /// If it begins with `postgres://` or `postgresql://`.
    pub fn check_reserved(path: impl AsRef<Path>) -> Result<(), RecordsError> {
        place::check_reserved(path.as_ref())
    }

    fn to_write(path: &Path, more: OpenFlags) -> Result<Records, RecordsError> {
        Records::check(path)?;
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | more)?;
        schema::prepare(&mut connection, path)?;
        Ok(Records::over(connection, path))
    }

    /// Opens a database read-only; `None` if it cannot be read either.
    fn to_read(path: &Path) -> Option<Result<Records, RecordsError>> {
        let alone = place::frozen(path).map(|address| {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            connect_to(&address, flags, path)
        });
        let shared = || connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let mut opened = alone.into_iter().chain(std::iter::once_with(shared)).map(|connection| {
            let connection = connection?;
            schema::check(&connection, path)?;
            Ok(Records::over(connection, path))
        });
        opened.find(|opened| !matches!(opened, Err(RecordsError::Open { .. })))
    }

    fn over(connection: Connection, path: &Path) -> Records {
        Records { connection, path: path.to_path_buf(), owner: claims::Owner::this() }
    }

    /// Path of the database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The problem of a pipeline at fixed sizes on a device. Stores it if it is new, with
    /// everything needed to rebuild it.
    ///
    /// The driver version is recorded with each trial, but does not distinguish problems, because
    /// machine code comes from the kernel compiler.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn problem(
        &mut self,
        pipeline: &Pipeline,
        request: &Realisation,
        device: &Device,
        versions: &[String],
    ) -> Result<ProblemId, RecordsError> {
        let sizes = Sizes::of(request);
        let fingerprint = device.fingerprint();
        self.change(|change| rows::problem(change, pipeline, &sizes, &device.name, &fingerprint, versions))
    }

    /// Stores a trial and ends its claim. Returns `false` if the schedule already has a trial,
    /// which is then kept.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn record(&mut self, problem: ProblemId, trial: &Trial) -> Result<bool, RecordsError> {
        let owner = self.owner.clone();
        self.change(|change| {
            let new = rows::insert(change, problem, trial)?;
            claims::release(change, problem, &schedule_hash(&trial.sample.schedule))?;
            claims::renew(change, &owner)?;
            Ok(new)
        })
    }

    /// All problems, ordered by pipeline name.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn problems(&self) -> Result<Vec<Problem>, RecordsError> {
        rows::problems(&self.connection).map_err(|error| self.failed(error))
    }

    /// The trials of a problem, or of all problems for `None`, in the order they were recorded.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn trials(&self, problem: Option<ProblemId>) -> Result<Vec<Trial>, RecordsError> {
        rows::trials(&self.connection, problem).map_err(|error| self.failed(error))
    }

    /// One trial by its row id; `None` if there is no such row.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn trial(&self, id: i64) -> Result<Option<Trial>, RecordsError> {
        rows::trial(&self.connection, id).map_err(|error| self.failed(error))
    }

    /// The fastest valid trials of a problem, fastest first, at most `count`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn best(&self, problem: ProblemId, count: usize) -> Result<Vec<Trial>, RecordsError> {
        rows::best(&self.connection, problem, count).map_err(|error| self.failed(error))
    }

    /// The trial of a schedule text; `None` if it was not tried.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn find(&self, problem: ProblemId, schedule: &str) -> Result<Option<Trial>, RecordsError> {
        rows::find(&self.connection, problem, &schedule_hash(schedule)).map_err(|error| self.failed(error))
    }

    /// Stores the time of a trial from the final rounds, in microseconds.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn set_retimed(&mut self, trial: i64, microseconds: f64) -> Result<(), RecordsError> {
        self.change(|change| {
            change.execute("UPDATE trials SET retimed_us = ?2 WHERE id = ?1", params![trial, microseconds])
        })?;
        Ok(())
    }

    /// Replaces the status of a trial whose results turned out to be wrong, or that can no longer
    /// run.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn set_status(&mut self, trial: i64, status: &Status) -> Result<(), RecordsError> {
        self.change(|change| {
            let update = "UPDATE trials SET status = ?2, message = ?3 WHERE id = ?1";
            change.execute(update, params![trial, status.kind(), status.message()])
        })?;
        Ok(())
    }

    /// The stored pipeline with this structural hash, if any.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn pipeline(&self, hash: u128) -> Result<Option<Pipeline>, RecordsError> {
        let content = "SELECT content FROM pipelines WHERE hash = ?1";
        let content: Option<Vec<u8>> = self
            .connection
            .query_row(content, [rows::hexadecimal(hash)], |row| row.get(0))
            .optional()
            .map_err(|error| self.failed(error))?;
        content.map(|content| rows::read_pipeline(&content, &self.path)).transpose()
    }

    /// Lets the file grow by at most `pages` pages of 4 KB, and then fails as if the disk were
    /// full. For tests.
    ///
    /// # Errors
    /// If SQLite rejects the limit.
    pub fn limit_growth(&mut self, pages: u32) -> Result<(), RecordsError> {
        let limit = |connection: &Connection| {
            let now: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            connection.pragma_update_and_check(None, "max_page_count", now + i64::from(pages), |_| Ok(()))
        };
        limit(&self.connection).map_err(|error| self.failed(error))
    }

    /// Runs `change` in one immediate transaction, so no other writer interleaves.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, RecordsError> {
        let path = &self.path;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let done = transaction.and_then(|transaction| {
            let done = change(&transaction)?;
            transaction.commit()?;
            Ok(done)
        });
        done.map_err(|error| RecordsError::of(path, error))
    }

    fn failed(&self, error: rusqlite::Error) -> RecordsError {
        RecordsError::of(&self.path, error)
    }
}

/// Connects to the file at a path.
fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, RecordsError> {
    connect_to(&place::plain(path), flags, path)
}

/// Connects to an address: a path, or with `SQLITE_OPEN_URI` a URI. `path` is for errors.
fn connect_to(address: &Path, flags: OpenFlags, path: &Path) -> Result<Connection, RecordsError> {
    let connection = Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    limited(connection.map_err(|error| RecordsError::of(path, error))?, path)
}

/// Sets the limits of a new connection.
fn limited(connection: Connection, path: &Path) -> Result<Connection, RecordsError> {
    let limited = connection.busy_timeout(BUSY);
    let limited = limited.and_then(|()| connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, FIELD.most as i32));
    limited.map_err(|error| RecordsError::of(path, error))?;
    Ok(connection)
}

/// The hash that identifies a schedule within a problem, in hexadecimal.
pub(crate) fn schedule_hash(text: &str) -> String {
    rows::hexadecimal(xxh3_128(text.as_bytes()))
}

/// Seconds since the Unix epoch.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
