//! Estimates of the work of a schedule and of the size of its kernels, which keep random schedules
//! within bounds.

use warploom_lang::{FuncId, IdVec};
use warploom_schedule::{Item, LoopKind, Schedule, Source, StageId, StageRef};

use crate::footprint::NestFootprint;
use crate::plan::{LoopPlan, NestPlan, Plan};
use crate::problem::Problem;
use crate::reach::symbol::Symbol;
use crate::reach::{Reach, blocks};

/// The nodes of a statement besides its expressions: loops, guards, the store.
const STATEMENT_NODES: u64 = 8;

/// The number of evaluations of definitions when a schedule runs, over all stages and staged inputs.
///
/// Points that halos recompute count each time they are computed, and an inlined Func counts once per use.
///
/// ```
/// use warploom_lang::*;
/// use warploom_plan::{Problem, work};
/// use warploom_schedule::ScheduleBuilder;
/// use warploom_target::Device;
/// let x = vars!(x);
/// let ramp = func("ramp", x, x * 3);
/// let blur = func("blur", x, ramp.at(x) + ramp.at(x + 1));
/// let pipeline = Pipeline::new("blur", [blur])?;
/// let request = Realisation::new(&pipeline).output("blur", Region::of_extents(&[64]));
/// let problem = Problem::new(&pipeline, &request, &Device::preset("h200")?)?;
/// let blocks = |tile| {
///     ScheduleBuilder::new(&pipeline).kernel("blur", tile, |block| block.flat("ramp").flat("blur"))
/// };
/// assert_eq!(work(&problem, &blocks("x 16").build()?), 64.0 + 4.0 * 17.0);
/// assert_eq!(work(&problem, &blocks("x 4").build()?), 64.0 + 16.0 * 5.0);
/// let inlined = ScheduleBuilder::new(&pipeline).inline(["ramp"]);
/// let inlined = inlined.kernel("blur", "x 16", |block| block.flat("blur")).build()?;
/// assert_eq!(work(&problem, &inlined), 64.0 + 2.0 * 64.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn work(problem: &Problem, schedule: &Schedule) -> f64 {
    Estimator::new(problem).work(&problem.plan(schedule))
}

/// The number of nodes of the largest kernel, as the downstream compiler sees it: inlined Funcs are
/// copied into each use, loops are unrolled, and a kernel whose tiles do not divide its stage has its
/// body twice.
pub fn size(problem: &Problem, schedule: &Schedule) -> u64 {
    Estimator::new(problem).size(&problem.plan(schedule))
}

/// Estimates for schedules of one problem.
pub(super) struct Estimator<'a> {
    problem: &'a Problem,
    /// Nodes of each stage's own expressions.
    nodes: IdVec<StageId, u64>,
}

