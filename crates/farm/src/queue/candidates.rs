//! Candidates: schedules on their way from a proposal to a trial.
//!
//! The states are `queued`, `compiling`, `compiled` and `running`; a candidate with a trial is removed. The final
//! rounds of a problem are a candidate too: one that needs no compiling, and is `done` until its run has read the
//! result.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use warploom_runtime::TimingOptions;
use warploom_tune::records::{
    Change, ProblemId, RecordsError, Row, Trial, Unreadable, record_in, schedule_hash,
};
use warploom_tune::sample::Origin;
use warploom_tune::tuning::{FinalRounds, Finals, Wanted};
use warploom_tune::values;

use super::code::{self, Packed};
use super::fence::Fence;
use super::runs::Run;
use super::workers;
use super::{NOW, Queue, all, json, one};
use crate::fairness;

/// The maximum number of candidates that are taken at once.
pub const BATCH: usize = 16;

/// A candidate counts as crashed after this many crashes of its process.
pub const MOST_LOSSES: i64 = 3;

/// The same for workers that ended while they worked on it. The candidate is hardly the cause, unless this happens
/// again and again.
pub const MOST_VANISHED: i64 = 10;

/// How a candidate is measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Options {
    /// Whether results are compared at the full size.
    pub at_full_size: bool,
    /// Whether it is recorded without being run if it spills registers.
    pub skip_spilling: bool,
    /// How it is timed.
    pub timing: TimingOptions,
    /// Set for final rounds.
    pub finals: Option<FinalRounds>,
}

/// The work on a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage<'a> {
    /// It is compiled.
    Compile,
    /// It is checked and timed on a GPU of this kind.
    Run {
        /// The fingerprint of the GPU.
        fingerprint: &'a str,
    },
}

impl Stage<'_> {
    /// The states before and during the work, and the role that does it.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Stage::Compile => ("queued", "compiling", "compile"),
            Stage::Run { .. } => ("compiled", "running", "run"),
        }
    }
}

/// A candidate that this process works on.
#[derive(Clone, PartialEq, Debug)]
pub struct Taken {
    /// Its number.
    pub id: i64,
    /// The run that it belongs to.
    pub run: i64,
    /// The problem that it belongs to.
    pub problem: ProblemId,
    /// The number of this claim.
    pub claim: i64,
    /// The text of its schedule.
    pub schedule: String,
    /// How it was found.
    pub origin: Origin,
    /// Predicted time, in microseconds.
    pub predicted_us: Option<f64>,
    /// How it is measured.
    pub options: Options,
    /// The number of crashes of its process.
    pub losses: i64,
    /// The number of workers that ended while they worked on it.
    pub vanished: i64,
    /// The compiled builds, without machine code.
    pub built: Option<Vec<u8>>,
}

impl Taken {
    /// The condition for writes of this process.
    pub fn fence(&self) -> Fence {
        Fence::Candidate { candidate: self.id, claim: self.claim }
    }

    /// The reason why it is given up, if so.
    pub fn given_up(&self) -> Option<String> {
        let Taken { losses, vanished, .. } = self;
        if *losses >= MOST_LOSSES {
            return Some(format!("its process crashed {losses} times"));
        }
        (*vanished >= MOST_VANISHED).then(|| format!("the worker that had it ended {vanished} times"))
    }
}

/// A trial that ends a candidate.
#[derive(Clone, PartialEq, Debug)]
pub struct Done {
    /// The candidate.
    pub taken: Taken,
    /// The result. Its times are comparable already.
    pub trial: Trial,
    /// The factor that its times were multiplied by.
    pub factor: f64,
}

/// The statement that frees candidates; `vanished` is the increment of that count.
pub(super) fn free(which: &str, vanished: &str) -> String {
    format!(
        "UPDATE candidates SET state = CASE state WHEN 'compiling' THEN 'queued' ELSE 'compiled' END,
             vanished = vanished + {vanished}, holder = NULL, started_at = NULL
         WHERE state IN ('compiling', 'running') AND {which}"
    )
}

