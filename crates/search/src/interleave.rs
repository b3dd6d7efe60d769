//! Interleaved register tiles.
//!
//! A thread that reads eight adjacent values of a row does so in two loads of 16 bytes. The loads of neighbouring
//! threads are 32 bytes apart, so half of the banks of shared memory are idle. In two groups of four, the loads of all
//! threads are adjacent.

use warploom_schedule::{Kernel, Nest, RootItem, Size, Tile};

/// The points of a group: 16 bytes of 32-bit values, which one instruction loads.
const GROUP: u32 = 4;

/// The kernel with the points of each thread along the first dimension in groups. `None` if there is only one group, or
/// if the kernel has Funcs in registers.
pub(crate) fn interleaved(item: &RootItem) -> Option<RootItem> {
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
pub(crate) fn adjacent(item: &RootItem) -> RootItem {
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
