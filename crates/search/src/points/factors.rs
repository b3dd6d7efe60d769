//! Factors of extents: tiles inside tiles, and extents that are rounded up so that they have factors.

/// Extents are rounded up to multiples of this, unless a smaller rounding suffices.
const LANES: u64 = 32;

/// Odd factors of extents that are not rounded up further.
const ODD: [u64; 4] = [1, 3, 5, 7];

/// The factors of an extent, outermost first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fit {
    pub slots: Vec<u64>,
    /// Whether all tiles have the wanted sizes.
    pub exact: bool,
}

/// The extent, rounded up to the next multiple of 32 or to the next of 2^k, 3 * 2^k, 5 * 2^k and 7 * 2^k, whichever is less.
pub(super) fn padded(extent: u64) -> u64 {
    let lanes = extent.next_multiple_of(LANES);
    let round = |odd: &u64| odd * extent.div_ceil(*odd).next_power_of_two();
    ODD.iter().map(round).fold(lanes, u64::min)
}

/// The product of the factors of an extent: the extent itself or, with padding, a larger number, so that tiles of the
/// wanted sizes fit.
///
/// It is at most a quarter larger, unless the tiles themselves exceed that, and less than twice the extent, so that
/// only the whole product covers the extent with one tile. If nothing fits exactly, it is the product for any tiles.
pub(super) fn product(extent: u64, wanted: &[Option<u64>], padding: bool) -> u64 {
    if !padding {
        return extent;
    }
    let usual = padded(extent);
    let tile = wanted.iter().flatten().next().copied().unwrap_or(1).max(1);
    let most = (extent + extent / 4).max(extent.next_multiple_of(tile)).min(2 * extent - 1);
    let powers = (0..=LANES.ilog2()).rev().map(|power| 1 << power);
    let multiples = powers.map(|power: u64| extent.next_multiple_of(tile / common(tile, power) * power));
    let all = std::iter::once(usual).chain(multiples.filter(|product| *product <= most));
    all.into_iter().find(|product| fitted(*product, wanted).exact).unwrap_or(usual)
}

/// The factors of a product for tiles inside tiles of the wanted sizes, outermost first. `None` wants the whole tile around
/// it. A size that does not divide the tile around it is replaced by the nearest one that does.
pub(super) fn fitted(product: u64, wanted: &[Option<u64>]) -> Fit {
    let (mut outer, mut slots, mut exact) = (product, Vec::new(), true);
    for size in wanted {
        let tile = size.map_or(outer, |size| nearest(outer, size));
        exact &= size.is_none_or(|size| size == tile);
        slots.push(outer / tile);
        outer = tile;
    }
    slots.push(outer);
    Fit { slots, exact }
}

/// The sizes of the tiles inside the outermost factor, outermost first.
pub(super) fn tiles(slots: &[u64]) -> Vec<u64> {
    let mut size = 1;
    let mut sizes: Vec<u64> = slots
        .iter()
        .skip(1)
        .rev()
        .map(|factor| {
            size *= factor;
            size
        })
        .collect();
    sizes.reverse();
    sizes
}

/// The divisor with the smallest ratio to a size.
fn nearest(product: u64, size: u64) -> u64 {
    let divisors = (1..).take_while(|low| low * low <= product).filter(|low| product.is_multiple_of(*low));
    let mut all: Vec<u64> = divisors.flat_map(|low| [low, product / low]).collect();
    all.sort_unstable();
    let size = size.max(1);
    let is_nearer = |a: u64, b: u64| {
        let [(a_high, a_low), (b_high, b_low)] =
            [a, b].map(|of| (u128::from(of.max(size)), u128::from(of.min(size))));
        a_high * b_low < b_high * a_low
    };
    all.into_iter().fold(1, |best, next| if is_nearer(next, best) { next } else { best })
}

/// The greatest common divisor.
fn common(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn awkward_extents_are_rounded_up_a_little() {
        let known = [(1, 1), (5, 5), (9, 10), (14, 14), (26, 28), (27, 28), (55, 56), (130, 160), (224, 224)];
        for (extent, expected) in known.into_iter().chain([(1000, 1024), (1080, 1088), (1536, 1536)]) {
            assert_eq!(padded(extent), expected);
        }
        for extent in 1..3000 {
            assert!((extent..=extent + extent / 4 + 1).contains(&padded(extent)), "{extent}");
        }
    }

    #[test]
    fn tiles_fit_exactly_where_they_can() {
        assert_eq!(fitted(1024, &[Some(128), Some(128), Some(4)]).slots, [8, 1, 32, 4]);
        assert_eq!(fitted(56, &[None, Some(8), None]), Fit { slots: vec![1, 7, 1, 8], exact: true });
        assert_eq!(tiles(&[8, 1, 32, 4]), [128, 128, 4]);
        // Threads may go beyond the tile of a block; factors cannot.
        assert_eq!(
            fitted(58 * 27, &[Some(58), Some(64), Some(1)]),
            Fit { slots: vec![27, 1, 58, 1], exact: false }
        );
    }

    #[test]
    fn products_suit_the_tiles_that_were_found() {
        assert_eq!(product(1536, &[Some(96)], true), 1536);
        assert_eq!(product(1536, &[Some(58)], true), 1856);
        assert_eq!(product(55, &[Some(64), Some(64), Some(1)], true), 64);
        assert_eq!(product(130, &[Some(13)], true), 156);
        assert_eq!(product(130, &[Some(100)], true), 200);
        assert_eq!(product(27, &[Some(64), Some(64), Some(1)], true), 28);
        assert_eq!(product(1536, &[Some(58), Some(64), Some(1)], true), 1536);
        assert_eq!(product(130, &[Some(100)], false), 130);
    }
}
