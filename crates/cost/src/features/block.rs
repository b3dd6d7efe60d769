//! The nests of one kernel in order, and the state that they share.

use std::sync::Arc;

use smallvec::SmallVec;
use warploom_lang::{FuncId, IdVec, InputId, Range};
use warploom_plan::{
    Allocation, Body, KernelId, KernelPlan, LoopId, NestFootprint, NestId, NestPlan, Plan, Problem,
    RegisterFootprint, Stepped, Symbol, strides,
};
use warploom_schedule::{Item, Nest, NodeId, Size, Source, StageRef};

use crate::features::Featurizer;
use crate::features::flatten::{Flat, Group};
use crate::features::form::Form;
use crate::features::keep::Keeping;
use crate::features::reads::{Reads, Scope};
use crate::features::registers::Registers;
use crate::features::row::{Computed, KernelShape, Work};
use crate::features::traffic::Place;
use crate::features::walk::{Around, Axis, AxisKind, Linear, Walk};
use crate::features::warps::Units;
use crate::kernel::{ArrayTraffic, KernelFeatures, Memory, NewDecisions, RowSource, StageRow};

/// Registers of a thread that computes nothing: addresses of arrays, block and thread indices.
const BASE_REGISTERS: f64 = 12.0;

/// The largest per-thread array that can be in registers; larger ones are in memory.
const MAX_ARRAY_REGISTERS: f64 = 128.0;

/// The most blocks at each edge of the grid that run other code than those inside.
const EDGE_BLOCKS: i64 = 2;

/// The fewest blocks along a dimension of which some are inside.
const FEWEST_BLOCKS: i64 = 2 * EDGE_BLOCKS + 1;

/// An upper limit on the rows of most kernels.
const USUAL_ROWS: usize = 8;

/// The kernels of a plan, in order.
pub(crate) struct Items<'s> {
    pub featurizer: &'s Featurizer,
    pub problem: &'s Problem,
    pub plan: &'s Plan,
    /// The only block of each kernel to analyse, by its index along each tile; `None` for all
    /// blocks.
    pub chosen: Option<&'s IdVec<KernelId, Vec<i64>>>,
    /// The accesses of that block of each kernel to each array.
    pub arrays: Vec<Vec<ArrayTraffic>>,
    pub around: Around,
    launches: f64,
}

impl<'s> Items<'s> {
    pub fn new(
        featurizer: &'s Featurizer,
        plan: &'s Plan,
        chosen: Option<&'s IdVec<KernelId, Vec<i64>>>,
    ) -> Items<'s> {
        Items {
            featurizer,
            problem: featurizer.problem(),
            plan,
            chosen,
            arrays: Vec::new(),
            around: Around::default(),
            launches: 1.0,
        }
    }

    pub fn kernels(&mut self) -> Vec<KernelFeatures> {
        self.plan.kernels.keys().map(|id| self.kernel(id)).collect()
    }

    /// Enters a loop and returns its count.
    fn enter_loop(&mut self, id: LoopId, kind: AxisKind) -> f64 {
        let count = self.plan.loops[id].count;
        self.around.enter(Symbol::Loop(id), kind, 0, count);
        count as f64
    }

    fn kernel(&mut self, id: KernelId) -> KernelFeatures {
        let plan = &self.plan.kernels[id];
        let depth = self.around.depth();
        self.launches = plan.around.iter().map(|id| self.enter_loop(*id, AxisKind::Launch)).product();
        let chosen = self.chosen.map(|chosen| chosen[id].as_slice());
        for (number, (tile, count)) in plan.kernel.block.iter().zip(&plan.blocks).enumerate() {
            let (start, count) = chosen.map_or((0, *count), |chosen| (chosen[number], 1));
            self.around.enter(Symbol::Block(tile.dim), AxisKind::Block, start, count);
        }
        let idle = self.problem.is_idle(plan.kernel.stage);
        let cut_blocks = cut_blocks(self.problem, self.plan, plan);
        let features = Block::new(self, id).features();
        self.around.leave(depth);
        if idle {
            self.arrays.last_mut().map(Vec::clear);
            return KernelFeatures::default();
        }
        KernelFeatures { cut_blocks, ..features }
    }
}

