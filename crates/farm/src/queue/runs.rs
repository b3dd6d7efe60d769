//! Runs: pipelines to tune. One process at a time proposes candidates for each run.

use warploom_tune::records::{ProblemId, RecordsError};
use warploom_tune::values;

use super::code;
use super::fence::Fence;
use super::workers::add_note;
use super::{NOW, Queue, all, one};
use crate::fairness;

/// A run for which this process proposes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Its number.
    pub id: i64,
    /// Name of the pipeline.
    pub name: String,
    /// The task, as JSON that only the program reads.
    pub task: String,
    /// The target device, as JSON; `None` until a GPU is known.
    pub device: Option<String>,
    /// The number of this process's turn.
    pub epoch: i64,
    /// The time for which it has been tuned so far, in seconds.
    pub age: u64,
}

/// A run to add.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewRun<'a> {
    /// The name of the pipeline, or another name for users.
    pub name: &'a str,
    /// The task, as JSON that only the program reads.
    pub task: &'a str,
    /// The expected number of trials; 0 if it is not known.
    pub expected: usize,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// All work was done.
    Finished,
    /// It cannot go on.
    Failed,
}

impl Run {
    /// The condition for writes of this process.
    pub fn fence(&self) -> Fence {
        Fence::Run { run: self.id, epoch: self.epoch }
    }
}