impl Queue {
    /// Puts schedules into the queue, unless they are in it or have trials. Returns the number of new ones.
    ///
    /// # Errors
    /// If another process has taken over the run, or the queue cannot be used.
    pub fn put(
        &mut self,
        run: &Run,
        problem: ProblemId,
        fingerprint: &str,
        options: &Options,
        wanted: &[&Wanted],
    ) -> Result<u64, RecordsError> {
        // In order of promise.
        let put = "INSERT INTO candidates
                 (run, problem, kind, schedule_hash, schedule, origin, predicted_us, options, fingerprint, state)
             SELECT $1::bigint, $2::bigint, 'trial', hash, schedule, origin, predicted_us, $4::text, $5::text, 'queued'
             FROM json_to_recordset($3::text::json) AS new
                 (number bigint, hash text, schedule text, origin text, predicted_us double precision)
             WHERE NOT EXISTS (SELECT 1 FROM trials t WHERE t.problem = $2 AND t.schedule_hash = new.hash)
             ORDER BY number
             ON CONFLICT DO NOTHING";
        let new = wanted.iter().enumerate().map(|(number, wants)| New {
            number,
            hash: schedule_hash(&wants.schedule),
            schedule: &wants.schedule,
            origin: wants.origin.name(),
            predicted_us: wants.predicted_us,
        });
        let (new, options) = (json(&new.collect::<Vec<_>>()), json(options));
        self.change(|change| {
            run.fence().hold(change)?;
            change.execute(put, values![run.id, problem.0, &new, &options, fingerprint])
        })
    }

