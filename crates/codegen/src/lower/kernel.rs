//! Lowers one kernel: its grid and the body of a block.

use tracing::debug_span;
use warploom_lang::affine::Interval;
use warploom_lang::dynamic::Formula;
use warploom_lang::op::BinaryOp;
use warploom_lang::{IdVec, Type};
use warploom_plan::{LoopId, NestId, Sequence, Stepped, Symbol};
use warploom_schedule::{Item, Tile};
use warploom_target::Device;

use crate::builder::Builder;
use crate::ir::{Array, ArrayId, Kernel, Leaf, NodeId, Origin, PlanPart, Scalar, Stmt, every_stmt};
use crate::lower::error::LowerError;
use crate::lower::state::{GridAxis, KernelLowering, Read, within};
use crate::points::KernelPoints;

/// The largest grid, and the factors of the grid at any sizes, if these vary.
type Grid = ([u32; 3], Option<Box<[Vec<Formula>; 3]>>);

/// A kernel without its body.
pub(crate) struct Shape {
    pub name: String,
    pub grid: [u32; 3],
    /// The factors of the grid at any sizes.
    pub blocks: Option<Box<[Vec<Formula>; 3]>>,
    pub scalars: Vec<Scalar>,
    pub threads: u32,
    pub arrays: IdVec<ArrayId, Array>,
    /// Bytes of shared memory, if they depend on the sizes.
    pub shared: Option<Formula>,
}

