//! The features of one kernel.

use std::ops::{AddAssign, BitOr};

use serde::{Deserialize, Serialize};
use warploom_schedule::{NodeId, StageId};

use crate::schema::StageFeatures;

/// What a row of features describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum RowSource {
    /// A stage that has a place in the kernel.
    Stage(StageId),
    /// The only stage of a Func that is inlined into one of the kernel's stages.
    Inlined(StageId),
    /// The copy of an input.
    Staged(NodeId),
}

/// One stage of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct StageRow {
    /// What it describes.
    pub source: RowSource,
    /// The number of the nest that it runs in: its own, or that of the stage it is inlined into or in whose registers
    /// it lives. Nests are numbered in the order they run.
    pub nest: usize,
    /// The features.
    pub features: StageFeatures,
}

/// Where an array lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Memory {
    /// Global memory.
    Global,
    /// One copy a block.
    Shared,
    /// One copy a thread.
    Thread,
}

/// Accesses of one kind to one array, in one full block.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Traffic {
    /// Elements, one an active thread.
    pub elements: f64,
    /// Bytes of those elements.
    pub bytes: f64,
    /// Instructions of warps with at least one active thread.
    pub requests: f64,
    /// Sectors of global memory that the requests touch. 0 in other memory.
    pub sectors: f64,
    /// Times shared memory is accessed for the requests. 0 in other memory.
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

/// What a full block does with one array, as its points are written: before the compiler merges anything.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ArrayTraffic {
    /// Whose array it is.
    pub node: NodeId,
    /// Which of its values.
    pub value: usize,
    /// Where it lives. A Func whose points are summed up in a thread before they go to memory has one array there and one
    /// in the thread.
    pub memory: Memory,
    /// Loads.
    pub loads: Traffic,
    /// Stores.
    pub stores: Traffic,
    /// Whether all its accesses are linear in the loops, so that the numbers are what a block away from the edges
    /// does, and no estimate.
    pub exact: bool,
}

/// A set of schedule decisions that the first weights do not know.
///
/// Weights list those that kernels had in training. A kernel with any other has its analytic cost, so a decision needs no
/// new weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NewDecisions(u32);

impl NewDecisions {
    // One constant for each decision. Weights files contain the bits, so a bit never changes its meaning.
    #[cfg(test)]
    pub(crate) const EXAMPLE: NewDecisions = NewDecisions(1 << 31);

    /// Whether all of `others` are among them.
    pub fn contains(self, others: NewDecisions) -> bool {
        others.0 & !self.0 == 0
    }
}

impl BitOr for NewDecisions {
    type Output = NewDecisions;

    fn bitor(self, other: NewDecisions) -> NewDecisions {
        NewDecisions(self.0 | other.0)
    }
}

/// One kernel: what its stages share, and a row for each of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KernelFeatures {
    /// How often it is launched: iterations of the loops around it.
    pub launches: f64,
    /// Blocks of one launch.
    pub blocks: f64,
    /// The share of the blocks that the edge of the stage cuts: they guard every point.
    pub cut_blocks: f64,
    /// Threads of a block.
    pub threads: u32,
    /// Shared memory of a block, bytes.
    pub shared_bytes: u32,
    /// Registers of a thread, estimated: what its widest point holds at once.
    pub registers: u32,
    /// Bytes of each thread's own arrays that cannot be registers.
    pub local_bytes: f64,
    /// Barriers that a block passes.
    pub barriers: f64,
    /// Distinct bytes of global memory that one launch reads.
    pub read_bytes: f64,
    /// Distinct bytes of global memory that one launch writes.
    pub written_bytes: f64,
    /// Nodes of the kernel's text, unrolled loops and inlined Funcs written out.
    pub nodes: f64,
    /// Decisions of its schedule that some weights do not know.
    pub decisions: NewDecisions,
    /// The stages, in the order they run.
    pub rows: Vec<StageRow>,
}
