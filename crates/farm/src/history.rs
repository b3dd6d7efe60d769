//! The history of a farm: its rate over time, the trials of each worker, and the best time of each problem over time.

use std::collections::BTreeMap;

use warploom_tune::records::{RecordsError, Row, Store, Unreadable, Value};

use crate::store::Postgres;

/// The most periods, and the shortest length of one in seconds.
const PERIODS: f64 = 60.0;
const SHORTEST: f64 = 1.0;

/// The history of a farm. All times are in seconds since its first trial.
#[derive(Clone, PartialEq, Debug)]
pub struct History {
    /// The time of the first trial, in seconds since the Unix epoch.
    pub began_at: f64,
    /// The time of the last trial.
    pub seconds: f64,
    /// The length of a period.
    pub period: f64,
    /// The number of trials in each period from the first to the last, by worker. The last period may be shorter.
    pub periods: Vec<BTreeMap<i64, u64>>,
    /// The workers that recorded trials, in the order in which they joined.
    pub workers: Vec<Past>,
    /// The problems, in order.
    pub problems: Vec<Tuned>,
}

/// The trials of a worker.
#[derive(Clone, PartialEq, Debug)]
pub struct Past {
    /// Its number.
    pub worker: i64,
    /// The machine that it ran on.
    pub host: String,
    /// The time of its first trial.
    pub first: f64,
    /// The time of its last trial.
    pub last: f64,
    /// The number of its trials by status: `ok`, or the kind of the failure.
    pub trials: BTreeMap<String, u64>,
}

/// The best time of a problem, over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Tuned {
    /// The number of the problem.
    pub problem: i64,
    /// The name of its pipeline.
    pub name: String,
    /// The times at which a better time was found, and these times in microseconds.
    pub bests: Vec<(f64, f64)>,
}

const SPAN: &str = "SELECT min(at), max(at) FROM measured";

const PAST: &str = "SELECT w.id, w.host, t.status, count(*), min(m.at), max(m.at)
    FROM measured m JOIN workers w ON w.id = m.worker JOIN trials t ON t.id = m.trial
    GROUP BY w.id, w.host, t.status ORDER BY w.id, t.status";

/// From the time $1 on, in periods of $2 seconds.
const RATES: &str = "SELECT floor((at - $1) / $2)::bigint, worker, count(*) FROM measured GROUP BY 1, 2";

const BESTS: &str = "SELECT b.problem, p.name, b.at, b.us FROM
    (SELECT t.problem, m.at, t.id, t.min_us AS us, min(t.min_us) OVER (PARTITION BY t.problem ORDER BY m.at, t.id
         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
     FROM measured m JOIN trials t ON t.id = m.trial WHERE t.status = 'ok' AND t.min_us IS NOT NULL) b
    JOIN problems q ON q.id = b.problem JOIN pipelines p ON p.hash = q.pipeline
    WHERE b.before IS NULL OR b.us < b.before ORDER BY b.problem, b.at, b.id";

/// Reads the history of the farm; `None` if it has recorded nothing.
///
/// # Errors
/// If the server cannot be asked.
pub fn read(store: &Postgres) -> Result<Option<History>, RecordsError> {
    let unreadable = |Unreadable(message)| RecordsError::Row { place: store.place().clone(), message };
    let span = store.read(SPAN, &[])?;
    let end = |column| span.first().and_then(|row| row.get::<f64>(column).ok());
    let (Some(began_at), Some(ended_at)) = (end(0), end(1)) else { return Ok(None) };
    let seconds = ended_at - began_at;
    let period = (seconds / PERIODS).max(SHORTEST);
    let rates = store.read(RATES, &[Value::Real(began_at), period.into()])?;
    let (past, bests) = (store.read(PAST, &[])?, store.read(BESTS, &[])?);
    let read = || {
        Ok(History {
            began_at,
            seconds,
            period,
            periods: periods(&rates, (seconds / period) as usize)?,
            workers: workers(&past, began_at)?,
            problems: problems(&bests, began_at)?,
        })
    };
    read().map(Some).map_err(unreadable)
}

impl Past {
    /// The number of its trials.
    pub fn count(&self) -> u64 {
        self.trials.values().sum()
    }

    /// Its trials per minute, from its first to its last; `None` if that span is empty.
    pub fn per_minute(&self) -> Option<f64> {
        let seconds = self.last - self.first;
        (seconds > 0.0).then(|| (self.count() - 1) as f64 * 60.0 / seconds)
    }
}

/// Counts by period. Trials at the very end, or after the span was read, belong to the last period.
fn periods(rows: &[Row], last: usize) -> Result<Vec<BTreeMap<i64, u64>>, Unreadable> {
    let mut periods = vec![BTreeMap::new(); last.max(1)];
    for row in rows {
        let (period, worker, count): (usize, i64, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        *periods[period.min(last.max(1) - 1)].entry(worker).or_insert(0) += count;
    }
    Ok(periods)
}

fn workers(rows: &[Row], began_at: f64) -> Result<Vec<Past>, Unreadable> {
    let mut workers: Vec<Past> = Vec::new();
    for row in rows {
        let worker: i64 = row.get(0)?;
        let (first, last) = (row.get::<f64>(4)? - began_at, row.get::<f64>(5)? - began_at);
        if workers.last().is_none_or(|before| before.worker != worker) {
            workers.push(Past { worker, host: row.get(1)?, first, last, trials: BTreeMap::new() });
        }
        if let Some(past) = workers.last_mut() {
            (past.first, past.last) = (past.first.min(first), past.last.max(last));
            past.trials.insert(row.get(2)?, row.get(3)?);
        }
    }
    Ok(workers)
}

fn problems(rows: &[Row], began_at: f64) -> Result<Vec<Tuned>, Unreadable> {
    let mut problems: Vec<Tuned> = Vec::new();
    for row in rows {
        let problem = row.get(0)?;
        if problems.last().is_none_or(|before| before.problem != problem) {
            problems.push(Tuned { problem, name: row.get(1)?, bests: Vec::new() });
        }
        if let Some(tuned) = problems.last_mut() {
            tuned.bests.push((row.get::<f64>(2)? - began_at, row.get(3)?));
        }
    }
    Ok(problems)
}
