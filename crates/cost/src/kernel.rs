//! The features of one kernel.

use std::num::NonZeroU32;
use std::ops::{AddAssign, BitOr};

use serde::{Deserialize, Serialize};
use warploom_plan::body::Memory;
use warploom_schedule::{KernelNumbers, Nest, NestNumbers, NodeId, StageId};

use crate::schema::StageFeatures;

/// The stage or input that a row of features describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum RowSource {
    /// A stage that is placed in the kernel.
    Stage(StageId),
    /// The only stage of a Func that is inlined into one of the kernel's stages.
    Inlined(StageId),
    /// An input that the kernel copies to faster memory.
    Staged(NodeId),
}

/// The features of one stage of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct StageRow {
    /// The stage or input that the row describes.
    pub source: RowSource,
    /// The number of the loop nest that computes it: its own, or that of the stage that it is
    /// inlined into or whose registers hold it. Nests are numbered in execution order.
    pub nest: usize,
    /// The stage's features, in the units of the schema.
    pub features: StageFeatures,
}

/// Accesses of one kind to one array, in one full block.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Traffic {
    /// Accessed elements: one per active thread.
    pub elements: f64,
    /// The size of those elements in bytes.
    pub bytes: f64,
    /// Warp-wide instructions with at least one active thread.
    pub requests: f64,
    /// Sectors of global memory that the requests touch; 0 for other memory.
    pub sectors: f64,
    /// Wavefronts of shared memory that the requests need; 0 for other memory.
    pub wavefronts: f64,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.elements += other.elements;
        self.bytes += other.bytes;
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.wavefronts += other.wavefronts;
    }
}

impl Traffic {
    /// The traffic of so many of the same accesses for each one.
    #[must_use]
    pub(crate) fn times(self, factor: f64) -> Traffic {
        Traffic {
            elements: self.elements * factor,
            bytes: self.bytes * factor,
            requests: self.requests * factor,
            sectors: self.sectors * factor,
            wavefronts: self.wavefronts * factor,
        }
    }
}

/// Accesses of a full block to one array, as the IR issues them: before the compiler merges any.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ArrayTraffic {
    /// The Func or input that the array belongs to.
    pub node: NodeId,
    /// The number of the tuple value that the array holds; 0 for a single value.
    pub value: usize,
    /// The memory that the array is in. A Func that a thread accumulates before it writes the result
    /// has two arrays: one in this memory and one in the thread.
    pub memory: Memory,
    /// Loads from the array.
    pub loads: Traffic,
    /// Stores to the array.
    pub stores: Traffic,
    /// Atomics on the array.
    pub atomics: Traffic,
    /// Elements that are stored but not computed: what lanes get from others, and zeros where a lane computes nothing.
    pub moved: f64,
    /// Shuffles of what lanes get from others: one per shuffle and warp.
    pub shuffles: f64,
    /// Whether all its accesses are linear in the loop variables. The numbers are then exact for a
    /// block away from the edges; otherwise they are estimates.
    pub exact: bool,
}

/// A set of schedule decisions that the first weights do not know.
///
/// Weights list the decisions that kernels had in training. A kernel with any other decision gets
/// its analytic cost, so a new decision needs no new weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NewDecisions(u32);

/// The first bit for nests.
const NEST_BITS: usize = 16;

impl NewDecisions {
    /// The decisions that a kernel and its nests make as numbers. Weights files contain the bits, so a
    /// bit never changes its meaning: the lower half is for kernels, the upper half for nests, each in
    /// the order of their words.
    pub fn of_kernel<'k>(kernel: KernelNumbers, nests: impl Iterator<Item = &'k Nest>) -> NewDecisions {
        let nests = nests.fold(0, |known, nest| known | bits(nest.numbers.all()));
        NewDecisions(bits(kernel.all()) | nests << NEST_BITS)
    }

    /// The words of the decisions in the set, each with the set that has it alone.
    pub fn words(self) -> impl Iterator<Item = (&'static str, NewDecisions)> {
        let numbered = |words: &'static [&'static str], first: usize| words.iter().copied().zip(first..);
        let all = numbered(KernelNumbers::WORDS, 0).chain(numbered(NestNumbers::WORDS, NEST_BITS));
        all.map(|(word, bit)| (word, NewDecisions(1 << bit))).filter(move |(_, one)| self.contains(*one))
    }

    /// Decisions that all weights know, because the features that they read describe them: rows of an array in shared memory
    /// that are `pitch` apart are like longer rows. Features describe points that `interleave`, `async` copies, vectors, `lanes` and `slide` too, but weights
    /// that were not trained on them rank them wrongly: of 14 products on an H200, six became 5 to 18 % slower and four 5 to 15 %
    /// faster.
    pub const DESCRIBED: NewDecisions = NewDecisions(1 << 16);

    #[cfg(test)]
    pub(crate) const EXAMPLE: NewDecisions = NewDecisions(1 << 31);

    /// Whether the set contains all of `others`.
    pub fn contains(self, others: NewDecisions) -> bool {
        others.0 & !self.0 == 0
    }
}