/// The fraction of a kernel's blocks that the edge of its stage cuts along a dimension whose points
/// are unrolled.
fn cut_blocks(problem: &Problem, plan: &Plan, kernel: &KernelPlan) -> f64 {
    // The kernel's own stage is its last nest.
    let own = plan.nests.slice(kernel.nests.clone()).last();
    let serial = own.and_then(|own| own.nest.mapping.tiles()).map_or(&[][..], |tiles| &tiles.serial);
    let whole = kernel.kernel.block.iter().zip(&kernel.blocks).map(|(tile, blocks)| {
        let extent = problem.loop_range(Item::Stage(kernel.kernel.stage), tile.dim).extent;
        let several = serial.iter().any(|own| own.dim == tile.dim && own.size != Size::Of(1));
        if several { (extent / tile.size.of(extent)) as f64 / *blocks as f64 } else { 1.0 }
    });
    1.0 - whole.product::<f64>()
}

/// The state of one kernel while its nests are analysed.
pub(crate) struct Block<'k, 's> {
    pub items: &'k mut Items<'s>,
    pub id: KernelId,
    pub plan: &'s KernelPlan,
    pub units: Units,
    pub shape: KernelShape,
    /// Iterations of the loops inside the block that enclose the nest.
    pub over: f64,
    /// What threads keep in registers over the loops around the nest.
    pub keeping: Option<Keeping>,
    /// Inputs whose copy can be read.
    staged: SmallVec<[InputId; 4]>,
    /// The number of the nest.
    number: usize,
    rows: Vec<StageRow>,
    /// The block's accesses to each array, if a single block is analysed.
    pub arrays: Vec<ArrayTraffic>,
    /// The bytes that a launch reads of each node in global memory, and writes.
    read: Vec<(NodeId, f64)>,
    written: f64,
    nodes: f64,
    /// The most registers that a nest needs beyond those that live throughout the block.
    transient: f64,
    /// Nodes whose per-thread arrays are indexed by loop variables.
    pub indexed: Vec<NodeId>,
}

impl<'k, 's> Block<'k, 's> {
    fn new(items: &'k mut Items<'s>, id: KernelId) -> Block<'k, 's> {
        let plan = &items.plan.kernels[id];
        let blocks = plan.blocks.iter().map(|blocks| *blocks as f64).product();
        let shape = KernelShape { blocks, launches: items.launches, threads: plan.threads as i64 };
        let units = Units::of(items.problem.device());
        Block {
            items,
            id,
            plan,
            units,
            shape,
            over: 1.0,
            keeping: None,
            staged: SmallVec::new(),
            number: 0,
            rows: Vec::with_capacity(USUAL_ROWS),
            arrays: Vec::new(),
            read: Vec::new(),
            written: 0.0,
            nodes: 0.0,
            transient: 0.0,
            indexed: Vec::new(),
        }
    }

    fn features(mut self) -> KernelFeatures {
        self.body(self.plan.body.body());
        let device = self.items.problem.device();
        let (mut held, mut local) = (0.0, 0.0);
        for allocation in self.plan.allocations.iter().filter(|own| own.storage.is_private()) {
            let registers = allocation.bytes as f64 / 4.0;
            if self.indexed.contains(&self.node_of(allocation.item)) || registers > MAX_ARRAY_REGISTERS {
                local += allocation.bytes as f64;
            } else {
                held += registers;
            }
        }
        let registers = BASE_REGISTERS + held + self.transient;
        let limit = self.register_limit();
        let mut numbers = self.plan.kernel.numbers;
        if registers as u32 > limit {
            local += (registers - f64::from(limit)) * 4.0;
        } else {
            // So many blocks fit anyway, by this estimate: nothing that a model sees depends on the number.
            numbers.blocks = None;
        }
        let nests = self.items.plan.nests_of(self.id).iter().map(|nest| &*nest.nest);
        let mut features = KernelFeatures {
            launches: self.shape.launches,
            blocks: self.shape.blocks,
            cut_blocks: 0.0,
            threads: self.shape.threads as u32,
            shared_bytes: u32::try_from(self.plan.shared_bytes()).unwrap_or(u32::MAX),
            registers: (registers as u32).min(limit),
            local_bytes: local,
            barriers: self.items.plan.barriers(self.id).passed,
            read_bytes: self.read.iter().map(|(_, bytes)| bytes).sum(),
            written_bytes: self.written,
            nodes: self.nodes,
            decisions: NewDecisions::of_kernel(numbers, nests),
            rows: self.rows,
        };
        self.items.arrays.push(self.arrays);
        crate::features::row::share(&mut features, device);
        features
    }

