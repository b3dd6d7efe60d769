//! The state of lowering for one kernel.
//!
//! | field | who changes it |
//! | --- | --- |
//! | `builder` | every pass: it makes and simplifies all expressions |
//! | `symbols` | `kernel` (blocks, loops over them) and `nest` (threads): the variables that move boxes |
//! | `arrays`, `globals`, `kept` | `arrays`: the declared arrays |
//! | `local` | `arrays` and `accumulate`: the arrays of values at the current position |
//! | `slices` | `ahead`: which slice is being lowered |
//! | `carried` | `carry`, within one nest |
//! | `inlined` | `value`, within one nest |
//! | `scalars` | `sizes`: numbers that depend on the sizes of a launch |
//! | `shuffles` | `shuffle`, within one nest |
//! | `vectors` | `vector` |
//! | `axes` | `kernel`; read by `versions` |
//! | `origins` | `kernel` and `versions`: the places of the statements so far |
//! | `points` | `touch` |

use ahash::AHashMap;
use smallvec::SmallVec;
use tracing::debug_span;
use warploom_lang::affine::Interval;
use warploom_lang::{FuncId, IdVec, InputId, Type};
use warploom_plan::{Barriers, KernelId, KernelPlan, LoopId, Symbol};
use warploom_schedule::{Item, StageRef};

use crate::builder::Builder;
use crate::ir::{Array, ArrayId, BufferId, Leaf, NodeId, Origin};
use crate::lower::carry::Carried;
use crate::lower::context::Context;
use crate::lower::error::LowerError;
use crate::lower::keep::Keeping;
use crate::lower::layout::Layout;
use crate::lower::shuffle::Shuffles;
use crate::lower::sizes::Scalars;
use crate::points::KernelPoints;

/// The key of an inlined value: Func, value number, coordinates.
pub(crate) type InlinedAt = (FuncId, usize, SmallVec<[NodeId; 4]>);

/// The source of a read: a Func or an input.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Read {
    Func(FuncId),
    Input(InputId),
}

/// The source from which readers of an item read.
pub(crate) fn read_of(item: Item) -> Read {
    match item {
        Item::Stage(stage) => Read::Func(stage.func),
        Item::Input(input) => Read::Input(input),
    }
}

/// The purpose of an array of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kept {
    /// All of a Func or input that lives in the block or thread.
    Whole(Read),
    /// A thread's current points of a stage.
    Tile(StageRef),
}

/// The elements of an array that a thread has in registers: those that it moves by vectors in one loop, or those of a
/// shared array that it keeps over loops.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct VectorKey {
    /// The buffer or shared array.
    pub array: ArrayId,
    pub elements: u32,
    /// The number of the access among all accesses of the array in the loop.
    pub number: usize,
}

/// The array that holds a value, and its layout.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub array: ArrayId,
    pub layout: Layout,
    /// The slice of the array, if it has several. Slices are the last dimension of the layout.
    pub slice: Option<NodeId>,
}

impl Stored {
    /// The index of the element at a point.
    pub fn index(&self, builder: &mut Builder, at: &[NodeId]) -> NodeId {
        match self.slice {
            None => self.layout.index(builder, at),
            Some(slice) => self.layout.index(builder, &[at, &[slice]].concat()),
        }
    }
}

/// The blocks along one axis of the grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GridAxis {
    /// The block's index.
    pub index: NodeId,
    /// The symbol of the block's index in footprints.
    pub symbol: Symbol,
    /// The number of blocks.
    pub count: i64,
    /// The number of leading blocks that the end of the image does not cut.
    pub full: i64,
    /// The number of blocks at the sizes that the kernel is scheduled for.
    pub typical_count: i64,
}

