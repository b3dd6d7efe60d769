//! The tile sizes that are worth trying.

use crate::choices::{Choices, Room};

/// Bounds on the sizes that are enumerated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    /// The most threads along the vector dimension.
    pub vector: i64,
    /// The most threads along any other dimension.
    pub other: i64,
    /// The most threads per block.
    pub block: i64,
    /// The most dimensions with several threads.
    pub dims: usize,
}

/// The fewest threads along the vector dimension if there are other dimensions, which is also the smallest extent of a
/// vector dimension.
pub(crate) const MIN_VECTOR: i64 = 16;

/// For smaller extents, there may be one thread for each point.
const WHOLE_THREADS: i64 = 64;

/// The numbers of consecutive points that a thread may compute along a dimension: powers of two, and sizes of 3, 5 and
/// 7 that divide an extent without waste or leave whole warps along the vector dimension.
pub(crate) fn serial_sizes(extent: i64, is_vector: bool, warp: i64) -> Vec<i64> {
    if [3, 5, 7].contains(&extent) {
        return vec![1, extent];
    }
    let mut sizes: Vec<i64> = [1, 2, 4, 8].into_iter().filter(|size| *size == 1 || *size <= extent).collect();
    if is_vector && extent % warp == 0 {
        sizes.extend([3, 5, 7].into_iter().filter(|size| (extent / warp) % size == 0));
    }
    sizes
}

/// The numbers of threads that may share a dimension. Those along the vector dimension fill warps
/// unless it is the `only` one.
pub(crate) fn thread_sizes(extent: i64, is_vector: bool, only: bool, bounds: Bounds) -> Vec<i64> {
    let mut sizes = Vec::new();
    let (first, most) = match is_vector {
        true => (if only { 1 } else { MIN_VECTOR }, bounds.vector),
        false => (1, bounds.other),
    };
    let mut size = first;
    while size <= most.min(extent) {
        // Larger sizes would leave too many of the last threads idle.
        let padded = (extent + size - 1) / size * size;
        if !is_vector && size > 1 && padded * 7 > extent * 8 {
            break;
        }
        sizes.push(size);
        size *= 2;
    }
    if extent < WHOLE_THREADS && !sizes.contains(&extent) {
        sizes.push(extent);
    }
    sizes
}

/// The thread tilings of a box that a block can have: a number of threads for each dimension, in the order of the dimensions.
pub(crate) fn thread_tilings(extents: &[i64], vector: usize, only: bool, bounds: Bounds) -> Choices {
    let sizes = extents.iter().enumerate();
    let sizes = sizes.map(|(d, extent)| thread_sizes(*extent, d == vector, only, bounds)).collect();
    Choices::new(sizes, Room { most: bounds.block, several: Some(bounds.dims) })
}

/// The product of some sizes; saturates.
pub(crate) fn points<'s>(sizes: impl IntoIterator<Item = &'s i64>) -> i64 {
    sizes.into_iter().fold(1, |points, size| points.saturating_mul(*size))
}

/// Idle lanes in the warps of `threads` threads.
pub(crate) fn idle_lanes(threads: i64, warp: i64) -> i64 {
    (threads + warp - 1) / warp * warp - threads
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: Bounds = Bounds { vector: 64, other: 16, block: 1024, dims: 3 };

    #[test]
    fn serial_sizes_of_known_extents() {
        assert_eq!(serial_sizes(96, true, 32), [1, 2, 4, 8, 3]);
        assert_eq!(serial_sizes(8, false, 32), [1, 2, 4, 8]);
        assert_eq!(serial_sizes(2560, false, 32), [1, 2, 4, 8]);
        for extent in [3, 5, 7] {
            assert_eq!(serial_sizes(extent, false, 32), [1, extent]);
        }
        assert_eq!(serial_sizes(1, false, 32), [1]);
    }

    #[test]
    fn thread_tilings_of_known_boxes() {
        assert_eq!(thread_tilings(&[1536, 2560], 0, false, PAPER).count(), 15);
        let small: Vec<Vec<i64>> = thread_tilings(&[20, 6], 0, false, PAPER).all().collect();
        assert_eq!(small, [[16, 1], [20, 1], [16, 2], [20, 2], [16, 6], [20, 6]]);
    }

    #[test]
    fn all_tilings_of_known_boxes() {
        let count = |extents: &[i64]| {
            let serial = extents.iter().enumerate().map(|(d, e)| serial_sizes(*e, d == 0, 32)).collect();
            let tilings = |inner: Vec<i64>| {
                let outer: Vec<i64> = extents.iter().zip(inner).map(|(e, s)| (e + s - 1) / s).collect();
                thread_tilings(&outer, 0, false, PAPER).count()
            };
            Choices::new(serial, Room { most: i64::MAX, several: None }).all().map(tilings).sum::<u64>()
        };
        assert_eq!(count(&[1536, 2560]), 300);
        assert_eq!(count(&[1536, 2560, 3]), 840);
    }

    #[test]
    fn one_dimension_may_have_few_threads() {
        assert_eq!(thread_sizes(100, true, true, PAPER), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(thread_sizes(5, true, false, PAPER), [5]);
    }

    #[test]
    fn blocks_of_too_many_threads_are_left_out() {
        let wide = Bounds { vector: 256, other: 32, ..PAPER };
        let tilings: Vec<Vec<i64>> = thread_tilings(&[4096, 4096], 0, false, wide).all().collect();
        assert!(tilings.iter().all(|tiling| tiling.iter().product::<i64>() <= 1024));
        assert!(tilings.contains(&vec![256, 4]) && !tilings.contains(&vec![256, 8]));
    }

    #[test]
    fn idle_lanes_fill_the_last_warp() {
        assert_eq!(idle_lanes(242, 32), 14);
        assert_eq!(idle_lanes(64, 32), 0);
    }
}
