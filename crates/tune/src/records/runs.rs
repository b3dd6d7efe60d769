//! How far autotuning is.

use rusqlite::{Transaction, params};
use warploom_cost::{Weights, WeightsError};

use super::{ProblemId, Records, RecordsError, now};

/// What the iterations of one run have in common: its seed, how it samples, and what its model started from. A run with
/// another key starts at its first iteration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunKey(pub String);

/// How far a run is.
#[derive(Debug)]
pub struct RunState {
    /// Iterations that are finished.
    pub finished: usize,
    /// The weights after the last; `None` if none were trained. Those of an older form cannot be used.
    pub weights: Option<Result<Weights, WeightsError>>,
    /// The problem's last trial when that iteration was finished, or the run began: later ones are of the iteration that
    /// was not finished.
    pub last_trial: i64,
}

/// An iteration that is finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FinishedIteration {
    /// Its run.
    pub run: RunKey,
    /// Which of the run it is, from 1.
    pub number: usize,
    /// The problem's last trial when it was finished.
    pub last_trial: i64,
}

impl Records {
    /// The iterations of a problem that are finished, in the order of their trials.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn iterations(&self, problem: ProblemId) -> Result<Vec<FinishedIteration>, RecordsError> {
        let query = "SELECT run, finished, last_trial FROM iterations WHERE problem = ?1 AND finished > 0
             ORDER BY last_trial, run, finished";
        let read = |row: &rusqlite::Row<'_>| {
            let number = row.get::<_, i64>(1)?.max(0) as usize;
            Ok(FinishedIteration { run: RunKey(row.get(0)?), number, last_trial: row.get(2)? })
        };
        let mut query = self.connection.prepare(query).map_err(|error| self.failed(error))?;
        let found = query.query_map([problem.0], read).and_then(Iterator::collect);
        found.map_err(|error| self.failed(error))
    }

    /// How far a run is; it begins if it is new.
    ///
    /// # Errors
    /// If that cannot be read or stored.
    pub fn run(&mut self, problem: ProblemId, run: &RunKey) -> Result<RunState, RecordsError> {
        self.change(|change| {
            let known = "SELECT count(*) FROM iterations WHERE problem = ?1 AND run = ?2";
            let known: i64 = change.query_row(known, params![problem.0, run.0], |row| row.get(0))?;
            if known == 0 {
                insert(change, problem, run, 0, None)?;
            }
            state(change, problem, run)
        })
    }

    /// Keeps that an iteration is finished, and says how far the run is then. If another process has finished it before, its
    /// weights stay, so that all go on with the same.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn finish_iteration(
        &mut self,
        problem: ProblemId,
        run: &RunKey,
        finished: usize,
        weights: Option<&Weights>,
    ) -> Result<RunState, RecordsError> {
        let weights = weights.map(Weights::to_bytes);
        self.change(|change| {
            insert(change, problem, run, finished, weights)?;
            let read = "SELECT finished, weights, last_trial FROM iterations
                 WHERE problem = ?1 AND run = ?2 AND finished = ?3";
            change.query_row(read, params![problem.0, run.0, finished as i64], read_state)
        })
    }
}

fn insert(
    change: &Transaction<'_>,
    problem: ProblemId,
    run: &RunKey,
    finished: usize,
    weights: Option<Vec<u8>>,
) -> rusqlite::Result<()> {
    change.execute(
        "INSERT INTO iterations (problem, run, finished, weights, last_trial, finished_at)
         VALUES (?1, ?2, ?3, ?4, (SELECT coalesce(max(id), 0) FROM trials WHERE problem = ?1), ?5)
         ON CONFLICT DO NOTHING",
        params![problem.0, run.0, finished as i64, weights, now() as i64],
    )?;
    Ok(())
}

/// The last iteration that was finished.
fn state(change: &Transaction<'_>, problem: ProblemId, run: &RunKey) -> rusqlite::Result<RunState> {
    let query = "SELECT finished, weights, last_trial FROM iterations WHERE problem = ?1 AND run = ?2
         ORDER BY finished DESC LIMIT 1";
    change.query_row(query, params![problem.0, run.0], read_state)
}

fn read_state(row: &rusqlite::Row<'_>) -> rusqlite::Result<RunState> {
    let weights: Option<Vec<u8>> = row.get(1)?;
    Ok(RunState {
        finished: row.get::<_, i64>(0)?.max(0) as usize,
        weights: weights.map(|bytes| Weights::from_bytes(&bytes)),
        last_trial: row.get(2)?,
    })
}
