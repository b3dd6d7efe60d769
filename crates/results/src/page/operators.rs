//! Results of the set of operators as sections of the page, one per file.

use warploom::app::Settings;
use warploom_apps::operators::operators;
use warploom_report::{Fact, FamilyRatios, Listing, Operators, Ratio, Section};

use super::facts_of;
use super::nests::{Nests, Wanted};
use super::source::{Content, Source};
use crate::suite::families::{Family, is_apart};
use crate::suite::operators::{Report, Row};

pub(super) fn sections(sources: &[Source], nests: &mut Nests) -> Vec<Section> {
    let section = |source: &Source| match &source.content {
        Content::Operators(results) => Some(Section::Operators(Box::new(page(&source.file, results, nests)))),
        Content::Records { .. } | Content::Suite(_) | Content::Strategies(_) => None,
    };
    sources.iter().filter_map(section).collect()
}

fn page(file: &str, results: &Report, nests: &mut Nests) -> Operators {
    let Report { mode, device, versions, command, date, libraries_of, .. } = results;
    let mut facts = facts_of(file, [date, device, command], versions);
    facts.extend(libraries_of.as_ref().map(|of| Fact::new("compared with times of libraries on", of)));
    let [rows, means, networks] = results.tables();
    let wanted = Wanted { name: device.clone(), fingerprint: String::new() };
    let scheduled = results.rows.iter().filter(|row| !row.timed.schedule.is_empty());
    Operators {
        title: format!("Operators on {device}, {mode}"),
        facts,
        families: results.families.iter().map(|family| ratios(family, &results.rows)).collect(),
        mean: results.mean_ratio,
        means,
        networks,
        results: rows,
        notes: results.notes(),
        listings: scheduled.map(|row| explained(row, &wanted, nests)).collect(),
    }
}

fn ratios(family: &Family, rows: &[Row]) -> FamilyRatios {
    let own = rows.iter().filter(|row| row.family == family.family);
    let ratio = |row: &Row| Some(Ratio { row: row.title(), ratio: row.ratio?, apart: is_apart(&row.name) });
    FamilyRatios {
        name: family.family.clone(),
        mean: family.mean_ratio,
        rows: own.filter_map(ratio).collect(),
    }
}

fn explained(row: &Row, device: &Wanted, nests: &mut Nests) -> Listing {
    let nest = match operators().iter().find(|operator| row.is_of(operator)) {
        Some(operator) => {
            let app = operator.app();
            nests.at(&app, Settings::defaults(&app), device, &row.timed.schedule)
        }
        None => Err("This program does not have the operator.".to_owned()),
    };
    let title = format!("{}: loop nests and schedule", row.title());
    Listing { title, nest, schedule: row.timed.schedule.clone() }
}
