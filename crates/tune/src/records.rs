//! What was measured, in a database that survives everything.
//!
//! [`Records`] is a SQLite file. One [`Trial`] is one schedule of a *problem*: a pipeline at some sizes on a device, built
//! by certain versions of the compilers. A trial is committed before the next begins, so that a run that is killed at any
//! moment loses at most what it was working on, and whoever goes on later measures nothing twice. Pipelines are stored
//! once, by their hash.
//!
//! Several processes of one machine may use one file. Before a schedule is compiled it is *claimed* ([`Records::claim`]): of two processes
//! that want the same, one measures and the other passes on. A claim ends with its trial, with its process, or, if nobody
//! can tell whether that process lives, after some minutes without a sign of life.
//!
//! [`Records::export`] and [`Records::import`] exchange trials as lines of JSON, and as files of samples that the cost model
//! is trained on.

mod claims;
mod error;
mod exchange;
mod place;
mod rows;
mod runs;
mod schema;
mod sensible;

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

/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(20);

/// A database of trials.
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

/// A pipeline at some sizes on a device, built by certain versions: what trials are comparable within.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct ProblemId(i64);

/// A schedule and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// Its number in the database; 0 if it is not in one yet.
    pub id: i64,
    /// What was measured.
    pub sample: Sample,
    /// How long it takes as the model of that time predicted, microseconds.
    pub predicted_us: Option<f64>,
    /// Distance between the quartiles of the batches, over the median.
    pub spread: f64,
    /// How long it takes as timed in turns with the other best ones, microseconds.
    pub retimed_us: Option<f64>,
    /// When it was measured, in seconds since 1970.
    pub measured_at: u64,
}

/// A problem and what is known of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Problem {
    /// Its number in the database.
    pub id: ProblemId,
    /// The name of its pipeline.
    pub name: String,
    /// The hash of its pipeline, hexadecimal.
    pub pipeline: String,
    /// Its sizes and Params.
    pub sizes: Sizes,
    /// The device's name.
    pub device: String,
    /// The device's fingerprint.
    pub fingerprint: String,
    /// The versions that its kernels depend on.
    pub versions: String,
    /// How many schedules were tried.
    pub trials: u64,
    /// How many of them could be timed and are right.
    pub valid: u64,
    /// The shortest time, microseconds.
    pub best_us: Option<f64>,
}

impl Trial {
    /// A sample that was measured now.
    pub fn new(sample: Sample, predicted_us: Option<f64>, spread: f64) -> Trial {
        Trial { id: 0, sample, predicted_us, spread, retimed_us: None, measured_at: now() }
    }

    /// How long it takes, if it was timed and is right, microseconds.
    pub fn time_us(&self) -> Option<f64> {
        let times = self.sample.times.filter(|_| self.sample.status == Status::Measured)?;
        Some(self.retimed_us.unwrap_or(times.min))
    }
}

impl Records {
    /// Opens a database; makes it if there is none.
    ///
    /// # Errors
    /// If the file cannot be made or read, is something else, or is on a file system of a network.
    pub fn open(path: impl AsRef<Path>) -> Result<Records, RecordsError> {
        Records::to_write(path.as_ref(), OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a database that is there. Where it cannot be written, it can only be read.
    ///
    /// # Errors
    /// If there is none, it cannot be read, is something else, or is on a file system of a network.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Records, RecordsError> {
        let path = path.as_ref();
        Records::to_write(path, OpenFlags::empty()).or_else(|error| match error {
            RecordsError::Open { .. } => Records::to_read(path).unwrap_or(Err(error)),
            _ => Err(error),
        })
    }

    fn to_write(path: &Path, more: OpenFlags) -> Result<Records, RecordsError> {
        place::check(path)?;
        place::check_writable(path)?;
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | more)?;
        schema::prepare(&mut connection, path)?;
        Ok(Records::over(connection, path))
    }

