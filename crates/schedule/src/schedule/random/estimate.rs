//! How much a schedule computes, and how large its kernels are: estimates that keep random schedules in bounds.

use warploom_lang::{FuncId, IdVec, Pipeline, Regions};

use crate::dag::{Dag, LoopKind, Source};
use crate::ids::StageId;
use crate::schedule::footprint::{Footprints, NestFootprint};
use crate::schedule::outline::{NestInfo, Outline};
use crate::schedule::reach::{Reach, Symbol, blocks};
use crate::schedule::trace::{domain, loop_range};
use crate::schedule::tree::{Item, Mapping, Schedule, StageRef};

/// What a statement takes beside its expressions: loops, guards, the store.
const STATEMENT_NODES: u64 = 8;

/// How often definitions are evaluated when a schedule runs, all stages and copies of inputs together.
///
/// What halos compute again counts as often as it is computed, an inlined Func as often as it is used.
///
/// ```
/// use warploom_lang::*;
/// use warploom_schedule::schedule::{ScheduleBuilder, work};
/// let x = vars!(x);
/// let ramp = func("ramp", x, x * 3);
/// let blur = func("blur", x, ramp.at(x) + ramp.at(x + 1));
/// let pipeline = Pipeline::new("blur", [blur])?;
/// let regions = infer(&pipeline, &Realisation::new(&pipeline).output("blur", Region::of_extents(&[64])))?;
/// let blocks = |tile| {
///     ScheduleBuilder::new(&pipeline).kernel("blur", tile, |block| block.flat("ramp").flat("blur"))
/// };
/// assert_eq!(work(&blocks("x 16").build()?, &pipeline, &regions), 64.0 + 4.0 * 17.0);
/// assert_eq!(work(&blocks("x 4").build()?, &pipeline, &regions), 64.0 + 16.0 * 5.0);
/// let inlined = ScheduleBuilder::new(&pipeline).inline(["ramp"]);
/// let inlined = inlined.kernel("blur", "x 16", |block| block.flat("blur")).build()?;
/// assert_eq!(work(&inlined, &pipeline, &regions), 64.0 + 2.0 * 64.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If the schedule or the regions are of another pipeline.
pub fn work(schedule: &Schedule, pipeline: &Pipeline, regions: &Regions) -> f64 {
    let (dag, outline) = (Dag::new(pipeline), Outline::new(&schedule.root));
    let footprints = Footprints::new(schedule, pipeline, regions);
    Estimator::new(pipeline, regions, &dag).work(schedule, &outline, &footprints)
}

/// Nodes of the largest kernel, as the compiler behind sees it: inlined Funcs stand at each of their uses,
/// unrolled loops are written out, and a kernel whose tiles do not divide its stage holds its body twice.
///
/// # Panics
/// If the schedule or the regions are of another pipeline.
pub fn size(schedule: &Schedule, pipeline: &Pipeline, regions: &Regions) -> u64 {
    let (dag, outline) = (Dag::new(pipeline), Outline::new(&schedule.root));
    let footprints = Footprints::new(schedule, pipeline, regions);
    Estimator::new(pipeline, regions, &dag).size(schedule, &outline, &footprints)
}

/// Estimates of schedules of one pipeline.
pub(super) struct Estimator<'a> {
    regions: &'a Regions,
    dag: &'a Dag,
    /// Nodes of each stage's own expressions.
    nodes: IdVec<StageId, u64>,
}

