//! What a farm does, as text: tables, and lines about what has changed.

use std::collections::{BTreeMap, BTreeSet};

use warploom::farm::status::{Life, Note, Run, Status, Worker};
use warploom::lang::visible;

use crate::show;
use crate::table::{PlainText as _, Table};

/// With more runs than this, not all are listed.
const MANY: usize = 40;

/// How many runs that have ended, and how many that wait, are listed then.
const FEW: usize = 8;

/// Everything, for a page of 80 columns.
pub(super) fn whole(status: &Status, place: &str) -> String {
    let mut text = format!("{}\n", head(status, place));
    totals(status).iter().for_each(|line| text += &format!("{line}\n"));
    let (listed, others) = listed(status);
    for (table, others) in [(runs(&listed), others), (workers(status), None)] {
        if !table.rows.is_empty() {
            text += &format!("\n{}", table.text());
        }
        others.iter().for_each(|others| text += &format!("{others}\n"));
    }
    if !status.notes.is_empty() {
        text += "\n";
    }
    status.notes.iter().for_each(|one| text += &format!("{}\n", note(one)));
    text
}

/// Where the farm is.
pub(super) fn head(status: &Status, place: &str) -> String {
    format!("{}: PostgreSQL {}", visible(place), visible(&status.server))
}

/// What all workers do together, in lines.
pub(super) fn totals(status: &Status) -> [String; 2] {
    let lost = match status.count(Life::Lost) {
        0 => String::new(),
        lost => format!(", {lost} lost"),
    };
    let queue = status.queue;
    let end = match status.seconds_left {
        None => "end unknown".to_owned(),
        Some(0.0) => "nothing left to do".to_owned(),
        Some(seconds) => format!("about {} left", span(seconds)),
    };
    [
        format!(
            "{}{lost}; {:.0} trials a minute; {end}",
            show::count(status.count(Life::Alive), "worker"),
            status.throughput.per_minute
        ),
        format!(
            "candidates: {} to compile, {} compiling, {} to run, {} running",
            queue.queued, queue.compiling, queue.compiled, queue.running
        ),
    ]
}

/// The runs that are listed, and a line about the others: all of them if they are few, or else those
/// that are active, the last ones that ended, and the next ones.
pub(super) fn listed(status: &Status) -> (Vec<&Run>, Option<String>) {
    let runs = &status.runs;
    if runs.len() <= MANY {
        return (runs.iter().collect(), None);
    }
    let numbers = |wanted: fn(&Run) -> bool| {
        let numbers = runs.iter().enumerate().filter(move |(_, run)| wanted(run));
        numbers.map(|(number, _)| number).collect::<Vec<usize>>()
    };
    let (active, ended) = (numbers(Run::is_active), numbers(|run| !run.goes_on()));
    let waiting = numbers(|run| run.goes_on() && !run.is_active());
    let last = ended.iter().rev().take(FEW);
    let shown: BTreeSet<usize> = active.iter().chain(last).chain(waiting.iter().take(FEW)).copied().collect();
    let mut others: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, run) in runs.iter().enumerate().filter(|(number, _)| !shown.contains(number)) {
        *others.entry(&run.state).or_default() += 1;
    }
    let parts: Vec<String> =
        others.iter().map(|(state, count)| format!("{count} {}", visible(state))).collect();
    let left = runs.len() - shown.len();
    let line = (left > 0).then(|| format!("{} not listed: {}", show::count(left, "run"), parts.join(", ")));
    (shown.into_iter().map(|number| &runs[number]).collect(), line)
}

/// The table of runs.
pub(super) fn runs(listed: &[&Run]) -> Table {
    Table::of(listed)
        .left("run", |run| name(run))
        .left("state", |run| visible(&run.state).into_owned())
        .right("trials", |run| progress(run))
        .right("valid", |run| run.valid.to_string())
        .right("best us", |run| run.best_us.map_or(String::new(), |us| format!("{us:.2}")))
        .right("share", |run| if run.is_active() { show::percent(run.share) } else { String::new() })
        .left("about it", |run| about(run))
        .done()
}

/// The table of those workers that are alive or lost. Columns in which nobody has anything are left out.
pub(super) fn workers(status: &Status) -> Table {
    Table::of(status.workers.iter().filter(|worker| worker.life != Life::Left))
        .right("id", |worker| worker.id.to_string())
        .left("host", |worker| visible(&worker.host).into_owned())
        .left("does", |worker| visible(&worker.roles.join(" ")).into_owned())
        .left("GPUs", gpus)
        .left("seen", seen)
        .right("built", |worker| some(worker.compiled))
        .right("ran", |worker| some(worker.ran))
        .right("failed", |worker| some(worker.failed))
        .right("/min", |worker| match worker.trials_per_minute {
            0.0 => String::new(),
            rate => format!("{rate:.0}"),
        })
        .right("pace", |worker| worker.pace.map_or(String::new(), |pace| format!("{pace:.2}")))
        .done()
        .without_empty()
}