/// One bit for each number that is set.
fn bits(numbers: impl Iterator<Item = Option<NonZeroU32>>) -> u32 {
    numbers.enumerate().map(|(position, number)| u32::from(number.is_some()) << position).sum()
}

impl BitOr for NewDecisions {
    type Output = NewDecisions;

    fn bitor(self, other: NewDecisions) -> NewDecisions {
        NewDecisions(self.0 | other.0)
    }
}

/// The features of one kernel: what its stages share, and one row per stage.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KernelFeatures {
    /// The number of launches: the iterations of the loops around the kernel.
    pub launches: f64,
    /// Blocks per launch.
    pub blocks: f64,
    /// The fraction of blocks that extend beyond the edge of the stage and so guard every point.
    pub cut_blocks: f64,
    /// Threads per block.
    pub threads: u32,
    /// Shared memory per block, in bytes.
    pub shared_bytes: u32,
    /// Estimated registers per thread: the largest number of values that are live at once.
    pub registers: u32,
    /// Bytes per thread of per-thread arrays that cannot be in registers.
    pub local_bytes: f64,
    /// Barriers that a block executes.
    pub barriers: f64,
    /// Distinct bytes of global memory that one launch reads.
    pub read_bytes: f64,
    /// Distinct bytes of global memory that one launch writes.
    pub written_bytes: f64,
    /// Expression nodes of the kernel's code, after unrolling and inlining.
    pub nodes: f64,
    /// Decisions of its schedule that some weights do not know.
    pub decisions: NewDecisions,
    /// One row per stage, in execution order.
    pub rows: Vec<StageRow>,
}

#[cfg(test)]
mod tests {
    use warploom_lang::{FuncId, Id};
    use warploom_schedule::{Nest, StageRef};

    use super::*;

    #[test]
    fn all_weights_know_the_pitch_and_nothing_else() {
        let mut nest = Nest::shared(StageRef { func: FuncId::new(0), stage: 0 });
        nest.numbers.pitch = NonZeroU32::new(33);
        let known = |nest: &Nest| {
            let decisions = NewDecisions::of_kernel(KernelNumbers::default(), [nest].into_iter());
            NewDecisions::DESCRIBED.contains(decisions)
        };
        assert!(known(&nest));
        let changes: [fn(&mut Nest); 7] = [
            |nest| nest.numbers.atomic = true,
            |nest| nest.numbers.interleave = true,
            |nest| nest.numbers.depth = NonZeroU32::new(2),
            |nest| nest.numbers.transpose = true,
            |nest| nest.numbers.vector = true,
            |nest| nest.numbers.lanes = true,
            |nest| nest.numbers.slide = true,
        ];
        for change in changes {
            let mut other = nest.clone();
            change(&mut other);
            assert!(!known(&other));
        }
    }

    #[test]
    fn decisions_have_the_words_of_schedules() {
        let mut nest = Nest::shared(StageRef { func: FuncId::new(0), stage: 0 });
        (nest.numbers.atomic, nest.numbers.slide) = (true, true);
        let kernel = KernelNumbers { blocks: NonZeroU32::new(2) };
        let decisions = NewDecisions::of_kernel(kernel, [&nest].into_iter());
        let words: Vec<&str> = decisions.words().map(|(word, _)| word).collect();
        assert_eq!(words, ["blocks", "atomic", "slide"]);
        assert!(decisions.words().all(|(_, one)| decisions.contains(one) && one != decisions));
    }
}
