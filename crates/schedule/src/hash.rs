//! Hashes of schedules at different levels of detail, the same on every machine.
//!
//! | depth | what counts |
//! | --- | --- |
//! | below 0 | nothing |
//! | 0 | which stages are kernels, and the loops around them |
//! | 1 | also which of their dimensions are split over several blocks |
//! | 2 | also the sizes of blocks and of loops around kernels, and the items of a block |
//! | 3 | also which dimensions are split over several threads, or run in a thread |
//! | 4 | also the numbers of threads, the sizes of loops over a block, and the Funcs in registers |
//! | 5 | also the sizes of loops in a thread, and which are unrolled |
//! | 6 and above | also the inlined Funcs |

use std::num::NonZeroU32;

use warploom_lang::{FuncId, Id};
use xxhash_rust::xxh3::xxh3_64;

use crate::dag::LoopKind;
use crate::tree::{
    BlockItem, Item, Kernel, Loops, Mapping, Nest, ReductionTile, RootItem, Size, StageRef, Tile,
};

/// From this depth on, everything counts.
pub const FULL_DEPTH: i32 = 6;

/// The hash of kernels in execution order and of the inlined Funcs, at a depth: the [`combined_hash`] of the
/// [`item_hash`] of each kernel and of the inlined Funcs.
///
/// ```
/// use warploom_lang::*;
/// use warploom_schedule::{FULL_DEPTH, ScheduleBuilder, structural_hash};
/// let x = vars!(x);
/// let pipeline = Pipeline::new("ramp", [func("ramp", x, x * 2)])?;
/// let blocks = |tiles: &'static str| {
///     ScheduleBuilder::new(&pipeline).kernel("ramp", tiles, |block| block.flat("ramp")).build()
/// };
/// let (narrow, wide) = (blocks("x 16")?, blocks("x 32")?);
/// assert_eq!(structural_hash(&narrow.root, &narrow.inlined, 1), structural_hash(&wide.root, &wide.inlined, 1));
/// assert_ne!(structural_hash(&narrow.root, &narrow.inlined, 2), structural_hash(&wide.root, &wide.inlined, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn structural_hash<'a>(
    root: impl IntoIterator<Item = &'a RootItem>,
    inlined: impl IntoIterator<Item = &'a FuncId>,
    depth: i32,
) -> u64 {
    combined_hash(root.into_iter().map(|item| item_hash(item, depth)), inlined, depth)
}

/// The [`structural_hash`] of kernels whose [`item_hash`] at the same depth is known.
pub fn combined_hash<'a>(
    items: impl IntoIterator<Item = u64>,
    inlined: impl IntoIterator<Item = &'a FuncId>,
    depth: i32,
) -> u64 {
    let mut words = Words::new(depth);
    if depth >= 0 {
        items.into_iter().for_each(|hash| words.long(hash));
    }
    if depth >= FULL_DEPTH {
        words.end();
        inlined.into_iter().for_each(|func| words.word(func.index()));
    }
    words.hash()
}

/// The hash of a kernel, or of loops around kernels, at a depth.
pub fn item_hash(item: &RootItem, depth: i32) -> u64 {
    let mut words = Words::new(depth);
    if depth >= 0 {
        words.root_item(item);
    }
    words.hash()
}

/// The hash of a whole kernel and of the inlined Funcs that it computes, in order: a key for anything
/// that depends only on these. `Problem::inlined_in` returns
/// those Funcs.
pub fn kernel_hash<'a>(item: &RootItem, inlined: impl IntoIterator<Item = &'a FuncId>) -> u64 {
    combined_hash([item_hash(item, FULL_DEPTH)], inlined, FULL_DEPTH)
}

/// A unique serialisation of the parts of a tree that count at a depth: different trees give different bytes.
struct Words {
    depth: i32,
    bytes: Vec<u8>,
}

/// Enough capacity for most kernels.
const USUAL_BYTES: usize = 512;

