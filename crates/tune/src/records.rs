//! A database of measurements that survives crashes.
//!
//! [`Records`] is a SQLite file, or another [`Store`]. A [`Trial`] is the result of one schedule of a *problem*: a
//! pipeline at fixed sizes on a device, built by specific compiler versions. Each trial is
//! committed before the next one starts. A run that is killed loses at most the trial in progress,
//! and a later run measures nothing twice. Pipelines are stored once, keyed by hash.
//!
//! Several processes may share a store; a file only on one machine. Before a process compiles a schedule, it *claims*
//! it ([`Records::claim`]). If two processes want the same schedule, one measures it and the other moves on. A claim
//! ends with its trial or with its process. If it is unknown whether the process is alive, the claim is a lease that
//! expires after some minutes without renewal.
//!
//! [`Records::export`] and [`Records::import`] exchange trials as lines of JSON. Trials can also be
//! written to and read from sample files, which the cost model is trained on.

mod claims;
mod copy;
mod error;
mod exchange;
mod rows;
mod runs;
mod sensible;
mod sqlite;
mod steps;
mod store;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use warploom_lang::{Pipeline, Realisation};
use warploom_target::Device;
use xxhash_rust::xxh3::xxh3_128;

use crate::sample::{Sample, Sizes, Status};
use crate::values;
use rows::which;
use sqlite::Sqlite;

pub use claims::Claim;
pub use error::RecordsError;
pub use exchange::Imported;
pub use runs::{FinishedIteration, RunKey, RunState};
pub use steps::{RunStep, StepOutcome};
pub use store::{Change, FromValue, RecordsPlace, Row, Store, Unreadable, Value, Work};

/// Version of the schema, the same in all stores.
pub const SCHEMA: i64 = 3;

/// A database of trials: a file, one in memory that ends with the program, or another [`Store`].
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
    store: Box<dyn Store>,
}

