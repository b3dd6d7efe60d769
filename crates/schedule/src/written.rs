//! The position of each node of a schedule's tree in a text: the text that it was read from, or the printed one.

use ahash::AHashMap;
use warploom_lang::Pipeline;

use crate::error::{ScheduleErrors, Spot};
use crate::lines::{Entry, SourceText};
use crate::parse::{Parsed, is_registers, parsed};
use crate::path::Path;
use crate::print::lines;
use crate::tree::Schedule;

/// The positions of a schedule's nodes in a text.
#[derive(Clone, Debug)]
pub struct Spots(AHashMap<Path, Spot>);

impl Spots {
    /// The positions of the nodes in the text that [`Schedule::to_text`] returns.
    pub fn of(schedule: &Schedule, pipeline: &Pipeline) -> Spots {
        let mut spots = AHashMap::new();
        for (number, (path, text)) in lines(schedule, pipeline).into_iter().enumerate() {
            let start = text.len() - text.trim_start().len();
            let length = text[start..].find("  ").unwrap_or(text.len() - start);
            // The list of inlined Funcs may take several lines.
            spots.entry(path).or_insert_with(|| Spot::new(number + 1, &text, start, start + 1, length));
        }
        Spots(spots)
    }

    /// The position of a node, or of its nearest ancestor with a line of its own.
    pub fn nearest(&self, path: &Path) -> Option<&Spot> {
        let around = std::iter::successors(Some(path.clone()), |path| Some(path.parent()));
        around.take(path.depth() + 1).find_map(|path| self.0.get(&path))
    }
}

/// A schedule, and the positions of its nodes in the text that it was read from.
#[derive(Clone, Debug)]
pub struct Written {
    /// The schedule.
    pub schedule: Schedule,
    /// The positions, also in a text with comments, empty lines or a layout other than that of [`Schedule::to_text`].
    pub spots: Spots,
}

impl Written {
    /// Reads a text as [`Schedule::parse`] does.
    ///
    /// # Errors
    /// All faults in the text, each with its line.
    pub fn parse(text: &str, pipeline: &Pipeline) -> Result<Written, ScheduleErrors> {
        let Parsed { schedule, source, header, rewrites } = parsed(text, pipeline)?;
        let mut spots = AHashMap::from([(Path::ROOT, source.spot_of(&header))]);
        // Lists of inlined Funcs are not nodes of the tree.
        let items = header.children[rewrites..].iter().filter(|entry| entry.words[0].text != "inline");
        note(&source, &Path::ROOT, items, true, &mut spots);
        Ok(Written { schedule, spots: Spots(spots) })
    }
}

/// Records the spots of entries without faults, which are the children of a node in the same order. A Func may be
/// called `kernel`, so the word is a keyword only outside of kernels.
fn note<'e, 't: 'e>(
    source: &SourceText<'t>,
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