    /// The most registers per thread: the device's limit, or less if the schedule requires several
    /// blocks per SM.
    fn register_limit(&self) -> u32 {
        let device = self.items.problem.device();
        let most = device.registers.per_thread;
        let Some(blocks) = self.plan.resident(device) else { return most };
        let fits = |registers: &u32| {
            device.occupancy(self.shape.threads as u32, *registers, 0).blocks_per_sm >= blocks.get()
        };
        (1..=most).rev().find(fits).unwrap_or(most)
    }

    fn body(&mut self, body: Body<'_, NestId>) {
        let outside = self.staged.len();
        for item in body {
            match item {
                Stepped::Run(nest) => self.nest(nest),
                Stepped::Loop(id, body) => {
                    let (depth, over) = (self.items.around.depth(), self.over);
                    let began = self.begin_keeping(id, body);
                    self.over *= self.items.enter_loop(id, AxisKind::Over);
                    self.body(body);
                    self.keeping.take_if(|_| began);
                    self.items.around.leave(depth);
                    self.over = over;
                }
            }
        }
        self.staged.truncate(outside);
    }

    fn nest(&mut self, id: NestId) {
        let (problem, plan) = (self.items.problem, self.items.plan);
        let NestPlan { nest, footprint, .. } = &plan.nests[id];
        let Some(footprint) = footprint else { return };
        if plan.nests[id].stage().is_some_and(|stage| problem.is_idle(stage)) {
            return;
        }
        let walk = Walk::new(self.items.around.clone(), footprint, self.shape.threads, &plan.lowest);
        match nest.item {
            Item::Input(input) => self.copy(input, &walk, nest),
            Item::Stage(stage) => self.stage(stage, &walk, nest, footprint),
        }
        self.number += 1;
    }

    /// Whether a nest makes vectors where it can. Where sizes are given at launch, nothing is known to be aligned.
    fn has_vectors(&self, nest: &Nest) -> bool {
        nest.numbers.vector && self.items.problem.sizes().is_none()
    }

    /// Analyses the copy of an input.
    fn copy(&mut self, input: InputId, walk: &Walk, nest: &Nest) {
        let node = self.items.problem.dag().input_node(input);
        let flat =
            Flat::copy(node, self.items.problem.pipeline().inputs()[input].ty.bytes(), walk.vars.len());
        let work = Work {
            source: RowSource::Staged(node),
            node,
            walk,
            flat: &flat,
            nest: Some(nest),
            accumulates: false,
            carries: false,
            vector: self.has_vectors(nest),
            registers: &[],
            lanes: None,
            input: Some(input),
        };
        self.compute(&work, 0.0);
        self.staged.push(input);
    }

    /// Analyses a stage, after the Funcs that its nest holds in registers.
    fn stage(&mut self, stage: StageRef, walk: &Walk, nest: &Nest, footprint: &NestFootprint) {
        let registers: SmallVec<[(FuncId, &RegisterFootprint); 4]> =
            nest.registers.iter().filter_map(|func| Some((*func, footprint.registers.get(func)?))).collect();
        let mut held = 0.0;
        for (func, own) in &registers {
            let bytes = self.items.problem.pipeline().funcs()[*func].bytes_per_point() as f64;
            held += own.live_points() as f64 * bytes / 4.0;
        }
        if !registers.is_empty() {
            self.registers(walk, (nest, footprint), &registers, held);
        }
        let mut everywhere = footprint.all_lanes.map(|lanes| {
            let (around, lowest) = (self.items.around.clone(), &self.items.plan.lowest);
            Walk::of_warps(around, (footprint, lanes), self.shape.threads, lowest)
        });
        let flat = self.flat(stage, walk);
        // Lanes without a point step aside where they would read beyond their registers.
        let is_plain = |group: &Group| group.is_exact() && group.rows.iter().all(|row| row.den == 1);
        everywhere.iter_mut().for_each(|walk| walk.exact &= flat.loads.iter().all(is_plain));
        let walk = everywhere.as_ref().unwrap_or(walk);
        let work = Work {
            nest: Some(nest),
            accumulates: footprint.accumulates,
            carries: footprint.carries,
            ..self.work((stage, nest), walk, &flat, &registers)
        };
        self.compute(&work, held);
    }

    /// A stage with the Funcs that are inlined into it, as blocks away from the edges of the grid run it.
    pub fn flat(&self, stage: StageRef, walk: &Walk) -> Arc<Flat> {
        let (stage, inlined) = (self.items.problem.stage_id(stage), &self.items.plan.inlined);
        let flat = self.items.featurizer.flat(stage, inlined, false);
        if flat.edges.is_empty() || !self.is_away_from(&flat.edges, walk) {
            return flat;
        }
        self.items.featurizer.flat(stage, inlined, true)
    }