impl KernelLowering<'_> {
    pub fn lower(mut self) -> Result<(Kernel, Option<KernelPoints>), LowerError> {
        let (grid, blocks) = self.grid()?;
        let body =
            if self.context.problem.sizes().is_some() { self.assumed_versions()? } else { self.versions()? };
        let shared = self.place_shared();
        let origins = std::mem::take(&mut self.origins);
        let points = self.take_points();
        let (name, threads, scalars) = (self.name(), self.threads(), self.scalars.0);
        let shape = Shape { name, grid, blocks, scalars, threads, arrays: self.arrays, shared };
        let device = self.context.problem.device();
        let kernel = finished(shape, body, self.builder, device)?;
        Ok((Kernel { resident: self.plan.resident(device), origins, ..kernel }, points))
    }

    /// Returns the grid, and defines the block's index along each tile.
    fn grid(&mut self) -> Result<Grid, LowerError> {
        let (plan, device) = (self.plan, self.context.problem.device());
        let (item, mut factors) = (Item::Stage(plan.kernel.stage), <[Vec<Formula>; 3]>::default());
        let blocks = |factors| self.context.problem.sizes().map(|_| Box::new(factors));
        if let Some(axes) = plan.axes(device) {
            let mut grid = [1; 3];
            for ((axis, most), (tile, count)) in (0..).zip(&mut grid).zip(axes) {
                *most = self.builder.count(count);
                let index = self.block_leaf(axis, count);
                let symbol = Symbol::Block(tile.dim);
                self.symbols.insert(symbol, index);
                let extent = self.context.problem.loop_range(item, tile.dim).extent;
                let counted = self.blocks_along(tile, count);
                let typical_count = self.context.typical(&counted);
                factors[usize::from(axis)].push(counted);
                let full = extent / tile.size.of(extent);
                self.axes.push(GridAxis { index, symbol, count, full, typical_count });
            }
            return Ok((grid, blocks(factors)));
        }
        let [total, ..] = plan.grid(device);
        let mut rest = self.block_leaf(0, i64::try_from(total).unwrap_or(i64::MAX));
        for (tile, count) in plan.split() {
            let counted = self.blocks_along(tile, count);
            let count = self.scalars.whole(self.context, &mut self.builder, &counted);
            let index = self.builder.binary(BinaryOp::Mod, rest, count);
            self.symbols.insert(Symbol::Block(tile.dim), index);
            rest = self.builder.binary(BinaryOp::Div, rest, count);
            factors[0].push(counted);
        }
        Ok(([block_count(&self.name(), total, device)?, 1, 1], blocks(factors)))
    }

    /// The number of blocks along a tile, at most `count`.
    fn blocks_along(&self, tile: Tile, count: i64) -> Formula {
        let item = Item::Stage(self.plan.kernel.stage);
        let (range, whole) =
            (self.context.loop_range(item, tile.dim), self.context.problem.loop_range(item, tile.dim));
        let blocks = self.context.steps(&range, whole.min, tile.size.of(whole.extent), 1);
        blocks.unwrap_or_else(|| Formula::constant(count))
    }

    fn block_leaf(&mut self, axis: u8, count: i64) -> NodeId {
        self.builder.leaf(Leaf::Block(axis), Type::I32, Some(Interval::new(0, count - 1)))
    }

    /// The nests of a block in order, with barriers between them.
    pub fn block(&mut self) -> Result<Vec<Stmt>, LowerError> {
        self.origins.clear();
        let body = self.plan.body.body();
        debug_span!("nests").in_scope(|| self.items(body))
    }

    /// Lowers items in order.
    pub fn items(&mut self, body: Sequence<'_, NestId>) -> Result<Vec<Stmt>, LowerError> {
        let outside = self.local.clone();
        let mut stmts = Vec::new();
        for item in body {
            match item {
                Stepped::Run(nest) => {
                    stmts.extend(self.barrier(self.barriers.before(nest)));
                    let item = self.item(nest)?;
                    self.note(PlanPart::Nest(nest), every_stmt(&item).count());
                    stmts.extend(item);
                }
                Stepped::Loop(id, body) => stmts.extend(self.over(id, body)?),
            }
        }
        // Copies of inputs are visible only in their own list.
        self.local.retain(|key, _| matches!(key, (Read::Func(_), _)) || outside.contains_key(key));
        Ok(stmts)
    }

    fn item(&mut self, id: NestId) -> Result<Vec<Stmt>, LowerError> {
        let context = self.context;
        let plan = &context.plan.nests[id];
        // A nest without a footprint has no readers and is not computed.
        let Some(footprint) = &plan.footprint else { return Ok(Vec::new()) };
        if !plan.nest.storage.is_global() {
            self.allocate(plan);
        }
        match plan.stage() {
            Some(stage) if context.problem.is_idle(stage) => Ok(Vec::new()),
            // Earlier iterations have copied this slice.
            _ if !context.plan.ahead_of(plan).is_empty() => Ok(Vec::new()),
            _ => self.nest(&plan.nest, footprint),
        }
    }

    /// A loop over a part of the block's body.
    fn over(&mut self, id: LoopId, body: Sequence<'_, NestId>) -> Result<Vec<Stmt>, LowerError> {
        let count = self.context.plan.loops[id].count;
        if count <= 1 {
            return self.items(body);
        }
        let ahead = self.context.plan.copied_ahead(id);
        if !ahead.is_empty() {
            return self.over_slices(id, ahead, body);
        }
        let limit = self.loop_limit(id);
        let var = self.builder.var(self.loop_name(id));
        let iteration = self.builder.leaf(Leaf::Var(var), Type::I32, Some(Interval::new(0, count - 1)));
        self.builder.limit(iteration, limit);
        self.symbols.insert(Symbol::Loop(id), iteration);
        let (times, waits) = (self.builder.count(count), self.barriers.of_loop(id));
        let before = self.barrier(waits.before);
        let (began, noted) = (self.begin_keeping(body, waits.before), self.origins.len());
        self.note(PlanPart::Over(id), 1);
        let mut body = self.items(body)?;
        body.extend(self.barrier(waits.at_end));
        let around = Stmt::For { var, count: times, limit, unrolled: false, body };
        let kept = self.end_keeping(began);
        if !kept.is_empty() {
            let statements = every_stmt(&kept).count();
            self.origins.insert(noted, Origin { place: PlanPart::Over(id), statements });
        }
        Ok(before.into_iter().chain(kept).chain([around]).collect())
    }

    pub fn barrier(&mut self, stands: bool) -> Option<Stmt> {
        self.note(PlanPart::Block, usize::from(stands));
        stands.then_some(Stmt::Barrier)
    }

    /// Records the origin of the next statements of the block.
    pub fn note(&mut self, place: PlanPart, statements: usize) {
        if statements > 0 {
            self.origins.push(Origin { place, statements });
        }
    }
}

/// Finishes a kernel. Fails if it exceeds a device limit or needs indices beyond 32 bits.
pub(crate) fn finished(
    shape: Shape,
    body: Vec<Stmt>,
    builder: Builder,
    device: &Device,
) -> Result<Kernel, LowerError> {
    let Shape { name, grid, blocks, scalars, threads, arrays, shared } = shape;
    if let Some(number) = builder.misfit() {
        return Err(LowerError::Index { kernel: name, number });
    }
    let (vars, exprs) = (builder.vars, builder.exprs);
    let kernel = Kernel {
        name,
        grid,
        blocks,
        scalars,
        threads,
        resident: None,
        arrays,
        vars,
        exprs,
        body,
        shared,
        origins: Vec::new(),
    };
    let limit = device.shared.per_block_opt_in.into();
    within::<u32>(&kernel.name, "bytes of shared memory", kernel.shared_bytes() as u64, limit)?;
    Ok(kernel)
}

/// The number of blocks along the first axis of the grid, where it must fit in an index.
pub(crate) fn block_count(kernel: &str, blocks: u64, device: &Device) -> Result<u32, LowerError> {
    let limit = device.threads.grid_dims[0].min(i32::MAX.unsigned_abs());
    within(kernel, "blocks", blocks, limit.into())
}
