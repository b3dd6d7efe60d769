//! The steps of strategies' runs: questions in order, and their answers.
//!
//! The points of a question are stored as [`asked`](StepOutcome::Asked) before anything is measured, and their outcomes
//! when all are known. A run that is killed in between finds its question again, and its measurements.

use super::store::{Change, Row, Unreadable, Value};
use super::{ProblemId, Records, RecordsError, RunKey, Trial, now, rows};
use crate::sample::Status;
use crate::values;

/// The steps of a run from a given one on, up to a limit.
const SELECT: &str = "SELECT point, schedule_hash, outcome, trial, time_us, message FROM steps
     WHERE problem = $1 AND run = $2 AND step >= $3 ORDER BY step LIMIT $4";

/// The outcome of a point that a strategy asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepOutcome {
    /// None yet.
    Asked,
    /// The run measured it.
    Measured,
    /// The run tried it without getting a time.
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
pub struct RunStep {
    /// The point, as text.
    pub point: String,
    /// The hash of its schedule; `None` if it is refused.
    pub schedule_hash: Option<String>,
    /// The outcome.
    pub outcome: StepOutcome,
    /// The trial that was measured or found.
    pub trial: Option<i64>,
    /// The time that the strategy was told, in microseconds. Times of final rounds do not change it.
    pub time_us: Option<f64>,
    /// Why it was refused, or the status of a trial without a time.
    pub message: String,
}

impl RunStep {
    /// A step without a trial.
    pub fn new(point: String, schedule_hash: Option<String>, outcome: StepOutcome) -> RunStep {
        RunStep { point, schedule_hash, outcome, trial: None, time_us: None, message: String::new() }
    }

    /// The same step with its trial, which the run measured or found.
    pub fn of_trial(self, trial: &Trial, measured: bool) -> RunStep {
        let times = trial.sample.times.filter(|_| trial.sample.status == Status::Measured);
        let outcome = match (measured, times) {
            (false, _) => StepOutcome::Known,
            (true, Some(_)) => StepOutcome::Measured,
            (true, None) => StepOutcome::Failed,
        };
        let message = if times.is_some() { "" } else { trial.sample.status.kind() };
        let time_us = times.map(|times| times.min);
        RunStep { outcome, trial: Some(trial.id), time_us, message: message.to_owned(), ..self }
    }
}

impl Records {
    /// The steps of a run, in order.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn steps(&self, problem: ProblemId, run: &RunKey) -> Result<Vec<RunStep>, RecordsError> {
        self.read(SELECT, &all_of(problem, run, 0, usize::MAX), read_step)
    }

    /// Stores the steps of a question in one transaction; `first` is the number of its first step. Stored steps are not
    /// changed. Returns the steps as they are stored.
    ///
    /// # Errors
    /// If they cannot be stored.
    pub fn ask_steps(
        &mut self,
        problem: ProblemId,
        run: &RunKey,
        first: usize,
        steps: &[RunStep],
    ) -> Result<Vec<RunStep>, RecordsError> {
        self.store_steps(problem, run, first, steps, insert)
    }

    /// Stores the outcomes of the steps of a question that had none, in one transaction. Returns the steps as they are
    /// stored.
    ///
    /// # Errors
    /// If they cannot be stored.
    pub fn answer_steps(
        &mut self,
        problem: ProblemId,
        run: &RunKey,
        first: usize,
        steps: &[RunStep],
    ) -> Result<Vec<RunStep>, RecordsError> {
        self.store_steps(problem, run, first, steps, answer)
    }

    fn store_steps(
        &mut self,
        problem: ProblemId,
        run: &RunKey,
        first: usize,
        steps: &[RunStep],
        store: impl Fn(&mut dyn Change, ProblemId, &RunKey, usize, &RunStep) -> Result<(), RecordsError>,
    ) -> Result<Vec<RunStep>, RecordsError> {
        self.change(|change| {
            for (number, step) in (first..).zip(steps) {
                store(change, problem, run, number, step)?;
            }
            let rows = change.query(SELECT, &all_of(problem, run, first, steps.len()))?;
            rows::read(change.place(), rows.iter().map(read_step).collect())
        })
    }
}

/// The values of [`SELECT`].
fn all_of(problem: ProblemId, run: &RunKey, first: usize, count: usize) -> [Value; 4] {
    [problem.0.into(), (&run.0).into(), first.into(), count.into()]
}

fn insert(
    change: &mut dyn Change,
    problem: ProblemId,
    run: &RunKey,
    number: usize,
    step: &RunStep,
) -> Result<(), RecordsError> {
    let RunStep { point, schedule_hash, outcome, trial, time_us, message } = step;
    let insert = "INSERT INTO steps
             (problem, run, step, point, schedule_hash, outcome, trial, time_us, message, at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING";
    let name = outcome.name();
    let values =
        values![problem.0, &run.0, number, point, schedule_hash, name, trial, time_us, message, now()];
    change.execute(insert, values).map(drop)
}

fn answer(
    change: &mut dyn Change,
    problem: ProblemId,
    run: &RunKey,
    number: usize,
    step: &RunStep,
) -> Result<(), RecordsError> {
    let RunStep { outcome, trial, time_us, message, .. } = step;
    let answer = "UPDATE steps SET outcome = $4, trial = $5, time_us = $6, message = $7, at = $8
         WHERE problem = $1 AND run = $2 AND step = $3 AND outcome = 'asked'";
    let values = values![problem.0, &run.0, number, outcome.name(), trial, time_us, message, now()];
    change.execute(answer, values).map(drop)
}

fn read_step(row: &Row) -> Result<RunStep, Unreadable> {
    let outcome: String = row.get(2)?;
    Ok(RunStep {
        point: row.get(0)?,
        schedule_hash: row.get(1)?,
        outcome: StepOutcome::from_name(&outcome).ok_or_else(|| rows::unknown(&outcome))?,
        trial: row.get(3)?,
        time_us: row.get(4)?,
        message: row.get(5)?,
    })
}
