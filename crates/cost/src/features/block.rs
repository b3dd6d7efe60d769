//! The nests of one kernel in order, and what they share.

use std::collections::BTreeSet;

use smallvec::SmallVec;
use warploom_lang::{FuncId, InputId, Range, Region};
use warploom_schedule::schedule::{
    Allocation, BlockItem, Footprints, Item, Kernel, KernelFootprint, Loops, Mapping, Nest, NestFootprint,
    RegisterFootprint, RootItem, Size, StageRef, Storage, Symbol, ThreadTiles,
};
use warploom_schedule::{LoopKind, NodeId, Source, StageId};

use crate::features::Subject;
use crate::features::flatten::Flat;
use crate::features::reads::{Reads, Scope};
use crate::features::row::{Computed, KernelShape, Work};
use crate::features::traffic::Place;
use crate::features::walk::{Around, AxisKind, Linear, Walk};
use crate::features::warps::Units;
use crate::kernel::{ArrayTraffic, KernelFeatures, Memory, RowSource, StageRow};

/// Registers of a thread that computes nothing: addresses of arrays, indices of block and thread.
const BASE_REGISTERS: f64 = 12.0;

/// Registers that an array of a thread's own may fill; larger ones lie in memory.
const MAX_ARRAY_REGISTERS: f64 = 128.0;

/// Rows of most kernels, at most.
const USUAL_ROWS: usize = 8;

/// The kernels of an item at root, in order.
pub(crate) struct Items<'s, 'a> {
    pub subject: &'s Subject<'a>,
    pub inlined: &'s BTreeSet<FuncId>,
    footprints: &'s Footprints,
    /// The one block of each kernel that counts, along each of its tiles; all of them if `None`.
    pub chosen: Option<&'s [Vec<i64>]>,
    /// What that block of each kernel does with each array.
    pub arrays: Vec<Vec<ArrayTraffic>>,
    around: Around,
    launches: f64,
    /// How many loops, kernels and nests came before.
    loops: usize,
    kernels: usize,
    nests: usize,
}

impl<'s, 'a> Items<'s, 'a> {
    pub fn new(
        subject: &'s Subject<'a>,
        inlined: &'s BTreeSet<FuncId>,
        footprints: &'s Footprints,
        chosen: Option<&'s [Vec<i64>]>,
    ) -> Items<'s, 'a> {
        Items {
            subject,
            inlined,
            footprints,
            chosen,
            arrays: Vec::new(),
            around: Around::default(),
            launches: 1.0,
            loops: 0,
            kernels: 0,
            nests: 0,
        }
    }

    pub fn kernels(&mut self, item: &RootItem) -> Vec<KernelFeatures> {
        match item {
            RootItem::Kernel(kernel) => vec![self.kernel(kernel)],
            RootItem::Around(Loops { loops, body }) => {
                let (depth, launches) = (self.around.depth(), self.launches);
                for _ in loops {
                    let count = self.enter_loop(AxisKind::Launch);
                    self.launches *= count;
                }
                let kernels = body.iter().flat_map(|item| self.kernels(item)).collect();
                self.around.leave(depth);
                self.launches = launches;
                kernels
            }
        }
    }

    /// Enters the next loop of the text; gives how often it runs.
    fn enter_loop(&mut self, kind: AxisKind) -> f64 {
        let count = self.footprints.loops[self.loops].count;
        self.around.enter(Symbol::Loop(self.loops), kind, 0, count);
        self.loops += 1;
        count as f64
    }

    fn kernel(&mut self, kernel: &Kernel) -> KernelFeatures {
        let footprint = &self.footprints.kernels[self.kernels];
        let chosen = self.chosen.map(|chosen| chosen[self.kernels].as_slice());
        self.kernels += 1;
        let depth = self.around.depth();
        for (number, (tile, count)) in kernel.block.iter().zip(&footprint.blocks).enumerate() {
            let (start, count) = chosen.map_or((0, *count), |chosen| (chosen[number], 1));
            self.around.enter(Symbol::Block(tile.dim), AxisKind::Block, start, count);
        }
        let idle = self.subject.is_idle(kernel.stage);
        let cut_blocks = self.subject.cut_blocks(kernel, footprint);
        let features = Block::new(self, footprint).features(kernel);
        self.around.leave(depth);
        if idle {
            self.arrays.last_mut().map(Vec::clear);
            return KernelFeatures::default();
        }
        KernelFeatures { cut_blocks, ..features }
    }
}

