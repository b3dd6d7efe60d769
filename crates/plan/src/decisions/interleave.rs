//! `interleave`: interleaved register tiles.
//!
//! A thread that reads eight adjacent values of a row does so in two loads of 16 bytes, each 32 bytes from that of the next
//! thread: half of the banks of shared memory are idle. In two groups of four, the loads of all threads are adjacent.

use thiserror::Error;
use warploom_schedule::{Item, Kernel, Nest, RootItem, Size, Tile};

use crate::axes::is_pure;
use crate::decisions::{Decision, Edit, Facts, Line, Open, Refusals, Row, Tree, Values};
use crate::footprint::AxisKind;
use crate::random::{Generator, Turn, WORD};

/// The points of a group: 16 bytes of 32-bit values, which one instruction loads.
const GROUP: u32 = 4;

/// Unrolls the rounds of a nest together with the points of a round.
#[derive(Debug)]
pub(super) struct Interleave;

/// Why the points of a nest cannot be in groups.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum InterleaveRefusal {
    /// They are not unrolled.
    #[error(
        "the points of `{item}` are not unrolled, so they cannot `interleave`; add `unroll`, or remove `interleave`"
    )]
    Loops {
        /// The stage or staged input.
        item: String,
    },
    /// It has Funcs in registers.
    #[error(
        "`{item}` cannot `interleave`, because its Funcs in registers are computed for adjacent points; place them elsewhere, or remove `interleave`"
    )]
    Registers {
        /// The stage.
        item: String,
    },
}

impl Decision for Interleave {
    fn facts(&self) -> Facts {
        Facts {
            word: "interleave",
            about: "the register tile of a thread in groups, interleaved with those of other threads",
            // Words about Funcs in registers.
            excludes: &["lanes", "slide"],
            of_points: true,
            edits: &[Edit::Kernel(regrouped)],
            open: Some(&Interleave),
        }
    }

    /// The points are unrolled, and nothing is computed for all points of a thread at once.
    fn refusals(&self, at: &Line<'_>) -> Refusals {
        let Some(nest) = at.nest.filter(|nest| nest.nest.numbers.interleave) else { return Vec::new() };
        if !nest.nest.mapping.unrolls() {
            at.refuse(InterleaveRefusal::Loops { item: at.item() })
        } else if !nest.nest.registers.is_empty() {
            at.refuse(InterleaveRefusal::Registers { item: at.item() })
        } else {
            Vec::new()
        }
    }

    /// Whether a nest has unrolled points in several rounds.
    fn is_possible(&self, at: &Line<'_>) -> bool {
        at.nest.is_some_and(|info| {
            let axes = info.footprint.iter().flat_map(|nest| nest.axes_of(AxisKind::Round));
            let mut rounds = axes.filter(|axis| is_pure(axis.dim));
            can_interleave(&info.nest) && rounds.any(|axis| axis.count > 1)
        })
    }

    fn draw(&self, generator: &mut Generator<'_>, turn: Turn) {
        let Turn::Nests(stage) = turn else { return };
        let kernel = generator.schedule.kernels().find(|kernel| kernel.stage == stage);
        let nests = kernel.into_iter().flat_map(|kernel| kernel.nests());
        let items: Vec<Item> = nests.filter(|nest| can_interleave(nest)).map(|nest| nest.item).collect();
        for item in items {
            if generator.draw.chance(WORD) {
                generator.change(stage, item, |nest| nest.numbers.interleave = true);
            }
        }
    }
}

