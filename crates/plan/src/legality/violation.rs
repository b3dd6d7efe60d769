//! Violations of the rules of schedules. Each is reported in one sentence, at its place in the tree.

use thiserror::Error;
use warploom_lang::Pipeline;
use warploom_schedule::{Path, Schedule, Spot, Spots};

use crate::legality::rule::Rule;

/// A broken [`Rule`], and the line of the schedule's text where it is broken.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{rule}\n{spot}")]
pub struct Violation {
    /// What is wrong, with a suggested fix.
    pub rule: Rule,
    /// The position of the node in the tree.
    pub path: Path,
    /// The line of the node in the text that [`Schedule::to_text`] returns.
    pub spot: Spot,
}

impl Violation {
    /// A violation by the whole schedule of a pipeline.
    pub(crate) fn of_whole(rule: Rule, pipeline: &str) -> Violation {
        let spot = Spot::new(1, pipeline, 0, 1, pipeline.len());
        Violation { rule, path: Path::ROOT, spot }
    }

    /// The violations of a schedule, each with its place in the text that it was read from.
    pub fn all_in(spots: &Spots, violations: Vec<Violation>) -> Vec<Violation> {
        let located = |violation: Violation| {
            let spot = spots.nearest(&violation.path).cloned();
            Violation { spot: spot.unwrap_or(violation.spot), ..violation }
        };
        in_text_order(violations.into_iter().map(located).collect())
    }
}

/// Turns rules and nodes into violations, in text order.
pub(crate) fn located(schedule: &Schedule, pipeline: &Pipeline, found: Vec<(Path, Rule)>) -> Vec<Violation> {
    let spots = Spots::of(schedule, pipeline);
    let violation = |(path, rule)| match spots.nearest(&path).cloned() {
        Some(spot) => Violation { rule, path, spot },
        None => Violation::of_whole(rule, pipeline.name()),
    };
    in_text_order(found.into_iter().map(violation).collect())
}

fn in_text_order(mut violations: Vec<Violation>) -> Vec<Violation> {
    violations.sort_by_key(|violation| violation.spot.line);
    violations
}