impl Subject<'_> {
    fn stage_id(&self, stage: StageRef) -> StageId {
        self.dag.nodes()[self.dag.func_node(stage.func)].stages[stage.stage]
    }

    /// Whether a stage computes nothing at these sizes.
    fn is_idle(&self, stage: StageRef) -> bool {
        self.regions.is_idle(self.pipeline, stage.func, stage.stage)
    }

    /// The share of a kernel's blocks that the edge of its stage cuts along a dimension whose points are written out.
    fn cut_blocks(&self, kernel: &Kernel, footprint: &KernelFootprint) -> f64 {
        let stage = &self.regions.funcs[kernel.stage.func].stages[kernel.stage.stage];
        let serial = own_tiles(&kernel.body).map_or(&[][..], |tiles| &tiles.serial);
        let whole = kernel.block.iter().zip(&footprint.blocks).map(|(tile, blocks)| {
            let extent = match tile.dim {
                LoopKind::Pure(d) => stage.needed[d].extent,
                LoopKind::Reduction(r) => stage.domain[r].extent,
            };
            let several = serial.iter().any(|own| own.dim == tile.dim && own.size != Size::Of(1));
            if several { (extent / tile.size.of(extent)) as f64 / *blocks as f64 } else { 1.0 }
        });
        1.0 - whole.product::<f64>()
    }

    /// All of a Func or input in global memory.
    fn root_region(&self, node: NodeId) -> &Region {
        match self.dag.nodes()[node].source {
            Source::Input(input) => &self.regions.facts.inputs[input],
            Source::Func(func) => &self.regions.funcs[func].region,
        }
    }
}

/// The tiles of the last nest of a block, the kernel's own.
fn own_tiles(body: &[BlockItem]) -> Option<&ThreadTiles> {
    match body.last()? {
        BlockItem::Over(over) => own_tiles(&over.body),
        BlockItem::Nest(nest) => match &nest.mapping {
            Mapping::Threads(tiles) => Some(tiles),
            Mapping::Flat => None,
        },
    }
}

/// One kernel.
pub(crate) struct Block<'k, 's, 'a> {
    pub items: &'k mut Items<'s, 'a>,
    pub footprint: &'s KernelFootprint,
    pub units: Units,
    pub shape: KernelShape,
    /// Iterations of the loops over the block.
    pub over: f64,
    /// Inputs whose copy can be read.
    staged: SmallVec<[InputId; 4]>,
    /// The number of the nest.
    number: usize,
    rows: Vec<StageRow>,
    /// What the block does with each array, where one block is looked at.
    pub arrays: Vec<ArrayTraffic>,
    /// What a launch reads of each node in global memory, and writes.
    read: Vec<(NodeId, f64)>,
    written: f64,
    nodes: f64,
    /// The most registers that a nest holds beyond what lives in the whole block.
    transient: f64,
    /// Nodes whose arrays in threads are indexed by loops.
    pub indexed: Vec<NodeId>,
}

