//! The tree of decisions that a schedule is.
//!
//! Root holds kernels in launch order. A kernel is, from the outside in: serial loops *around* it (one launch
//! an iteration), block loops, serial loops *over* the block, thread loops, serial loops inside a thread. A
//! Func is inlined into all its consumers, or each of its stages stands at one place of the tree: as a kernel's
//! own stage (global memory), inside a block or an over-loop (shared or private memory), or inside a
//! thread (registers). Inputs are read from global memory unless they are staged somewhere.

use std::collections::BTreeSet;

use warploom_lang::{FuncId, InputId};

use crate::dag::LoopKind;

/// A schedule of one pipeline, at any size.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Schedule {
    /// Funcs that are computed wherever they are used.
    pub inlined: BTreeSet<FuncId>,
    /// Kernels, and loops around kernels, in the order they run.
    pub root: Vec<RootItem>,
}

/// One definition of a Func.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StageRef {
    /// The Func.
    pub func: FuncId,
    /// The number of the definition: 0 is the pure one.
    pub stage: usize,
}

/// What can be computed at a place of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Item {
    /// A stage of a Func.
    Stage(StageRef),
    /// A copy of the part of an input that is read below.
    Input(InputId),
}

/// Something that runs at root.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RootItem {
    /// A kernel.
    Kernel(Kernel),
    /// Loops around kernels.
    Around(Loops<RootItem>),
}

/// Serial loops over reduction variables, the outermost first, and what runs in each iteration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Loops<T> {
    /// The loops, at least one.
    pub loops: Vec<ReductionTile>,
    /// What they hold.
    pub body: Vec<T>,
}

/// A loop that moves through a reduction variable in steps of `size`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReductionTile {
    /// The stage whose variable it is.
    pub stage: StageRef,
    /// The number of the variable in the stage's domain.
    pub var: usize,
    /// How many of its values one iteration takes.
    pub size: Size,
}

/// How much of a dimension lies inside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Size {
    /// This many values, at least 1.
    Of(u32),
    /// All of them.
    All,
}

impl Size {
    /// How many values that is of a dimension of `extent`, at least 1.
    pub fn of(self, extent: i64) -> i64 {
        match self {
            Size::Of(size) => i64::from(size).min(extent).max(1),
            Size::All => extent.max(1),
        }
    }
}

impl From<u32> for Size {
    fn from(size: u32) -> Size {
        Size::Of(size)
    }
}

/// A loop and how much of it lies inside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tile {
    /// The loop of the stage.
    pub dim: LoopKind,
    /// How much of it lies inside.
    pub size: Size,
}

/// One kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Kernel {
    /// The stage whose points the blocks cover. It is the last of the kernel's body, where its own reduction
    /// variables may run over the block.
    pub stage: StageRef,
    /// The part of the stage that one block computes. Dimensions that are not named lie inside whole.
    pub block: Vec<Tile>,
    /// What a block runs, in order.
    pub body: Vec<BlockItem>,
}

/// Something that runs in a block.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum BlockItem {
    /// A stage or a staged input.
    Nest(Nest),
    /// Serial loops over the block.
    Over(Loops<BlockItem>),
}

/// A stage spread over the threads of a block.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Nest {
    /// What is computed.
    pub item: Item,
    /// How threads share the work.
    pub mapping: Mapping,
    /// Where the result lives.
    pub storage: Storage,
    /// Funcs computed in each thread just before this stage, for the points the thread computes, producers
    /// first. A Func with updates runs all its stages here, its reduction loops outside its points.
    pub registers: Vec<FuncId>,
}

/// How the threads of a block share the points of a stage.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Mapping {
    /// One loop over all points: thread t takes points t, t + threads, ... What outer loops leave of the
    /// reduction variables runs whole at each point.
    Flat,
    /// Each thread computes tiles of points.
    Threads(ThreadTiles),
}

/// Thread loops with serial loops inside.
///
/// Along a dimension, thread `i` of `threads` computes `serial` neighbouring points from `i * serial`; if
/// `threads * serial` points are fewer than there are, all threads go on with the next ones. What outer loops
/// leave of a reduction variable runs in each thread: a part of `serial` values where it is named, and the
/// loop over such parts outside.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ThreadTiles {
    /// Threads along each dimension, the fastest first; 1 for dimensions that are not named, one for each
    /// point for [`Size::All`].
    pub threads: Vec<Tile>,
    /// Points of each thread, the outermost loop first; 1 for dimensions that are not named, the thread's even
    /// share for [`Size::All`]. Reduction
    /// variables that are not named run outermost, in the order of their definition, whole or as far as no
    /// outer loop takes them.
    pub serial: Vec<Tile>,
    /// Whether the serial loops over pure dimensions, and the named reduction variables of known size, are
    /// written out.
    pub unroll: bool,
}

/// Where the result of a stage lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Storage {
    /// Global memory: the stage of a kernel.
    Global,
    /// Shared memory of the block.
    Shared,
    /// Each thread's own, for as long as the block runs.
    Private,
}
