//! The tree that represents a schedule.
//!
//! The root holds kernels in launch order. A kernel has, from outside to inside: serial loops *around* it (one
//! launch per iteration), block loops, serial loops *over* the block, thread loops, and serial loops inside a
//! thread. A Func is either inlined into all its consumers, or each of its stages has one place in the tree: as
//! a kernel's own stage (global memory), inside a block or an over-loop (shared or private memory), or inside a
//! thread (registers). Inputs are read from global memory unless they are staged somewhere.

pub(crate) mod edit;
mod numbers;
mod visit;

use std::collections::BTreeSet;
use std::sync::Arc;

use warploom_lang::rewrite::Rewrite;
use warploom_lang::{FuncId, InputId};

use crate::dag::LoopKind;
use crate::id_set::FuncSet;

pub use numbers::{KernelNumbers, NestNumbers, Setting};
pub use warploom_lang::StageRef;

/// A schedule of one pipeline, valid for any size. Its ids are those of the rewritten pipeline.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Schedule {
    /// The changes that turn the original pipeline into the one that the rest describes.
    pub rewrites: Vec<Rewrite>,
    /// Funcs that are inlined into every use.
    pub inlined: BTreeSet<FuncId>,
    /// Kernels, and loops around kernels, in execution order.
    pub root: Vec<RootItem>,
}

impl Schedule {
    /// The inlined Funcs as a bit set, which is cheap to query and copy.
    pub fn inlined_set(&self) -> FuncSet {
        self.inlined.iter().copied().collect()
    }
}

/// The item that a nest computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Item {
    /// One stage of a Func.
    Stage(StageRef),
    /// A copy of the part of an input that is read below: a staged input.
    Input(InputId),
}

impl Item {
    /// The stage, or `None` for a staged input.
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

/// An item at the root of a schedule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RootItem {
    /// A kernel that is launched once per iteration of the loops around it. Schedules and plans share it,
    /// copy-on-write.
    Kernel(Arc<Kernel>),
    /// Loops around kernels.
    Around(Loops<RootItem>),
}

impl RootItem {
    /// A kernel that computes only one stage, with loops around it and over its blocks.
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

    /// A kernel with one block that computes all of a stage by a flat loop.
    pub fn single(stage: StageRef) -> RootItem {
        RootItem::lone(stage, Vec::new(), Vec::new(), Vec::new(), None)
    }

    /// The loops, or `None` for a kernel.
    pub fn around(&self) -> Option<&Loops<RootItem>> {
        match self {
            RootItem::Kernel(_) => None,
            RootItem::Around(around) => Some(around),
        }
    }
}

impl From<Kernel> for RootItem {
    fn from(kernel: Kernel) -> RootItem {
        RootItem::Kernel(Arc::new(kernel))
    }
}

impl From<Loops<RootItem>> for RootItem {
    fn from(around: Loops<RootItem>) -> RootItem {
        RootItem::Around(around)
    }
}

/// Serial loops over reduction variables, outermost first, and the body of each iteration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Loops<T> {
    /// The loops, outermost first; never empty.
    pub loops: Vec<ReductionTile>,
    /// The items of one iteration, in order.
    pub body: Vec<T>,
}

impl<T: From<Loops<T>>> Loops<T> {
    /// A kernel or nest inside loops; without loops, the kernel or nest itself.
    pub fn holding(loops: Vec<ReductionTile>, inner: impl Into<T>) -> T {
        match loops.is_empty() {
            true => inner.into(),
            false => Loops { loops, body: vec![inner.into()] }.into(),
        }
    }
}

/// A serial loop over a reduction variable in steps of `size`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReductionTile {
    /// The stage that has the variable.
    pub stage: StageRef,
    /// The number of the variable in the stage's reduction domain.
    pub var: usize,
    /// The number of values per iteration.
    pub size: Size,
}

impl ReductionTile {
    /// The variable that the loop runs over, without the size.
    pub fn variable(&self) -> (StageRef, usize) {
        (self.stage, self.var)
    }
}

/// How much of a dimension is inside a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Size {
    /// This many values, at least 1.
    Of(u32),
    /// The whole dimension.
    All,
}

impl Size {
    /// The number of values for a dimension of `extent`, at least 1.
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

/// A loop, and how much of it is inside a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tile {
    /// The loop of the stage that is tiled.
    pub dim: LoopKind,
    /// The extent of the tile along the loop.
    pub size: Size,
}

/// A kernel of a schedule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Kernel {
    /// The stage whose points the blocks cover. It is the last one in the kernel's body, where its own
    /// reduction variables may run over the block.
    pub stage: StageRef,
    /// The part of the stage that one block computes. Dimensions that are not listed are entirely
    /// inside.
    pub block: Vec<Tile>,
    /// Decisions that are a single number, such as `blocks`.
    pub numbers: KernelNumbers,
    /// The items of a block, in order.
    pub body: Vec<BlockItem>,
}

/// An item in the body of a block.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum BlockItem {
    /// A stage or staged input, shared like kernels.
    Nest(Arc<Nest>),
    /// Serial loops over the block.
    Over(Loops<BlockItem>),
}

impl BlockItem {
    /// The nest, or `None` for loops.
    pub fn nest(&self) -> Option<&Nest> {
        match self {
            BlockItem::Nest(nest) => Some(nest),
            BlockItem::Over(_) => None,
        }
    }

    /// The nest for modification, or `None` for loops.
    pub fn nest_mut(&mut self) -> Option<&mut Nest> {
        match self {
            BlockItem::Nest(nest) => Some(Arc::make_mut(nest)),
            BlockItem::Over(_) => None,
        }
    }

