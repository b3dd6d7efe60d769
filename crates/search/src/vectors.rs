//! Vector loads, stores and copies.

use std::num::NonZeroU32;

use warploom_schedule::{LoopKind, RootItem, Size, ThreadTiles, Tile};

/// Bytes of the longest vector.
const VECTOR_BYTES: i64 = warploom_target::VECTOR_BYTES as i64;

/// The kernel with one nest switched to vector accesses along the dimension that is adjacent in memory, which becomes
/// its innermost loop; or switched back to scalar ones. `None` if its points along that dimension are not unrolled.
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

/// A copy of a nest to shared memory.
pub(crate) struct Copied<'a> {
    /// The extents of its points.
    pub extents: &'a [i64],
    /// The dimension along which points are adjacent in global memory.
    pub adjacent: usize,
    /// Bytes of a point.
    pub bytes: i64,
}

impl Copied<'_> {
    /// The kernel with a copy whose threads each have one vector of adjacent points. Asynchronous copies keep the order
    /// of global memory, in rows aligned to vectors. `None` if the points do not fill vectors, or if the copy has
    /// vectors already.
    pub fn by_vectors(&self, item: &RootItem, number: usize) -> Option<RootItem> {
        let kernel = item.kernels().next()?;
        let (nest, own) = (kernel.nests().nth(number)?, kernel.nests().last()?);
        let count = |tile: &Tile| match tile.size {
            Size::Of(threads) => i64::from(threads),
            Size::All => 1,
        };
        let threads: i64 = own.mapping.tiles()?.threads.iter().map(count).product();
        let widths = [VECTOR_BYTES, VECTOR_BYTES / 2].map(|bytes| bytes / self.bytes).into_iter();
        let mut widths = widths.filter(|width| *width > 1 && self.extents[self.adjacent] % width == 0);
        let width = widths.next().filter(|_| !nest.numbers.vector)?;
        Some(item.with(|kernel| {
            let Some(nest) = kernel.nests_mut().nth(number) else { return };
            nest.mapping = self.tiles(width, threads).into();
            nest.numbers.vector = true;
            if nest.numbers.depth.is_some() {
                let begins = |pitch: &NonZeroU32| i64::from(pitch.get()) % width == 0;
                nest.numbers.pitch =
                    nest.numbers.pitch.filter(|pitch| begins(pitch) && !nest.numbers.transpose);
                nest.numbers.transpose = false;
            }
        }))
    }

    /// Tiles of `width` adjacent points for at most `threads` threads.
    fn tiles(&self, width: i64, threads: i64) -> ThreadTiles {
        let others = (0..self.extents.len()).filter(|d| *d != self.adjacent).map(|d| (d, self.extents[d]));
        let vectors = (self.adjacent, self.extents[self.adjacent] / width);
        let (mut left, mut tiles) = (threads, Vec::new());
        for (d, extent) in [vectors].into_iter().chain(others) {
            let taken = even_part(extent, left);
            if taken > 1 {
                tiles.push(Tile { dim: LoopKind::Pure(d), size: Size::Of(taken as u32) });
            }
            left /= taken;
        }
        let serial = vec![Tile { dim: LoopKind::Pure(self.adjacent), size: Size::Of(width as u32) }];
        ThreadTiles { threads: tiles, serial, unroll: true }
    }
}

/// At most `threads` threads for a number of points: a divisor, unless that leaves more than half of the threads idle.
fn even_part(points: i64, threads: i64) -> i64 {
    let most = points.min(threads).max(1);
    let divisors = (1..=most).rev().filter(|part| points % part == 0);
    divisors.take(1).find(|part| 2 * part > most).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_points_evenly_where_that_keeps_them_busy() {
        let parts = [(32, 256), (16, 4), (22, 8), (12, 8), (1, 8), (7, 1)].map(|(n, of)| even_part(n, of));
        assert_eq!(parts, [32, 4, 8, 6, 1, 1]);
    }
}
