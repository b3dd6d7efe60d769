//! The current state of a farm: its workers, its runs, and its queue.
//!
//! All ages and rates are by the server's clock. A worker is alive while the server knows its
//! connection, and has heard from it within a minute.

mod rows;

use serde::Serialize;
use warploom_tune::records::{RecordsError, Row, Store, Unreadable, Value};

use crate::fairness::least_share;
use crate::store::Postgres;

/// The number of seconds over which rates are measured.
const RECENT: f64 = 300.0;
const LATELY: f64 = 600.0;

/// The number of seconds for which an ended worker is listed.
const LISTED: f64 = 86_400.0;

/// The number of notes listed.
const NOTES: u32 = 10;

/// Up to this many trials, a run gets its share because little is known of it.
const FEW: u64 = 20;

/// The current state of a farm.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Status {
    /// The version of the server.
    pub server: String,
    /// The workers that are alive or ended within a day, in the order in which they joined.
    pub workers: Vec<Worker>,
    /// The runs, in the order in which they were added.
    pub runs: Vec<Run>,
    /// The number of candidates.
    pub queue: Queue,
    /// The rate of trials.
    pub throughput: Throughput,
    /// The remaining time of the runs in seconds, at the current rate of trials; `None` if that is not known, or if no
    /// connected worker runs trials.
    pub seconds_left: Option<f64>,
    /// The last notes, in order.
    pub notes: Vec<Note>,
}

/// A process that works for the farm.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Worker {
    /// Its number.
    pub id: i64,
    /// The machine that it runs on.
    pub host: String,
    /// The number of its process there.
    pub process: i64,
    /// Its roles: `propose`, `compile` and `run`.
    pub roles: Vec<String>,
    /// The name of its GPUs; `None` if it has none.
    pub device: Option<String>,
    /// The number of its GPUs.
    pub gpus: u64,
    /// Whether it is alive.
    pub life: Life,
    /// The seconds since it last reported.
    pub seen_seconds: f64,
    /// The number of candidates it has compiled.
    pub compiled: u64,
    /// The number of candidates it has run.
    pub ran: u64,
    /// The number of failures among both.
    pub failed: u64,
    /// Its trials per minute, over the last five.
    pub trials_per_minute: f64,
    /// The speed of its GPUs: 1 is as fast as the median of all; `None` if they were not compared with others.
    pub pace: Option<f64>,
}

/// Whether a worker is alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// It is connected.
    Alive,
    /// It has left in an orderly way.
    Left,
    /// It is no longer connected, without having left.
    Lost,
}

/// A run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Run {
    /// Its number.
    pub id: i64,
    /// The name of the pipeline.
    pub name: String,
    /// `waiting`, `active`, `finished`, `failed` or `stopped`.
    pub state: String,
    /// Whether a process that is alive proposes candidates for it.
    pub proposed: bool,
    /// The number of its trials so far.
    pub trials: u64,
    /// The number of valid ones among these.
    pub valid: u64,
    /// The expected number of trials; 0 if it is not known.
    pub expected: u64,
    /// The best time of the problem so far, in microseconds.
    pub best_us: Option<f64>,
    /// The factor by which the time is expected to shrink with the next trial, as a natural logarithm.
    pub gain: f64,
    /// Its share of the GPUs, from 0 to 1.
    pub share: f64,
    /// The reason for this share; empty if it has ended.
    pub why: String,
    /// Its result, or the reason of its failure.
    pub message: String,
}

/// The number of candidates by state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Queue {
    /// They wait to be compiled.
    pub queued: u64,
    /// They are being compiled.
    pub compiling: u64,
    /// They wait for a GPU.
    pub compiled: u64,
    /// They are being checked and timed.
    pub running: u64,
}

/// The rate of trials.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Throughput {
    /// In the last minute.
    pub minute: u64,
    /// In the last ten minutes.
    pub ten_minutes: u64,
    /// Trials per minute, over the last ten; over the time since the first of them if that is shorter.
    pub per_minute: f64,
}

/// A note for users.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Note {
    /// Its number.
    pub id: i64,
    /// The seconds since it was written.
    pub seconds: f64,
    /// The number of the run that it concerns.
    pub run: Option<i64>,
    /// The number of the worker that it concerns.
    pub worker: Option<i64>,
    /// Its text.
    pub note: String,
}

/// Reads the current state of the farm.
///
/// # Errors
/// If the server cannot be asked.
pub fn read(store: &Postgres) -> Result<Status, RecordsError> {
    let all = |statement: &str, values: &[Value]| store.read(statement, values);
    let alive = store.alive();
    let workers = all(&rows::workers(&alive), &[RECENT.into(), LISTED.into()])?;
    let runs = all(&rows::runs(&alive), &[])?;
    let (queue, notes) = (all(rows::QUEUE, &[])?, all(&rows::notes(), &[i64::from(NOTES).into()])?);
    let (throughput, server) = (all(&rows::throughput(), &[LATELY.into()])?, all(rows::SERVER, &[])?);
    let read = || {
        let mut status = Status {
            server: first(&server)?.get(0)?,
            workers: each(&workers, rows::worker)?,
            runs: each(&runs, rows::run)?,
            queue: rows::queue(&queue)?,
            throughput: rows::of_lately(first(&throughput)?)?,
            seconds_left: None,
            notes: each(&notes, rows::note)?,
        };
        explain(&mut status.runs);
        status.seconds_left = seconds_left(&status);
        Ok(status)
    };
    read().map_err(|Unreadable(message)| RecordsError::Row { place: store.place().clone(), message })
}

