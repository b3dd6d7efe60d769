//! Comparisons of strategies as sections of the page, one per file.

use warploom::tune::compare::{Compared, ComparedWorkload, Mean};
use warploom_report::chart::{Curve, CurvePoint};
use warploom_report::{Section, Strategies, TriedSubject};

use super::facts_of;
use super::source::{Content, Source};
use crate::suite::strategies::{Report, notes};

pub(super) fn sections(sources: &[Source]) -> Vec<Section> {
    let section = |source: &Source| match &source.content {
        Content::Strategies(results) => Some(Section::Strategies(Box::new(page(&source.file, results)))),
        Content::Records { .. } | Content::Suite(_) | Content::Operators(_) => None,
    };
    sources.iter().filter_map(section).collect()
}

fn page(file: &str, results: &Report) -> Strategies {
    let Report { versions, command, date, comparison, .. } = results;
    let subject = |subject: &ComparedWorkload| TriedSubject {
        name: subject.subject.clone(),
        curves: subject.strategies.iter().map(curve).collect(),
        optimum: subject.optimum_us,
        notes: notes(subject),
        table: results.table(subject, |_| false),
    };
    Strategies {
        title: format!("Strategies on {}", comparison.device),
        facts: facts_of(file, [date, &comparison.device, command], versions),
        trials: comparison.trials,
        caption: results.caption(),
        subjects: comparison.subjects.iter().map(subject).collect(),
        about_speeds: results.about_speeds(),
        speeds: results.speeds(),
    }
}

fn curve(compared: &Compared) -> Curve {
    let place = |Mean { trials, mean_us, deviation_us, .. }: Mean| {
        Some(CurvePoint { at: trials, value: mean_us?, deviation: deviation_us.unwrap_or(0.0) })
    };
    Curve {
        name: compared.strategy.clone(),
        places: compared.means().into_iter().filter_map(place).collect(),
    }
}
