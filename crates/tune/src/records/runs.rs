//! How far autotuning is.

use rusqlite::{OptionalExtension, params};
use warploom_cost::{Weights, WeightsError};

use super::{ProblemId, Records, RecordsError, now};

/// What the iterations of one run have in common: its seed, how it samples, and what its model started from. A run with
/// another key starts at its first iteration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunKey(pub String);

/// An iteration that was finished.
#[derive(Debug)]
pub struct Iteration {
    /// Its number, from 0.
    pub number: usize,
    /// The weights after it; `None` if it trained none. Those of an older form cannot be used.
    pub weights: Option<Result<Weights, WeightsError>>,
}

impl Records {
    /// The last iteration of a run that was finished.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn last_iteration(
        &self,
        problem: ProblemId,
        run: &RunKey,
    ) -> Result<Option<Iteration>, RecordsError> {
        let query = "SELECT iteration, weights FROM iterations WHERE problem = ?1 AND run = ?2
             ORDER BY iteration DESC LIMIT 1";
        let read = |row: &rusqlite::Row<'_>| {
            let weights: Option<Vec<u8>> = row.get(1)?;
            Ok(Iteration {
                number: row.get::<_, i64>(0)?.max(0) as usize,
                weights: weights.map(|bytes| Weights::from_bytes(&bytes)),
            })
        };
        let found = self.connection.query_row(query, params![problem.0, run.0], read).optional();
        found.map_err(|error| self.failed(error))
    }

    /// Keeps that an iteration is finished. If another process has finished it too, its weights stay.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn finish_iteration(
        &mut self,
        problem: ProblemId,
        run: &RunKey,
        number: usize,
        weights: Option<&Weights>,
    ) -> Result<(), RecordsError> {
        let weights = weights.map(Weights::to_bytes);
        let insert = "INSERT INTO iterations (problem, run, iteration, weights, finished_at)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
        self.change(|change| {
            change.execute(insert, params![problem.0, run.0, number as i64, weights, now() as i64])
        })?;
        Ok(())
    }
}
