//! `slide`: a sliding window of registers along the rows of a thread.

use thiserror::Error;
use warploom_schedule::{RootItem, Tile};

use crate::axes::is_pure;
use crate::decisions::{Decision, Edit, Facts, Line, Refusals, Tree};
use crate::random::{Generator, Turn};

/// The probability that a nest with Funcs in registers slides.
const DRAWN: f64 = 0.5;

/// Computes the points of a thread row by row, with what is in registers just before the row that needs it first.
pub(super) struct Slide;

/// Why a nest cannot slide.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum SlideRefusal {
    /// It has no Funcs in registers.
    #[error("`{item}` has no Funcs in registers, so nothing can `slide`; remove `slide`")]
    Funcs {
        /// The stage or staged input.
        item: String,
    },
    /// It has no unrolled rows.
    #[error(
        "`{item}` cannot `slide`: the first of its serial loops must be a dimension, not that of its lanes, and be unrolled; write `serial y 8` and `unroll`, or remove `slide`"
    )]
    Loops {
        /// The stage.
        item: String,
    },
    /// It reduces.
    #[error(
        "`{item}` cannot `slide`, because each of its points is a reduction; take the reduction out of the threads with `over`, or remove `slide`"
    )]
    Reduction {
        /// The stage.
        item: String,
    },
}

impl Decision for Slide {
    fn facts(&self) -> Facts {
        Facts {
            word: "slide",
            about: "registers computed as a sliding window along the rows, which lowers register pressure",
            edits: &[Edit::Neighbour(slid)],
            ..Facts::PLAIN
        }
    }

    fn refusals(&self, at: &Line<'_>) -> Refusals {
        let Some(nest) = at.nest.filter(|nest| nest.nest.numbers.slide) else { return Vec::new() };
        let tiles = nest.nest.mapping.tiles().filter(|tiles| tiles.unroll);
        let first = tiles.and_then(|tiles| tiles.serial.first());
        // Lanes share what a whole row of threads computes, not what is left of it along the lanes.
        let lane = tiles.filter(|_| nest.nest.numbers.lanes).and_then(|tiles| tiles.threads.first());
        let is_row = |tile: &Tile| is_pure(tile.dim) && lane.is_none_or(|lane| lane.dim != tile.dim);
        let mut domain = nest.footprint.iter().flat_map(|footprint| &footprint.domain);
        if nest.nest.registers.is_empty() {
            at.refuse(SlideRefusal::Funcs { item: at.item() })
        } else if !first.is_some_and(is_row) {
            at.refuse(SlideRefusal::Loops { item: at.item() })
        } else if domain.any(|reach| reach.extent() > 1) {
            at.refuse(SlideRefusal::Reduction { item: at.item() })
        } else {
            Vec::new()
        }
    }

    /// Whether a nest has Funcs in registers and unrolled rows of points.
    fn is_possible(&self, at: &Line<'_>) -> bool {
        let with_registers = at.nest.filter(|nest| !nest.nest.registers.is_empty());
        let Some((info, nest)) = with_registers.and_then(|info| Some((info, info.footprint.as_ref()?)))
        else {
            return false;
        };
        let tiles = info.nest.mapping.tiles().filter(|tiles| tiles.unroll);
        let first = tiles.and_then(|tiles| tiles.serial.first()).filter(|tile| is_pure(tile.dim));
        let reduces = nest.domain.iter().any(|reach| reach.extent() > 1);
        first.is_some_and(|tile| nest.share(tile.dim).1 > 1) && !reduces
    }

    fn draw(&self, generator: &mut Generator<'_>, turn: Turn) {
        if let Turn::Registers(kernel, item) = turn
            && generator.draw.chance(DRAWN)
        {
            generator.change(kernel, item, |nest| nest.numbers.slide = true);
        }
    }
}

/// The kernel with one nest with Funcs in registers that computes its points row by row, or all at once.
fn slid(tree: &Tree<'_>, number: usize) -> Vec<RootItem> {
    if tree.nest(number).is_none_or(|nest| nest.registers.is_empty()) {
        return Vec::new();
    }
    vec![tree.with(number, |nest| nest.numbers.slide = !nest.numbers.slide)]
}
