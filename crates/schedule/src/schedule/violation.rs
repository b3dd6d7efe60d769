//! Violations of the rules of schedules. Each is reported in one sentence, at its place in the tree.

use ahash::AHashMap;
use thiserror::Error;
use warploom_lang::Pipeline;

use crate::schedule::error::Spot;
use crate::schedule::path::Path;
use crate::schedule::print::lines;
use crate::schedule::rule::Rule;
use crate::schedule::tree::Schedule;

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
}

/// Turns rules and nodes into violations, in text order.
pub(crate) fn located(schedule: &Schedule, pipeline: &Pipeline, found: Vec<(Path, Rule)>) -> Vec<Violation> {
    let lines = lines(schedule, pipeline);
    // The first line of each node; the list of inlined Funcs may take several lines.
    let mut shown: AHashMap<&Path, usize> = AHashMap::with_capacity(lines.len());
    for (number, (path, _)) in lines.iter().enumerate() {
        shown.entry(path).or_insert(number);
    }
    let mut violations: Vec<Violation> = Vec::new();
    for (path, rule) in found {
        // A node without its own line is reported at its nearest ancestor with one.
        let around = std::iter::successors(Some(path.clone()), |path| Some(path.parent()));
        let nearest = around.take(path.depth() + 1).find_map(|path| shown.get(&path));
        let number = nearest.copied().unwrap_or(0);
        let text = lines.get(number).map_or("", |(_, text)| text.as_str());
        let start = text.len() - text.trim_start().len();
        let length = text[start..].find("  ").unwrap_or(text.len() - start);
        let spot = Spot::new(number + 1, text, start, start + 1, length);
        violations.push(Violation { rule, path, spot });
    }
    violations.sort_by_key(|violation| violation.spot.line);
    violations
}
