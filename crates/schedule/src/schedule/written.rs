//! Schedules that somebody wrote: where each node of the tree stands in the text.

use ahash::AHashMap;
use warploom_lang::Pipeline;

use crate::schedule::error::{ScheduleErrors, Spot};
use crate::schedule::lines::{Entry, Source};
use crate::schedule::parse::{Parsed, is_registers, parsed};
use crate::schedule::path::Path;
use crate::schedule::tree::Schedule;
use crate::schedule::violation::Violation;

/// A schedule and the places of its nodes in the text that it was read from.
///
/// Violations of rules show the lines that [`Schedule::to_text`] prints. In a text with comments, empty lines or
/// another layout, [`Written::located`] finds the lines that the author knows.
#[derive(Clone, Debug)]
pub struct Written {
    /// The schedule.
    pub schedule: Schedule,
    spots: AHashMap<Path, Spot>,
}

impl Written {
    /// Reads a text as [`Schedule::parse`] does.
    ///
    /// # Errors
    /// All faults in the text, each with its line.
    pub fn parse(text: &str, pipeline: &Pipeline) -> Result<Written, ScheduleErrors> {
        let Parsed { schedule, source, header, rewrites } = parsed(text, pipeline)?;
        let mut spots = AHashMap::from([(Path::ROOT, source.spot_of(&header))]);
        // Lists of inlined Funcs are no nodes of the tree.
        let items = header.children[rewrites..].iter().filter(|entry| entry.words[0].text != "inline");
        note(&source, &Path::ROOT, items, true, &mut spots);
        Ok(Written { schedule, spots })
    }

    /// The violations of this schedule, each with its place in the text.
    pub fn located(&self, violations: Vec<Violation>) -> Vec<Violation> {
        let located = |violation: Violation| {
            let around = std::iter::successors(Some(violation.path.clone()), |path| Some(path.parent()));
            let mut around = around.take(violation.path.depth() + 1);
            let spot = around.find_map(|path| self.spots.get(&path)).cloned();
            Violation { spot: spot.unwrap_or(violation.spot), ..violation }
        };
        let mut located: Vec<Violation> = violations.into_iter().map(located).collect();
        located.sort_by_key(|violation| violation.spot.line);
        located
    }
}

/// Notes the spots of entries without faults, which are the children of a node in the same order. A Func may be called
/// `kernel`, so the word has its meaning only outside of kernels.
fn note<'e, 't: 'e>(
    source: &Source<'t>,
    parent: &Path,
    entries: impl Iterator<Item = &'e Entry<'t>>,
    outside_kernels: bool,
    spots: &mut AHashMap<Path, Spot>,
) {
    for (number, entry) in entries.enumerate() {
        let path = parent.child(number);
        spots.insert(path.clone(), source.spot_of(entry));
        let is_kernel = outside_kernels && entry.words[0].text == "kernel";
        // The line of a kernel may include its only nest, whose Funcs in registers stand below.
        let is_short = is_kernel && entry.children.iter().all(is_registers);
        let path = if is_short { path.child(0) } else { path };
        note(source, &path, entry.children.iter(), outside_kernels && !is_kernel, spots);
    }
}
