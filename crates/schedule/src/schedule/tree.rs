//! The tree of decisions that a schedule is.
//!
//! Root holds kernels in launch order. A kernel is, from the outside in: serial loops *around* it (one launch
//! an iteration), block loops, serial loops *over* the block, thread loops, serial loops inside a thread. A
//! Func is inlined into all its consumers, or each of its stages stands at one place of the tree: as a kernel's
//! own stage (global memory), inside a block or an over-loop (shared or private memory), or inside a
//! thread (registers). Inputs are read from global memory unless they are staged somewhere.

pub(in crate::schedule) mod edit;
mod numbers;
mod visit;

use std::collections::BTreeSet;

use warploom_lang::{FuncId, InputId};

use crate::dag::LoopKind;

pub use numbers::{KernelNumbers, NestNumbers};

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

impl Item {
    /// The stage, unless it is a copy of an input.
    pub fn stage(self) -> Option<StageRef> {
        match self {
            Item::Stage(stage) => Some(stage),
            Item::Input(_) => None,
        }
    }
}

impl From<StageRef> for Item {
    fn from(stage: StageRef) -> Item {
        Item::Stage(stage)
    }
}

impl From<InputId> for Item {
    fn from(input: InputId) -> Item {
        Item::Input(input)
    }
}

/// Something that runs at root.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RootItem {
    /// A kernel.
    Kernel(Kernel),
    /// Loops around kernels.
    Around(Loops<RootItem>),
}

impl RootItem {
    /// A kernel that computes one stage and nothing else, in loops around it and over its blocks.
    pub fn lone(
        stage: StageRef,
        around: Vec<ReductionTile>,
        block: Vec<Tile>,
        over: Vec<ReductionTile>,
        mapping: impl Into<Mapping>,
    ) -> RootItem {
        let body = vec![Loops::holding(over, Nest::global(stage).mapped(mapping))];
        Loops::holding(around, Kernel { stage, block, numbers: KernelNumbers::default(), body })
    }

    /// One block that computes all of a stage by a flat loop.
    pub fn single(stage: StageRef) -> RootItem {
        RootItem::lone(stage, Vec::new(), Vec::new(), Vec::new(), None)
    }

    /// The loops, unless it is a kernel.
    pub fn around(&self) -> Option<&Loops<RootItem>> {
        match self {
            RootItem::Kernel(_) => None,
            RootItem::Around(around) => Some(around),
        }
    }
}

impl From<Kernel> for RootItem {
    fn from(kernel: Kernel) -> RootItem {
        RootItem::Kernel(kernel)
    }
}

impl From<Loops<RootItem>> for RootItem {
    fn from(around: Loops<RootItem>) -> RootItem {
        RootItem::Around(around)
    }
}

/// Serial loops over reduction variables, the outermost first, and what runs in each iteration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Loops<T> {
    /// The loops, at least one.
    pub loops: Vec<ReductionTile>,
    /// What they hold.
    pub body: Vec<T>,
}

impl<T: From<Loops<T>>> Loops<T> {
    /// A kernel or nest inside loops, or bare if there are none.
    pub fn holding(loops: Vec<ReductionTile>, inner: impl Into<T>) -> T {
        match loops.is_empty() {
            true => inner.into(),
            false => Loops { loops, body: vec![inner.into()] }.into(),
        }
    }
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

impl ReductionTile {
    /// What it moves through, whatever its size.
    pub fn variable(&self) -> (StageRef, usize) {
        (self.stage, self.var)
    }
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
    /// Decisions that are numbers.
    pub numbers: KernelNumbers,
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

impl BlockItem {
    /// The nest, unless it is loops.
    pub fn nest(&self) -> Option<&Nest> {
        match self {
            BlockItem::Nest(nest) => Some(nest),
            BlockItem::Over(_) => None,
        }
    }

    /// The nest to be changed, unless it is loops.
    pub fn nest_mut(&mut self) -> Option<&mut Nest> {
        match self {
            BlockItem::Nest(nest) => Some(nest),
            BlockItem::Over(_) => None,
        }
    }

    /// The loops, unless it is a nest.
    pub fn over(&self) -> Option<&Loops<BlockItem>> {
        match self {
            BlockItem::Nest(_) => None,
            BlockItem::Over(over) => Some(over),
        }
    }
}

impl From<Nest> for BlockItem {
    fn from(nest: Nest) -> BlockItem {
        BlockItem::Nest(nest)
    }
}

impl From<Loops<BlockItem>> for BlockItem {
    fn from(over: Loops<BlockItem>) -> BlockItem {
        BlockItem::Over(over)
    }
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
    /// Decisions that are numbers.
    pub numbers: NestNumbers,
    /// Funcs computed in each thread just before this stage, for the points the thread computes, producers
    /// first. A Func with updates runs all its stages here, its reduction loops outside its points.
    pub registers: Vec<FuncId>,
}

impl Nest {
    /// The own stage of a kernel, spread by a flat loop.
    pub fn global(stage: StageRef) -> Nest {
        Nest::flat(stage, Storage::Global)
    }

    /// A stage or copy in shared memory, spread by a flat loop.
    pub fn shared(item: impl Into<Item>) -> Nest {
        Nest::flat(item, Storage::Shared)
    }

    /// A stage that each thread keeps for itself. It is flat, and legal only with thread tiles.
    pub fn private(stage: StageRef) -> Nest {
        Nest::flat(stage, Storage::Private)
    }

    fn flat(item: impl Into<Item>, storage: Storage) -> Nest {
        let (item, mapping, numbers) = (item.into(), Mapping::Flat, NestNumbers::default());
        Nest { item, mapping, storage, numbers, registers: Vec::new() }
    }

    /// The same nest, with its points shared in another way.
    #[must_use]
    pub fn mapped(self, mapping: impl Into<Mapping>) -> Nest {
        Nest { mapping: mapping.into(), ..self }
    }
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

impl Mapping {
    /// The tiles of each thread, unless it is flat.
    pub fn tiles(&self) -> Option<&ThreadTiles> {
        match self {
            Mapping::Flat => None,
            Mapping::Threads(tiles) => Some(tiles),
        }
    }

    /// The tiles of each thread to be changed, unless it is flat.
    pub fn tiles_mut(&mut self) -> Option<&mut ThreadTiles> {
        match self {
            Mapping::Flat => None,
            Mapping::Threads(tiles) => Some(tiles),
        }
    }

    /// Whether it is one loop over all points.
    pub fn is_flat(&self) -> bool {
        self.tiles().is_none()
    }

    /// Whether serial loops are unrolled.
    pub fn unrolls(&self) -> bool {
        self.tiles().is_some_and(|tiles| tiles.unroll)
    }
}

impl From<ThreadTiles> for Mapping {
    fn from(tiles: ThreadTiles) -> Mapping {
        Mapping::Threads(tiles)
    }
}

/// Flat without tiles.
impl From<Option<ThreadTiles>> for Mapping {
    fn from(tiles: Option<ThreadTiles>) -> Mapping {
        tiles.map_or(Mapping::Flat, Mapping::Threads)
    }
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

impl Storage {
    /// `global`, `shared` or `private`.
    pub fn name(self) -> &'static str {
        match self {
            Storage::Global => "global",
            Storage::Shared => "shared",
            Storage::Private => "private",
        }
    }

    /// Whether it is global memory.
    pub fn is_global(self) -> bool {
        self == Storage::Global
    }

    /// Whether it is shared memory.
    pub fn is_shared(self) -> bool {
        self == Storage::Shared
    }

    /// Whether it is memory of each thread's own.
    pub fn is_private(self) -> bool {
        self == Storage::Private
    }
}
