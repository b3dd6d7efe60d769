//! Statements that read the state of a farm, and parsers of their rows.

use serde_json::Value as Json;
use warploom_tune::records::{Row, Unreadable};

use super::{Life, Note, Queue, Run, Throughput, Worker};

/// The time by the server's clock, once for a statement.
const NOW: &str = "clock AS (SELECT extract(epoch FROM clock_timestamp())::double precision AS now)";

/// The version of the server, without that of its package.
pub(super) const SERVER: &str = "SELECT split_part(current_setting('server_version'), ' ', 1)";

/// The number of candidates in each state.
pub(super) const QUEUE: &str = "SELECT state, count(*) FROM candidates GROUP BY state";

/// Workers; `alive` is a query for the numbers of those that are connected, $1 the number of seconds over which rates
/// are measured, $2 the number of seconds for which ended workers are listed. A GPU is compared with the median over
/// all that timed the same schedule.
pub(super) fn workers(alive: &str) -> String {
    format!(
        "WITH {NOW}, alive (holder) AS ({alive}),
         medians AS (SELECT problem, percentile_cont(0.5) WITHIN GROUP (ORDER BY default_us) AS median
             FROM paces WHERE default_us > 0 GROUP BY problem HAVING count(*) > 1),
         compared AS (SELECT worker, exp(avg(ln(median / default_us))) AS pace
             FROM paces JOIN medians USING (problem) WHERE default_us > 0 GROUP BY worker)
         SELECT w.id, w.host, w.process, w.roles, w.device, w.gpus, w.holder IN (SELECT holder FROM alive),
             w.left_at IS NOT NULL, now - w.seen_at, w.compiled, w.ran, w.failed,
             recent.trials * 60.0::double precision / greatest(10, least($1, now - w.joined_at)), compared.pace
         FROM clock CROSS JOIN workers w
         CROSS JOIN LATERAL (SELECT count(*) AS trials FROM measured m
             WHERE m.worker = w.id AND m.at > now - $1) recent
         LEFT JOIN compared ON compared.worker = w.id
         WHERE w.left_at IS NULL AND w.holder IN (SELECT holder FROM alive) OR w.seen_at > now - $2
         ORDER BY w.id"
    )
}

pub(super) fn worker(row: &Row) -> Result<Worker, Unreadable> {
    let (is_alive, has_left) = (row.get(6)?, row.get(7)?);
    let life = match (has_left, is_alive) {
        (true, _) => Life::Left,
        (false, true) => Life::Alive,
        (false, false) => Life::Lost,
    };
    let roles = row.get::<String>(3)?;
    let device = row.get::<Option<String>>(4)?;
    Ok(Worker {
        id: row.get(0)?,
        host: row.get(1)?,
        process: row.get(2)?,
        roles: roles.split(',').map(|role| role.trim().to_owned()).collect(),
        device: device.as_deref().and_then(name),
        gpus: row.get(5)?,
        life,
        seen_seconds: row.get::<f64>(8)?.max(0.0),
        compiled: row.get(9)?,
        ran: row.get(10)?,
        failed: row.get(11)?,
        trials_per_minute: row.get(12)?,
        pace: row.get(13)?,
    })
}

/// The name of a device, from its description.
fn name(device: &str) -> Option<String> {
    let device: Json = serde_json::from_str(device).ok()?;
    Some(device.get("name")?.as_str()?.to_owned())
}

/// Runs with their trials. The trials of an ended run are those before the next run of the same problem.
pub(super) fn runs(alive: &str) -> String {
    format!(
        "WITH alive (holder) AS ({alive})
         SELECT r.id, r.name, r.state, coalesce(r.holder IN (SELECT holder FROM alive), false),
             counted.trials, counted.valid, r.expected, counted.best, r.gain, r.share, r.message
         FROM runs r
         CROSS JOIN LATERAL (SELECT CASE WHEN r.ended_at IS NULL THEN NULL
             ELSE (SELECT min(l.before) FROM runs l WHERE l.problem = r.problem AND l.id > r.id) END AS id) until
         CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE t.id > r.before) AS trials,
                 count(*) FILTER (WHERE t.id > r.before AND t.status = 'ok') AS valid,
                 min(coalesce(t.retimed_us, t.min_us)) FILTER (WHERE t.status = 'ok') AS best
             FROM trials t WHERE t.problem = r.problem AND (until.id IS NULL OR t.id <= until.id)) counted
         ORDER BY r.id"
    )
}

pub(super) fn run(row: &Row) -> Result<Run, Unreadable> {
    Ok(Run {
        id: row.get(0)?,
        name: row.get(1)?,
        state: row.get(2)?,
        proposed: row.get(3)?,
        trials: row.get(4)?,
        valid: row.get(5)?,
        expected: row.get(6)?,
        best_us: row.get(7)?,
        gain: row.get(8)?,
        share: row.get(9)?,
        why: String::new(),
        message: row.get(10)?,
    })
}

pub(super) fn queue(rows: &[Row]) -> Result<Queue, Unreadable> {
    let mut queue = Queue::default();
    for row in rows {
        let count = row.get(1)?;
        match row.get::<String>(0)?.as_str() {
            "queued" => queue.queued = count,
            "compiling" => queue.compiling = count,
            "compiled" => queue.compiled = count,
            "running" => queue.running = count,
            // Finished final rounds, until their run has read the result.
            "done" => {}
            other => return Err(Unreadable(format!("a candidate is in the state `{other}`"))),
        }
    }
    Ok(queue)
}

/// Trials of the last minute, those of the last $1 seconds, and the rate per minute. Every worker has its own part of
/// the index.
pub(super) fn throughput() -> String {
    format!(
        "WITH {NOW}
         SELECT coalesce(sum(by_worker.minute), 0)::bigint, coalesce(sum(by_worker.trials), 0)::bigint,
             coalesce(sum(by_worker.trials) * 60 / greatest(10, (SELECT now FROM clock) - min(by_worker.first)), 0)
                 ::double precision
         FROM clock CROSS JOIN workers w
         CROSS JOIN LATERAL (SELECT count(*) AS trials, min(m.at) AS first,
                 count(*) FILTER (WHERE m.at > now - 60) AS minute
             FROM measured m WHERE m.worker = w.id AND m.at > now - $1) by_worker"
    )
}

pub(super) fn of_lately(row: &Row) -> Result<Throughput, Unreadable> {
    Ok(Throughput { minute: row.get(0)?, ten_minutes: row.get(1)?, per_minute: row.get(2)? })
}

/// The last $1 notes, in order.
pub(super) fn notes() -> String {
    format!(
        "WITH {NOW}
         SELECT n.id, greatest(0, now - n.at), n.run, n.worker, n.note
         FROM clock CROSS JOIN (SELECT * FROM notes ORDER BY id DESC LIMIT $1) n ORDER BY n.id"
    )
}

pub(super) fn note(row: &Row) -> Result<Note, Unreadable> {
    Ok(Note {
        id: row.get(0)?,
        seconds: row.get(1)?,
        run: row.get(2)?,
        worker: row.get(3)?,
        note: row.get(4)?,
    })
}
