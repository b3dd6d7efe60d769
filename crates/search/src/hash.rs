//! Hashes of trees, the same on every machine.
//!
//! A kernel has a hash for each [depth](DEPTHS): how much of it counts. Options that differ only below a depth fall into
//! one bucket there, and stand for each other.

use warploom_lang::Id;
use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{
    BlockItem, Item, Kernel, Mapping, Nest, ReductionTile, RootItem, Size, StageRef, Storage, Tile,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Depths there are. 0: what a kernel computes, and where it keeps it; 1: loops around and over its blocks, and the order
/// of what they hold; 2: the sizes of its blocks; 3: which loops threads share; 4: everything.
pub(crate) const DEPTHS: usize = 5;

const BLOCK_SIZES: usize = 2;
const THREAD_LOOPS: usize = 3;
const ALL: usize = DEPTHS - 1;

/// Words that a short list has at most.
const SHORT: usize = 16;

/// The hashes of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Hashes {
    depths: [u64; DEPTHS],
    /// The whole tree, wide enough to stand for it.
    pub identity: u128,
}

impl Hashes {
    pub fn of(item: &RootItem) -> Hashes {
        let mut hashes = Hashes::default();
        let mut words = Vec::with_capacity(64);
        for depth in 0..DEPTHS {
            words.clear();
            root_item(item, depth, &mut words);
            hashes.depths[depth] = of_words(&words);
            if depth == ALL {
                hashes.identity = wide(&words);
            }
        }
        hashes
    }

    /// The hash at a depth; none is below the last.
    pub fn at(&self, depth: usize) -> u64 {
        self.depths[depth.min(ALL)]
    }
}

/// The hash of some words.
pub(crate) fn of_words(words: &[u64]) -> u64 {
    // Most lists are short, and need no memory of their own.
    let mut short = [0u8; 8 * SHORT];
    match words.len() <= SHORT {
        true => {
            for (slot, word) in short.chunks_exact_mut(8).zip(words) {
                slot.copy_from_slice(&word.to_le_bytes());
            }
            xxh3_64(&short[..8 * words.len()])
        }
        false => xxh3_64(&bytes(words)),
    }
}

/// A hash of some words that is wide enough to stand for them.
pub(crate) fn wide(words: &[u64]) -> u128 {
    xxh3_128(&bytes(words))
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A number from 0 to 1 that hangs off some words.
pub(crate) fn unit(words: &[u64]) -> f64 {
    (of_words(words) >> 11) as f64 / (1u64 << 53) as f64
}

fn root_item(item: &RootItem, depth: usize, words: &mut Vec<u64>) {
    match item {
        RootItem::Kernel(kernel) => self::kernel(kernel, depth, words),
        RootItem::Around(around) => {
            if depth > 0 {
                loops(&around.loops, depth, words);
            }
            for item in &around.body {
                root_item(item, depth, words);
            }
        }
    }
}

fn kernel(kernel: &Kernel, depth: usize, words: &mut Vec<u64>) {
    words.push(stage(kernel.stage));
    if depth >= BLOCK_SIZES {
        tiles(&kernel.block, words);
    }
    body(&kernel.body, depth, words);
}

fn body(items: &[BlockItem], depth: usize, words: &mut Vec<u64>) {
    for item in items {
        match item {
            BlockItem::Nest(nest) => self::nest(nest, depth, words),
            BlockItem::Over(over) => {
                if depth > 0 {
                    loops(&over.loops, depth, words);
                }
                body(&over.body, depth, words);
                words.push(u64::MAX);
            }
        }
    }
}

fn nest(nest: &Nest, depth: usize, words: &mut Vec<u64>) {
    words.push(match nest.item {
        Item::Stage(of) => stage(of),
        Item::Input(input) => 1 << 60 | input.index() as u64,
    });
    words.push(match nest.storage {
        Storage::Global => 0,
        Storage::Shared => 1,
        Storage::Private => 2,
    });
    words.extend(nest.registers.iter().map(|func| 1 << 61 | func.index() as u64));
    if depth < THREAD_LOOPS {
        return;
    }
    let Mapping::Threads(threads) = &nest.mapping else {
        words.push(1 << 62);
        return;
    };
    if depth == THREAD_LOOPS {
        words.extend(threads.threads.iter().map(|tile| dim(tile.dim)));
    } else {
        tiles(&threads.threads, words);
        tiles(&threads.serial, words);
        words.push(u64::from(threads.unroll));
    }
}

fn loops(loops: &[ReductionTile], depth: usize, words: &mut Vec<u64>) {
    words.push(loops.len() as u64);
    for tile in loops {
        words.extend([stage(tile.stage), tile.var as u64]);
        if depth >= BLOCK_SIZES {
            words.push(size(tile.size));
        }
    }
}

fn tiles(tiles: &[Tile], words: &mut Vec<u64>) {
    words.push(tiles.len() as u64);
    words.extend(tiles.iter().flat_map(|tile| [dim(tile.dim), size(tile.size)]));
}

fn stage(stage: StageRef) -> u64 {
    (stage.func.index() as u64) << 32 | stage.stage as u64
}

fn dim(kind: LoopKind) -> u64 {
    match kind {
        LoopKind::Pure(d) => d as u64,
        LoopKind::Reduction(r) => 1 << 32 | r as u64,
    }
}

fn size(size: Size) -> u64 {
    match size {
        Size::Of(size) => u64::from(size),
        Size::All => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use warploom_lang::FuncId;
    use warploom_schedule::schedule::ThreadTiles;

    use super::*;
    use crate::edit::lone_kernel;

    fn hashes(block: u32, threads: u32) -> Hashes {
        let stage = StageRef { func: FuncId::new(3), stage: 0 };
        let tile = |size| vec![Tile { dim: LoopKind::Pure(0), size: Size::Of(size) }];
        let mapping = Mapping::Threads(ThreadTiles { threads: tile(threads), ..ThreadTiles::default() });
        Hashes::of(&lone_kernel(stage, Vec::new(), tile(block), Vec::new(), mapping))
    }

    #[test]
    fn sizes_count_only_further_down() {
        let equal =
            |a: Hashes, b: Hashes| (0..DEPTHS).map(|depth| a.at(depth) == b.at(depth)).collect::<Vec<_>>();
        assert_eq!(equal(hashes(64, 32), hashes(128, 32)), [true, true, false, false, false]);
        assert_eq!(equal(hashes(64, 32), hashes(64, 16)), [true, true, true, true, false]);
        assert_eq!(hashes(64, 32), hashes(64, 32));
        assert_ne!(hashes(64, 32).identity, hashes(64, 16).identity);
    }
}
