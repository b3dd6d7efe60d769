//! Kernels whose lanes share registers.
//!
//! No sequence of single changes leads there at falling cost: each row of threads must be a warp, the block narrower
//! than the warp by the halo, and every Func of the kernel in registers, also those that were inlined because shared
//! memory would have cost more than recomputation.

use std::sync::Arc;

use rayon::prelude::*;
use smallvec::smallvec;
use warploom_lang::FuncId;
use warploom_plan::NestFootprint;
use warploom_schedule::{Kernel, Nest, NodeSet, RootItem, Size, ThreadTiles, Tile};

use crate::search::Search;
use crate::space::{SearchSpace, Span};
use crate::state::{Child, EvaluatedKernel, Sketch, State, funcs};

/// The adjacent points of a lane.
const POINTS: [i64; 3] = [1, 2, 4];

/// The rows of a thread.
const ROWS: [i64; 3] = [4, 8, 16];

/// The warps of a block.
const WARPS: [i64; 3] = [2, 4, 8];

/// The states in which the lanes of one kernel share registers, with various numbers of points, rows and warps.
pub(crate) fn in_lanes(search: &Search<'_>, state: &Arc<State>) -> Vec<Arc<State>> {
    let kernels = state.kernels.par_iter().filter(|_| !search.is_over());
    let found: Vec<Vec<Arc<State>>> = kernels.map(|kernel| with_lanes(search, state, kernel)).collect();
    found.into_iter().flatten().collect()
}

fn with_lanes(search: &Search<'_>, state: &Arc<State>, evaluated: &Arc<EvaluatedKernel>) -> Vec<Arc<State>> {
    let space = search.evaluator.space;
    let Some(sharing) = Sharing::new(space, state, evaluated) else { return Vec::new() };
    let mut found = Vec::new();
    for (points, rows) in POINTS.into_iter().flat_map(|points| ROWS.map(|rows| (points, rows))) {
        found.extend(WARPS.into_iter().filter_map(|warps| sharing.sketch(Shape { points, rows, warps })));
    }
    let (sketches, inlined): (Vec<Sketch>, Vec<NodeSet>) = found.into_iter().unzip();
    let verdicts = search.counted(|counts| {
        counts.enumerated += sketches.len() as u64;
        search.evaluator.judge(sketches, counts)
    });
    let legal =
        verdicts.into_iter().zip(inlined).filter_map(|(verdict, inlined)| Some((verdict.ok()?, inlined)));
    legal
        .map(|(evaluated, inlined)| Child::new(state, smallvec![evaluated], None, Some(inlined)).state())
        .collect()
}

/// The tile sizes of such a kernel.
#[derive(Clone, Copy)]
struct Shape {
    points: i64,
    rows: i64,
    warps: i64,
}

/// A kernel whose lanes could share registers.
struct Sharing<'a> {
    space: &'a SearchSpace<'a>,
    evaluated: &'a EvaluatedKernel,
    kernel: &'a Kernel,
    own: &'a Nest,
    /// The Funcs that are inlined in the state.
    inlined: &'a NodeSet,
    /// The Funcs that the kernel computes besides its own, and the Funcs inlined into it alone, producers first.
    funcs: Vec<FuncId>,
    /// The dimension of lanes, that of rows, and all others.
    lane: Span,
    row: Span,
    others: Vec<Span>,
}