/// The key of a problem: a pipeline at fixed sizes on a device, built by specific versions. Trials
/// are comparable only within one problem.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct ProblemId(pub i64);

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
    /// [Key](Records::key) of the pipeline, in hexadecimal.
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
    /// Opens a file, and creates it if it does not exist.
    ///
    /// The path always names a file, whatever SQLite would make of it: `file:a.db?mode=memory` is a file of this name.
    /// Only `postgres://` and `postgresql://` begin the address of a server.
    ///
    /// # Errors
    /// If the file cannot be created or read, is not a records database, or is on a network file
    /// system.
    pub fn open(path: impl AsRef<Path>) -> Result<Records, RecordsError> {
        Ok(Records::over(Sqlite::to_write(path.as_ref(), true)?))
    }

    /// Opens an existing file, read-only if it is not writable.
    ///
    /// # Errors
    /// If it does not exist, cannot be read, is not a records database, or is on a network file
    /// system.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Records, RecordsError> {
        let path = path.as_ref();
        let opened = Sqlite::to_write(path, false).or_else(|error| match error {
            RecordsError::Open { .. } => Sqlite::to_read(path).unwrap_or(Err(error)),
            _ => Err(error),
        });
        opened.map(Records::over)
    }

    /// An empty database without a file.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn in_memory() -> Result<Records, RecordsError> {
        Sqlite::in_memory().map(Records::over)
    }

    /// The records in a store whose tables exist.
    pub fn over(store: impl Store + 'static) -> Records {
        Records { store: Box::new(store) }
    }

    /// The error that [`Records::open`] is certain to return for a path, as far as that is known without opening or
    /// creating anything.
    ///
    /// # Errors
    /// If the path is the address of a server, on a network file system, not writable, or in a
    /// folder that does not exist or is not writable.
    pub fn check(path: impl AsRef<Path>) -> Result<(), RecordsError> {
        sqlite::check(path.as_ref())
    }

    /// The scheme of a server's address; `None` for the path of a file.
    pub fn of_server(text: impl AsRef<Path>) -> Option<&'static str> {
        sqlite::of_server(text.as_ref())
    }

    /// The place of the records.
    pub fn place(&self) -> &RecordsPlace {
        self.store.place()
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
        self.change(|change| {
            let new = record_in(change, &[(problem, trial)])?.iter().any(Option::is_some);
            claims::release(change, problem, &schedule_hash(&trial.sample.schedule))?;
            claims::renew(change)?;
            Ok(new)
        })
    }

    /// All problems, ordered by pipeline name.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn problems(&self) -> Result<Vec<Problem>, RecordsError> {
        self.read(rows::PROBLEMS, &[], rows::read_problem)
    }

    /// The trials of a problem, or of all problems for `None`, in the order they were recorded.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn trials(&self, problem: Option<ProblemId>) -> Result<Vec<Trial>, RecordsError> {
        match problem {
            Some(problem) => self.select(which::OF_PROBLEM, values![problem.0]),
            None => self.select(which::ALL, &[]),
        }
    }

    /// The trials of a problem that were recorded after the one with a row id, in order.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn trials_after(&self, problem: ProblemId, id: i64) -> Result<Vec<Trial>, RecordsError> {
        self.select(which::AFTER, values![problem.0, id])
    }

    /// One trial by its row id; `None` if there is no such row.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn trial(&self, id: i64) -> Result<Option<Trial>, RecordsError> {
        Ok(self.select(which::BY_ID, values![id])?.pop())
    }

    /// The fastest valid trials of a problem, fastest first, at most `count`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn best(&self, problem: ProblemId, count: usize) -> Result<Vec<Trial>, RecordsError> {
        self.select(which::BEST, values![problem.0, count])
    }

    /// The trial of a schedule text; `None` if it was not tried.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn find(&self, problem: ProblemId, schedule: &str) -> Result<Option<Trial>, RecordsError> {
        Ok(self.select(which::OF_SCHEDULE, values![problem.0, schedule_hash(schedule)])?.pop())
    }

    /// Stores the times of trials from the final rounds, in microseconds: all or none.
    ///
    /// # Errors
    /// If they cannot be stored.
    pub fn set_retimed(&mut self, times: &[(i64, f64)]) -> Result<(), RecordsError> {
        let update = "UPDATE trials SET retimed_us = $2 WHERE id = $1";
        self.change(|change| {
            times.iter().try_for_each(|(trial, us)| change.execute(update, values![*trial, *us]).map(drop))
        })
    }

    /// Replaces the status of a trial whose results turned out to be wrong, or that can no longer
    /// run.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn set_status(&mut self, trial: i64, status: &Status) -> Result<(), RecordsError> {
        let update = "UPDATE trials SET status = $2, message = $3 WHERE id = $1";
        let values = values![trial, status.kind(), status.message()];
        self.change(|change| change.execute(update, values).map(drop))
    }

    /// The hash under which a pipeline is stored, or would be: its structural hash, unless a pipeline with other names
    /// has taken it. Equals [`Sample::pipeline`] of its trials.
    ///
    /// # Errors
    /// If the stored pipelines cannot be read.
    pub fn key(&self, pipeline: &Pipeline) -> Result<u128, RecordsError> {
        let hash = rows::hexadecimal(pipeline.structural_hash());
        let stored = self.read(rows::PIPELINE, values![hash], |row| row.get::<Vec<u8>>(0))?;
        Ok(rows::key(pipeline, stored.first().map(Vec::as_slice), self.place()))
    }

    /// The versions that machine code depends on, as one text: the key of problems.
    pub fn that_matter(versions: &[String]) -> String {
        rows::that_matter(versions)
    }

    /// The stored pipeline with this [key](Records::key), if any.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn pipeline(&self, hash: u128) -> Result<Option<Pipeline>, RecordsError> {
        let content =
            self.read(rows::PIPELINE, values![rows::hexadecimal(hash)], |row| row.get::<Vec<u8>>(0))?;
        content.first().map(|content| rows::read_pipeline(content, self.place())).transpose()
    }

    /// Lets a file grow by at most `pages` pages of 4 KB, and then fails as if the disk were full. For tests.
    ///
    /// # Errors
    /// If the store rejects the limit.
    pub fn limit_growth(&mut self, pages: u32) -> Result<(), RecordsError> {
        self.store.limit_growth(pages)
    }

    /// Runs `work` in one transaction, so that all of it is stored or nothing. It may run more than
    /// once.
    fn change<T>(
        &mut self,
        mut work: impl FnMut(&mut dyn Change) -> Result<T, RecordsError>,
    ) -> Result<T, RecordsError> {
        let mut done = None;
        self.store.change(&mut |change| {
            done = Some(work(change)?);
            Ok(())
        })?;
        done.ok_or_else(|| RecordsError::Row {
            place: self.place().clone(),
            message: "a transaction did nothing".to_owned(),
        })
    }

    /// The rows of a statement, each read by `read`.
    fn read<T>(
        &self,
        statement: &str,
        values: &[Value],
        read: impl Fn(&Row) -> Result<T, Unreadable>,
    ) -> Result<Vec<T>, RecordsError> {
        let rows = self.store.read(statement, values)?;
        rows::read(self.place(), rows.iter().map(read).collect())
    }

    fn select(&self, which: &str, values: &[Value]) -> Result<Vec<Trial>, RecordsError> {
        self.read(&rows::select(which), values, rows::read_trial)
    }
}

/// Stores trials in a transaction. Returns the row id of each, or `None` if its schedule already has a trial.
///
/// # Errors
/// If they cannot be stored.
pub fn record_in(
    change: &mut dyn Change,
    trials: &[(ProblemId, &Trial)],
) -> Result<Vec<Option<i64>>, RecordsError> {
    // All transactions use the same order, so that they cannot deadlock.
    let problems: BTreeSet<i64> = trials.iter().map(|(problem, _)| problem.0).collect();
    problems.into_iter().try_for_each(|problem| change.hold_problem(problem))?;
    rows::insert(change, trials)
}

/// The hash that identifies a schedule within a problem, in hexadecimal.
pub fn schedule_hash(text: &str) -> String {
    rows::hexadecimal(xxh3_128(text.as_bytes()))
}

/// Seconds since the Unix epoch.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