impl Open for Interleave {
    fn name(&self) -> &'static str {
        "interleave"
    }

    /// The kernel's own nest and the private ones, whose threads have the same points.
    fn values(&self, kernel: &Kernel, _: &Row<'_>) -> Vec<Values> {
        let own = Item::Stage(kernel.stage);
        let can = |nest: &&Nest| !nest.mapping.is_flat() && nest.registers.is_empty();
        let nests = kernel.nests().filter(|nest| nest.item == own || nest.storage.is_private());
        let items: Vec<Item> = nests.filter(can).map(|nest| nest.item).collect();
        let all = Some(Values { of: own, items, values: vec![0, 1] });
        all.filter(|all| !all.items.is_empty()).into_iter().collect()
    }

    fn read(&self, kernel: &Kernel, items: &[Item], _: &Row<'_>) -> Option<i64> {
        let unrolled = kernel.nests().filter(|nest| items.contains(&nest.item) && nest.mapping.unrolls());
        let mut flags = unrolled.map(|nest| nest.numbers.interleave);
        let first = flags.next().unwrap_or(false);
        flags.all(|flag| flag == first).then_some(first.into())
    }

    /// Points that are not unrolled cannot.
    fn write(&self, kernel: &mut Kernel, items: &[Item], value: i64, _: &Row<'_>) {
        for nest in kernel.nests_mut().filter(|nest| items.contains(&nest.item)) {
            nest.numbers.interleave = value == 1 && nest.mapping.unrolls();
        }
    }

    fn clear(&self, kernel: &mut Kernel) {
        kernel.nests_mut().for_each(|nest| nest.numbers.interleave &= nest.storage.is_shared());
    }
}

fn can_interleave(nest: &Nest) -> bool {
    nest.mapping.unrolls() && nest.registers.is_empty()
}

/// The kernel with the points of a thread in groups, or next to each other if they are in groups.
fn regrouped(tree: &Tree<'_>) -> Vec<RootItem> {
    let in_groups = || tree.item.nests().last().is_some_and(Nest::interleaves);
    let together = || in_groups().then(|| adjacent(tree.item));
    interleaved(tree.item).or_else(together).into_iter().collect()
}

/// A kernel whose threads have their points along the first dimension in groups. `None` if they have no more than one group,
/// or hold Funcs in registers.
pub fn interleaved(item: &RootItem) -> Option<RootItem> {
    let own = item.nests().last()?;
    let points = points(own).filter(|points| *points > GROUP && points.is_multiple_of(GROUP))?;
    Some(item.with(|kernel| {
        let last = kernel.nests().count() - 1;
        for (number, nest) in kernel.nests_mut().enumerate() {
            let follows = number == last || nest.storage.is_private();
            if follows && self::points(nest) == Some(points) {
                nest.numbers.interleave = true;
                set_points(nest, GROUP);
            }
        }
    }))
}

/// The kernel with all points of a thread next to each other.
pub fn adjacent(item: &RootItem) -> RootItem {
    item.with(|kernel| {
        let all = all_points(kernel);
        for nest in kernel.nests_mut().filter(|nest| nest.numbers.interleave) {
            nest.numbers.interleave = false;
            if let (Some(all), Some(GROUP)) = (all, points(nest)) {
                set_points(nest, all);
            }
        }
    })
}

/// The points that a thread has in all rounds along the dimension of its first threads.
fn all_points(kernel: &Kernel) -> Option<u32> {
    let Tile { dim, size } = *kernel.nests().last()?.mapping.tiles()?.threads.first()?;
    let block = kernel.block.iter().find(|tile| tile.dim == dim)?.size;
    match (block, size) {
        (Size::Of(block), Size::Of(threads)) => block.checked_div(threads),
        _ => None,
    }
}

/// The points of a thread along the dimension of its first threads, if they are unrolled.
fn points(nest: &Nest) -> Option<u32> {
    let tiles = nest.mapping.tiles().filter(|tiles| tiles.unroll && nest.registers.is_empty())?;
    let first = tiles.threads.first()?.dim;
    match tiles.serial.iter().find(|tile| tile.dim == first)?.size {
        Size::Of(points) => Some(points),
        Size::All => None,
    }
}

fn set_points(nest: &mut Nest, points: u32) {
    let Some(tiles) = nest.mapping.tiles_mut() else { return };
    let first = tiles.threads.first().map(|tile| tile.dim);
    for tile in tiles.serial.iter_mut().filter(|tile| Some(tile.dim) == first) {
        tile.size = Size::Of(points);
    }
}
