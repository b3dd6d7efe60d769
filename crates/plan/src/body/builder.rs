//! The parts of a block, from the nests of a plan.

use std::sync::Arc;

use smallvec::SmallVec;
use warploom_lang::InputId;
use warploom_schedule::{Item, Nest, NodeId, Source, StageRef};

use crate::body::flatten::{Flat, Group};
use crate::body::form::Form;
use crate::body::keep::Keeping;
use crate::body::moves::{Memory, Place};
use crate::body::walk::{Around, Axis, AxisKind, Walk};
use crate::body::{Bodies, Body, Part, Registers, What};
use crate::footprint::{Allocation, NestFootprint, strides};
use crate::ids::{KernelId, LoopId, NestId};
use crate::plan::{KernelPlan, NestPlan, Plan, Sequence, Stepped};
use crate::problem::Problem;
use crate::reach::symbol::Symbol;

/// The most blocks at each edge of the grid that run other code than those inside. It covers the reach of stencils and their
/// clamps.
pub const EDGE_BLOCKS: i64 = 2;

/// The fewest blocks along a dimension of which some are inside.
pub(super) const FEWEST_BLOCKS: i64 = 2 * EDGE_BLOCKS + 1;

/// An upper limit on the parts of most blocks.
const USUAL_PARTS: usize = 8;

/// The state of one kernel while its nests are looked at in order.
pub struct Builder<'b, 'p> {
    bodies: &'b Bodies,
    pub problem: &'b Problem,
    pub plan: &'p Plan,
    pub id: KernelId,
    pub kernel: &'p KernelPlan,
    pub around: Around,
    launches: i64,
    /// Iterations of the loops inside the block that enclose the nest.
    over: f64,
    /// What threads keep in registers over the loops around the nest.
    pub(super) keeping: Option<Keeping>,
    /// Inputs whose copy can be read.
    staged: SmallVec<[InputId; 4]>,
    /// The number of the nest.
    number: usize,
    parts: Vec<Part<'p>>,
}

impl<'b, 'p> Builder<'b, 'p> {
    pub fn new(bodies: &'b Bodies, plan: &'p Plan, id: KernelId) -> Builder<'b, 'p> {
        let kernel = &plan.kernels[id];
        let mut builder = Builder {
            bodies,
            problem: &bodies.problem,
            plan,
            id,
            kernel,
            around: Around::default(),
            launches: 1,
            over: 1.0,
            keeping: None,
            staged: SmallVec::new(),
            number: 0,
            parts: Vec::with_capacity(USUAL_PARTS),
        };
        builder.launches = kernel.around.iter().map(|id| builder.enter_loop(*id, AxisKind::Launch)).product();
        for (tile, count) in kernel.kernel.block.iter().zip(&kernel.blocks) {
            builder.around.enter(Symbol::Block(tile.dim), AxisKind::Block, 0, *count);
        }
        builder
    }

