//! One kernel: its grid, and what a block runs.

use ahash::AHashMap;
use smallvec::SmallVec;
use tracing::debug_span;
use warploom_lang::affine::Interval;
use warploom_lang::op::BinaryOp;
use warploom_lang::{FuncId, IdVec, Type};
use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{
    self, Barriers, BlockItem, Item, KernelFootprint, LoopBarriers, Loops, Nest, Path, StageRef, Storage,
    Symbol, Tile,
};
use warploom_target::Device;

use crate::builder::Builder;
use crate::ir::{Array, ArrayId, BufferId, Kernel, Leaf, NodeId, Stmt, VarId};
use crate::lower::arrays::{Kept, Read, Stored};
use crate::lower::versions::Axis;
use crate::lower::{Context, CountedLoop, LowerError};

/// An inlined value: the Func, which value, where.
pub(crate) type InlinedAt = (FuncId, usize, SmallVec<[NodeId; 4]>);

/// A kernel without what it does.
pub(crate) struct Shape {
    pub name: String,
    pub grid: [u32; 3],
    pub threads: u32,
    pub arrays: IdVec<ArrayId, Array>,
}

#[derive(Clone)]
pub(crate) struct KernelLowering<'a> {
    pub context: &'a Context<'a>,
    pub builder: Builder,
    pub footprint: &'a KernelFootprint,
    pub arrays: IdVec<ArrayId, Array>,
    pub inlined: AHashMap<InlinedAt, NodeId>,
    /// Where buffers can be read.
    pub globals: AHashMap<BufferId, Stored>,
    /// Where values that live in the block or thread can be read, at the place that is being lowered.
    pub local: AHashMap<(Read, usize), Stored>,
    /// The arrays of the block and the thread, by what they are for and which value they hold.
    pub kept: AHashMap<(Kept, usize), ArrayId>,
    /// What moves boxes, at the place that is being lowered.
    pub symbols: AHashMap<Symbol, NodeId>,
    kernel: &'a schedule::Kernel,
    threads: u32,
    path: Path,
    barriers: Barriers,
    /// The axes of the grid along which there are several blocks.
    pub axes: Vec<Axis>,
}

