//! Points of a thread in groups.
//!
//! A thread that reads eight adjacent values of a row does so in two loads of 16 bytes, each 32 bytes from that of the next
//! thread: half of the banks of shared memory are idle. In two groups of four, the loads of all threads are adjacent.

use warploom_schedule::schedule::{Nest, RootItem, Size};

/// The points of a group: 16 bytes of 32-bit values, which one instruction loads.
const GROUP: u32 = 4;

/// A kernel whose threads have their points along the first dimension in groups. `None` if they have no more than one group,
/// or hold Funcs in registers.
pub(crate) fn interleaved(item: &RootItem) -> Option<RootItem> {
    let own = item.nests().last()?;
    let points = points(own).filter(|points| *points > GROUP && points.is_multiple_of(GROUP))?;
    Some(item.with(|kernel| {
        let last = kernel.nests().count() - 1;
        for (number, nest) in kernel.nests_mut().enumerate() {
            let follows = number == last || nest.storage.is_private();
            if follows && self::points(nest) == Some(points) {
                divide(nest);
            }
        }
    }))
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

fn divide(nest: &mut Nest) {
    nest.numbers.interleave = true;
    let Some(tiles) = nest.mapping.tiles_mut() else { return };
    let first = tiles.threads.first().map(|tile| tile.dim);
    for tile in tiles.serial.iter_mut().filter(|tile| Some(tile.dim) == first) {
        tile.size = Size::Of(GROUP);
    }
}