impl Run {
    /// Whether it will take more trials.
    pub fn goes_on(&self) -> bool {
        matches!(self.state.as_str(), "waiting" | "active")
    }

    /// Whether it has a share of the GPUs.
    pub fn is_active(&self) -> bool {
        self.state == "active"
    }

    /// The number of remaining trials, as far as it is known.
    fn left(&self) -> Option<u64> {
        match self.goes_on() {
            true => (self.expected > 0).then(|| self.expected.saturating_sub(self.trials)),
            false => Some(0),
        }
    }
}

impl Status {
    /// The number of workers that are alive, have left, or were lost.
    pub fn count(&self, life: Life) -> usize {
        self.workers.iter().filter(|worker| worker.life == life).count()
    }
}

fn first(rows: &[Row]) -> Result<&Row, Unreadable> {
    rows.first().ok_or_else(|| Unreadable("it is missing".to_owned()))
}

fn each<T>(rows: &[Row], read: fn(&Row) -> Result<T, Unreadable>) -> Result<Vec<T>, Unreadable> {
    rows.iter().map(read).collect()
}

/// Explains the share of each run.
fn explain(runs: &mut [Run]) {
    let active = runs.iter().filter(|run| run.is_active()).count();
    for run in runs.iter_mut().filter(|run| run.goes_on()) {
        let per_cent = 100.0 * (1.0 - (-run.gain).exp());
        run.why = if !run.is_active() {
            "it waits for a process that proposes".to_owned()
        } else if active == 1 {
            "the only one".to_owned()
        } else if run.trials < FEW {
            "just begun: little is known of it".to_owned()
        } else if run.share <= least_share(active) * 1.001 {
            format!("the least share: a trial may gain {per_cent:.3} %")
        } else {
            format!("a trial may gain {per_cent:.3} %")
        };
    }
}

/// The remaining time of the runs.
fn seconds_left(status: &Status) -> Option<f64> {
    let left: u64 = status.runs.iter().map(Run::left).sum::<Option<u64>>()?;
    let rate = status.throughput.per_minute / 60.0;
    let runs = |worker: &Worker| worker.life == Life::Alive && worker.roles.iter().any(|role| role == "run");
    match left {
        0 => Some(0.0),
        left if rate > 0.0 && status.workers.iter().any(runs) => Some(left as f64 / rate),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(state: &str, trials: u64, expected: u64, share: f64) -> Run {
        Run {
            id: 1,
            name: "blur".to_owned(),
            state: state.to_owned(),
            proposed: true,
            trials,
            valid: trials,
            expected,
            best_us: None,
            gain: 0.001,
            share,
            why: String::new(),
            message: String::new(),
        }
    }

    fn worker(role: &str, life: Life) -> Worker {
        Worker {
            id: 1,
            host: "gpu1".to_owned(),
            process: 1,
            roles: vec![role.to_owned()],
            device: None,
            gpus: 1,
            life,
            seen_seconds: 0.0,
            compiled: 0,
            ran: 0,
            failed: 0,
            trials_per_minute: 0.0,
            pace: None,
        }
    }

    fn left(runs: Vec<Run>, per_minute: f64) -> Option<f64> {
        let throughput = Throughput { per_minute, ..Throughput::default() };
        let workers = vec![worker("run", Life::Alive)];
        seconds_left(&Status { workers, runs, throughput, ..Status::default() })
    }

    #[test]
    fn the_end_is_estimated_if_all_is_known() {
        let (one, other) = (run("active", 40, 100, 0.5), run("waiting", 0, 60, 0.5));
        assert_eq!(left(vec![one.clone(), other.clone()], 60.0), Some(120.0));
        assert_eq!(left(vec![one.clone(), run("failed", 1, 60, 0.5)], 60.0), Some(60.0));
        assert_eq!(left(vec![one.clone(), run("waiting", 0, 0, 0.5)], 60.0), None, "nobody knows the other");
        assert_eq!(left(vec![one.clone()], 0.0), None, "nothing was recorded");
        let workers = vec![worker("run", Life::Lost), worker("compile", Life::Alive)];
        let throughput = Throughput { per_minute: 60.0, ..Throughput::default() };
        let gone = Status { workers, runs: vec![one], throughput, ..Status::default() };
        assert_eq!(seconds_left(&gone), None, "nobody runs trials any more");
        assert_eq!(left(vec![run("active", 120, 100, 1.0)], 0.0), Some(0.0));
    }

    #[test]
    fn shares_have_reasons() {
        let mut runs = vec![
            run("active", 500, 900, 0.08),
            run("active", 500, 900, 0.7),
            run("active", 3, 900, 0.22),
            run("stopped", 500, 900, 0.3),
        ];
        explain(&mut runs);
        let why: Vec<&str> = runs.iter().map(|run| run.why.as_str()).collect();
        assert!(why[0].starts_with("the least share: ") && why[0].ends_with("may gain 0.100 %"), "{why:?}");
        assert_eq!(why[1], "a trial may gain 0.100 %");
        assert!(why[2].starts_with("just begun") && why[3].is_empty(), "{why:?}");
        let mut alone = vec![run("waiting", 0, 0, 1.0), run("active", 9, 9, 1.0), run("finished", 9, 9, 1.0)];
        explain(&mut alone);
        let why: Vec<&str> = alone.iter().map(|run| run.why.as_str()).collect();
        assert_eq!(why, ["it waits for a process that proposes", "the only one", ""]);
    }
}
