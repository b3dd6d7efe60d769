//! Copies records from one store to another.

use std::collections::BTreeMap;

use super::store::{Change, Row, Value};
use super::{Imported, Problem, ProblemId, Records, RecordsError, Trial, rows, schedule_hash};
use crate::values;

const ITERATIONS: &str = "SELECT run, finished, weights, last_trial, finished_at FROM iterations
     WHERE problem = $1 ORDER BY run, finished";

const STEPS: &str = "SELECT run, step, point, schedule_hash, outcome, trial, time_us, message, at FROM steps
     WHERE problem = $1 ORDER BY run, step";

/// Everything that belongs to a problem, as read.
struct Whole {
    trials: Vec<Trial>,
    iterations: Vec<Row>,
    steps: Vec<Row>,
}

impl Records {
    /// Copies all problems of other records with their trials, iterations and steps. Existing entries are not changed.
    /// Each problem is copied in one transaction.
    ///
    /// # Errors
    /// If they cannot be read or stored; problems that were copied before stay.
    pub fn copy_from(&mut self, from: &Records) -> Result<Imported, RecordsError> {
        let mut copied = Imported::default();
        for problem in from.problems()? {
            let id = values![problem.id.0];
            let whole = Whole {
                trials: from.trials(Some(problem.id))?,
                iterations: from.store.read(ITERATIONS, id)?,
                steps: from.store.read(STEPS, id)?,
            };
            let Imported { new, known } = self.copy_problem(from, &problem, &whole)?;
            copied = Imported { new: copied.new + new, known: copied.known + known };
        }
        Ok(copied)
    }

    fn copy_problem(
        &mut self,
        from: &Records,
        problem: &Problem,
        whole: &Whole,
    ) -> Result<Imported, RecordsError> {
        let missing = |message: String| RecordsError::Row { place: from.place().clone(), message };
        let hash = u128::from_str_radix(&problem.pipeline, 16);
        let hash = hash.map_err(|_| missing(format!("`{}` is no hash of a pipeline", problem.pipeline)))?;
        let pipeline = from.pipeline(hash)?;
        let pipeline = pipeline.ok_or_else(|| missing(format!("the pipeline {hash:032x} is missing")))?;
        let Problem { sizes, device, fingerprint, versions, .. } = problem;
        self.change(|change| {
            let id = rows::problem(change, &pipeline, sizes, device, fingerprint, versions)?;
            change.hold_problem(id.0)?;
            let mut copied = Imported::default();
            let mut numbers = BTreeMap::new();
            let trials: Vec<(ProblemId, &Trial)> = whole.trials.iter().map(|trial| (id, trial)).collect();
            for (trial, number) in whole.trials.iter().zip(rows::insert(change, &trials)?) {
                let number = match number {
                    Some(number) => {
                        copied.new += 1;
                        number
                    }
                    None => {
                        copied.known += 1;
                        known(change, id, trial)?
                    }
                };
                numbers.insert(trial.id, number);
            }
            copy_runs(change, id, whole, &numbers)?;
            Ok(copied)
        })
    }
}

/// The number of the trial that a schedule has already.
fn known(change: &mut dyn Change, problem: ProblemId, trial: &Trial) -> Result<i64, RecordsError> {
    let query = "SELECT id FROM trials WHERE problem = $1 AND schedule_hash = $2";
    let hash = schedule_hash(&trial.sample.schedule);
    let row = change.query_one(query, values![problem.0, hash])?;
    rows::read(change.place(), row.unwrap_or(Row(Vec::new())).get(0))
}

/// Copies the iterations and steps of a problem, whose trials have other numbers here.
fn copy_runs(
    change: &mut dyn Change,
    problem: ProblemId,
    whole: &Whole,
    numbers: &BTreeMap<i64, i64>,
) -> Result<(), RecordsError> {
    let own = [Value::from(problem.0)];
    for Row(values) in &whole.iterations {
        let [run, finished, weights, Value::Integer(last), at] = values.as_slice() else { continue };
        // The last of the existing trials.
        let last = numbers.range(..=last).map(|(_, here)| *here).max().unwrap_or(0);
        let insert = "INSERT INTO iterations (problem, run, finished, weights, last_trial, finished_at)
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
        let values = [run.clone(), finished.clone(), weights.clone(), last.into(), at.clone()];
        change.execute(insert, &[&own[..], &values].concat())?;
    }
    for Row(values) in &whole.steps {
        let mut values = values.clone();
        if let Some(trial) = values.get_mut(5) {
            let here = match trial {
                Value::Integer(there) => numbers.get(there).copied(),
                _ => None,
            };
            *trial = here.into();
        }
        let insert = "INSERT INTO steps
                 (problem, run, step, point, schedule_hash, outcome, trial, time_us, message, at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING";
        change.execute(insert, &[&own[..], &values].concat())?;
    }
    Ok(())
}
