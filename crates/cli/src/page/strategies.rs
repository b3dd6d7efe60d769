//! Comparisons of strategies as sections of the page, one per file.

use warploom::tune::compare::{Compared, Mean, Subject};
use warploom_report::chart::{Curve, Place};
use warploom_report::{Fact, Section, Strategies, Table, TriedSubject};

use super::columns;
use super::source::{Content, Source};
use crate::suite::strategies::{Results, cells, notes, speed_cells, titles};
use crate::table::Align;

pub(super) fn sections(sources: &[Source]) -> Vec<Section> {
    let section = |source: &Source| match &source.content {
        Content::Strategies(results) => Some(Section::Strategies(Box::new(page(&source.file, results)))),
        Content::Records { .. } | Content::Suite(_) | Content::Operators(_) => None,
    };
    sources.iter().filter_map(section).collect()
}

fn page(file: &str, results: &Results) -> Strategies {
    let Results { versions, command, date, comparison, relative } = results;
    let titles = titles(comparison);
    let titles: Vec<(&str, Align)> = titles.iter().map(|(title, align)| (title.as_str(), *align)).collect();
    let table = |rows| Table { columns: columns(&titles), rows };
    let subject = |subject: &Subject| TriedSubject {
        name: subject.subject.clone(),
        curves: subject.strategies.iter().map(curve).collect(),
        optimum: subject.optimum_us,
        notes: notes(subject),
        table: table(cells(subject, |_| false)),
    };
    Strategies {
        title: format!("Strategies on {}", comparison.device),
        facts: vec![
            Fact::new("measured", format!("{date} on {}", comparison.device)),
            Fact::new("versions", versions.join(", ")),
            Fact::new("file", file),
            Fact::new("command", command),
        ],
        trials: comparison.trials,
        caption: results.caption(),
        subjects: comparison.subjects.iter().map(subject).collect(),
        about_speeds: results.about_speeds(),
        speeds: table(speed_cells(relative)),
    }
}

fn curve(compared: &Compared) -> Curve {
    let place = |Mean { trials, mean_us, deviation_us, .. }: Mean| {
        Some(Place { at: trials, value: mean_us?, deviation: deviation_us.unwrap_or(0.0) })
    };
    Curve {
        name: compared.strategy.clone(),
        places: compared.means().into_iter().filter_map(place).collect(),
    }
}
