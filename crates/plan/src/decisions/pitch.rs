//! `pitch`: the distance between rows of an array in shared memory.

use std::num::NonZeroU32;

use warploom_schedule::{Item, Kernel, RootItem};

use crate::decisions::open::with;
use crate::decisions::{Decision, Edit, Facts, Line, Open, Refusals, Row, Tree, Values, rows};
use crate::footprint::row_dimension;
use crate::random::{Generator, Turn, WORD};

/// The most elements between rows that random schedules draw.
const MOST_DRAWN: i64 = 5;

/// Elements between rows that refinement and the points of spaces try.
const PADS: [i64; 4] = [1, 2, 4, 8];

/// Puts the rows of an array further apart.
#[derive(Debug)]
pub(super) struct Pitch;

impl Decision for Pitch {
    fn facts(&self) -> Facts {
        Facts {
            word: "pitch",
            about: "rows of a shared array padded against bank conflicts; rows run along the first dimension of more than one point",
            edits: &[Edit::Nest(padded)],
            open: Some(&Pitch),
            ..Facts::PLAIN
        }
    }

    fn refusals(&self, at: &Line<'_>) -> Refusals {
        let nest = at.nest.filter(|nest| nest.nest.numbers.pitch.is_some());
        nest.map_or_else(Vec::new, |nest| rows::refusals(at, nest, "pitch"))
    }

    fn is_possible(&self, at: &Line<'_>) -> bool {
        at.nest.is_some_and(|nest| nest.nest.storage.is_shared())
    }

    fn draw(&self, generator: &mut Generator<'_>, turn: Turn) {
        let Turn::Nests(kernel) = turn else { return };
        for (item, row) in generator.shared_rows(kernel) {
            if generator.draw.chance(WORD) {
                let pitch = row + generator.draw.between(0, MOST_DRAWN);
                let pitch = u32::try_from(pitch).ok().and_then(NonZeroU32::new);
                generator.change(kernel, item, |nest| nest.numbers.pitch = pitch);
            }
        }
    }
}

impl Open for Pitch {
    fn name(&self) -> &'static str {
        "pad"
    }

    fn follows_sizes(&self) -> bool {
        true
    }

    /// The arrays with rows in shared memory. The first nest of an array says how far apart these are.
    fn values(&self, kernel: &Kernel, row: &Row<'_>) -> Vec<Values> {
        let (mut seen, mut all) = (Vec::new(), Vec::new());
        for nest in kernel.nests().filter(|nest| nest.storage.is_shared()) {
            let func = nest.item.stage().map(|stage| stage.func);
            if func.is_some() && seen.contains(&func) {
                continue;
            }
            seen.push(func);
            let (of, items) = (nest.item, vec![nest.item]);
            if row(of).is_some() {
                let found = self.read(kernel, &items, row).unwrap_or(0);
                all.push(Values { of, items, values: with(&[&[0], &PADS[..]].concat(), found) });
            }
        }
        all
    }

    /// Elements between rows.
    fn read(&self, kernel: &Kernel, items: &[Item], row: &Row<'_>) -> Option<i64> {
        let nest = kernel.nests().find(|nest| items.contains(&nest.item));
        let with_pitch = nest.and_then(|nest| Some((nest.item, nest.numbers.pitch?)));
        let pad = with_pitch.and_then(|(item, pitch)| Some(i64::from(pitch.get()) - row(item)?));
        Some(pad.unwrap_or(0).max(0))
    }

    fn write(&self, kernel: &mut Kernel, items: &[Item], value: i64, row: &Row<'_>) {
        for nest in kernel.nests_mut().filter(|nest| items.contains(&nest.item)) {
            let pitch = Some(value).filter(|pad| *pad > 0).and_then(|pad| Some(row(nest.item)? + pad));
            nest.numbers.pitch = pitch.and_then(|pitch| u32::try_from(pitch).ok()).and_then(NonZeroU32::new);
        }
    }

    fn clear(&self, kernel: &mut Kernel) {
        kernel.nests_mut().for_each(|nest| nest.numbers.pitch = None);
    }
}

/// The kernel with other distances between the rows of one array in shared memory.
fn padded(tree: &Tree<'_>, number: usize) -> Vec<RootItem> {
    let (Some(nest), extents @ [_, _, ..]) = (tree.shared(number), tree.extents[number].as_slice()) else {
        return Vec::new();
    };
    let row = row_dimension(extents, nest.numbers.transpose).map_or(1, |d| extents[d]);
    let all = PADS.into_iter().map(|pad| u32::try_from(row + pad).ok().and_then(NonZeroU32::new));
    tree.with_others([None].into_iter().chain(all), nest.numbers.pitch, |kernel, pitch| {
        kernel.nests_mut().nth(number).into_iter().for_each(|nest| nest.numbers.pitch = pitch);
    })
}