impl<'a> Estimator<'a> {
    pub fn new(pipeline: &Pipeline, regions: &'a Regions, dag: &'a Dag) -> Estimator<'a> {
        let nodes = dag.stages().values().map(|stage| {
            let decl = &pipeline.funcs()[stage.func].stages[stage.number];
            pipeline.exprs().reachable(decl.roots()).len() as u64 + STATEMENT_NODES
        });
        Estimator { regions, dag, nodes: nodes.collect() }
    }

    fn stage(&self, stage: StageRef) -> StageId {
        self.dag.nodes()[self.dag.func_node(stage.func)].stages[stage.stage]
    }

    fn stages_of(&self, func: FuncId) -> &[StageId] {
        &self.dag.nodes()[self.dag.func_node(func)].stages
    }

    pub fn work(&self, schedule: &Schedule, outline: &Outline<'_>, footprints: &Footprints) -> f64 {
        let mut evaluations: IdVec<StageId, f64> = self.dag.stages().values().map(|_| 0.0).collect();
        let mut copies = 0.0;
        for (info, nest) in outline.nests.iter().zip(&footprints.nests) {
            let Some(nest) = nest else { continue };
            let runs = self.runs(outline, footprints, info, nest);
            match info.nest.item {
                Item::Stage(stage) => evaluations[self.stage(stage)] += runs * self.visits(stage, nest),
                Item::Input(_) => copies += runs * nest.points.points() as f64,
            }
            for (func, register) in &nest.registers {
                let times = runs * self.thread_tiles(info, nest);
                for (id, points) in self.stages_of(*func).iter().zip(&register.thread.stages) {
                    evaluations[*id] += times * points.points() as f64 * self.whole_domain(*id);
                }
            }
        }
        // Consumers come first, so that those of an inlined Func are complete.
        for func in schedule.inlined.iter().rev() {
            let consumers = self.dag.nodes()[self.dag.func_node(*func)].consumers.iter();
            let edges = consumers.map(|edge| &self.dag.edges()[*edge]);
            let times: f64 = edges.map(|edge| edge.calls as f64 * evaluations[edge.consumer]).sum();
            evaluations[self.stages_of(*func)[0]] = times;
        }
        copies + evaluations.values().sum::<f64>()
    }

    /// How often a nest runs, whole: in every block and iteration, those at the edge as far as they are full.
    fn runs(
        &self,
        outline: &Outline<'_>,
        footprints: &Footprints,
        info: &NestInfo<'_>,
        nest: &NestFootprint,
    ) -> f64 {
        let kernel = outline.kernels[info.kernel].kernel;
        let counts = &footprints.kernels[info.kernel].blocks;
        let tiles = kernel.block.iter().zip(counts).map(|(tile, count)| {
            let extent = loop_range(self.regions, Item::Stage(kernel.stage), tile.dim).extent;
            (Symbol::Block(tile.dim), extent, tile.size.of(extent), *count)
        });
        let loops = info.loops.iter().map(|number| {
            let tile = outline.loops[*number].tile;
            let extent = domain(self.regions, tile.stage, tile.var).extent;
            (Symbol::Loop(*number), extent, tile.size.of(extent), footprints.loops[*number].count)
        });
        let times = tiles.chain(loops).map(|(symbol, extent, size, count)| {
            // What moves with a loop is cut where the loop ends.
            if moves(nest, symbol) { extent as f64 / size as f64 } else { count as f64 }
        });
        times.product()
    }

    /// Evaluations of a stage each time its nest runs.
    fn visits(&self, stage: StageRef, nest: &NestFootprint) -> f64 {
        let loops = &self.dag.stages()[self.stage(stage)].loops;
        let extents = loops.iter().map(|of| match of.kind {
            LoopKind::Pure(d) => nest.points.dims[d].extent(),
            LoopKind::Reduction(r) => nest.domain[r].extent(),
        });
        extents.map(|extent| extent as f64).product()
    }

    /// How many tiles of points the threads take each time a nest of a stage runs.
    fn thread_tiles(&self, info: &NestInfo<'_>, nest: &NestFootprint) -> f64 {
        let Some(stage) = info.stage() else { return 0.0 };
        let named = |kind: LoopKind| nest.threads.iter().flatten().find(|dim| dim.dim == kind);
        let tiles =
            self.dag.stages()[self.stage(stage)].loops.iter().map(|of| match (of.kind, named(of.kind)) {
                (LoopKind::Pure(_), Some(dim)) => blocks(dim.extent, dim.serial),
                (LoopKind::Pure(d), None) => nest.points.dims[d].extent(),
                // Each thread runs a reduction variable whole, unless threads share it.
                (LoopKind::Reduction(_), Some(dim)) if dim.threads > 1 => blocks(dim.extent, dim.serial),
                (LoopKind::Reduction(_), _) => 1,
            });
        tiles.map(|tiles| tiles as f64).product()
    }

    fn whole_domain(&self, id: StageId) -> f64 {
        let stage = &self.dag.stages()[id];
        let domain = &self.regions.funcs[stage.func].stages[stage.number].domain;
        domain.iter().map(|range| range.extent.max(1) as f64).product()
    }

    pub fn size(&self, schedule: &Schedule, outline: &Outline<'_>, footprints: &Footprints) -> u64 {
        let nodes = self.inlined_nodes(schedule);
        let kernels = outline.kernels.iter().zip(&footprints.kernels).map(|(info, kernel)| {
            let nests = outline.nests[info.nests.clone()].iter().zip(&footprints.nests[info.nests.clone()]);
            let nests = nests.filter_map(|(info, nest)| Some(self.nest_nodes(info, nest.as_ref()?, &nodes)));
            let body = nests.fold(0, u64::saturating_add);
            let cut = info.kernel.block.iter().zip(&kernel.blocks).any(|(tile, count)| {
                let extent = loop_range(self.regions, Item::Stage(info.kernel.stage), tile.dim).extent;
                count * tile.size.of(extent) != extent
            });
            body.saturating_mul(if cut { 2 } else { 1 })
        });
        kernels.max().unwrap_or(0)
    }

    /// Nodes of a nest and of the Funcs in its registers, all points written out that are.
    fn nest_nodes(&self, info: &NestInfo<'_>, nest: &NestFootprint, nodes: &IdVec<StageId, u64>) -> u64 {
        let own = match info.nest.item {
            Item::Stage(stage) => nodes[self.stage(stage)],
            Item::Input(_) => STATEMENT_NODES,
        };
        let registers = nest.registers.iter().flat_map(|(func, register)| {
            let stages = self.stages_of(*func).iter().zip(&register.thread.stages);
            stages.map(|(id, points)| nodes[*id].saturating_mul(points.points()))
        });
        registers.fold(own.saturating_mul(unrolled(info, nest)), u64::saturating_add)
    }

    /// Nodes of each stage with inlined Funcs written out.
    fn inlined_nodes(&self, schedule: &Schedule) -> IdVec<StageId, u64> {
        let mut nodes: IdVec<StageId, u64> = IdVec::new();
        // Producers come first.
        for (id, stage) in self.dag.stages().iter() {
            let edges = stage.producers.iter().map(|edge| &self.dag.edges()[*edge]);
            let inlined = edges.filter_map(|edge| match self.dag.nodes()[edge.producer].source {
                Source::Func(func) if schedule.inlined.contains(&func) => {
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

/// Whether what a nest computes moves with a block or loop.
fn moves(nest: &NestFootprint, symbol: Symbol) -> bool {
    let has = |reach: &Reach| reach.terms.iter().any(|(known, _)| *known == symbol);
    nest.points.dims.iter().chain(&nest.domain).any(has)
}

/// How many points of a nest stand one after the other in its kernel's text.
pub(super) fn unrolled(info: &NestInfo<'_>, nest: &NestFootprint) -> u64 {
    match (&info.nest.mapping, &nest.threads) {
        (Mapping::Threads(tiles), Some(loops)) if tiles.unroll => {
            loops.iter().fold(1, |product: u64, dim| product.saturating_mul(dim.serial as u64))
        }
        _ => 1,
    }
}