    /// The hashes of a problem's schedules that are in the queue.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn pending(&self, problem: ProblemId) -> Result<HashSet<String>, RecordsError> {
        let query = "SELECT schedule_hash FROM candidates WHERE problem = $1 AND kind = 'trial'";
        Ok(self.rows(query, values![problem.0], |row| row.get(0))?.into_iter().collect())
    }

    /// Removes a run's waiting schedules from the queue.
    ///
    /// # Errors
    /// If another process has taken over the run, or the queue cannot be used.
    pub fn withdraw(&mut self, run: &Run) -> Result<(), RecordsError> {
        let withdraw = "DELETE FROM candidates WHERE run = $1 AND state IN ('queued', 'compiled')";
        self.change(|change| {
            run.fence().hold(change)?;
            change.execute(withdraw, values![run.id])?;
            code::drop_unused(change, None)
        })
    }

    /// Takes up to `most` candidates of the run that has used the least of its share. If many workers share few
    /// candidates, each takes fewer, so that the last ones of an iteration finish at the same time.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn take(&mut self, stage: Stage<'_>, most: usize) -> Result<Vec<Taken>, RecordsError> {
        let (before, now, role) = stage.names();
        // A compiler serves all kinds of GPUs.
        let kind = match stage {
            Stage::Compile => "",
            Stage::Run { fingerprint } => fingerprint,
        };
        let runs = "SELECT r.id, r.used, r.share, EXISTS
                 (SELECT 1 FROM candidates c WHERE c.state = $1 AND c.run = r.id AND $2 IN ('', c.fingerprint))
             FROM runs r WHERE r.state IN ('waiting', 'active') AND r.device IS NOT NULL ORDER BY r.id";
        let there = workers::there();
        let take = format!(
            "WITH takers AS (SELECT greatest(1, sum(CASE $5 WHEN 'run' THEN gpus ELSE 1 END)) AS number FROM workers
                 WHERE {there} AND (roles = 'all' OR strpos(roles, $5) > 0)),
             fair AS (SELECT least($6::bigint, greatest(1, ceil(count(*) / (2 * (SELECT number FROM takers)))::bigint)) AS number
                 FROM (SELECT 1 FROM candidates WHERE state = $1 AND run = $3
                     LIMIT (SELECT (2 * $6::bigint * number)::bigint FROM takers)) AS waiting),
             chosen AS (SELECT id FROM candidates WHERE state = $1 AND run = $3 AND $2 IN ('', fingerprint)
                 ORDER BY id LIMIT (SELECT number FROM fair) FOR UPDATE SKIP LOCKED)
             UPDATE candidates c SET state = $4, holder = $7, claim = c.claim + 1, started_at = NULL
             FROM chosen WHERE c.id = chosen.id
             RETURNING c.id, c.run, c.problem, c.claim, c.schedule, c.origin, c.predicted_us, c.options, c.losses,
                 c.vanished, c.built"
        );
        self.change(|change| {
            let runs = all(change, runs, values![before, kind], |row| {
                Ok((row.get::<i64>(0)?, (row.get::<f64>(1)?, row.get::<f64>(2)?), row.get::<bool>(3)?))
            })?;
            let going_on: Vec<(f64, f64)> = runs.iter().map(|(_, used, _)| *used).collect();
            let mut waiting: Vec<(i64, (f64, f64))> =
                runs.iter().filter(|(.., waits)| *waits).map(|(run, used, _)| (*run, *used)).collect();
            // Another process may take the last candidates of a run at this moment.
            while let Some(next) = fairness::next(&waiting.iter().map(|(_, used)| *used).collect::<Vec<_>>())
            {
                let (run, (used, share)) = waiting.remove(next);
                let values = values![before, kind, run, now, role, most, change.holder()];
                let mut taken = all(change, &take, values, read)?;
                if taken.is_empty() {
                    continue;
                }
                taken.sort_by_key(|taken| taken.id);
                if matches!(stage, Stage::Run { .. }) {
                    let count = taken.len();
                    let used = fairness::after(used, share, count, fairness::clock(&going_on, count));
                    let note = "UPDATE runs SET used = greatest(used, $2) WHERE id = $1";
                    change.execute(note, values![run, used])?;
                }
                return Ok(taken);
            }
            Ok(Vec::new())
        })
    }

    /// Records that the work on a candidate begins. Returns whether the claim is still valid.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn start(&mut self, candidate: i64, claim: i64) -> Result<bool, RecordsError> {
        let start = format!("UPDATE candidates SET started_at = {NOW} WHERE id = $1 AND claim = $2");
        self.change(|change| Ok(change.execute(&start, values![candidate, claim])? == 1))
    }

    /// The task and the device of a run, as JSON; `None` if it is over.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn task(&self, run: i64) -> Result<Option<(String, String)>, RecordsError> {
        let query = "SELECT task, device FROM runs
             WHERE id = $1 AND state IN ('waiting', 'active') AND device IS NOT NULL";
        let rows = self.rows(query, values![run], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.into_iter().next())
    }

    /// The shortest time of a problem so far, in microseconds.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn best_us(&self, problem: ProblemId) -> Result<Option<f64>, RecordsError> {
        let query = "SELECT min_us FROM trials WHERE problem = $1 AND status = 'ok' AND min_us IS NOT NULL
             ORDER BY min_us LIMIT 1";
        Ok(self.rows(query, values![problem.0], |row| row.get(0))?.into_iter().next())
    }

    /// Stores the compiled builds of a candidate. Returns whether the claim was still valid.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn compiled(&mut self, worker: i64, taken: &Taken, packed: &Packed) -> Result<bool, RecordsError> {
        let set = "UPDATE candidates SET state = 'compiled', built = $3, holder = NULL, started_at = NULL
             WHERE id = $1 AND claim = $2";
        self.change(|change| {
            if change.execute(set, values![taken.id, taken.claim, packed.built.clone()])? == 0 {
                return Ok(false);
            }
            code::store(change, taken.id, &packed.code)?;
            let count = "UPDATE workers SET compiled = compiled + 1 WHERE id = $1";
            change.execute(count, values![worker])?;
            Ok(true)
        })
    }

    /// Gives back candidates that were not worked on, or cannot be worked on here. `again` returns compiled ones to the
    /// compilers.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn give_back(&mut self, taken: &[Taken], again: bool) -> Result<(), RecordsError> {
        let compiled = if again { "queued" } else { "compiled" };
        let back = "UPDATE candidates SET state = CASE state WHEN 'compiling' THEN 'queued' ELSE $3 END,
             holder = NULL, started_at = NULL WHERE id = $1 AND claim = $2";
        self.change(|change| {
            taken.iter().try_for_each(|taken| {
                change.execute(back, values![taken.id, taken.claim, compiled]).map(drop)
            })
        })
    }

    /// Gives a candidate back whose process has crashed, which counts as a loss.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn lose(&mut self, taken: &Taken) -> Result<(), RecordsError> {
        let lose =
            "UPDATE candidates SET state = CASE state WHEN 'compiling' THEN 'queued' ELSE 'compiled' END,
             losses = losses + 1, holder = NULL, started_at = NULL WHERE id = $1 AND claim = $2";
        self.change(|change| change.execute(lose, values![taken.id, taken.claim]).map(drop))
    }

    /// Records trials, each in place of its candidate. Returns which of them counted: for the others, another process
    /// has taken over the candidate, or the run was stopped.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn record(&mut self, worker: i64, done: &[Done]) -> Result<Vec<bool>, RecordsError> {
        self.change(|change| {
            let removed = remove(change, done)?;
            let counts = |done: &&Done| removed.contains(&done.taken.id);
            let counted: Vec<&Done> = done.iter().filter(counts).collect();
            let failed = counted.iter().filter(|done| done.trial.time_us().is_none()).count();
            let count = "UPDATE workers SET ran = ran + $2, failed = failed + $3 WHERE id = $1";
            change.execute(count, values![worker, counted.len(), failed])?;
            // Last, because other transactions wait for the problem from here on.
            insert(change, worker, &counted)?;
            Ok(done.iter().map(|done| counts(&done)).collect())
        })
    }

    /// Frees the candidates of processes that are no longer connected. Returns their number. Another process may be
    /// doing the same.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn revive(&mut self) -> Result<u64, RecordsError> {
        // A restart of the server ends all connections, and is no fault of a candidate.
        let vanished = "CASE WHEN started_at IS NULL
             OR started_at < extract(epoch FROM pg_postmaster_start_time())::float8 THEN 0 ELSE 1 END";
        let free = free(&format!("holder NOT IN ({})", self.store.alive()), vanished);
        let alone = format!(
            "SELECT 1 WHERE pg_try_advisory_xact_lock({}, -1)",
            crate::store::class_of(self.store.schema())
        );
        self.change(|change| {
            if change.query(&alone, &[])?.is_empty() {
                return Ok(0);
            }
            change.execute(&free, &[])
        })
    }

    /// Requests the final rounds of a problem. Returns the number of the candidate.
    ///
    /// # Errors
    /// If another process has taken over the run, or the queue cannot be used.
    pub fn put_finals(
        &mut self,
        run: &Run,
        problem: ProblemId,
        fingerprint: &str,
        rounds: FinalRounds,
    ) -> Result<i64, RecordsError> {
        let options = Options {
            at_full_size: true,
            skip_spilling: false,
            timing: TimingOptions::quick(),
            finals: Some(rounds),
        };
        let put = "INSERT INTO candidates
                 (run, problem, kind, schedule_hash, schedule, origin, options, fingerprint, state)
             VALUES ($1, $2, 'finals', $3, '', $4, $5, $6, 'compiled') RETURNING id";
        let (options, origin) = (json(&options), Origin::Given.name());
        self.change(|change| {
            run.fence().hold(change)?;
            // Nobody reads those of an earlier proposer.
            let before = "DELETE FROM candidates WHERE run = $1 AND kind = 'finals'";
            change.execute(before, values![run.id])?;
            let key = format!("{} {}", run.id, run.epoch);
            let values = values![run.id, problem.0, key, origin, &options, fingerprint];
            Ok(one(change, put, values, |row| row.get(0))?.unwrap_or_default())
        })
    }

    /// Ends final rounds with their result. Returns whether the claim was still valid.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn end_finals(
        &mut self,
        taken: &Taken,
        finals: &Result<Finals, String>,
    ) -> Result<bool, RecordsError> {
        let end = "UPDATE candidates SET state = 'done', holder = NULL, schedule = $3
             WHERE id = $1 AND claim = $2";
        let text = json(finals);
        self.change(|change| Ok(change.execute(end, values![taken.id, taken.claim, &text])? == 1))
    }

    /// The result of final rounds, once they are done; removes them.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn finals(
        &mut self,
        run: &Run,
        candidate: i64,
    ) -> Result<Option<Result<Finals, String>>, RecordsError> {
        let read = "DELETE FROM candidates WHERE id = $1 AND state = 'done' RETURNING schedule";
        self.change(|change| {
            run.fence().hold(change)?;
            one(change, read, values![candidate], |row| from_json(&row.get::<String>(0)?))
        })
    }
}