pub(super) fn note(note: &Note) -> String {
    format!("{} ago: {}", span(note.seconds), visible(&note.note))
}

/// A line for everything that people should know of and did not see before: `before` is `None` at first.
pub(super) fn changes(before: Option<&Status>, now: &Status) -> Vec<String> {
    let old_worker = |id| before.and_then(|old| old.workers.iter().find(|worker| worker.id == id));
    let old_run = |id| before.and_then(|old| old.runs.iter().find(|run| run.id == id));
    let mut lines = Vec::new();
    if before.is_none() {
        lines.extend(totals(now));
    }
    for worker in &now.workers {
        let then = old_worker(worker.id).map(|worker| worker.life);
        // Those that ended before the first look are no news.
        if then != Some(worker.life) && (before.is_some() || worker.life == Life::Alive) {
            lines.push(change_of(worker));
        }
    }
    // At first, only those that a table would list are news.
    let (news, others) = match before {
        None => listed(now),
        Some(_) => (now.runs.iter().collect(), None),
    };
    for run in news {
        let then = old_run(run.id);
        if then.is_none_or(|then| then.state != run.state || then.best_us != run.best_us) {
            lines.push(line(run));
        }
    }
    lines.extend(others);
    let known = before.and_then(|old| old.notes.last()).map_or(0, |note| note.id);
    lines.extend(now.notes.iter().filter(|note| note.id > known).map(note));
    lines
}

fn change_of(worker: &Worker) -> String {
    let what = match worker.life {
        Life::Alive => "works",
        Life::Left => "has left",
        Life::Lost => "is lost",
    };
    let gpus = match gpus(worker).as_str() {
        "" => String::new(),
        gpus => format!(", {gpus}"),
    };
    let roles = visible(&worker.roles.join(", ")).into_owned();
    format!("worker {} on {} {what} ({roles}{gpus})", worker.id, visible(&worker.host))
}

/// A run in a line.
fn line(run: &Run) -> String {
    let best = run.best_us.map_or(String::new(), |us| format!(", best {us:.2} us"));
    let message = match run.message.as_str() {
        "" => String::new(),
        message => format!(": {}", visible(message)),
    };
    format!("{}: {}, {} trials{best}{message}", name(run), visible(&run.state), progress(run))
}

fn name(run: &Run) -> String {
    visible(&run.name).into_owned()
}

/// How many trials a run has taken, and of how many.
fn progress(run: &Run) -> String {
    match run.expected {
        0 => run.trials.to_string(),
        expected => format!("{}/{expected}", run.trials),
    }
}