impl Words {
    fn new(depth: i32) -> Words {
        Words { depth, bytes: Vec::with_capacity(USUAL_BYTES) }
    }

    fn hash(&self) -> u64 {
        xxh3_64(&self.bytes)
    }

    fn word(&mut self, value: usize) {
        self.bytes.extend_from_slice(&(value as u32).to_le_bytes());
    }

    fn long(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Ends a list, with a value that no number or kind uses.
    fn end(&mut self) {
        self.word(u32::MAX as usize);
    }

    fn stage(&mut self, stage: StageRef) {
        self.word(stage.func.index());
        self.word(stage.stage);
    }

    fn dim(&mut self, dim: LoopKind) {
        self.word(match dim {
            LoopKind::Pure(d) => 2 * d,
            LoopKind::Reduction(r) => 2 * r + 1,
        });
    }

    fn size(&mut self, size: Size) {
        self.word(match size {
            Size::Of(size) => size as usize,
            Size::All => u32::MAX as usize,
        });
    }

    /// Writes tiles with their sizes from a depth on; below that, only the tiles for which `counts`
    /// holds.
    fn tiles(&mut self, tiles: &[Tile], exact_from: i32, counts: impl Fn(Size) -> bool) {
        let exact = self.depth >= exact_from;
        for tile in tiles.iter().filter(|tile| exact || counts(tile.size)) {
            self.dim(tile.dim);
            if exact {
                self.size(tile.size);
            }
        }
        self.end();
    }

    fn loops(&mut self, loops: &[ReductionTile], exact_from: i32) {
        for tile in loops {
            self.stage(tile.stage);
            self.word(tile.var);
            if self.depth >= exact_from {
                self.size(tile.size);
            }
        }
        self.end();
    }

    fn root_item(&mut self, item: &RootItem) {
        match item {
            RootItem::Kernel(kernel) => {
                self.word(0);
                self.kernel(kernel);
            }
            RootItem::Around(Loops { loops, body }) => {
                self.word(1);
                self.loops(loops, 2);
                body.iter().for_each(|item| self.root_item(item));
                self.end();
            }
        }
    }

    /// Writes the numbers that are set, from a depth on, with a marker that no item kind uses.
    fn numbers(&mut self, all: impl Iterator<Item = Option<NonZeroU32>>, from: i32) {
        let given = all.enumerate().filter_map(|(position, number)| Some((position, number?)));
        for (position, number) in given.take(if self.depth >= from { usize::MAX } else { 0 }) {
            self.word(u32::MAX as usize - 1 - position);
            self.word(number.get() as usize);
        }
    }

    fn kernel(&mut self, kernel: &Kernel) {
        self.stage(kernel.stage);
        if self.depth >= 1 {
            self.tiles(&kernel.block, 2, |size| size != Size::All);
        }
        if self.depth >= 2 {
            self.numbers(kernel.numbers.all(), 2);
            self.body(&kernel.body);
        }
    }

    fn body(&mut self, body: &[BlockItem]) {
        for item in body {
            match item {
                BlockItem::Nest(nest) => {
                    self.word(0);
                    self.nest(nest);
                }
                BlockItem::Over(Loops { loops, body }) => {
                    self.word(1);
                    self.loops(loops, 4);
                    self.body(body);
                }
            }
        }
        self.end();
    }

    fn nest(&mut self, nest: &Nest) {
        match nest.item {
            Item::Stage(stage) => {
                self.word(0);
                self.stage(stage);
            }
            Item::Input(input) => {
                self.word(1);
                self.word(input.index());
            }
        }
        self.word(nest.storage as usize);
        self.numbers(nest.numbers.all(), 5);
        if self.depth >= 3 {
            self.mapping(&nest.mapping);
        }
        if self.depth >= 4 {
            nest.registers.iter().for_each(|func| self.word(func.index()));
            self.end();
        }
    }

    fn mapping(&mut self, mapping: &Mapping) {
        match mapping {
            Mapping::Flat => self.word(0),
            Mapping::Threads(tiles) => {
                self.word(1);
                let several = |size: Size| size != Size::Of(1);
                self.tiles(&tiles.threads, 4, several);
                self.tiles(&tiles.serial, 5, several);
                if self.depth >= 5 {
                    self.word(usize::from(tiles.unroll));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use warploom_lang::{Pipeline, func, rdom, vars};

    use super::*;
    use crate::tree::Schedule;

    fn pipeline() -> Pipeline {
        let (x, y) = vars!(x, y);
        let r = rdom!(r: (0, 8));
        let [step] = r.vars();
        let ramp = func("ramp", (x, y), x + y);
        let half = func("half", (x, y), ramp.at((x, y)) / 2);
        let sum = func("sum", (x, y), 0).over(&r, |f| f.set((x, y), f.at((x, y)) + half.at((x + step, y))));
        Pipeline::new("p", [func("out", (x, y), sum.at((x, y)))]).unwrap()
    }

    const BASE: &str = "
p inline ramp
  kernel out  block x 64, y 16
    half      flat                                    shared
    sum.0     threads x 64, y 4  serial y 4           private
    over sum.1.r 2
      sum.1   threads x 64, y 4  serial r all, y 4    private
    out       threads x 64, y 4  serial y 4
";

    fn hash(text: &str, depth: i32) -> u64 {
        let schedule = Schedule::parse(text, &pipeline()).unwrap_or_else(|errors| panic!("{errors}"));
        structural_hash(&schedule.root, &schedule.inlined, depth)
    }

    /// Checks that a change counts from a depth on, and never before.
    #[track_caller]
    fn counts_from(from: &str, to: &str, depth: i32) {
        assert!(BASE.contains(from), "{from}");
        let changed = BASE.replacen(from, to, 1);
        for at in -1..=FULL_DEPTH + 1 {
            assert_eq!(hash(BASE, at) != hash(&changed, at), at >= depth, "{from} -> {to} at {at}");
        }
    }

    #[test]
    fn each_decision_counts_from_its_depth_on() {
        counts_from("  kernel out", "  kernel ramp  block x 64\n    ramp  flat\n  kernel out", 0);
        counts_from("block x 64, y 16", "block x 64, y all", 1);
        counts_from("block x 64, y 16", "block x 64, y 8", 2);
        counts_from("half      flat                                    shared", "half  flat  private", 2);
        counts_from("out       threads x 64, y 4  serial y 4", "out  flat", 3);
        counts_from("out       threads x 64, y 4", "out  threads x 64", 3);
        counts_from("out       threads x 64, y 4", "out  threads x 32, y 8", 4);
        counts_from("over sum.1.r 2", "over sum.1.r 4", 4);
        counts_from("out       threads x 64, y 4  serial y 4", "out  threads x 64, y 4  serial y 2", 5);
        counts_from(
            "out       threads x 64, y 4  serial y 4",
            "out  threads x 64, y 4  serial y 4  unroll",
            5,
        );
        counts_from("p inline ramp", "p", FULL_DEPTH);
    }

    #[test]
    fn the_algorithm_is_fixed() {
        assert_eq!(hash(BASE, -1), xxh3_64(&[]));
        assert_eq!(hash(BASE, FULL_DEPTH), 7_963_959_233_939_391_086);
    }

    #[test]
    fn a_kernel_is_told_apart_by_what_is_inlined_in_it() {
        let pipeline = pipeline();
        let schedule = Schedule::parse(BASE, &pipeline).unwrap();
        let item = &schedule.root[0];
        assert_ne!(kernel_hash(item, &schedule.inlined), kernel_hash(item, []));
        let hashes = [item_hash(item, 3)];
        assert_eq!(combined_hash(hashes, [], 3), structural_hash([item], [], 3));
    }
}