    /// Whether no sum is negative at the points that blocks away from the edges of the grid compute.
    fn is_away_from(&self, edges: &[Form], walk: &Walk) -> bool {
        self.inner_axes(walk).is_some_and(|axes| {
            let ranges: SmallVec<[(i64, i64); 6]> = walk.vars.iter().map(|var| var.range(&axes)).collect();
            edges.iter().all(|edge| edge.least(&ranges) >= 0)
        })
    }

    /// The axes of a walk in the blocks away from the edges of the grid, along dimensions that have such blocks; `None` where the
    /// first of two blocks is analysed, because that is no axis.
    fn inner_axes(&self, walk: &Walk) -> Option<SmallVec<[Axis; 16]>> {
        let mut axes = walk.around.axes.clone();
        let mut along = axes.iter_mut().filter(|axis| axis.kind == AxisKind::Block);
        for blocks in self.plan.blocks.iter().filter(|blocks| **blocks > 1) {
            let margin = if *blocks < FEWEST_BLOCKS { 0 } else { EDGE_BLOCKS };
            let axis = along.next()?;
            (axis.start, axis.count) = (margin, blocks - 2 * margin);
        }
        Some(axes)
    }

    /// A stage in a nest that is not its own.
    pub fn work<'w>(
        &self,
        (stage, around): (StageRef, &Nest),
        walk: &'w Walk,
        flat: &'w Flat,
        registers: &'w Registers<'w>,
    ) -> Work<'w> {
        let id = self.items.problem.stage_id(stage);
        let predicate = self.items.problem.pipeline().funcs()[stage.func].stages[stage.stage].predicate;
        Work {
            source: RowSource::Stage(id),
            node: self.items.problem.dag().stages()[id].node,
            walk,
            flat,
            nest: None,
            accumulates: false,
            carries: false,
            vector: self.has_vectors(around) && predicate.is_none(),
            registers,
            lanes: None,
            input: None,
        }
    }

    /// Adds the rows of a stage and of the Funcs inlined into it.
    pub fn compute(&mut self, work: &Work<'_>, held: f64) {
        let Computed { features, reads, registers, nodes, shares } = self.row(work);
        self.transient = self.transient.max(registers + held);
        self.nodes += nodes;
        self.add_reads(&reads);
        if work.nest.is_some_and(|nest| nest.storage.is_global()) {
            let bytes = features.points_computed_minimum / self.shape.launches * self.point_bytes(work.node);
            self.written += bytes.min(features.bytes_at_root.max(0.0));
        }
        let (first, nest) = (self.rows.len(), self.number);
        self.rows.push(StageRow { source: work.source, nest, features });
        for (inlined, share) in work.flat.inlined.iter().zip(shares) {
            let features = self.inlined(inlined, share, &self.rows[first].features);
            self.rows.push(StageRow { source: RowSource::Inlined(inlined.stage), nest, features });
        }
    }

    fn point_bytes(&self, node: NodeId) -> f64 {
        self.items.problem.dag().nodes()[node].bytes_per_point as f64
    }

    fn add_reads(&mut self, reads: &Reads) {
        for read in reads.0.iter().filter(|read| read.memory == Memory::Global) {
            let bytes = read.bytes_in(Scope::Launch);
            match self.read.iter_mut().find(|(node, _)| *node == read.node) {
                Some((_, known)) => *known = known.max(bytes),
                None => self.read.push((read.node, bytes)),
            }
        }
    }

    pub fn node_of(&self, item: Item) -> NodeId {
        match item {
            Item::Stage(stage) => self.items.problem.dag().func_node(stage.func),
            Item::Input(input) => self.items.problem.dag().input_node(input),
        }
    }

    /// The block's allocation for a node, and its number.
    pub fn allocation(&self, node: NodeId) -> Option<(usize, &'s Allocation)> {
        let mut allocations = self.plan.allocations.iter().enumerate();
        allocations.find(|(_, allocation)| self.node_of(allocation.item) == node)
    }

    /// Whether threads exchange a node within warps. Lanes without a point take part, so that no count
    /// is exact.
    pub fn is_in_warps(&self, node: NodeId) -> bool {
        self.allocation(node).is_some_and(|(_, allocation)| allocation.in_warps)
    }

    /// The array from which a nest reads a node: in registers, in the block or in global memory.
    pub fn place(&self, node: NodeId, work: &Work<'_>) -> Place {
        let lowest = &self.items.plan.lowest;
        let source = self.items.problem.dag().nodes()[node].source;
        if let Source::Func(func) = source
            && let Some((_, own)) = work.registers.iter().find(|(known, _)| *known == func)
        {
            let base =
                own.thread.points.dims.iter().map(|reach| work.walk.around.lowest(reach, lowest)).collect();
            let extents: SmallVec<[i64; 4]> = own.thread.points.extents().into();
            let strides = strides(&extents, 0..extents.len());
            return Place { memory: Memory::Thread, strides, base, extents };
        }
        let visible = match source {
            Source::Func(_) => true,
            Source::Input(input) => self.staged.contains(&input),
        };
        match self.allocation(node).filter(|_| visible) {
            Some((_, allocation)) => self.in_block(allocation, work),
            None => self.global(node),
        }
    }

    /// The place of an array that lives in the block.
    pub fn in_block(&self, allocation: &Allocation, work: &Work<'_>) -> Place {
        let lowest = &self.items.plan.lowest;
        let dims = &allocation.points.dims;
        let base = dims.iter().map(|reach| work.walk.around.lowest(reach, lowest)).collect();
        let memory = if allocation.storage.is_private() { Memory::Thread } else { Memory::Shared };
        let (strides, extents) = (allocation.strides.clone(), SmallVec::from_slice(&allocation.extents));
        Place { memory, strides, base, extents }
    }

    /// Whether the chosen block is like any other: no guard and no clamp takes effect on the points
    /// of a stage or on the arrays of the block.
    pub fn is_inside(&self, work: &Work<'_>) -> bool {
        self.are_inside(work, &work.walk.around.axes)
    }

    /// The same for all blocks away from the edges of the grid, which run the same code as the chosen one.
    pub fn is_inside_everywhere(&self, work: &Work<'_>) -> bool {
        let mut several = self.plan.blocks.iter().filter(|blocks| **blocks > 1);
        several.all(|blocks| *blocks >= FEWEST_BLOCKS)
            && self.inner_axes(work.walk).is_some_and(|axes| self.are_inside(work, &axes))
    }

    fn are_inside(&self, work: &Work<'_>, axes: &[Axis]) -> bool {
        let allocated = self.plan.allocations.iter().all(|allocation| {
            allocation.points.dims.iter().all(|reach| {
                let (low, high) = work.walk.around.lowest(reach, &self.items.plan.lowest).range(axes);
                reach.min <= low && high + reach.extent() - 1 <= reach.max
            })
        });
        let ranges = work.walk.ranges.iter().zip(self.points_of(work));
        let own = work.walk.vars.iter().zip(&work.walk.extents).zip(ranges).all(|((var, extent), ranges)| {
            let ((first, last), range) = ranges;
            let starts = Linear {
                steps: var
                    .steps
                    .iter()
                    .filter(|(axis, _)| (*axis as usize) < work.walk.own_axes)
                    .copied()
                    .collect(),
                ..var.clone()
            };
            let (low, high) = starts.range(axes);
            let (first, last) = (range.min.max(*first), range.last().min(*last));
            *extent <= 1 || (first <= low && high + extent - 1 <= last)
        });
        allocated && own
    }

    /// The ranges of a stage's variables.
    fn points_of(&self, work: &Work<'_>) -> SmallVec<[Range; 6]> {
        let problem = self.items.problem;
        match (work.source, work.input) {
            (RowSource::Stage(stage), _) => {
                let stage = &problem.dag().stages()[stage];
                let regions = &problem.regions().funcs[stage.func].stages[stage.number];
                regions.needed.0.iter().chain(&regions.domain).copied().collect()
            }
            (_, Some(input)) => problem.regions().inputs[input].0.iter().copied().collect(),
            _ => SmallVec::new(),
        }
    }

    /// The place of an array in global memory.
    fn global(&self, node: NodeId) -> Place {
        let problem = self.items.problem;
        let region = match problem.dag().nodes()[node].source {
            Source::Input(input) => &problem.regions().facts.inputs[input],
            Source::Func(func) => problem.stored(func),
        };
        let base = region.0.iter().map(|range| Linear::constant(range.min)).collect();
        let extents: SmallVec<[i64; 4]> = region.0.iter().map(|range| range.extent).collect();
        let order = &self.items.problem.dag().nodes()[node].storage_order;
        Place { memory: Memory::Global, strides: strides(&extents, order.iter().copied()), base, extents }
    }
}