impl Queue {
    /// Adds a run. `device` is its target device as JSON, if known.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn add_run(&mut self, name: &str, task: &str, device: Option<&str>) -> Result<i64, RecordsError> {
        let ids = self.add_runs(&[NewRun { name, task, expected: 0 }], device)?;
        Ok(ids.first().copied().unwrap_or_default())
    }

    /// Adds all of these runs, or none. Returns their numbers.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn add_runs(&mut self, runs: &[NewRun<'_>], device: Option<&str>) -> Result<Vec<i64>, RecordsError> {
        let add = format!(
            "INSERT INTO runs (name, task, state, device, expected, asked_at)
             VALUES ($1, $2, 'waiting', $3, $4, {NOW}) RETURNING id"
        );
        let device = device.map(str::to_owned);
        self.change(|change| {
            let mut ids = Vec::new();
            for NewRun { name, task, expected } in runs {
                let values = values![*name, *task, &device, *expected];
                ids.push(one(change, &add, values, |row| row.get(0))?.unwrap_or_default());
            }
            Ok(ids)
        })
    }

    /// Takes the first run without a proposer.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn take_run(&mut self) -> Result<Option<Run>, RecordsError> {
        let alive = self.store.alive();
        let take = format!(
            "UPDATE runs SET state = 'active', holder = $1, epoch = epoch + 1, began_at = coalesce(began_at, {NOW})
             WHERE id = (SELECT id FROM runs
                 WHERE state = 'waiting' OR state = 'active' AND (holder IS NULL OR holder NOT IN ({alive}))
                 ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
             RETURNING id, name, task, device, epoch, ({NOW} - began_at)::bigint"
        );
        self.change(|change| {
            let holder = change.holder();
            one(change, &take, values![holder], |row| {
                Ok(Run {
                    id: row.get(0)?,
                    name: row.get(1)?,
                    task: row.get(2)?,
                    device: row.get(3)?,
                    epoch: row.get(4)?,
                    age: row.get(5)?,
                })
            })
        })
    }

    /// Gives a run back, so that another process can propose for it.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn give_run_back(&mut self, run: &Run) -> Result<(), RecordsError> {
        let back = "UPDATE runs SET state = 'waiting', holder = NULL
             WHERE id = $1 AND epoch = $2 AND state = 'active'";
        self.change(|change| change.execute(back, values![run.id, run.epoch]).map(drop))
    }

    /// The kind of GPU that most of the living workers have, as JSON.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn most_common_device(&self) -> Result<Option<String>, RecordsError> {
        let query = format!(
            "SELECT min(device) FROM workers WHERE fingerprint IS NOT NULL AND left_at IS NULL AND holder IN ({})
             GROUP BY fingerprint ORDER BY sum(gpus) DESC, fingerprint LIMIT 1",
            self.store.alive()
        );
        Ok(self.rows(&query, &[], |row| row.get(0))?.into_iter().next())
    }

    /// Sets the target device of a run.
    ///
    /// # Errors
    /// If another process has taken over, or the queue cannot be used.
    pub fn set_device(&mut self, run: &Run, device: &str) -> Result<(), RecordsError> {
        let set = "UPDATE runs SET device = $2 WHERE id = $1";
        self.change(|change| {
            run.fence().hold(change)?;
            change.execute(set, values![run.id, device]).map(drop)
        })
    }

    /// Replaces the task of a run by a more specific one.
    ///
    /// # Errors
    /// If another process has taken over, or the queue cannot be used.
    pub fn set_task(&mut self, run: &Run, task: &str) -> Result<(), RecordsError> {
        let set = "UPDATE runs SET task = $2 WHERE id = $1";
        self.change(|change| {
            run.fence().hold(change)?;
            change.execute(set, values![run.id, task]).map(drop)
        })
    }

    /// Sets the problem of a run. Returns the number of the problem's last trial before it.
    ///
    /// # Errors
    /// If another process has taken over, or the queue cannot be used.
    pub fn set_problem(&mut self, run: &Run, problem: ProblemId) -> Result<i64, RecordsError> {
        let set = "UPDATE runs SET problem = $2,
                 before = (SELECT coalesce(max(id), 0) FROM trials WHERE problem = $2)
             WHERE id = $1 AND problem IS DISTINCT FROM $2";
        let before = "SELECT before FROM runs WHERE id = $1";
        self.change(|change| {
            run.fence().hold(change)?;
            change.execute(set, values![run.id, problem.0])?;
            Ok(one(change, before, values![run.id], |row| row.get(0))?.unwrap_or_default())
        })
    }

    /// Sets the expected number of trials of a run, and the factor by which the next one is expected to shorten the
    /// time.
    ///
    /// # Errors
    /// If another process has taken over, or the queue cannot be used.
    pub fn set_outlook(&mut self, run: &Run, expected: usize, gain: f64) -> Result<(), RecordsError> {
        let set = "UPDATE runs SET expected = $2, gain = $3 WHERE id = $1";
        self.change(|change| {
            run.fence().hold(change)?;
            change.execute(set, values![run.id, expected, gain])?;
            Ok(())
        })?;
        self.divide()
    }

    /// Divides the GPUs among the unfinished runs, by their expected gains.
    fn divide(&mut self) -> Result<(), RecordsError> {
        let runs = "SELECT id, gain, share FROM runs WHERE state = 'active' ORDER BY id";
        let runs =
            self.rows(runs, &[], |row| Ok((row.get::<i64>(0)?, row.get::<f64>(1)?, row.get::<f64>(2)?)))?;
        let gains: Vec<f64> = runs.iter().map(|(_, gain, _)| *gain).collect();
        let shares = fairness::shares(&gains);
        let moved =
            runs.iter().zip(shares).filter(|((_, _, before), share)| (share / before - 1.0).abs() > 0.02);
        let moved: Vec<(i64, f64)> = moved.map(|((id, ..), share)| (*id, share)).collect();
        if moved.is_empty() {
            return Ok(());
        }
        self.change(|change| {
            moved.iter().try_for_each(|(id, share)| {
                change.execute("UPDATE runs SET share = $2 WHERE id = $1", values![*id, *share]).map(drop)
            })
        })
    }

    /// Ends a run, with its result as a message.
    ///
    /// # Errors
    /// If another process has taken over, or the queue cannot be used.
    pub fn end_run(&mut self, run: &Run, end: RunEnd, message: &str) -> Result<(), RecordsError> {
        let state = match end {
            RunEnd::Finished => "finished",
            RunEnd::Failed => "failed",
        };
        let set = format!(
            "UPDATE runs SET state = $2, message = $3, holder = NULL, ended_at = {NOW} WHERE id = $1"
        );
        self.change(|change| {
            run.fence().hold(change)?;
            change.execute("DELETE FROM candidates WHERE run = $1", values![run.id])?;
            code::drop_unused(change, None)?;
            change.execute(&set, values![run.id, state, message])?;
            match end {
                RunEnd::Finished => Ok(()),
                RunEnd::Failed => add_note(change, Some(run.id), None, message),
            }
        })?;
        self.divide()
    }

    /// Stops all unfinished runs. Records are kept. Returns the number of stopped runs.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn stop_runs(&mut self) -> Result<usize, RecordsError> {
        let stop = format!(
            "UPDATE runs SET state = 'stopped', holder = NULL, epoch = epoch + 1, ended_at = {NOW}
             WHERE state IN ('waiting', 'active') RETURNING id"
        );
        self.change(|change| {
            let stopped = all(change, &stop, &[], |row| row.get::<i64>(0))?;
            for run in &stopped {
                change.execute("DELETE FROM candidates WHERE run = $1", values![*run])?;
            }
            code::drop_unused(change, None)?;
            Ok(stopped.len())
        })
    }
}