/// Removes candidates with their compiled builds. Returns the numbers of those whose claims were still valid.
fn remove(change: &mut dyn Change, done: &[Done]) -> Result<HashSet<i64>, RecordsError> {
    let turns: Vec<Turn> =
        done.iter().map(|done| Turn { id: done.taken.id, claim: done.taken.claim }).collect();
    // The rows of their code vanish with candidates, but are still seen by this statement.
    let remove = "WITH gone AS
             (DELETE FROM candidates c USING json_to_recordset($1::text::json) AS turn(id bigint, claim bigint)
             WHERE c.id = turn.id AND c.claim = turn.claim RETURNING c.id)
         SELECT gone.id, u.hash FROM gone LEFT JOIN code_of_candidates u ON u.candidate = gone.id";
    let gone: Vec<(i64, Option<String>)> =
        all(change, remove, values![json(&turns)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let removed = gone.iter().map(|(candidate, _)| *candidate).collect();
    code::drop_unused(change, Some(&gone.into_iter().filter_map(|(_, hash)| hash).collect()))?;
    Ok(removed)
}

/// Inserts trials, and the workers that measured them.
fn insert(change: &mut dyn Change, worker: i64, done: &[&Done]) -> Result<(), RecordsError> {
    let trials: Vec<(ProblemId, &Trial)> =
        done.iter().map(|done| (done.taken.problem, &done.trial)).collect();
    let new = done.iter().zip(record_in(change, &trials)?);
    let new: Vec<Measured> =
        new.filter_map(|(done, trial)| Some(Measured { trial: trial?, factor: done.factor })).collect();
    let note = format!(
        "INSERT INTO measured (trial, worker, at, factor) SELECT trial, $2::bigint, {NOW}, factor
         FROM json_to_recordset($1::text::json) AS new(trial bigint, factor double precision)"
    );
    change.execute(&note, values![json(&new), worker]).map(drop)
}

/// A schedule that is put into the queue.
#[derive(Serialize)]
struct New<'a> {
    number: usize,
    hash: String,
    schedule: &'a str,
    origin: &'a str,
    predicted_us: Option<f64>,
}

/// A candidate that another process has taken.
#[derive(Serialize)]
struct Turn {
    id: i64,
    claim: i64,
}

/// The worker of a trial is recorded beside it.
#[derive(Serialize)]
struct Measured {
    trial: i64,
    factor: f64,
}

fn read(row: &Row) -> Result<Taken, Unreadable> {
    let origin: String = row.get(5)?;
    Ok(Taken {
        id: row.get(0)?,
        run: row.get(1)?,
        problem: ProblemId(row.get(2)?),
        claim: row.get(3)?,
        schedule: row.get(4)?,
        origin: Origin::from_name(&origin).ok_or_else(|| Unreadable(format!("`{origin}` is no origin")))?,
        predicted_us: row.get(6)?,
        options: from_json(&row.get::<String>(7)?)?,
        losses: row.get(8)?,
        vanished: row.get(9)?,
        built: row.get(10)?,
    })
}

fn from_json<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(|error| Unreadable(error.to_string()))
}
