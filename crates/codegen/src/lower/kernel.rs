//! One kernel: its grid, and what a block runs.

use ahash::{AHashMap, AHashSet};
use smallvec::SmallVec;
use warploom_lang::op::BinaryOp;
use warploom_lang::{FuncId, IdVec, Type};
use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{
    self, BlockItem, Item, KernelFootprint, Loops, Nest, Path, StageRef, Storage, Symbol, Tile,
};

use crate::builder::{Bounds, Builder};
use crate::ir::{Array, ArrayId, BufferId, Kernel, Leaf, NodeId, Stmt};
use crate::lower::arrays::{Kept, Read, Stored};
use crate::lower::barriers::{Segment, with_barriers};
use crate::lower::versions::Axis;
use crate::lower::{Context, CountedLoop, LowerError};

/// An inlined value: the Func, which value, where.
type InlinedAt = (FuncId, usize, SmallVec<[NodeId; 4]>);

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
    /// The arrays through which threads of a block exchange something.
    pub exchanged: AHashSet<ArrayId>,
    /// What moves boxes, at the place that is being lowered.
    pub symbols: AHashMap<Symbol, NodeId>,
    kernel: &'a schedule::Kernel,
    path: Path,
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
    ) -> KernelLowering<'a> {
        let footprint = context.footprints.kernels.iter().find(|footprint| footprint.path == path);
        let mut builder = Builder::default();
        let mut symbols = AHashMap::new();
        // Loops that run once are none.
        for (level, counted) in around.iter().filter(|counted| counted.count > 1).enumerate() {
            let range = Bounds::new(0, counted.count - 1);
            let iteration = builder.leaf(Leaf::Iteration(level as u8), Type::I32, Some(range));
            symbols.insert(Symbol::Loop(counted.number), iteration);
        }
        KernelLowering {
            context,
            builder,
            footprint: footprint.expect("every kernel of a schedule has a footprint"),
            arrays: IdVec::new(),
            inlined: AHashMap::new(),
            globals: AHashMap::new(),
            local: AHashMap::new(),
            kept: AHashMap::new(),
            exchanged: AHashSet::new(),
            symbols,
            kernel,
            path,
            axes: Vec::new(),
        }
    }

    pub fn lower(mut self) -> Result<Kernel, LowerError> {
        let grid = self.grid();
        let body = self.versions()?;
        let kernel = Kernel {
            name: self.name(),
            grid,
            threads: self.threads(),
            arrays: self.arrays,
            vars: self.builder.vars,
            exprs: self.builder.exprs,
            body,
        };
        check_limits(&kernel, self.context)?;
        Ok(kernel)
    }

    /// The kernel's name: that of its stage.
    pub fn name(&self) -> String {
        let StageRef { func, stage } = self.kernel.stage;
        warploom_lang::ir::stage_name(&self.context.pipeline.funcs()[func], stage)
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.footprint.threads as u32
    }

    /// The thread's index in its block.
    pub fn thread(&mut self) -> NodeId {
        let last = i64::from(self.threads()) - 1;
        self.builder.leaf(Leaf::Thread, Type::I32, Some(Bounds::new(0, last)))
    }

    /// The grid; makes the block's index along each tile known.
    fn grid(&mut self) -> [u32; 3] {
        let tiles: Vec<(Tile, i64)> =
            self.kernel.block.iter().copied().zip(self.footprint.blocks.iter().copied()).collect();
        let split: Vec<(Tile, i64)> = tiles.into_iter().filter(|(_, count)| *count > 1).collect();
        let limits = self.context.device.threads.grid_dims;
        if self.footprint.has_axes(limits) {
            let mut grid = [1; 3];
            for (axis, (tile, count)) in split.into_iter().enumerate() {
                grid[axis] = count as u32;
                let index = self.block_leaf(axis, count);
                self.symbols.insert(Symbol::Block(tile.dim), index);
                let (extent, size) = self.tile_extent(tile);
                self.axes.push(Axis { index, count, full: extent / size });
            }
            return grid;
        }
        let total: i64 = split.iter().map(|(_, count)| count).product();
        let mut rest = self.block_leaf(0, total);
        for (tile, count) in split {
            let count = self.builder.int(count);
            let index = self.builder.binary(BinaryOp::Mod, rest, count);
            self.symbols.insert(Symbol::Block(tile.dim), index);
            rest = self.builder.binary(BinaryOp::Div, rest, count);
        }
        [total as u32, 1, 1]
    }

    fn block_leaf(&mut self, axis: usize, count: i64) -> NodeId {
        self.builder.leaf(Leaf::Block(axis as u8), Type::I32, Some(Bounds::new(0, count - 1)))
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
        let segments = self.items(&self.kernel.body, &self.path.clone())?;
        Ok(with_barriers(segments, &self.builder.exprs, &self.exchanged))
    }

    fn items(&mut self, items: &'a [BlockItem], path: &Path) -> Result<Vec<Segment>, LowerError> {
        let outside = self.local.clone();
        let mut segments = Vec::new();
        for (i, item) in items.iter().enumerate() {
            match item {
                BlockItem::Nest(nest) => segments.extend(self.item(nest, &path.child(i))?),
                BlockItem::Over(over) => segments.extend(self.over(over, &path.child(i))?),
            }
        }
        // Copies of inputs are read only where they stand.
        self.local.retain(|key, _| matches!(key, (Read::Func(_), _)) || outside.contains_key(key));
        Ok(segments)
    }

    fn item(&mut self, nest: &Nest, path: &Path) -> Result<Option<Segment>, LowerError> {
        let context = self.context;
        let footprint = match context.footprints.nest(path) {
            Some(footprint) => footprint,
            // What nobody reads need not be computed.
            None => return Ok(None),
        };
        if nest.storage != Storage::Global {
            self.allocate(nest, footprint);
        }
        if let Item::Stage(stage) = nest.item {
            if context.is_idle(stage) {
                return Ok(None);
            }
            let loops = footprint.threads.iter().flatten();
            if loops.into_iter().any(|dim| dim.threads > 1 && matches!(dim.dim, LoopKind::Reduction(_))) {
                self.exchange(stage.func)?;
            }
        }
        Ok(Some(Segment::Nest(self.nest(nest, footprint)?)))
    }

    /// Other threads touch what a thread computed of a Func: where they share a reduction variable, not every
    /// point is always the same thread's.
    fn exchange(&mut self, func: FuncId) -> Result<(), LowerError> {
        for value in 0..self.context.pipeline.funcs()[func].types.len() {
            let array = self.stored(Read::Func(func), value)?.array;
            self.exchanged.insert(array);
        }
        Ok(())
    }

    /// Loops over the block.
    fn over(&mut self, over: &'a Loops<BlockItem>, path: &Path) -> Result<Vec<Segment>, LowerError> {
        let mut loops = Vec::new();
        for (tile, CountedLoop { number, count }) in over.loops.iter().zip(self.context.loops_at(path)) {
            if count > 1 {
                let stage = &self.context.pipeline.funcs()[tile.stage.func].stages[tile.stage.stage];
                let var = self.builder.var(format!("{}_over", stage.domain[tile.var].name));
                let range = Bounds::new(0, count - 1);
                let iteration = self.builder.leaf(Leaf::Var(var), Type::I32, Some(range));
                self.symbols.insert(Symbol::Loop(number), iteration);
                loops.push((var, count as u32));
            }
        }
        let body = self.items(&over.body, path)?;
        let looped = |body, (var, count)| vec![Segment::Loop { var, count, body }];
        Ok(loops.into_iter().rev().fold(body, looped))
    }
}

fn check_limits(kernel: &Kernel, context: &Context<'_>) -> Result<(), LowerError> {
    let device = context.device;
    let checks = [
        ("threads in a block", u64::from(kernel.threads), u64::from(device.threads.per_block)),
        ("bytes of shared memory", kernel.shared_bytes() as u64, device.shared.per_block_opt_in as u64),
    ];
    for (what, needed, limit) in checks {
        if needed > limit {
            return Err(LowerError::Limit { kernel: kernel.name.clone(), what, needed, limit });
        }
    }
    Ok(())
}
