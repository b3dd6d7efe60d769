//! The progress of autotuning runs.

use warploom_cost::{Weights, WeightsError};

use super::store::{Change, Row, Unreadable};
use super::{ProblemId, Records, RecordsError, now, rows};
use crate::values;

/// Identifies an autotuning run: its seed, search and sampling options, and initial model. A run
/// with a different key starts at its first iteration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunKey(pub String);

/// The progress of a run.
#[derive(Debug)]
pub struct RunState {
    /// Number of finished iterations.
    pub finished: usize,
    /// The weights after the last finished iteration; `None` if none were trained, an error if they
    /// have an outdated format.
    pub weights: Option<Result<Weights, WeightsError>>,
    /// The problem's last trial when that iteration finished or the run began. Later trials belong
    /// to the unfinished iteration.
    pub last_trial: i64,
}

/// A finished iteration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FinishedIteration {
    /// The run that it belongs to.
    pub run: RunKey,
    /// Its number within the run, from 1.
    pub number: usize,
    /// The problem's last trial when it finished.
    pub last_trial: i64,
}

impl Records {
    /// The finished iterations of a problem, ordered by their last trial.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn iterations(&self, problem: ProblemId) -> Result<Vec<FinishedIteration>, RecordsError> {
        let query = "SELECT run, finished, last_trial FROM iterations WHERE problem = $1 AND finished > 0
             ORDER BY last_trial, run, finished";
        self.read(query, values![problem.0], |row| {
            let number = row.get::<i64>(1)?.max(0) as usize;
            Ok(FinishedIteration { run: RunKey(row.get(0)?), number, last_trial: row.get(2)? })
        })
    }

    /// The progress of a run; a new run is created at iteration 0.
    ///
    /// # Errors
    /// If the progress cannot be read or stored.
    pub fn run(&mut self, problem: ProblemId, run: &RunKey) -> Result<RunState, RecordsError> {
        self.change(|change| {
            let known = "SELECT 1 FROM iterations WHERE problem = $1 AND run = $2 LIMIT 1";
            if change.query_one(known, values![problem.0, &run.0])?.is_none() {
                insert(change, problem, run, 0, None)?;
            }
            let last = "SELECT finished, weights, last_trial FROM iterations WHERE problem = $1 AND run = $2
                 ORDER BY finished DESC LIMIT 1";
            let row = change.query_one(last, values![problem.0, &run.0])?;
            rows::read(change.place(), read_state(row))
        })
    }

    /// Stores a finished iteration and returns the progress of the run. If another process finished
    /// it first, its weights are kept, so that all processes continue with the same weights.
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
            insert(change, problem, run, finished, weights.clone())?;
            let read = "SELECT finished, weights, last_trial FROM iterations
                 WHERE problem = $1 AND run = $2 AND finished = $3";
            let row = change.query_one(read, values![problem.0, &run.0, finished])?;
            rows::read(change.place(), read_state(row))
        })
    }
}

fn insert(
    change: &mut dyn Change,
    problem: ProblemId,
    run: &RunKey,
    finished: usize,
    weights: Option<Vec<u8>>,
) -> Result<(), RecordsError> {
    // No trial is being recorded now, so all trials with smaller numbers exist.
    change.hold_problem(problem.0)?;
    let insert = "INSERT INTO iterations (problem, run, finished, weights, last_trial, finished_at)
         VALUES ($1, $2, $3, $4, (SELECT coalesce(max(id), 0) FROM trials WHERE problem = $1), $5)
         ON CONFLICT DO NOTHING";
    change.execute(insert, values![problem.0, &run.0, finished, weights, now()]).map(drop)
}

fn read_state(row: Option<Row>) -> Result<RunState, Unreadable> {
    let row = row.ok_or_else(|| Unreadable("the progress of a run is gone".to_owned()))?;
    let weights: Option<Vec<u8>> = row.get(1)?;
    Ok(RunState {
        finished: row.get::<i64>(0)?.max(0) as usize,
        weights: weights.map(|bytes| Weights::from_bytes(&bytes)),
        last_trial: row.get(2)?,
    })
}