impl<'a> Estimator<'a> {
    pub fn new(problem: &'a Problem) -> Estimator<'a> {
        let pipeline = problem.pipeline();
        let nodes = problem.dag().stages().values().map(|stage| {
            let decl = &pipeline.funcs()[stage.func].stages[stage.number];
            pipeline.exprs().reachable(decl.roots()).len() as u64 + STATEMENT_NODES
        });
        Estimator { problem, nodes: nodes.collect() }
    }

    fn stages_of(&self, func: FuncId) -> &[StageId] {
        let dag = self.problem.dag();
        &dag.nodes()[dag.func_node(func)].stages
    }

    fn stage_id(&self, stage: StageRef) -> StageId {
        self.problem.stage_id(stage)
    }

    pub fn work(&self, plan: &Plan) -> f64 {
        let dag = self.problem.dag();
        let mut evaluations: IdVec<StageId, f64> = dag.stages().values().map(|_| 0.0).collect();
        let mut copies = 0.0;
        for info in plan.nests.values() {
            let Some(nest) = &info.footprint else { continue };
            let runs = self.runs(plan, info, nest);
            match info.nest.item {
                Item::Stage(stage) => evaluations[self.stage_id(stage)] += runs * self.visits(stage, nest),
                Item::Input(_) => copies += runs * nest.points.points() as f64,
            }
            for (func, register) in &nest.registers {
                let times = runs * self.thread_tiles(info, nest);
                for (id, points) in self.stages_of(*func).iter().zip(&register.thread.stages) {
                    evaluations[*id] += times * points.points() as f64 * self.whole_domain(*id);
                }
            }
        }
        // Consumers come first, so the counts of an inlined Func's consumers are complete.
        let inlined: Vec<FuncId> = plan.inlined.iter().collect();
        for func in inlined.iter().rev() {
            let consumers = dag.nodes()[dag.func_node(*func)].consumers.iter();
            let edges = consumers.map(|edge| &dag.edges()[*edge]);
            let times: f64 = edges.map(|edge| edge.calls as f64 * evaluations[edge.consumer]).sum();
            evaluations[self.stages_of(*func)[0]] = times;
        }
        copies + evaluations.values().sum::<f64>()
    }

    /// How often a nest runs, over all blocks and iterations. Partial tiles at the border count as
    /// fractions.
    fn runs(&self, plan: &Plan, info: &NestPlan, nest: &NestFootprint) -> f64 {
        let kernel = &plan.kernels[info.kernel];
        let tiles = kernel.kernel.block.iter().zip(&kernel.blocks).map(|(tile, count)| {
            let extent = self.problem.loop_range(Item::Stage(kernel.kernel.stage), tile.dim).extent;
            (Symbol::Block(tile.dim), extent, tile.size.of(extent), *count)
        });
        let loops = info.loops.iter().map(|id| {
            let LoopPlan { tile, count, .. } = &plan.loops[*id];
            let extent = self.problem.domain(tile.stage, tile.var).extent;
            (Symbol::Loop(*id), extent, tile.size.of(extent), *count)
        });
        let times = tiles.chain(loops).map(|(symbol, extent, size, count)| {
            // The part of a nest that moves with a loop is cut off where the loop ends.
            if moves(nest, symbol) { extent as f64 / size as f64 } else { count as f64 }
        });
        times.product()
    }

    /// Evaluations of a stage per run of its nest.
    fn visits(&self, stage: StageRef, nest: &NestFootprint) -> f64 {
        let loops = self.problem.loops(Item::Stage(stage));
        loops.iter().map(|kind| nest.extent(*kind) as f64).product()
    }

    /// The number of tiles of points that threads compute per run of a nest.
    fn thread_tiles(&self, info: &NestPlan, nest: &NestFootprint) -> f64 {
        let named = |kind: LoopKind| nest.threads.iter().flatten().find(|dim| dim.dim == kind);
        let tiles = self.problem.loops(info.nest.item).into_iter().map(|kind| match (kind, named(kind)) {
            (LoopKind::Pure(_), Some(dim)) => blocks(dim.extent, dim.serial),
            (LoopKind::Pure(d), None) => nest.points.dims[d].extent(),
            // Each thread runs a whole reduction variable, unless threads share it.
            (LoopKind::Reduction(_), Some(dim)) if dim.threads > 1 => blocks(dim.extent, dim.serial),
            (LoopKind::Reduction(_), _) => 1,
        });
        tiles.map(|tiles| tiles as f64).product()
    }

    fn whole_domain(&self, id: StageId) -> f64 {
        let stage = &self.problem.dag().stages()[id];
        let domain = &self.problem.regions().funcs[stage.func].stages[stage.number].domain;
        domain.iter().map(|range| range.extent.max(1) as f64).product()
    }

    pub fn size(&self, plan: &Plan) -> u64 {
        let nodes = self.inlined_nodes(plan);
        let kernels = plan.kernels.values().map(|kernel| {
            let nests = plan.nests.slice(kernel.nests.clone()).iter();
            let body = nests.map(|nest| self.nest_nodes(nest, &nodes)).fold(0, u64::saturating_add);
            let cut = kernel.kernel.block.iter().zip(&kernel.blocks).any(|(tile, count)| {
                let extent = self.problem.loop_range(Item::Stage(kernel.kernel.stage), tile.dim).extent;
                count * tile.size.of(extent) != extent
            });
            body.saturating_mul(if cut { 2 } else { 1 })
        });
        kernels.max().unwrap_or(0)
    }

    /// Nodes of a nest and of the Funcs in its registers, with unrolled loops expanded.
    fn nest_nodes(&self, info: &NestPlan, nodes: &IdVec<StageId, u64>) -> u64 {
        let Some(nest) = &info.footprint else { return 0 };
        let own = match info.nest.item {
            Item::Stage(stage) => nodes[self.stage_id(stage)],
            Item::Input(_) => STATEMENT_NODES,
        };
        let registers = nest.registers.iter().flat_map(|(func, register)| {
            let stages = self.stages_of(*func).iter().zip(&register.thread.stages);
            stages.map(|(id, points)| nodes[*id].saturating_mul(points.points()))
        });
        registers.fold(own.saturating_mul(unrolled(info)), u64::saturating_add)
    }

    /// Nodes of each stage after inlining.
    fn inlined_nodes(&self, plan: &Plan) -> IdVec<StageId, u64> {
        let dag = self.problem.dag();
        let mut nodes: IdVec<StageId, u64> = IdVec::new();
        // Producers come first.
        for (id, stage) in dag.stages().iter() {
            let edges = stage.producers.iter().map(|edge| &dag.edges()[*edge]);
            let inlined = edges.filter_map(|edge| match dag.nodes()[edge.producer].source {
                Source::Func(func) if plan.inlined.contains(func) => {
                    Some(nodes[self.stages_of(func)[0]].saturating_mul(edge.calls))
                }
                _ => None,
            });
            let total = inlined.fold(self.nodes[id], u64::saturating_add);
            nodes.push(total);
        }
        nodes
    }
}

/// Whether the points of a nest move with a block or loop.
fn moves(nest: &NestFootprint, symbol: Symbol) -> bool {
    let has = |reach: &Reach| reach.terms.iter().any(|(known, _)| *known == symbol);
    nest.points.dims.iter().chain(&nest.domain).any(has)
}

/// The number of unrolled copies of a nest's body in its kernel.
pub(super) fn unrolled(info: &NestPlan) -> u64 {
    let axes = info.footprint.iter().flat_map(|nest| &nest.axes);
    axes.filter(|axis| axis.unrolled).fold(1, |points: u64, axis| points.saturating_mul(axis.count as u64))
}