    /// Opens a database that cannot be written; `None` if it cannot be read either.
    fn to_read(path: &Path) -> Option<Result<Records, RecordsError>> {
        let alone = frozen(path).map(|address| (address, OpenFlags::SQLITE_OPEN_URI));
        let shared = (path.to_path_buf(), OpenFlags::empty());
        let mut opened = alone.into_iter().chain([shared]).map(|(address, more)| {
            let connection = connect(&address, OpenFlags::SQLITE_OPEN_READ_ONLY | more)?;
            schema::check(&connection, path)?;
            Ok(Records::over(connection, path))
        });
        opened.find(|opened| !matches!(opened, Err(RecordsError::Open { .. })))
    }

    fn over(connection: Connection, path: &Path) -> Records {
        Records { connection, path: path.to_path_buf(), owner: claims::Owner::this() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The problem of a pipeline at some sizes on a device; what is needed to build it again is stored.
    ///
    /// Versions of drivers are kept with trials, but make no other problem: machine code is the kernel compiler's.
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

    /// Stores a trial and ends the claim on it; `false` if the schedule has a trial already, which then stays.
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

    /// All problems, by the names of their pipelines.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn problems(&self) -> Result<Vec<Problem>, RecordsError> {
        rows::problems(&self.connection).map_err(|error| self.failed(error))
    }

    /// The trials of a problem in the order they were measured; of all problems, if none is given.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn trials(&self, problem: Option<ProblemId>) -> Result<Vec<Trial>, RecordsError> {
        rows::trials(&self.connection, problem).map_err(|error| self.failed(error))
    }

    /// One trial by its number.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn trial(&self, id: i64) -> Result<Option<Trial>, RecordsError> {
        rows::trial(&self.connection, id).map_err(|error| self.failed(error))
    }

    /// The trials of a problem that are right, the fastest first, at most `count`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn best(&self, problem: ProblemId, count: usize) -> Result<Vec<Trial>, RecordsError> {
        rows::best(&self.connection, problem, count).map_err(|error| self.failed(error))
    }

    /// The trial of a schedule of a problem.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn find(&self, problem: ProblemId, schedule: &str) -> Result<Option<Trial>, RecordsError> {
        rows::find(&self.connection, problem, &schedule_hash(schedule)).map_err(|error| self.failed(error))
    }

    /// Keeps how long a trial takes as timed in turns with others.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn set_retimed(&mut self, trial: i64, microseconds: f64) -> Result<(), RecordsError> {
        self.change(|change| {
            change.execute("UPDATE trials SET retimed_us = ?2 WHERE id = ?1", params![trial, microseconds])
        })?;
        Ok(())
    }

    /// Keeps that a trial's results turned out to be wrong after all.
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

    /// The pipeline of a hash.
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

    /// Makes the file grow by at most so many pages of 4 KB, as if the disk were full then. For tests.
    ///
    /// # Errors
    /// If SQLite refuses.
    pub fn limit_growth(&mut self, pages: u32) -> Result<(), RecordsError> {
        let limit = |connection: &Connection| {
            let now: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            connection.pragma_update_and_check(None, "max_page_count", now + i64::from(pages), |_| Ok(()))
        };
        limit(&self.connection).map_err(|error| self.failed(error))
    }

    /// Does something as one transaction that no other writer comes between.
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

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, RecordsError> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let connection = connection.map_err(|error| RecordsError::of(path, error))?;
    let limited = connection.busy_timeout(BUSY);
    let limited = limited.and_then(|()| connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, FIELD.most as i32));
    limited.map_err(|error| RecordsError::of(path, error))?;
    Ok(connection)
}

/// A file's address by which SQLite reads it without files beside it: in a folder that cannot be written it could not make them,
/// and in another they would be in the way of those who write. `None` if somebody does, or has left something there.
fn frozen(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let mut log = absolute.clone().into_os_string();
    log.push("-wal");
    if std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    let escaped = absolute.to_str()?.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Some(PathBuf::from(format!("file:{escaped}?immutable=1")))
}

/// The hash by which the schedules of a problem are told apart, hexadecimal.
fn schedule_hash(text: &str) -> String {
    rows::hexadecimal(xxh3_128(text.as_bytes()))
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