#[derive(Clone)]
pub(crate) struct KernelLowering<'a> {
    pub context: &'a Context<'a>,
    pub builder: Builder,
    pub plan: &'a KernelPlan,
    pub arrays: IdVec<ArrayId, Array>,
    pub inlined: AHashMap<InlinedAt, NodeId>,
    pub shuffles: Shuffles,
    /// The scalars of the kernel.
    pub scalars: Scalars,
    /// The arrays of buffers.
    pub globals: AHashMap<BufferId, Stored>,
    /// The arrays of values that live in the block or thread, at the position that is being
    /// lowered.
    pub local: AHashMap<(Read, usize), Stored>,
    /// The arrays of the block and the thread, by purpose and value number.
    pub kept: AHashMap<(Kept, usize), ArrayId>,
    /// The per-thread arrays for vectors and for values kept over loops. Loops and versions of a block share them.
    pub vectors: AHashMap<VectorKey, ArrayId>,
    /// The values of the symbols in footprints, at the position that is being lowered.
    pub symbols: AHashMap<Symbol, NodeId>,
    /// The number of the slice that is being lowered, by the first of the loops that it is pipelined over.
    pub slices: AHashMap<LoopId, NodeId>,
    /// The loads that are hoisted out of the loops that are being lowered.
    pub keeping: Option<Keeping>,
    /// The values of the thread variables of the nest that is being lowered.
    pub digits: AHashMap<NodeId, NodeId>,
    /// The values that the current scan wrote last.
    pub carried: Option<Carried>,
    threads: u32,
    pub barriers: Barriers,
    /// The axes of the grid with more than one block.
    pub axes: Vec<GridAxis>,
    /// The origins of the block's statements, in textual order.
    pub origins: Vec<Origin>,
    /// The points that accesses touch, if requested.
    pub points: Option<KernelPoints>,
}

impl<'a> KernelLowering<'a> {
    pub fn new(
        context: &'a Context<'a>,
        id: KernelId,
        points: Option<KernelPoints>,
    ) -> Result<KernelLowering<'a>, LowerError> {
        let plan = &context.plan.kernels[id];
        let name = stage_name(context, plan.kernel.stage);
        let mut builder = Builder::default();
        let mut symbols = AHashMap::new();
        // Loops that run once are not emitted.
        let around = plan.around.iter().map(|id| (*id, context.plan.loops[*id].count));
        for (level, (id, count)) in around.filter(|(_, count)| *count > 1).enumerate() {
            let level = within(&name, "loops around it", level as u64, u8::MAX.into())?;
            let range = Interval::new(0, builder.fitted(count - 1).into());
            let iteration = builder.leaf(Leaf::Iteration(level), Type::I32, Some(range));
            symbols.insert(Symbol::Loop(id), iteration);
        }
        let limit = context.problem.device().threads.per_block.into();
        Ok(KernelLowering {
            context,
            builder,
            plan,
            arrays: IdVec::new(),
            inlined: AHashMap::new(),
            shuffles: Shuffles::default(),
            scalars: Scalars::default(),
            globals: AHashMap::new(),
            local: AHashMap::new(),
            kept: AHashMap::new(),
            vectors: AHashMap::new(),
            symbols,
            slices: AHashMap::new(),
            keeping: None,
            digits: AHashMap::new(),
            carried: None,
            threads: within(&name, "threads in a block", plan.threads, limit)?,
            barriers: debug_span!("barriers").in_scope(|| context.plan.barriers(id)),
            axes: Vec::new(),
            origins: Vec::new(),
            points,
        })
    }

    /// The kernel's name: that of its stage.
    pub fn name(&self) -> String {
        stage_name(self.context, self.plan.kernel.stage)
    }

    /// Threads per block.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// The thread's index in its block.
    pub fn thread(&mut self) -> NodeId {
        let last = i64::from(self.threads()) - 1;
        self.builder.leaf(Leaf::Thread, Type::I32, Some(Interval::new(0, last)))
    }
}

/// The name of the stage that a kernel computes.
fn stage_name(context: &Context<'_>, StageRef { func, stage }: StageRef) -> String {
    warploom_lang::ir::stage_name(&context.pipeline().funcs()[func], stage)
}

/// Converts a number that must not exceed a limit.
pub(crate) fn within<T: TryFrom<u64>>(
    kernel: &str,
    what: &'static str,
    needed: u64,
    limit: u64,
) -> Result<T, LowerError> {
    let allowed = Some(needed).filter(|needed| *needed <= limit).and_then(|needed| T::try_from(needed).ok());
    allowed.ok_or_else(|| LowerError::Limit { kernel: kernel.to_string(), what, needed, limit })
}
