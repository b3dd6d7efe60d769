//! Accesses of several elements at a time.

use warploom_schedule::LoopKind;
use warploom_schedule::schedule::RootItem;

/// A kernel one of whose nests accesses buffers by vectors along the dimension that is adjacent in memory, which becomes its
/// innermost loop; or without vectors, if it has them. `None` if its points along that dimension are not unrolled.
pub(crate) fn vectored(item: &RootItem, number: usize, adjacent: LoopKind) -> Option<RootItem> {
    let nest = item.nests().nth(number)?;
    let unrolled = nest.mapping.tiles().filter(|tiles| tiles.unroll)?;
    unrolled.serial.iter().find(|tile| tile.dim == adjacent)?;
    Some(item.with(|kernel| {
        let Some(nest) = kernel.nests_mut().nth(number) else { return };
        nest.numbers.vector = !nest.numbers.vector;
        if let Some(tiles) = nest.mapping.tiles_mut().filter(|_| nest.numbers.vector) {
            // The order of the others stays.
            tiles.serial.sort_by_key(|tile| tile.dim == adjacent);
        }
    }))
}