    pub fn body(mut self) -> Body<'p> {
        self.steps(self.kernel.body.body());
        Body { parts: self.parts, launches: self.launches }
    }

    /// Enters a loop and returns its count.
    fn enter_loop(&mut self, id: LoopId, kind: AxisKind) -> i64 {
        let count = self.plan.loops[id].count;
        self.around.enter(Symbol::Loop(id), kind, 0, count);
        count
    }

    fn steps(&mut self, steps: Sequence<'p, NestId>) {
        let outside = self.staged.len();
        for step in steps {
            match step {
                Stepped::Run(nest) => self.nest(nest),
                Stepped::Loop(id, inside) => {
                    let (depth, over) = (self.around.depth(), self.over);
                    let began = self.begin_keeping(id, inside);
                    self.over *= self.enter_loop(id, AxisKind::Over) as f64;
                    self.steps(inside);
                    self.keeping.take_if(|_| began);
                    self.around.leave(depth);
                    self.over = over;
                }
            }
        }
        self.staged.truncate(outside);
    }

    fn nest(&mut self, id: NestId) {
        let NestPlan { nest, footprint, .. } = &self.plan.nests[id];
        let Some(footprint) = footprint else { return };
        if self.plan.nests[id].stage().is_some_and(|stage| self.problem.is_idle(stage)) {
            return;
        }
        let walk = Box::new(Walk::new(self.around.clone(), footprint, self.threads(), &self.plan.lowest));
        match nest.item {
            Item::Input(input) => self.copy(input, walk, nest),
            Item::Stage(stage) => self.stage(stage, walk, nest, footprint),
        }
        self.number += 1;
    }

    pub fn threads(&self) -> i64 {
        self.kernel.threads as i64
    }

    /// The copy of an input.
    fn copy(&mut self, input: InputId, walk: Box<Walk>, nest: &'p Nest) {
        let node = self.problem.dag().input_node(input);
        let bytes = self.problem.pipeline().inputs()[input].ty.bytes();
        let flat = Arc::new(Flat::copy(node, bytes, walk.vars.len()));
        self.add(Part { nest: Some(nest), ..self.part((What::Copy(input), node), nest, walk, flat) });
        self.staged.push(input);
    }

    /// A stage, after the Funcs that its nest holds in registers.
    fn stage(&mut self, stage: StageRef, walk: Box<Walk>, nest: &'p Nest, footprint: &'p NestFootprint) {
        let registers: Registers<'p> =
            nest.registers.iter().filter_map(|func| Some((*func, footprint.registers.get(func)?))).collect();
        if !registers.is_empty() {
            self.registers(&walk, (nest, footprint), &registers);
        }
        let flat = self.flat(stage, &walk);
        let walk = match footprint.all_lanes {
            None => walk,
            Some(lanes) => {
                let (around, lowest) = (self.around.clone(), &self.plan.lowest);
                let mut walk = Box::new(Walk::of_warps(around, (footprint, lanes), self.threads(), lowest));
                // Lanes without a point step aside where they would read beyond their registers.
                let is_plain = |group: &Group| group.is_exact() && group.rows.iter().all(|row| row.den == 1);
                walk.exact &= flat.loads.iter().all(is_plain);
                walk
            }
        };
        let part = Part {
            nest: Some(nest),
            accumulates: footprint.accumulates,
            carries: footprint.carries,
            registers,
            ..self.part_of_stage(stage, nest, walk, flat)
        };
        self.add(part);
    }

    /// A stage in a nest that is not its own.
    pub fn part_of_stage(
        &self,
        stage: StageRef,
        around: &'p Nest,
        walk: Box<Walk>,
        flat: Arc<Flat>,
    ) -> Part<'p> {
        let id = self.problem.stage_id(stage);
        self.part((What::Stage(id), self.problem.dag().stages()[id].node), around, walk, flat)
    }

    fn part(
        &self,
        (what, node): (What, NodeId),
        around: &'p Nest,
        walk: Box<Walk>,
        flat: Arc<Flat>,
    ) -> Part<'p> {
        Part {
            what,
            node,
            number: self.number,
            nest: None,
            around,
            over: self.over,
            walk,
            before: None,
            flat,
            accumulates: false,
            carries: false,
            slices: 1,
            registers: Registers::new(),
            lanes: None,
            arrays: Vec::new(),
            accesses: Vec::new(),
        }
    }

    /// Adds a part with its accesses.
    pub fn add(&mut self, mut part: Part<'p>) {
        self.access(&mut part);
        self.parts.push(part);
    }

    /// A stage with the Funcs that are inlined into it, as blocks away from the edges of the grid run it.
    pub fn flat(&self, stage: StageRef, walk: &Walk) -> Arc<Flat> {
        let (stage, inlined) = (self.problem.stage_id(stage), &self.plan.inlined);
        let flat = self.bodies.flat(stage, inlined, false);
        if flat.edges.is_empty() || !self.is_away_from(&flat.edges, walk) {
            return flat;
        }
        self.bodies.flat(stage, inlined, true)
    }

    /// Whether no sum is negative at the points that blocks away from the edges of the grid compute.
    fn is_away_from(&self, edges: &[Form], walk: &Walk) -> bool {
        let axes = inner_axes(self.kernel, walk);
        let ranges: SmallVec<[(i64, i64); 6]> = walk.vars.iter().map(|var| var.range(&axes)).collect();
        edges.iter().all(|edge| edge.least(&ranges) >= 0)
    }

    pub fn node_of(&self, item: Item) -> NodeId {
        match item {
            Item::Stage(stage) => self.problem.dag().func_node(stage.func),
            Item::Input(input) => self.problem.dag().input_node(input),
        }
    }

    /// The block's allocation for a node.
    pub fn allocation(&self, node: NodeId) -> Option<&'p Allocation> {
        self.kernel.allocations.iter().find(|allocation| self.node_of(allocation.item) == node)
    }

    /// Whether threads exchange a node within warps.
    pub fn is_in_warps(&self, node: NodeId) -> bool {
        self.allocation(node).is_some_and(|allocation| allocation.in_warps)
    }

    /// The array that receives the results of a part.
    pub fn own_place(&self, part: &Part<'_>) -> Place {
        match (part.what, self.allocation(part.node)) {
            (What::Copy(_), Some(allocation)) => self.in_block(allocation, &part.walk),
            _ => self.place(part.node, part),
        }
    }

    /// The array from which a part reads a node: in registers, in the block or in global memory.
    pub fn place(&self, node: NodeId, part: &Part<'_>) -> Place {
        let lowest = &self.plan.lowest;
        let source = self.problem.dag().nodes()[node].source;
        if let Source::Func(func) = source
            && let Some((_, own)) = part.registers.iter().find(|(known, _)| *known == func)
        {
            let base =
                own.thread.points.dims.iter().map(|reach| part.walk.around.lowest(reach, lowest)).collect();
            let extents: SmallVec<[i64; 4]> = own.thread.points.extents().into();
            let strides = strides(&extents, 0..extents.len());
            return Place { memory: Memory::Thread, strides, base, extents };
        }
        let visible = match source {
            Source::Func(_) => true,
            Source::Input(input) => self.staged.contains(&input),
        };
        match self.allocation(node).filter(|_| visible) {
            Some(allocation) => self.in_block(allocation, &part.walk),
            None => self.global(node),
        }
    }

    /// An array that lives in the block.
    fn in_block(&self, allocation: &Allocation, walk: &Walk) -> Place {
        let dims = &allocation.points.dims;
        let base = dims.iter().map(|reach| walk.around.lowest(reach, &self.plan.lowest)).collect();
        let memory = if allocation.storage.is_private() { Memory::Thread } else { Memory::Shared };
        let (strides, extents) = (allocation.strides.clone(), SmallVec::from_slice(&allocation.extents));
        Place { memory, strides, base, extents }
    }

    /// An array in global memory.
    fn global(&self, node: NodeId) -> Place {
        let problem = self.problem;
        let region = match problem.dag().nodes()[node].source {
            Source::Input(input) => &problem.regions().facts.inputs[input],
            Source::Func(func) => problem.stored(func),
        };
        let order = &problem.dag().nodes()[node].storage_order;
        Place::global(region, order.iter().copied())
    }
}

/// The axes of a walk in the blocks away from the edges of the grid, along dimensions that have such blocks.
pub fn inner_axes(kernel: &KernelPlan, walk: &Walk) -> SmallVec<[Axis; 16]> {
    let mut axes = walk.around.axes.clone();
    let along = axes.iter_mut().filter(|axis| axis.kind == AxisKind::Block);
    for (axis, blocks) in along.zip(kernel.blocks.iter().filter(|blocks| **blocks > 1)) {
        let margin = if *blocks < FEWEST_BLOCKS { 0 } else { EDGE_BLOCKS };
        (axis.start, axis.count) = (margin, blocks - 2 * margin);
    }
    axes
}
