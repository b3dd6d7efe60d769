//! The steps of runs of strategies: what was asked, in order, and what was answered.
//!
//! The points of a question are stored as [`asked`](StepOutcome::Asked) before anything is measured, and their outcomes when
//! all are known. A run that is killed in between finds its question again, and what was measured for it.

use rusqlite::{Connection, Row, Transaction, params};

use super::rows::unreadable;
use super::{ProblemId, Records, RecordsError, RunKey, Trial, now};
use crate::sample::Status;

/// What came of a point that a strategy asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepOutcome {
    /// Nothing yet.
    Asked,
    /// The run measured it.
    Measured,
    /// The run tried it, and it has no time.
    Failed,
    /// The records had a trial of its schedule; without a time, a failed one.
    Known,
    /// An earlier step of the run has the same schedule.
    Repeated,
    /// The rules refuse it.
    Refused,
}

impl StepOutcome {
    const ALL: [(StepOutcome, &'static str); 6] = [
        (StepOutcome::Asked, "asked"),
        (StepOutcome::Measured, "measured"),
        (StepOutcome::Failed, "failed"),
        (StepOutcome::Known, "known"),
        (StepOutcome::Repeated, "repeated"),
        (StepOutcome::Refused, "refused"),
    ];

    /// The name in the database, such as `measured`.
    pub fn name(self) -> &'static str {
        StepOutcome::ALL.iter().find(|(outcome, _)| *outcome == self).map_or("", |(_, name)| name)
    }

    fn from_name(name: &str) -> Option<StepOutcome> {
        StepOutcome::ALL.iter().find(|(_, known)| *known == name).map(|(outcome, _)| *outcome)
    }

    /// Whether it counts as one of the trials of the run.
    pub fn is_trial(self) -> bool {
        !matches!(self, StepOutcome::Repeated | StepOutcome::Refused)
    }
}

/// One step of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The point, as text.
    pub point: String,
    /// The hash of its schedule; `None` if it is refused.
    pub schedule_hash: Option<String>,
    /// What came of it.
    pub outcome: StepOutcome,
    /// The trial that was measured or found.
    pub trial: Option<i64>,
    /// The time that the strategy was told, in microseconds. Times of final rounds do not change it.
    pub time_us: Option<f64>,
    /// Why it was refused, or the status of a trial without a time.
    pub message: String,
}

impl Step {
    /// A step without a trial.
    pub fn new(point: String, schedule_hash: Option<String>, outcome: StepOutcome) -> Step {
        Step { point, schedule_hash, outcome, trial: None, time_us: None, message: String::new() }
    }

    /// The same step with its trial, which the run measured or found.
    pub fn of_trial(self, trial: &Trial, measured: bool) -> Step {
        let times = trial.sample.times.filter(|_| trial.sample.status == Status::Measured);
        let outcome = match (measured, times) {
            (false, _) => StepOutcome::Known,
            (true, Some(_)) => StepOutcome::Measured,
            (true, None) => StepOutcome::Failed,
        };
        let message = if times.is_some() { "" } else { trial.sample.status.kind() };
        let time_us = times.map(|times| times.min);
        Step { outcome, trial: Some(trial.id), time_us, message: message.to_owned(), ..self }
    }
}

impl Records {
    /// The steps of a run, in order.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn steps(&self, problem: ProblemId, run: &RunKey) -> Result<Vec<Step>, RecordsError> {
        read(&self.connection, problem, run, 0, usize::MAX).map_err(|error| self.failed(error))
    }

    /// Stores the steps of a question, of which `first` is the number of the first, in one transaction. Steps that are
    /// stored already stay as they are. Returns the steps as they are stored.
    ///
    /// # Errors
    /// If they cannot be stored.
    pub fn ask_steps(
        &mut self,
        problem: ProblemId,
        run: &RunKey,
        first: usize,
        steps: &[Step],
    ) -> Result<Vec<Step>, RecordsError> {
        self.change(|change| {
            for (number, step) in (first..).zip(steps) {
                insert(change, problem, run, number, step)?;
            }
            read(change, problem, run, first, steps.len())
        })
    }

    /// Stores the outcomes of those steps of a question that had none, in one transaction. Returns the steps as they are
    /// stored.
    ///
    /// # Errors
    /// If they cannot be stored.
    pub fn answer_steps(
        &mut self,
        problem: ProblemId,
        run: &RunKey,
        first: usize,
        steps: &[Step],
    ) -> Result<Vec<Step>, RecordsError> {
        self.change(|change| {
            for (number, step) in (first..).zip(steps) {
                answer(change, problem, run, number, step)?;
            }
            read(change, problem, run, first, steps.len())
        })
    }
}

fn insert(
    change: &Transaction<'_>,
    problem: ProblemId,
    run: &RunKey,
    number: usize,
    step: &Step,
) -> rusqlite::Result<()> {
    let Step { point, schedule_hash, outcome, trial, time_us, message } = step;
    change.execute(
        "INSERT INTO steps (problem, run, step, point, schedule_hash, outcome, trial, time_us, message, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING",
        params![
            problem.0,
            run.0,
            number as i64,
            point,
            schedule_hash,
            outcome.name(),
            trial,
            time_us,
            message,
            now() as i64
        ],
    )?;
    Ok(())
}

fn answer(
    change: &Transaction<'_>,
    problem: ProblemId,
    run: &RunKey,
    number: usize,
    step: &Step,
) -> rusqlite::Result<()> {
    let Step { outcome, trial, time_us, message, .. } = step;
    change.execute(
        "UPDATE steps SET outcome = ?4, trial = ?5, time_us = ?6, message = ?7, at = ?8
         WHERE problem = ?1 AND run = ?2 AND step = ?3 AND outcome = 'asked'",
        params![problem.0, run.0, number as i64, outcome.name(), trial, time_us, message, now() as i64],
    )?;
    Ok(())
}

fn read(
    connection: &Connection,
    problem: ProblemId,
    run: &RunKey,
    first: usize,
    count: usize,
) -> rusqlite::Result<Vec<Step>> {
    let query = "SELECT point, schedule_hash, outcome, trial, time_us, message FROM steps
         WHERE problem = ?1 AND run = ?2 AND step >= ?3 ORDER BY step LIMIT ?4";
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let mut query = connection.prepare(query)?;
    let steps = query.query_map(params![problem.0, run.0, first as i64, count], read_step)?;
    steps.collect()
}

fn read_step(row: &Row<'_>) -> rusqlite::Result<Step> {
    let outcome: String = row.get(2)?;
    Ok(Step {
        point: row.get(0)?,
        schedule_hash: row.get(1)?,
        outcome: StepOutcome::from_name(&outcome).ok_or_else(|| unreadable(2, &outcome))?,
        trial: row.get(3)?,
        time_us: row.get(4)?,
        message: row.get(5)?,
    })
}
