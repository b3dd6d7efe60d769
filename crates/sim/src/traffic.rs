//! Counts the memory transactions of one access of one warp.

use warploom_lang::Type;
use warploom_target::Device;

use crate::mask::WARP;

const MAX_BANKS: u32 = 64;
const NONE: u8 = u8::MAX;

/// The division of an array's memory into sectors and banks. All sizes are powers of two.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Elements per sector, as a power of two.
    sector_shift: u32,
    /// Bytes per element, as a power of two.
    element_shift: u32,
    /// Bytes per word of a bank, as a power of two.
    word_shift: u32,
    /// The number of banks.
    banks: u32,
    /// The start of the array in shared memory, in bytes.
    base: u32,
}

impl Geometry {
    /// An array of `ty` that starts `base` bytes into shared memory.
    pub fn new(device: &Device, ty: Type, base: usize) -> Geometry {
        let element_shift = ty.bytes().ilog2();
        Geometry {
            sector_shift: device.memory.sector_bytes.max(8).ilog2() - element_shift,
            element_shift,
            word_shift: device.shared.bank_bytes.max(1).ilog2(),
            banks: device.shared.banks.clamp(1, MAX_BANKS).next_power_of_two(),
            base: base as u32,
        }
    }

    /// The number of sectors of global memory that a warp's elements touch. Buffers start at a sector
    /// boundary.
    pub fn sectors(&self, elements: &[u32]) -> u32 {
        let shift = self.sector_shift;
        let Some((&first, rest)) = elements.split_first() else { return 0 };
        let (mut last, mut changes, mut sorted) = (first >> shift, 1, true);
        for element in rest {
            let sector = element >> shift;
            changes += u32::from(sector != last);
            sorted &= sector >= last;
            last = sector;
        }
        if sorted { changes } else { distinct(elements, shift) }
    }

    /// The number of wavefronts of shared memory for a warp's elements: the maximum number of distinct
    /// words per bank.
    pub fn wavefronts(&self, elements: &[u32]) -> u32 {
        let word = |element: u32| (self.base + (element << self.element_shift)) >> self.word_shift;
        let (mut least, mut most) = (u32::MAX, 0);
        for element in elements {
            least = least.min(word(*element));
            most = most.max(word(*element));
        }
        if most.wrapping_sub(least) < self.banks {
            return u32::from(!elements.is_empty());
        }
        // The distinct words of each bank form a linked list of lanes.
        let mut heads = [NONE; MAX_BANKS as usize];
        let mut next = [NONE; WARP];
        let mut lengths = [0_u8; MAX_BANKS as usize];
        for (lane, element) in elements.iter().enumerate() {
            let mine = word(*element);
            let bank = (mine & (self.banks - 1)) as usize;
            let mut other = heads[bank];
            while other != NONE && word(elements[usize::from(other)]) != mine {
                other = next[usize::from(other)];
            }
            if other == NONE {
                next[lane] = heads[bank];
                heads[bank] = lane as u8;
                lengths[bank] += 1;
            }
        }
        u32::from(lengths.into_iter().max().unwrap_or(0))
    }
}

/// The number of distinct values of the elements after a right shift.
fn distinct(elements: &[u32], shift: u32) -> u32 {
    let mut sectors = [0; WARP];
    let sectors = &mut sectors[..elements.len()];
    for (sector, element) in sectors.iter_mut().zip(elements) {
        *sector = element >> shift;
    }
    let least = sectors.iter().copied().min().unwrap_or(0);
    let most = sectors.iter().copied().max().unwrap_or(0);
    if most - least < 64 {
        let seen = sectors.iter().fold(0_u64, |seen, sector| seen | 1 << (sector - least));
        return seen.count_ones();
    }
    sectors.sort_unstable();
    1 + sectors.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::order::Random;

    fn geometry(ty: Type, base: usize) -> Geometry {
        Geometry::new(&Device::preset("h200").unwrap(), ty, base)
    }

    fn warp(element: impl Fn(u32) -> u32) -> Vec<u32> {
        (0..32).map(element).collect()
    }

    #[test]
    fn sectors_of_known_patterns() {
        let floats = geometry(Type::F32, 0);
        assert_eq!(floats.sectors(&warp(|lane| lane)), 4);
        assert_eq!(floats.sectors(&warp(|lane| lane + 1)), 5);
        assert_eq!(floats.sectors(&warp(|lane| 2 * lane)), 8);
        assert_eq!(floats.sectors(&warp(|lane| 31 - lane)), 4);
        assert_eq!(floats.sectors(&warp(|_| 77)), 1);
        assert_eq!(floats.sectors(&warp(|lane| (31 - lane) * 1000)), 32);
        assert_eq!(geometry(Type::U8, 0).sectors(&warp(|lane| lane)), 1);
        assert_eq!(geometry(Type::U16, 0).sectors(&warp(|lane| lane)), 2);
    }

    #[test]
    fn wavefronts_of_known_patterns() {
        let floats = geometry(Type::F32, 16);
        for (stride, wavefronts) in [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (32, 32), (33, 1)] {
            assert_eq!(floats.wavefronts(&warp(|lane| stride * lane)), wavefronts, "stride {stride}");
        }
        assert_eq!(geometry(Type::U8, 0).wavefronts(&warp(|lane| lane)), 1);
        assert_eq!(geometry(Type::U8, 0).wavefronts(&warp(|lane| 4 * lane)), 1);
        assert_eq!(geometry(Type::U8, 0).wavefronts(&warp(|lane| 8 * lane)), 2);
        assert_eq!(floats.wavefronts(&[0, 32, 32, 64, 1]), 3);
    }

    #[test]
    fn counts_are_those_of_the_definition() {
        let mut random = Random::new(5);
        for _ in 0..2000 {
            let spread = 1 << random.below(12);
            let lanes = 1 + random.below(32) as usize;
            let elements: Vec<u32> = (0..lanes).map(|_| random.below(spread)).collect();
            for ty in [Type::U8, Type::U16, Type::F32] {
                let (bytes, geometry) = (ty.bytes() as u32, geometry(ty, 48));
                let sectors: BTreeSet<u32> = elements.iter().map(|e| e * bytes / 32).collect();
                assert_eq!(geometry.sectors(&elements), sectors.len() as u32);
                let words: BTreeSet<u32> = elements.iter().map(|e| (48 + e * bytes) / 4).collect();
                let most = (0..32).map(|bank| words.iter().filter(|word| *word % 32 == bank).count()).max();
                assert_eq!(geometry.wavefronts(&elements) as usize, most.unwrap());
            }
        }
    }
}