impl<'a> Sharing<'a> {
    fn new(
        space: &'a SearchSpace<'a>,
        state: &'a State,
        evaluated: &'a EvaluatedKernel,
    ) -> Option<Sharing<'a>> {
        let kernel = evaluated.sketch.item.kernels().next()?;
        let own = kernel.body.last()?.nest()?;
        let facts = space.stage(evaluated.sketch.own);
        let plain = kernel.body.iter().all(|item| item.nest().is_some()) && facts.reductions.is_empty();
        if !plain || space.is_fixed(evaluated.sketch.own) {
            return None;
        }
        let warp = i64::from(space.problem.device().threads.warp);
        let lane = *facts.pure.iter().find(|span| span.extent >= warp)?;
        let mut others: Vec<Span> = facts.pure.iter().filter(|span| **span != lane).copied().collect();
        let row = others.remove(others.iter().position(|span| span.extent > 1)?);
        let funcs = shared_funcs(space, state, evaluated, kernel);
        let sharing =
            Sharing { space, evaluated, kernel, own, inlined: &state.inlined, funcs, lane, row, others };
        (!sharing.funcs.is_empty()).then_some(sharing)
    }

    /// The kernel with shared registers, and the Funcs that the state then inlines.
    fn sketch(&self, shape: Shape) -> Option<(Sketch, NodeSet)> {
        let warp = i64::from(self.space.problem.device().threads.warp);
        if shape.warps * shape.rows > self.row.extent {
            return None;
        }
        // The widest block shows which Funcs have shared points, and how wide the halo is.
        let full = warp * shape.points;
        let widest = self.item(shape, full, &self.funcs);
        let inlined = funcs(self.space, &self.without(&self.funcs));
        let plan = self.space.problem.plan_of(&inlined, [&widest]);
        let footprint = plan.nests.values().last()?.footprint.as_ref()?;
        let shared: Vec<FuncId> =
            self.funcs.iter().copied().filter(|func| self.is_shared(footprint, shape, *func)).collect();
        let width = (full - rim(footprint, warp, shape.points)) / shape.points * shape.points;
        if shared.is_empty() || 2 * width < full {
            return None;
        }
        let inlined = self.without(&shared);
        let sketch = Sketch::new(self.space, self.item(shape, width, &shared), &inlined)?;
        Some((sketch, inlined))
    }

    /// The inlined Funcs other than `shared`.
    fn without(&self, shared: &[FuncId]) -> NodeSet {
        let mut inlined = self.inlined.clone();
        shared.iter().for_each(|func| inlined.remove(self.space.dag.func_node(*func)));
        inlined
    }

    /// Whether the points of a thread, or several threads, use the same point of a Func. Funcs that were not inlined
    /// stay.
    fn is_shared(&self, footprint: &NestFootprint, shape: Shape, func: FuncId) -> bool {
        let was_inlined = self.inlined.contains(self.space.dag.func_node(func));
        let points = footprint.registers.get(&func).map_or(0, |own| own.thread.points.points());
        !was_inlined || points > (shape.points * shape.rows) as u64
    }

    /// The kernel with blocks of this width and some Funcs in registers.
    fn item(&self, shape: Shape, width: i64, shared: &[FuncId]) -> RootItem {
        let Sharing { lane, row, .. } = *self;
        let warp = i64::from(self.space.problem.device().threads.warp);
        let tile = |span: Span, size: i64| Tile { dim: span.dim, size: Size::Of(size as u32) };
        let others = || self.others.iter().map(|span| self.tile_of(*span));
        let block = [tile(lane, width), tile(row, shape.warps * shape.rows)].into_iter().chain(others());
        let threads = vec![tile(lane, warp), tile(row, shape.warps)];
        let mut serial: Vec<Tile> = others().filter(|tile| tile.size != Size::Of(1)).collect();
        serial.push(tile(row, shape.rows));
        serial.extend((shape.points > 1).then(|| tile(lane, shape.points)));
        let mut own = self.own.clone().mapped(ThreadTiles { threads, serial, unroll: true });
        own.registers = shared.to_vec();
        (own.numbers.lanes, own.numbers.interleave) = (true, false);
        let block: Vec<Tile> = block.collect();
        self.evaluated.sketch.item.with(|kernel| {
            kernel.block = block.clone();
            kernel.body = vec![own.clone().into()];
        })
    }

    /// The tile of a block along a dimension other than those of lanes and rows.
    fn tile_of(&self, span: Span) -> Tile {
        let known = self.kernel.block.iter().find(|tile| tile.dim == span.dim);
        known.copied().unwrap_or(Tile { dim: span.dim, size: Size::Of(1) })
    }
}

/// The Funcs that a kernel computes besides its own, and the nontrivial Funcs inlined into it alone, producers first.
fn shared_funcs(
    space: &SearchSpace<'_>,
    state: &State,
    evaluated: &EvaluatedKernel,
    kernel: &Kernel,
) -> Vec<FuncId> {
    let own = evaluated.sketch.own.func;
    let nests = kernel.nests().flat_map(|nest| {
        nest.item.stage().map(|stage| stage.func).into_iter().chain(nest.registers.iter().copied())
    });
    let others = || state.kernels.iter().filter(|other| other.sketch.own != evaluated.sketch.own);
    let inlined = evaluated.sketch.inlined.iter().filter(|id| {
        let node = &space.dag.nodes()[*id];
        let cheap = node.is_wrapper || node.is_boundary_condition || node.is_pointwise;
        !cheap && !others().any(|other| other.sketch.inlined.contains(*id))
    });
    let inlined = inlined.filter_map(|node| space.func_of(node)).filter(|func| !space.is_decided(*func));
    let mut funcs: Vec<FuncId> = nests.filter(|func| *func != own).chain(inlined).collect();
    funcs.sort_unstable_by_key(|func| space.dag.func_node(*func));
    funcs.dedup();
    funcs
}

/// The halo: the points by which a block must be narrower than the points of its lanes, so that the lanes hold all
/// points that it needs.
fn rim(footprint: &NestFootprint, warp: i64, points: i64) -> i64 {
    let beyond = footprint.registers.values().filter_map(|own| {
        let spread = own.spread?;
        let missing = own.block.points.dims[spread.dim].extent() - warp * spread.step;
        Some((missing * points + spread.step - 1) / spread.step)
    });
    beyond.fold(0, i64::max)
}
