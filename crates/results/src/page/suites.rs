//! Results of the suite as sections of the page, one per device.

use warploom::app::App;
use warploom_report::{AppTime, Baseline, Fact, Listing, Run, Section, Suite};

use super::nests::{Nests, Wanted};
use super::source::{Content, Source};
use super::{distinct, facts_of};
use crate::suite::apps::{Report, Row, table};

/// One section per device that the suite was run on.
pub(super) fn sections(apps: &[App], sources: &[Source], nests: &mut Nests) -> Vec<Section> {
    let results: Vec<(&str, &Report)> = sources.iter().filter_map(results).collect();
    let devices = distinct(results.iter().map(|(_, results)| results.device.clone()));
    let section = |device: &String| {
        let of: Vec<_> = results.iter().filter(|(_, results)| results.device == *device).collect();
        let name = |file: &str, results: &Report| match of
            .iter()
            .filter(|(_, other)| other.mode == results.mode)
            .count()
        {
            1 => results.mode.clone(),
            _ => format!("{} ({file})", results.mode),
        };
        let runs = of.iter().map(|(file, results)| run(apps, name(file, results), file, results, nests));
        Section::Suite(Suite { title: format!("The suite on {device}"), runs: runs.collect() })
    };
    devices.iter().map(section).collect()
}

fn results(source: &Source) -> Option<(&str, &Report)> {
    match &source.content {
        Content::Suite(results) => Some((&source.file, results)),
        Content::Records { .. } | Content::Operators(_) | Content::Strategies(_) => None,
    }
}

fn run(apps: &[App], name: String, file: &str, results: &Report, nests: &mut Nests) -> Run {
    let Report { device, versions, command, date, anchors_of, .. } = results;
    let mut facts = facts_of(file, [date, device, command], versions);
    facts.extend(anchors_of.as_ref().map(|of| Fact::new("compared with times recorded on", of)));
    let rows = &results.apps;
    let wanted = Wanted { name: device.clone(), fingerprint: String::new() };
    let scheduled = rows.iter().filter(|row| !row.timed.schedule.is_empty());
    let listings = scheduled.map(|row| explained(apps, row, &wanted, nests)).collect();
    Run {
        name,
        facts,
        apps: rows.iter().map(time).collect(),
        results: table(rows),
        notes: results.notes(),
        listings,
    }
}

fn explained(apps: &[App], row: &Row, device: &Wanted, nests: &mut Nests) -> Listing {
    let nest = nests.of_app(apps, &row.app, &row.sizes, device, &row.timed.schedule);
    let title = format!("{}: loop nests and schedule", row.app);
    Listing { title, nest, schedule: row.timed.schedule.clone() }
}

fn time(row: &Row) -> AppTime {
    let others = [
        ("Halide's hand-written schedules", row.anchor.halide_manual_us),
        ("Anderson2021", row.anchor.anderson2021_us),
    ];
    let baseline = |(name, us): (&str, Option<f64>)| Some(Baseline { name: name.to_owned(), us: us? });
    AppTime {
        app: row.app.clone(),
        us: row.timed.min_us,
        floor_us: row.timed.floor_us,
        baselines: others.into_iter().filter_map(baseline).collect(),
    }
}