impl<'a> KernelLowering<'a> {
    /// A kernel at a place of the schedule, inside loops around it.
    pub fn new(
        context: &'a Context<'a>,
        kernel: &'a schedule::Kernel,
        path: Path,
        around: &[CountedLoop],
    ) -> Result<KernelLowering<'a>, LowerError> {
        let footprint = context.footprints.kernel(&path).expect("every kernel of a schedule has a footprint");
        let name = stage_name(context, kernel);
        let mut builder = Builder::default();
        let mut symbols = AHashMap::new();
        // Loops that run once are none.
        for (level, counted) in around.iter().filter(|counted| counted.count > 1).enumerate() {
            let level = within(&name, "loops around it", level as u64, u8::MAX.into())?;
            let range = Interval::new(0, builder.fitted(counted.count - 1).into());
            let iteration = builder.leaf(Leaf::Iteration(level), Type::I32, Some(range));
            symbols.insert(Symbol::Loop(counted.number), iteration);
        }
        let limit = context.device.threads.per_block.into();
        Ok(KernelLowering {
            context,
            builder,
            footprint,
            arrays: IdVec::new(),
            inlined: AHashMap::new(),
            globals: AHashMap::new(),
            local: AHashMap::new(),
            kept: AHashMap::new(),
            symbols,
            kernel,
            threads: within(&name, "threads in a block", footprint.threads, limit)?,
            path,
            barriers: debug_span!("barriers").in_scope(|| context.footprints.barriers(kernel, footprint)),
            axes: Vec::new(),
        })
    }

    pub fn lower(mut self) -> Result<Kernel, LowerError> {
        let grid = self.grid()?;
        let body = self.versions()?;
        let shape = Shape { name: self.name(), grid, threads: self.threads, arrays: self.arrays };
        finished(shape, body, self.builder, self.context.device)
    }

    /// The kernel's name: that of its stage.
    pub fn name(&self) -> String {
        stage_name(self.context, self.kernel)
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// The thread's index in its block.
    pub fn thread(&mut self) -> NodeId {
        let last = i64::from(self.threads()) - 1;
        self.builder.leaf(Leaf::Thread, Type::I32, Some(Interval::new(0, last)))
    }

    /// The grid; makes the block's index along each tile known.
    fn grid(&mut self) -> Result<[u32; 3], LowerError> {
        let tiles: Vec<(Tile, i64)> =
            self.kernel.block.iter().copied().zip(self.footprint.blocks.iter().copied()).collect();
        let split: Vec<(Tile, i64)> = tiles.into_iter().filter(|(_, count)| *count > 1).collect();
        let limits = self.context.device.threads.grid_dims;
        if self.footprint.has_axes(limits) {
            let mut grid = [1; 3];
            for ((axis, blocks), (tile, count)) in (0..).zip(&mut grid).zip(split) {
                *blocks = self.builder.count(count);
                let index = self.block_leaf(axis, count);
                self.symbols.insert(Symbol::Block(tile.dim), index);
                let (extent, size) = self.tile_extent(tile);
                self.axes.push(Axis { index, count, full: extent / size });
            }
            return Ok(grid);
        }
        let total = split.iter().fold(1, |total: i64, (_, count)| total.saturating_mul(*count));
        let mut rest = self.block_leaf(0, total);
        for (tile, count) in split {
            let count = self.builder.int(count);
            let index = self.builder.binary(BinaryOp::Mod, rest, count);
            self.symbols.insert(Symbol::Block(tile.dim), index);
            rest = self.builder.binary(BinaryOp::Div, rest, count);
        }
        Ok([block_count(&self.name(), total.unsigned_abs(), self.context.device)?, 1, 1])
    }

    fn block_leaf(&mut self, axis: u8, count: i64) -> NodeId {
        self.builder.leaf(Leaf::Block(axis), Type::I32, Some(Interval::new(0, count - 1)))
    }

    /// How many values a loop of the kernel's stage has, and how many of them a block takes.
    fn tile_extent(&self, tile: Tile) -> (i64, i64) {
        let StageRef { func, stage } = self.kernel.stage;
        let regions = &self.context.regions.funcs[func].stages[stage];
        let extent = match tile.dim {
            LoopKind::Pure(d) => regions.needed[d].extent,
            LoopKind::Reduction(r) => regions.domain[r].extent,
        };
        (extent, tile.size.of(extent))
    }

    /// The nests of a block in order, with barriers between them.
    pub fn block(&mut self) -> Result<Vec<Stmt>, LowerError> {
        debug_span!("nests").in_scope(|| self.items(&self.kernel.body, &self.path.clone(), &mut 0))
    }

    /// Items one after the other; `number` is that of the next nest.
    fn items(
        &mut self,
        items: &'a [BlockItem],
        path: &Path,
        number: &mut usize,
    ) -> Result<Vec<Stmt>, LowerError> {
        let outside = self.local.clone();
        let mut stmts = Vec::new();
        for (i, item) in items.iter().enumerate() {
            match item {
                BlockItem::Nest(nest) => {
                    stmts.extend(barrier(self.barriers.nests[*number]));
                    stmts.extend(self.item(nest, *number)?);
                    *number += 1;
                }
                BlockItem::Over(over) => stmts.extend(self.over(over, &path.child(i), number)?),
            }
        }
        // Copies of inputs are read only where they stand.
        self.local.retain(|key, _| matches!(key, (Read::Func(_), _)) || outside.contains_key(key));
        Ok(stmts)
    }

    fn item(&mut self, nest: &Nest, number: usize) -> Result<Vec<Stmt>, LowerError> {
        let context = self.context;
        let footprint = match &context.footprints.nests[self.footprint.nests.start + number] {
            Some(footprint) => footprint,
            // What nobody reads need not be computed.
            None => return Ok(Vec::new()),
        };
        if nest.storage != Storage::Global {
            self.allocate(nest);
        }
        match nest.item {
            Item::Stage(stage) if context.is_idle(stage) => Ok(Vec::new()),
            _ => self.nest(nest, footprint),
        }
    }

    /// Loops over the block.
    fn over(
        &mut self,
        over: &'a Loops<BlockItem>,
        path: &Path,
        number: &mut usize,
    ) -> Result<Vec<Stmt>, LowerError> {
        let mut loops = Vec::new();
        for (tile, CountedLoop { number: counted, count }) in
            over.loops.iter().zip(self.context.loops_at(path))
        {
            if count > 1 {
                let stage = &self.context.pipeline.funcs()[tile.stage.func].stages[tile.stage.stage];
                let var = self.builder.var(format!("{}_over", stage.domain[tile.var].name));
                let range = Interval::new(0, count - 1);
                let iteration = self.builder.leaf(Leaf::Var(var), Type::I32, Some(range));
                self.symbols.insert(Symbol::Loop(counted), iteration);
                let waits = self.barriers.loops[counted - self.footprint.loops.start];
                loops.push((var, self.builder.count(count), waits));
            }
        }
        let body = self.items(&over.body, path, number)?;
        let looped = |mut body: Vec<Stmt>, (var, count, waits): (VarId, u32, LoopBarriers)| {
            body.extend(barrier(waits.at_end));
            let around = Stmt::For { var, count, unrolled: false, body };
            barrier(waits.before).into_iter().chain([around]).collect()
        };
        Ok(loops.into_iter().rev().fold(body, looped))
    }
}

/// A barrier, where one stands.
fn barrier(stands: bool) -> Option<Stmt> {
    stands.then_some(Stmt::Barrier)
}

/// The name of the stage that a kernel computes.
fn stage_name(context: &Context<'_>, kernel: &schedule::Kernel) -> String {
    let StageRef { func, stage } = kernel.stage;
    warploom_lang::ir::stage_name(&context.pipeline.funcs()[func], stage)
}

/// A kernel of which all is made, unless it needs more than the device has or indices beyond 32 bits.
pub(crate) fn finished(
    shape: Shape,
    body: Vec<Stmt>,
    builder: Builder,
    device: &Device,
) -> Result<Kernel, LowerError> {
    let Shape { name, grid, threads, arrays } = shape;
    if let Some(number) = builder.misfit() {
        return Err(LowerError::Index { kernel: name, number });
    }
    let kernel = Kernel { name, grid, threads, arrays, vars: builder.vars, exprs: builder.exprs, body };
    let limit = device.shared.per_block_opt_in.into();
    within::<u32>(&kernel.name, "bytes of shared memory", kernel.shared_bytes() as u64, limit)?;
    Ok(kernel)
}

/// The blocks of a grid along its first axis, whose numbers are indices.
pub(crate) fn block_count(kernel: &str, blocks: u64, device: &Device) -> Result<u32, LowerError> {
    let limit = device.threads.grid_dims[0].min(i32::MAX.unsigned_abs());
    within(kernel, "blocks", blocks, limit.into())
}

/// A number that must not be larger than a limit of the device.
fn within<T: TryFrom<u64>>(
    kernel: &str,
    what: &'static str,
    needed: u64,
    limit: u64,
) -> Result<T, LowerError> {
    let allowed = Some(needed).filter(|needed| *needed <= limit).and_then(|needed| T::try_from(needed).ok());
    allowed.ok_or_else(|| LowerError::Limit { kernel: kernel.to_string(), what, needed, limit })
}