/// What else there is to say of a run.
fn about(run: &Run) -> String {
    let alone = run.is_active() && !run.proposed;
    let alone = if alone { "nobody proposes candidates for it" } else { "" };
    let parts = [alone, &run.why, &run.message].map(|part| visible(part).into_owned());
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn gpus(worker: &Worker) -> String {
    match (&worker.device, worker.gpus) {
        (_, 0) | (None, _) => String::new(),
        (Some(device), 1) => visible(device).into_owned(),
        (Some(device), gpus) => format!("{gpus} {}", visible(device)),
    }
}

/// When a worker was last heard of.
fn seen(worker: &Worker) -> String {
    let since = span(worker.seen_seconds);
    match worker.life {
        Life::Alive => since,
        Life::Left => format!("left {since}"),
        Life::Lost => format!("lost {since}"),
    }
}

/// A count; nothing for 0.
fn some(count: u64) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

/// A length of time, as in `12 min`.
pub(super) fn span(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 99.5 => format!("{seconds:.0} s"),
        seconds if seconds < 99.5 * 60.0 => format!("{:.0} min", seconds / 60.0),
        seconds if seconds < 72.0 * 3600.0 => format!("{:.0} h", seconds / 3600.0),
        seconds => format!("{:.0} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use warploom::farm::status::{Queue, Throughput};

    use super::*;
    use crate::fold::WIDTH;

    fn worker(id: i64, host: &str, life: Life) -> Worker {
        Worker {
            id,
            host: host.to_owned(),
            process: 77,
            roles: vec!["run".to_owned()],
            device: Some("H200".to_owned()),
            gpus: 8,
            life,
            seen_seconds: 150.0,
            compiled: 0,
            ran: 1234,
            failed: 12,
            trials_per_minute: 380.4,
            pace: Some(0.98),
        }
    }

    fn run(id: i64, name: &str, state: &str) -> Run {
        Run {
            id,
            name: name.to_owned(),
            state: state.to_owned(),
            proposed: true,
            trials: 340,
            valid: 330,
            expected: 640,
            best_us: Some(20.137),
            gain: 0.001,
            share: 0.62,
            why: "a trial may gain 0.100 %".to_owned(),
            message: String::new(),
        }
    }

    /// A farm at work.
    pub fn status() -> Status {
        let compiles = Worker {
            roles: vec!["propose".to_owned(), "compile".to_owned()],
            device: None,
            gpus: 0,
            seen_seconds: 2.0,
            compiled: 2000,
            ran: 0,
            trials_per_minute: 0.0,
            pace: None,
            ..worker(2, "cpu1", Life::Alive)
        };
        let note =
            |id, note: &str| Note { id, seconds: 31.0, run: None, worker: Some(3), note: note.to_owned() };
        let flat = Run {
            share: 0.38,
            proposed: false,
            why: "the least share: a trial may gain 0.010 %".to_owned(),
            ..run(2, "local_laplacian", "active")
        };
        let failed = Run {
            message: "no schedule is legal".to_owned(),
            why: String::new(),
            best_us: None,
            ..run(3, "odd\u{1b}[2J", "failed")
        };
        Status {
            server: "15.6".to_owned(),
            workers: vec![
                worker(1, "gpu1", Life::Alive),
                compiles,
                worker(3, "gpu2", Life::Lost),
                worker(4, "gpu3", Life::Left),
            ],
            runs: vec![run(1, "harris", "active"), flat, failed],
            queue: Queue { queued: 120, compiling: 3, compiled: 40, running: 8 },
            throughput: Throughput { minute: 390, ten_minutes: 3804, per_minute: 380.4 },
            seconds_left: Some(720.0),
            notes: vec![note(1, "worker 3 is 7 % slower than most")],
        }
    }

    #[test]
    fn everything_fits_80_columns() {
        insta::assert_snapshot!(whole(&status(), "farm/farm.json"));
        let text = crate::fold::fold(&whole(&status(), "farm/farm.json"));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn of_many_runs_the_important_ones_are_listed() {
        let many = |count: i64| {
            let state = |id| match id {
                0..400 if id % 100 == 7 => "failed",
                0..400 => "finished",
                400..404 => "active",
                _ => "waiting",
            };
            let runs = (0..count).map(|id| run(id, &format!("random {id}"), state(id))).collect();
            Status { runs, ..status() }
        };
        let all = many(800);
        let (some, others) = listed(&all);
        let ids: Vec<i64> = some.iter().map(|run| run.id).collect();
        assert_eq!(ids, (392..412).collect::<Vec<i64>>());
        assert_eq!(others.unwrap(), "780 runs not listed: 4 failed, 388 finished, 388 waiting");
        let text = whole(&all, "farm.json");
        assert!(text.lines().count() < 40 && text.contains("\n780 runs not listed: "), "{text}");
        assert_eq!(changes(None, &all).iter().filter(|line| line.starts_with("random")).count(), 20);
        let few = many(40);
        assert!(listed(&few).0.len() == 40 && listed(&few).1.is_none());
    }

    #[test]
    fn an_idle_farm_says_so() {
        let idle = Status { server: "15.6".to_owned(), seconds_left: Some(0.0), ..Status::default() };
        let text = whole(&idle, "farm.json");
        assert_eq!(
            text,
            "farm.json: PostgreSQL 15.6\nno workers; 0 trials a minute; nothing left to do\n\
             candidates: 0 to compile, 0 compiling, 0 to run, 0 running\n"
        );
    }

    #[test]
    fn only_news_is_said() {
        let first = status();
        let said = changes(None, &first);
        assert!(
            said[0].starts_with("2 workers, 1 lost; 380 trials a minute; about 12 min left"),
            "{said:#?}"
        );
        assert!(said.contains(&"worker 1 on gpu1 works (run, 8 H200)".to_owned()), "{said:#?}");
        assert!(!said.iter().any(|line| line.starts_with("worker 3 on")), "it was lost before: {said:#?}");
        assert!(said.contains(&"harris: active, 340/640 trials, best 20.14 us".to_owned()), "{said:#?}");
        assert!(said.contains(&"31 s ago: worker 3 is 7 % slower than most".to_owned()), "{said:#?}");

        let mut next = first.clone();
        (next.queue.queued, next.runs[0].trials, next.workers[0].seen_seconds) = (7, 350, 1.0);
        assert_eq!(changes(Some(&first), &next), Vec::<String>::new());
        next.workers[0].life = Life::Lost;
        (next.runs[1].best_us, next.runs[0].state) = (Some(19.0), "finished".to_owned());
        next.notes.push(Note { id: 2, note: "new".to_owned(), ..next.notes[0].clone() });
        assert_eq!(
            changes(Some(&first), &next),
            [
                "worker 1 on gpu1 is lost (run, 8 H200)",
                "harris: finished, 350/640 trials, best 20.14 us",
                "local_laplacian: active, 340/640 trials, best 19.00 us",
                "31 s ago: new",
            ]
        );
    }

    #[test]
    fn times_are_short() {
        let spans = [0.2, 99.0, 100.0, 5400.0, 7200.0, 100_000.0, 300_000.0].map(span);
        assert_eq!(spans, ["0 s", "99 s", "2 min", "90 min", "2 h", "28 h", "3 days"]);
    }
}