    /// The loops, or `None` for a nest.
    pub fn over(&self) -> Option<&Loops<BlockItem>> {
        match self {
            BlockItem::Nest(_) => None,
            BlockItem::Over(over) => Some(over),
        }
    }
}

impl From<Arc<Nest>> for BlockItem {
    fn from(nest: Arc<Nest>) -> BlockItem {
        BlockItem::Nest(nest)
    }
}

impl From<Nest> for BlockItem {
    fn from(nest: Nest) -> BlockItem {
        BlockItem::Nest(Arc::new(nest))
    }
}

impl From<Loops<BlockItem>> for BlockItem {
    fn from(over: Loops<BlockItem>) -> BlockItem {
        BlockItem::Over(over)
    }
}

/// A stage or staged input, distributed over the threads of a block.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Nest {
    /// The stage or input copy that the nest computes.
    pub item: Item,
    /// How threads share the points.
    pub mapping: Mapping,
    /// Where the result is stored.
    pub storage: Storage,
    /// Decisions that are a single number or word, such as `pitch`.
    pub numbers: NestNumbers,
    /// Funcs that each thread computes right before this stage, for its own points, producers first. A
    /// Func with updates runs all its stages here, with its reduction loops outside its points.
    pub registers: Vec<FuncId>,
}

impl Nest {
    /// A kernel's own stage with a flat loop.
    pub fn global(stage: StageRef) -> Nest {
        Nest::flat(stage, Storage::Global)
    }

    /// A stage or staged input in shared memory with a flat loop.
    pub fn shared(item: impl Into<Item>) -> Nest {
        Nest::flat(item, Storage::Shared)
    }

    /// A stage in private memory of each thread. The mapping is flat, so the nest is legal only after
    /// it gets thread tiles.
    pub fn private(stage: StageRef) -> Nest {
        Nest::flat(stage, Storage::Private)
    }

    fn flat(item: impl Into<Item>, storage: Storage) -> Nest {
        let (item, mapping, numbers) = (item.into(), Mapping::Flat, NestNumbers::default());
        Nest { item, mapping, storage, numbers, registers: Vec::new() }
    }

    /// Whether its rounds are unrolled inside the reduction (interleaved register tiles).
    pub fn interleaves(&self) -> bool {
        self.numbers.interleave && self.mapping.unrolls()
    }

    /// The same nest with another mapping.
    #[must_use]
    pub fn mapped(self, mapping: impl Into<Mapping>) -> Nest {
        Nest { mapping: mapping.into(), ..self }
    }
}

/// How the threads of a block share the points of a stage.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Mapping {
    /// One loop over all points: thread t computes points t, t + threads, ... Values of reduction variables that no
    /// outer loop takes run at each point.
    Flat,
    /// Each thread computes tiles of points.
    Threads(ThreadTiles),
}

impl Mapping {
    /// The tiles of each thread, or `None` if the mapping is flat.
    pub fn tiles(&self) -> Option<&ThreadTiles> {
        match self {
            Mapping::Flat => None,
            Mapping::Threads(tiles) => Some(tiles),
        }
    }

    /// The tiles of each thread for modification, or `None` if the mapping is flat.
    pub fn tiles_mut(&mut self) -> Option<&mut ThreadTiles> {
        match self {
            Mapping::Flat => None,
            Mapping::Threads(tiles) => Some(tiles),
        }
    }

    /// Whether the mapping is one loop over all points.
    pub fn is_flat(&self) -> bool {
        self.tiles().is_none()
    }

    /// Whether the serial loops are unrolled.
    pub fn unrolls(&self) -> bool {
        self.tiles().is_some_and(|tiles| tiles.unroll)
    }
}

impl From<ThreadTiles> for Mapping {
    fn from(tiles: ThreadTiles) -> Mapping {
        Mapping::Threads(tiles)
    }
}

/// `None` means flat.
impl From<Option<ThreadTiles>> for Mapping {
    fn from(tiles: Option<ThreadTiles>) -> Mapping {
        tiles.map_or(Mapping::Flat, Mapping::Threads)
    }
}

/// Thread loops with serial loops inside.
///
/// Along a dimension, thread `i` of `threads` computes `serial` adjacent points, starting at `i * serial`. If
/// `threads * serial` is less than the number of points, all threads continue with the next points, in rounds. Values
/// of a reduction variable that no outer loop takes run in each thread. If `serial` names the variable, it runs in
/// parts of `serial` values, with the loop over the parts outside.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ThreadTiles {
    /// Threads along each dimension, fastest first. Dimensions that are not listed have 1 thread;
    /// [`Size::All`] means one thread per point.
    pub threads: Vec<Tile>,
    /// Points per thread, outermost loop first. Dimensions that are not listed have 1 point; [`Size::All`] means an
    /// even share per thread. Reduction variables that are not listed run outermost, in definition order, over the
    /// values that no outer loop takes.
    pub serial: Vec<Tile>,
    /// Whether the serial loops over pure dimensions, and over listed reduction variables of known
    /// size, are unrolled.
    pub unroll: bool,
}

/// The memory that holds the result of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Storage {
    /// Global memory, for a kernel's own stage.
    Global,
    /// Shared memory of the block.
    Shared,
    /// Private memory of each thread, as long as the block runs.
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

    /// Whether the result is in global memory.
    pub fn is_global(self) -> bool {
        self == Storage::Global
    }

    /// Whether the result is in shared memory.
    pub fn is_shared(self) -> bool {
        self == Storage::Shared
    }

    /// Whether the result is in private memory of each thread.
    pub fn is_private(self) -> bool {
        self == Storage::Private
    }
}
