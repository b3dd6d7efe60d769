//! `transpose`: the storage order of an array in shared memory.

use warploom_schedule::RootItem;

use crate::decisions::{Decision, Edit, Facts, Line, Refusals, Tree, rows};
use crate::random::{Generator, Turn, WORD};

/// Stores an array along its last dimension first.
pub(super) struct Transpose;

impl Decision for Transpose {
    fn facts(&self) -> Facts {
        Facts {
            word: "transpose",
            about: "a shared array transposed, so that a thread reads elements along the last dimension by vector loads",
            edits: &[Edit::Nest(transposed)],
            ..Facts::PLAIN
        }
    }

    fn refusals(&self, at: &Line<'_>) -> Refusals {
        let nest = at.nest.filter(|nest| nest.nest.numbers.transpose);
        nest.map_or_else(Vec::new, |nest| rows::refusals(at, nest, "transpose"))
    }

    fn is_possible(&self, at: &Line<'_>) -> bool {
        at.nest.is_some_and(|nest| nest.nest.storage.is_shared())
    }

    fn draw(&self, generator: &mut Generator<'_>, turn: Turn) {
        let Turn::Nests(kernel) = turn else { return };
        for (item, _) in generator.shared_rows(kernel) {
            if generator.draw.chance(WORD) {
                generator.change(kernel, item, |nest| nest.numbers.transpose = true);
            }
        }
    }
}

/// The kernel with one array in shared memory stored along its other end first, its rows dense.
fn transposed(tree: &Tree<'_>, number: usize) -> Vec<RootItem> {
    if tree.shared(number).is_none() || tree.extents[number].len() <= 1 {
        return Vec::new();
    }
    let other = tree.with(number, |nest| {
        nest.numbers.transpose = !nest.numbers.transpose;
        nest.numbers.pitch = None;
    });
    vec![other]
}
