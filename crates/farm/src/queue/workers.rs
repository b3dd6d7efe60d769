//! Processes that work for the farm.

use thiserror::Error;
use warploom_tune::records::{Change, RecordsError};
use warploom_tune::values;

use super::{NOW, Queue, one};
use crate::store::class_of;

/// Why a process could not join.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The queue cannot be used.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Other workers run another program, whose trials would not be comparable.
    #[error(
        "the farm works with another program, code generator or NVRTC: {host} has\n  {theirs}\nand this one is\n  {own}\n\
         use the same program everywhere, or stop the farm first"
    )]
    OtherProgram {
        /// A machine of the farm.
        host: String,
        /// The program there.
        theirs: String,
        /// This program.
        own: String,
    },
}

/// A process that wants to join.
#[derive(Clone, PartialEq, Debug)]
pub struct Joining {
    /// Name of its machine.
    pub host: String,
    /// Its process id there.
    pub process: u32,
    /// Its roles, separated by commas.
    pub roles: String,
    /// The versions that machine code depends on.
    pub versions: Vec<String>,
    /// The digest of the program.
    pub digest: String,
    /// Its GPUs, if it runs anything.
    pub gpus: Option<Gpus>,
}

/// The GPUs of a process.
#[derive(Clone, PartialEq, Debug)]
pub struct Gpus {
    /// Their number.
    pub count: usize,
    /// The fingerprint of their kind.
    pub fingerprint: String,
    /// Their description, as JSON.
    pub device: String,
}

/// The farm's answer to a worker that reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Orders {
    /// It was asked to leave.
    pub leave: bool,
    /// The number of runs that are not over.
    pub runs: i64,
    /// The number of workers that have reported lately, including this one.
    pub workers: u32,
}

impl Queue {
    /// Joins, and returns the number of the worker. Removes candidates of other versions, which no worker can process
    /// any more.
    ///
    /// # Errors
    /// If another worker runs another program, or the queue cannot be used.
    pub fn join(&mut self, joining: &Joining) -> Result<i64, JoinError> {
        let Joining { host, process, roles, versions, digest, gpus } = joining;
        let versions = warploom_tune::records::Records::that_matter(versions);
        let program = format!("{versions}, program {digest}");
        let alive = self.store.alive();
        let strangers = "SELECT 1 FROM workers WHERE program <> $1 AND left_at IS NULL LIMIT 1";
        let others = format!(
            "SELECT host, program FROM workers
             WHERE program <> $1 AND left_at IS NULL AND holder IN ({alive}) LIMIT 1"
        );
        let join = format!(
            "INSERT INTO workers (holder, host, process, roles, program, fingerprint, device, gpus, joined_at, seen_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {NOW}, {NOW}) RETURNING id"
        );
        let one_at_a_time =
            format!("SELECT 1 FROM pg_advisory_xact_lock({}, -2)", class_of(self.store.schema()));
        let (kind, device) = (gpus.as_ref().map(|of| &of.fingerprint), gpus.as_ref().map(|of| &of.device));
        let (kind, device) = (kind.cloned(), device.cloned());
        let count = gpus.as_ref().map_or(0, |of| of.count);
        let joined = self.change(|change| {
            // Workers join one at a time, so that two different programs cannot both be the first. A lock of the table
            // would block everyone who records trials.
            change.query_one(&one_at_a_time, &[])?;
            // With many workers, checking which are alive takes long.
            if change.query_one(strangers, values![&program])?.is_some() {
                let other = one(change, &others, values![&program], |row| {
                    Ok((row.get::<String>(0)?, row.get::<String>(1)?))
                })?;
                if let Some(other) = other {
                    return Ok(Err(other));
                }
            }
            let outdated =
                "DELETE FROM candidates c USING problems p WHERE p.id = c.problem AND p.versions <> $1";
            change.execute(outdated, values![&versions])?;
            let holder = change.holder();
            let values = values![holder, host, *process, roles, &program, &kind, &device, count];
            Ok(Ok(one(change, &join, values, |row| row.get(0))?.unwrap_or(0)))
        })?;
        joined.map_err(|(host, theirs)| JoinError::OtherProgram { host, theirs, own: program })
    }

    /// Reports that a worker is alive, under its current number.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn show_up(&mut self, worker: i64) -> Result<Orders, RecordsError> {
        let seen = format!("UPDATE workers SET seen_at = {NOW}, holder = $2 WHERE id = $1 RETURNING leaving");
        self.change(|change| {
            let holder = change.holder();
            // Claims from before the connection broke are still worked on.
            let before = one(change, "SELECT holder FROM workers WHERE id = $1", values![worker], |row| {
                row.get::<String>(0)
            })?;
            if let Some(before) = before.filter(|before| *before != holder) {
                for table in ["candidates", "runs"] {
                    let keep = format!("UPDATE {table} SET holder = $2 WHERE holder = $1");
                    change.execute(&keep, values![&before, &holder])?;
                }
            }
            let leave = one(change, &seen, values![worker, holder], |row| row.get(0))?;
            let runs = "SELECT count(*) FROM runs WHERE state IN ('waiting', 'active')";
            let runs = one(change, runs, &[], |row| row.get(0))?;
            let workers = format!("SELECT count(*) FROM workers WHERE {}", there());
            let workers = one(change, &workers, &[], |row| row.get(0))?;
            let (leave, runs) = (leave.unwrap_or(true), runs.unwrap_or(0));
            Ok(Orders { leave, runs, workers: workers.unwrap_or(1) })
        })
    }

    /// Leaves. The worker's claims are freed.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn leave(&mut self, worker: i64) -> Result<(), RecordsError> {
        let left = format!("UPDATE workers SET left_at = {NOW} WHERE id = $1");
        self.change(|change| {
            let holder = change.holder();
            change.execute(&super::candidates::free("holder = $1", "0"), values![holder])?;
            change.execute(&left, values![worker]).map(drop)
        })
    }

    /// Asks all workers to leave.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn dismiss(&mut self) -> Result<u64, RecordsError> {
        let dismiss = format!(
            "UPDATE workers SET leaving = TRUE WHERE left_at IS NULL AND holder IN ({})",
            self.store.alive()
        );
        self.change(|change| change.execute(&dismiss, &[]))
    }

    /// The number of workers that have not left.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn working(&self) -> Result<i64, RecordsError> {
        let query = format!(
            "SELECT count(*) FROM workers WHERE left_at IS NULL AND holder IN ({})",
            self.store.alive()
        );
        Ok(self.rows(&query, &[], |row| row.get(0))?.into_iter().next().unwrap_or(0))
    }

    /// Adds a note for users.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn note(&mut self, run: Option<i64>, worker: Option<i64>, note: &str) -> Result<(), RecordsError> {
        self.change(|change| add_note(change, run, worker, note))
    }
}

/// The condition for workers that have reported lately.
pub(super) fn there() -> String {
    format!("left_at IS NULL AND seen_at > {NOW} - 30")
}

pub(super) fn add_note(
    change: &mut dyn Change,
    run: Option<i64>,
    worker: Option<i64>,
    note: &str,
) -> Result<(), RecordsError> {
    let insert = format!("INSERT INTO notes (at, run, worker, note) VALUES ({NOW}, $1, $2, $3)");
    change.execute(&insert, values![run, worker, note]).map(drop)
}
