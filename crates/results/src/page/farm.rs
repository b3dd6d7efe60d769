//! What the workers of a farm have done, as a section of the page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use warploom::date;
use warploom::farm::address_of;
use warploom::farm::history::{self, History, Past, Tuned as Improved};
use warploom::farm::store::Postgres;
use warploom::show;
use warploom_report::chart::{Curve, CurvePoint, Line};
use warploom_report::{Fact, Farm, Section, Table};

use super::source::{Content, Source, Tried};
use super::tuned;
use crate::error::ResultsError;

/// The most workers that have lines of their own.
const LINES: usize = 4;

/// What the workers of a server have recorded; `None` if the place is none, or nobody worked there.
pub(super) fn read(place: &Path) -> Result<Option<History>, ResultsError> {
    let Some(address) = address_of(place)? else { return Ok(None) };
    Ok(history::read(&Postgres::open_existing(&address)?)?)
}

/// One section for each server.
pub(super) fn sections(sources: &[Source]) -> Vec<Section> {
    let section = |source: &Source| match &source.content {
        Content::Records { farm: Some(history), problems, .. } => {
            Some(Section::Farm(Box::new(page(&source.file, history, problems))))
        }
        _ => None,
    };
    sources.iter().filter_map(section).collect()
}

fn page(file: &str, history: &History, problems: &[Tried]) -> Farm {
    let trials: u64 = history.workers.iter().map(Past::count).sum();
    let (unit, length) = unit(history.seconds);
    Farm {
        title: format!("The farm at {file}"),
        headline: format!(
            "{} of {} by {} in {:.1} {unit}",
            show::count(trials as usize, "trial"),
            show::count(history.problems.len(), "problem"),
            show::count(history.workers.len(), "worker"),
            history.seconds / length
        ),
        facts: vec![
            Fact::new("server", file),
            Fact::new("first trial", date::of(history.began_at as u64)),
            Fact::new("last trial", date::of((history.began_at + history.seconds) as u64)),
        ],
        unit: unit.to_owned(),
        rates: rates(history, length),
        workers: workers(&history.workers),
        seconds: history.seconds as usize + 1,
        bests: history.problems.iter().map(|improved| best(improved, problems)).collect(),
    }
}

/// The unit of time for so many seconds, and its length.
fn unit(seconds: f64) -> (&'static str, f64) {
    match seconds {
        seconds if seconds > 3.0 * 3600.0 => ("hours", 3600.0),
        seconds if seconds > 180.0 => ("minutes", 60.0),
        _ => ("seconds", 1.0),
    }
}

/// Trials a minute: of all workers, and of each if they are few.
fn rates(history: &History, length: f64) -> Vec<Line> {
    let line = |name: String, count: &dyn Fn(&BTreeMap<i64, u64>) -> u64| {
        let point = |(number, period): (usize, &BTreeMap<i64, u64>)| {
            let from = number as f64 * history.period;
            // The last one is as long as there is time.
            let seconds = history.period.min(history.seconds - from).max(history.period / 2.0);
            ((from + history.period / 2.0) / length, count(period) as f64 * 60.0 / seconds)
        };
        Line { name, points: history.periods.iter().enumerate().map(point).collect() }
    };
    let mut lines = vec![line("all workers".to_owned(), &|period| period.values().sum())];
    if (2..=LINES).contains(&history.workers.len()) {
        lines.extend(history.workers.iter().map(|past| {
            let name = format!("worker {} on {}", past.worker, past.host);
            line(name, &|period| period.get(&past.worker).copied().unwrap_or(0))
        }));
    }
    lines
}

/// Trials and failures of each worker. Kinds of failures that nobody had have no column.
fn workers(workers: &[Past]) -> Table {
    let kinds: BTreeSet<&str> = workers
        .iter()
        .flat_map(|past| past.trials.keys())
        .map(String::as_str)
        .filter(|kind| *kind != "ok")
        .collect();
    let count = |past: &Past, kind: &str| past.trials.get(kind).copied().unwrap_or(0).to_string();
    let mut table = Table::of(workers)
        .right("worker", |past| past.worker.to_string())
        .left("host", |past| past.host.clone())
        .right("trials", |past| past.count().to_string())
        .right("a minute", |past| past.per_minute().map_or(String::new(), |rate| format!("{rate:.1}")))
        .right("valid", |past| count(past, "ok"));
    for kind in kinds {
        table = table.right(kind, |past| count(past, kind));
    }
    table.done()
}

/// The best time of a problem so far, relative to that in the end.
fn best(improved: &Improved, problems: &[Tried]) -> Curve {
    let tried = problems.iter().find(|tried| tried.problem.id.0 == improved.problem);
    let name = tried.map_or_else(|| improved.name.clone(), |tried| tuned::title(&tried.problem));
    let least = improved.bests.last().map_or(1.0, |(_, us)| *us);
    let place = |&(seconds, us): &(f64, f64)| CurvePoint {
        at: seconds as usize + 1,
        value: us / least,
        deviation: 0.0,
    };
    Curve { name, places: improved.bests.iter().map(place).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(worker: i64, trials: &[(&str, u64)]) -> Past {
        let trials = trials.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
        Past { worker, host: format!("gpu{worker}"), first: 0.0, last: 600.0, trials }
    }

    fn history() -> History {
        History {
            began_at: 1_769_860_800.0,
            seconds: 600.0,
            period: 300.0,
            periods: vec![BTreeMap::from([(1, 50), (2, 20)]), BTreeMap::from([(1, 51)])],
            workers: vec![past(1, &[("ok", 100), ("spilled", 1)]), past(2, &[("crashed", 2), ("ok", 18)])],
            problems: vec![Improved {
                problem: 1,
                name: "blur".to_owned(),
                bests: vec![(0.0, 40.0), (90.5, 20.0)],
            }],
        }
    }

    #[test]
    fn a_farm_is_drawn_over_time() {
        let farm = page("farm.json", &history(), &[]);
        assert_eq!(farm.headline, "121 trials of 1 problem by 2 workers in 10.0 minutes");
        let points: Vec<&[(f64, f64)]> = farm.rates.iter().map(|line| line.points.as_slice()).collect();
        assert_eq!(
            points,
            [[(2.5, 14.0), (7.5, 10.2)], [(2.5, 10.0), (7.5, 10.2)], [(2.5, 4.0), (7.5, 0.0)]]
        );
        let places: Vec<(usize, f64)> =
            farm.bests[0].places.iter().map(|place| (place.at, place.value)).collect();
        assert_eq!(places, [(1, 2.0), (91, 1.0)]);
        assert_eq!(farm.facts[1].value, "2026-01-31");
        let titles: Vec<&str> = farm.workers.columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(titles, ["worker", "host", "trials", "a minute", "valid", "crashed", "spilled"]);
        assert_eq!(farm.workers.rows[1], ["2", "gpu2", "20", "1.9", "18", "2", "0"]);
    }

    #[test]
    fn many_workers_are_drawn_together() {
        let mut history = history();
        history.workers = (1..=9).map(|worker| past(worker, &[("ok", 1)])).collect();
        assert_eq!(rates(&history, 60.0).len(), 1);
        assert_eq!([unit(10.0).0, unit(600.0).0, unit(36_000.0).0], ["seconds", "minutes", "hours"]);
    }
}