impl<'k, 's, 'a> Block<'k, 's, 'a> {
    fn new(items: &'k mut Items<'s, 'a>, footprint: &'s KernelFootprint) -> Block<'k, 's, 'a> {
        let blocks = footprint.blocks.iter().map(|blocks| *blocks as f64).product();
        let shape = KernelShape { blocks, launches: items.launches, threads: footprint.threads as i64 };
        let units = Units::of(items.subject.device);
        Block {
            items,
            footprint,
            units,
            shape,
            over: 1.0,
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

    fn features(mut self, kernel: &Kernel) -> KernelFeatures {
        self.body(&kernel.body);
        let device = self.items.subject.device;
        let (mut held, mut local) = (0.0, 0.0);
        for allocation in self.footprint.allocations.iter().filter(|own| own.storage == Storage::Private) {
            let registers = allocation.bytes as f64 / 4.0;
            if self.indexed.contains(&self.node_of(allocation.item)) || registers > MAX_ARRAY_REGISTERS {
                local += allocation.bytes as f64;
            } else {
                held += registers;
            }
        }
        let registers = BASE_REGISTERS + held + self.transient;
        let limit = f64::from(device.registers.per_thread);
        local += (registers - limit).max(0.0) * 4.0;
        let mut features = KernelFeatures {
            launches: self.shape.launches,
            blocks: self.shape.blocks,
            cut_blocks: 0.0,
            threads: self.shape.threads as u32,
            shared_bytes: u32::try_from(self.footprint.shared_bytes()).unwrap_or(u32::MAX),
            registers: registers.min(limit) as u32,
            local_bytes: local,
            barriers: self.items.footprints.barriers(kernel, self.footprint).passed,
            read_bytes: self.read.iter().map(|(_, bytes)| bytes).sum(),
            written_bytes: self.written,
            nodes: self.nodes,
            decisions: Default::default(),
            rows: self.rows,
        };
        self.items.arrays.push(self.arrays);
        crate::features::row::share(&mut features, device);
        features
    }

    fn body(&mut self, items: &[BlockItem]) {
        let outside = self.staged.len();
        for item in items {
            match item {
                BlockItem::Nest(nest) => self.nest(nest),
                BlockItem::Over(Loops { loops, body }) => {
                    let (depth, over) = (self.items.around.depth(), self.over);
                    for _ in loops {
                        self.over *= self.items.enter_loop(AxisKind::Over);
                    }
                    self.body(body);
                    self.items.around.leave(depth);
                    self.over = over;
                }
            }
        }
        self.staged.truncate(outside);
    }

    fn nest(&mut self, nest: &Nest) {
        let position = self.items.nests;
        self.items.nests += 1;
        let footprints = self.items.footprints;
        let Some(footprint) = &footprints.nests[position] else { return };
        let lowest = &footprints.lowest;
        let subject = self.items.subject;
        let around = self.items.around.clone();
        match nest.item {
            Item::Input(input) => {
                let walk = Walk::new(around, nest, footprint, |_| true, self.shape.threads, lowest);
                self.copy(input, &walk, nest);
            }
            Item::Stage(stage) if subject.is_idle(stage) => return,
            Item::Stage(stage) => {
                let pipeline = subject.pipeline;
                let decl = &pipeline.funcs()[stage.func].stages[stage.stage];
                let looped = |d: usize| decl.is_pure(pipeline.exprs(), d);
                let walk = Walk::new(around, nest, footprint, looped, self.shape.threads, lowest);
                self.stage(stage, &walk, nest, footprint);
            }
        }
        self.number += 1;
    }

    /// The copy of an input.
    fn copy(&mut self, input: InputId, walk: &Walk, nest: &Nest) {
        let node = self.items.subject.dag.input_node(input);
        let flat = Flat::copy(node, self.items.subject.pipeline.inputs()[input].ty.bytes(), walk.vars.len());
        let work = Work {
            source: RowSource::Staged(node),
            node,
            walk,
            flat: &flat,
            nest: Some(nest),
            accumulates: false,
            registers: &[],
            input: Some(input),
        };
        self.compute(&work, 0.0);
        self.staged.push(input);
    }

    /// A stage, and before it what its nest holds in registers.
    fn stage(&mut self, stage: StageRef, walk: &Walk, nest: &Nest, footprint: &NestFootprint) {
        let registers: SmallVec<[(FuncId, &RegisterFootprint); 4]> =
            nest.registers.iter().filter_map(|func| Some((*func, footprint.registers.get(func)?))).collect();
        let mut held = 0.0;
        for (func, own) in &registers {
            let bytes = self.items.subject.pipeline.funcs()[*func].bytes_per_point() as f64;
            held += own.thread.points.points() as f64 * bytes / 4.0;
        }
        for (func, own) in &registers {
            for (number, points) in own.thread.stages.iter().enumerate() {
                let stage = StageRef { func: *func, stage: number };
                if self.items.subject.is_idle(stage) {
                    continue;
                }
                let ranges = &self.items.subject.regions.funcs[*func].stages[number].domain;
                let domain: SmallVec<[(i64, i64); 4]> =
                    ranges.iter().map(|range| (range.min, range.extent)).collect();
                let walk = walk.of_registers(points, &domain, &self.items.footprints.lowest);
                self.flat_stage(stage, &walk, None, false, &registers, held);
            }
        }
        self.flat_stage(stage, walk, Some(nest), footprint.accumulates, &registers, held);
    }

    fn flat_stage(
        &mut self,
        stage: StageRef,
        walk: &Walk,
        nest: Option<&Nest>,
        accumulates: bool,
        registers: &[(FuncId, &RegisterFootprint)],
        held: f64,
    ) {
        let id = self.items.subject.stage_id(stage);
        let flat = self.items.subject.flat(id, self.items.inlined);
        let work = Work {
            source: RowSource::Stage(id),
            node: self.items.subject.dag.stages()[id].node,
            walk,
            flat: &flat,
            nest,
            accumulates,
            registers,
            input: None,
        };
        self.compute(&work, held);
    }

    /// Adds the rows of a stage and of all that is inlined into it.
    fn compute(&mut self, work: &Work<'_>, held: f64) {
        let Computed { features, reads, registers, nodes, shares } = self.row(work);
        self.transient = self.transient.max(registers + held);
        self.nodes += nodes;
        self.add_reads(&reads);
        if work.nest.is_some_and(|nest| nest.storage == Storage::Global) {
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
        self.items.subject.dag.nodes()[node].bytes_per_point as f64
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

    fn node_of(&self, item: Item) -> NodeId {
        match item {
            Item::Stage(stage) => self.items.subject.dag.func_node(stage.func),
            Item::Input(input) => self.items.subject.dag.input_node(input),
        }
    }

    /// What is allocated in the block for a node, and its number.
    pub fn allocation(&self, node: NodeId) -> Option<(usize, &'s Allocation)> {
        let mut allocations = self.footprint.allocations.iter().enumerate();
        allocations.find(|(_, allocation)| self.node_of(allocation.item) == node)
    }

    /// Where a nest finds the array of a node. `copied` is an input whose copy is being made.
    pub fn place(&self, node: NodeId, work: &Work<'_>) -> Place {
        let lowest = &self.items.footprints.lowest;
        let source = self.items.subject.dag.nodes()[node].source;
        if let Source::Func(func) = source
            && let Some((_, own)) = work.registers.iter().find(|(known, _)| *known == func)
        {
            let base =
                own.thread.points.dims.iter().map(|reach| work.walk.around.lowest(reach, lowest)).collect();
            return dense(Memory::Thread, &own.thread.points.extents(), base);
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

    /// An array that lives in the block.
    pub fn in_block(&self, allocation: &Allocation, work: &Work<'_>) -> Place {
        let lowest = &self.items.footprints.lowest;
        let dims = &allocation.points.dims;
        let base = dims.iter().map(|reach| work.walk.around.lowest(reach, lowest)).collect();
        let memory = if allocation.storage == Storage::Private { Memory::Thread } else { Memory::Shared };
        dense(memory, &allocation.extents, base)
    }

    /// Whether one chosen block does what any other one does: no guard and no clamp acts on the points of a stage or on
    /// the arrays of the block.
    pub fn is_inside(&self, work: &Work<'_>) -> bool {
        let axes = &work.walk.around.axes;
        let allocated = self.footprint.allocations.iter().all(|allocation| {
            allocation.points.dims.iter().all(|reach| {
                let (low, high) = work.walk.around.lowest(reach, &self.items.footprints.lowest).range(axes);
                reach.min <= low && high + reach.extent() - 1 <= reach.max
            })
        });
        let ranges = self.points_of(work);
        let own = work.walk.vars.iter().zip(&work.walk.extents).zip(ranges).all(|((var, extent), range)| {
            let starts = Linear {
                steps: var
                    .steps
                    .iter()
                    .filter(|(axis, _)| usize::from(*axis) < work.walk.own_axes)
                    .copied()
                    .collect(),
                ..var.clone()
            };
            let (low, high) = starts.range(axes);
            *extent <= 1 || (range.min <= low && high + extent - 1 <= range.last())
        });
        allocated && own
    }

    /// The ranges of a stage's variables.
    fn points_of(&self, work: &Work<'_>) -> SmallVec<[Range; 6]> {
        let subject = self.items.subject;
        match (work.source, work.input) {
            (RowSource::Stage(stage), _) => {
                let stage = &subject.dag.stages()[stage];
                let regions = &subject.regions.funcs[stage.func].stages[stage.number];
                regions.needed.0.iter().chain(&regions.domain).copied().collect()
            }
            (_, Some(input)) => subject.regions.inputs[input].0.iter().copied().collect(),
            _ => SmallVec::new(),
        }
    }

    /// An array in global memory.
    fn global(&self, node: NodeId) -> Place {
        let region = self.items.subject.root_region(node);
        let base = region.0.iter().map(|range| Linear::constant(range.min)).collect();
        let extents: SmallVec<[i64; 4]> = region.0.iter().map(|range| range.extent).collect();
        let mut place = dense(Memory::Global, &extents, base);
        let mut stride = 1;
        for d in &self.items.subject.dag.nodes()[node].storage_order {
            place.strides[*d] = stride;
            stride *= extents[*d];
        }
        place
    }
}

/// An array whose first dimension is dense.
fn dense(memory: Memory, extents: &[i64], base: SmallVec<[Linear; 4]>) -> Place {
    let mut stride = 1;
    let strides = extents.iter().map(|extent| {
        let own = stride;
        stride *= extent;
        own
    });
    Place { memory, strides: strides.collect(), base, extents: SmallVec::from_slice(extents) }
}
