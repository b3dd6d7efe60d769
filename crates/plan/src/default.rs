//! The default schedule: legal for any pipeline, and reasonable.

use std::collections::{BTreeMap, BTreeSet};

use warploom_lang::ir::{Node as ExprNode, NodeKind};
use warploom_lang::op::Class;
use warploom_lang::{FuncId, IdVec, Pipeline};
use warploom_schedule::{
    Item, LoopKind, Node, NodeId, RootItem, Schedule, Size, Stage, StageRef, ThreadTiles, Tile,
};

use crate::plan::grid;
use crate::problem::Problem;
use crate::reach::blocks;

/// A Func with at most this many operations may be recomputed.
const CHEAP_OPERATIONS: usize = 8;

/// The maximum recomputation factor of a cheap Func, relative to computing it at root.
const CHEAP_REPEATS: f64 = 4.0;

/// The maximum number of expression nodes of a stage, after inlining.
const MAX_NODES: u64 = 2000;

/// Threads along the fastest dimension: one warp at first, and more if no other dimension can use them.
const WARP: i64 = warploom_target::WARP as i64;

/// The maximum number of threads along the fastest dimension.
const MAX_ROW: i64 = 128;

/// The maximum number of threads per block.
const MAX_THREADS: i64 = 256;

/// Blocks are made smaller if there would be fewer of them than this.
const MIN_BLOCKS: i64 = 256;

impl Problem {
    /// The default schedule of a pipeline at the sizes of a realisation.
    ///
    /// Funcs that are cheap to recompute are inlined: boundary conditions, Funcs that are read at most as often as they
    /// have points, and cheap Funcs that are read a few times as often. Each stage of any other Func is its own kernel,
    /// whose blocks are one tile of threads; reduction variables run inside each thread.
    ///
    /// ```
    /// use warploom_lang::*;
    /// use warploom_plan::Problem;
    /// use warploom_schedule::Schedule;
    /// use warploom_target::Device;
    /// let (x, y) = vars!(x, y);
    /// let input = Input::f32("input", 2);
    /// let edge = func("edge", (x, y), input.at((clamp(x, 0, 999), y)));
    /// let row = func("row", (x, y), (0..9).map(|i| edge.at((x + i - 4, y))).reduce(|a, b| a + b).unwrap());
    /// let output = func("output", (x, y), (0..9).map(|i| row.at((x, y + i))).reduce(|a, b| a + b).unwrap());
    /// let pipeline = Pipeline::new("blur", [output])?;
    /// let request = Realisation::new(&pipeline)
    ///     .input("input", Region::of_extents(&[1000, 1008]))
    ///     .output("output", Region::of_extents(&[1000, 1000]));
    /// let problem = Problem::new(&pipeline, &request, &Device::preset("h200")?)?;
    /// assert_eq!(problem.default_schedule().to_text(&pipeline), "\
    /// blur             inline edge
    ///   kernel row     block x 32, y 8  threads x 32, y 8
    ///   kernel output  block x 32, y 8  threads x 32, y 8
    /// ");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn default_schedule(&self) -> Schedule {
        let pipeline = self.pipeline();
        let inlined = within_budget(pipeline, inlined(self));
        let funcs = pipeline.funcs().keys().filter(|func| !inlined.contains(func));
        let stages = funcs.flat_map(|func| self.defined_stages(func));
        let root = stages.map(|stage| self.default_kernel(stage)).collect();
        Schedule { rewrites: pipeline.rewrites().to_vec(), inlined, root }
    }

    /// The kernel that [`Problem::default_schedule`] uses for a stage that it does not inline. It computes
    /// that stage and nothing else.
    pub fn default_kernel(&self, stage: StageRef) -> RootItem {
        let item = Item::Stage(stage);
        let loops = self.loops(item);
        let pure = loops.into_iter().filter(|kind| matches!(kind, LoopKind::Pure(_)));
        let dims: Vec<LoopKind> = pure.collect();
        let extents: Vec<i64> = dims.iter().map(|dim| self.loop_range(item, *dim).extent.max(1)).collect();
        let threads = thread_counts(&extents);
        let block = block_sizes(&extents, &threads, self.device().threads.grid_dims);
        let tiles = |sizes: &[i64]| -> Vec<Tile> {
            let tile = |(dim, size): (&LoopKind, &i64)| Tile {
                dim: *dim,
                size: u32::try_from(*size).map_or(Size::All, Size::Of),
            };
            dims.iter().zip(sizes).map(tile).collect()
        };
        let mut shared = tiles(&threads);
        shared.retain(|tile| tile.size != Size::Of(1));
        let mapping = ThreadTiles { threads: shared, ..ThreadTiles::default() };
        RootItem::lone(stage, Vec::new(), tiles(&block), Vec::new(), mapping)
    }
}

/// The Funcs that the default schedule inlines.
fn inlined(problem: &Problem) -> BTreeSet<FuncId> {
    let dag = problem.dag();
    let mut inlined = BTreeSet::new();
    // How often each Func is evaluated if it is inlined. Consumers are decided before producers.
    let mut evaluations: IdVec<FuncId, f64> = problem.pipeline().funcs().values().map(|_| 0.0).collect();
    for func in problem.pipeline().funcs().keys().rev() {
        let node = dag.func_node(func);
        evaluations[func] = reads(problem, node, &inlined, &evaluations);
        let points = points(problem, StageRef { func, stage: 0 });
        if is_inlined(problem, &dag.nodes()[node], evaluations[func] / points) {
            inlined.insert(func);
        }
    }
    inlined
}

/// How often a Func is read by its consumers.
fn reads(
    problem: &Problem,
    node: NodeId,
    inlined: &BTreeSet<FuncId>,
    evaluations: &IdVec<FuncId, f64>,
) -> f64 {
    let dag = problem.dag();
    let edges = dag.nodes()[node].consumers.iter().map(|edge| &dag.edges()[*edge]);
    let times = edges.map(|edge| {
        let consumer = &dag.stages()[edge.consumer];
        let visits = if inlined.contains(&consumer.func) {
            evaluations[consumer.func]
        } else {
            visits(problem, consumer)
        };
        edge.calls as f64 * visits
    });
    times.sum()
}

/// The number of points of a stage's Func after that stage, at least 1.
fn points(problem: &Problem, stage: StageRef) -> f64 {
    let range = |d: usize| problem.loop_range(Item::Stage(stage), LoopKind::Pure(d));
    let dimensions = 0..problem.pipeline().funcs()[stage.func].dims.len();
    dimensions.map(|d| range(d).extent.max(1) as f64).product()
}

/// How often the expressions of a stage are evaluated.
fn visits(problem: &Problem, stage: &Stage) -> f64 {
    let item = Item::Stage(StageRef { func: stage.func, stage: stage.number });
    stage.loops.iter().map(|of| problem.loop_range(item, of.kind).extent.max(1) as f64).product()
}

/// Whether to inline a Func that is then computed `repeats` times as often.
fn is_inlined(problem: &Problem, node: &Node, repeats: f64) -> bool {
    let stage = &problem.dag().stages()[node.stages[0]];
    if node.is_output || node.has_updates() || stage.values == 0 {
        return false;
    }
    let cheap = is_cheap(problem.pipeline(), stage);
    let constant = cheap && stage.accesses.is_empty();
    node.is_boundary_condition
        || node.is_wrapper
        || constant
        || repeats <= 1.0
        || (cheap && repeats <= CHEAP_REPEATS)
}

/// Whether a stage computes little at a point: few operations, and no elementary function.
fn is_cheap(pipeline: &Pipeline, stage: &Stage) -> bool {
    let exprs = pipeline.exprs();
    let class = |node: &ExprNode| match node.kind {
        NodeKind::Op(op) => op.class(node.args.last().map_or(node.ty, |arg| exprs[*arg].ty), node.ty),
        _ => None,
    };
    let definition = &pipeline.funcs()[stage.func].stages[stage.number];
    let nodes = exprs.reachable(definition.roots());
    let classes: Vec<Class> = nodes.into_iter().filter_map(|id| class(&exprs[id])).collect();
    classes.len() <= CHEAP_OPERATIONS && !classes.contains(&Class::FloatSpecial)
}

/// Removes Funcs from `inlined` until no stage is too large. Each oversized stage drops its largest
/// inlined Funcs.
fn within_budget(pipeline: &Pipeline, mut inlined: BTreeSet<FuncId>) -> BTreeSet<FuncId> {
    // Nodes of each Func's first stage after inlining; producers come first.
    let mut nodes: IdVec<FuncId, u64> = IdVec::new();
    for (func, decl) in pipeline.funcs().iter() {
        let mut sizes = Vec::new();
        for number in 0..decl.stages.len() {
            sizes.push(trimmed(pipeline, StageRef { func, stage: number }, &nodes, &mut inlined));
        }
        nodes.push(sizes.first().copied().unwrap_or(0));
    }
    inlined
}

/// The nodes of a stage, after removing its largest inlined Funcs until it is small enough.
fn trimmed(
    pipeline: &Pipeline,
    stage: StageRef,
    nodes: &IdVec<FuncId, u64>,
    inlined: &mut BTreeSet<FuncId>,
) -> u64 {
    let exprs = pipeline.exprs();
    let reachable = exprs.reachable(pipeline.funcs()[stage.func].stages[stage.stage].roots());
    let calls = reachable.iter().filter_map(|id| match exprs[*id].kind {
        NodeKind::Call(func, _) if func != stage.func => Some(func),
        _ => None,
    });
    let mut times: BTreeMap<FuncId, u64> = BTreeMap::new();
    for func in calls.filter(|func| inlined.contains(func)) {
        *times.entry(func).or_default() += 1;
    }
    let parts = times.iter().map(|(func, times)| (nodes[*func].saturating_mul(*times), *func));
    let mut parts: BTreeSet<(u64, FuncId)> = parts.collect();
    let own = reachable.len() as u128;
    let mut total = parts.iter().fold(own, |sum, (size, _)| sum + u128::from(*size));
    while total > u128::from(MAX_NODES) {
        let Some((size, largest)) = parts.pop_last() else { break };
        inlined.remove(&largest);
        total -= u128::from(size);
    }
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// Threads along each loop, fastest first: powers of two, no more than needed for the points.
fn thread_counts(extents: &[i64]) -> Vec<i64> {
    let limit = thread_limit(extents);
    let wanted = |extent: i64| (extent as u64).next_power_of_two() as i64;
    let mut threads = Vec::new();
    let mut left = limit;
    for (position, extent) in extents.iter().enumerate() {
        let most = if position == 0 { left.min(WARP) } else { left };
        threads.push(wanted(*extent).min(most));
        left /= threads[position];
    }
    if let (Some(first), Some(extent)) = (threads.first_mut(), extents.first()) {
        *first = (*first * left).min(wanted(*extent)).min(MAX_ROW);
    }
    threads
}

/// Threads per block: fewer if there would be too few blocks to fill a device.
fn thread_limit(extents: &[i64]) -> i64 {
    let points = extents.iter().fold(1i64, |points, extent| points.saturating_mul(*extent));
    let mut limit = MAX_THREADS;
    while limit > WARP && points / limit < MIN_BLOCKS {
        limit /= 2;
    }
    limit
}

/// The extent of each loop that a block covers: its thread count, doubled as long as the grid is too
/// large.
fn block_sizes(extents: &[i64], threads: &[i64], limits: [u32; 3]) -> Vec<i64> {
    let mut sizes = threads.to_vec();
    while let Some(d) = oversized(extents, &sizes, limits) {
        sizes[d] *= 2;
    }
    sizes
}

/// The loop with the most blocks, if the grid exceeds the limits.
fn oversized(extents: &[i64], sizes: &[i64], limits: [u32; 3]) -> Option<usize> {
    let counts: Vec<i64> = extents.iter().zip(sizes).map(|(extent, size)| blocks(*extent, *size)).collect();
    let beyond = grid(&counts, limits)[0] > u64::from(limits[0]);
    beyond.then(|| (0..counts.len()).max_by_key(|d| counts[*d])).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

    #[test]
    fn threads_follow_the_extents() {
        assert_eq!(thread_counts(&[1536, 2560]), [32, 8]);
        assert_eq!(thread_counts(&[1536, 2560, 3]), [32, 8, 1]);
        assert_eq!(thread_counts(&[3, 1536, 2560]), [4, 64, 1]);
        assert_eq!(thread_counts(&[1 << 20]), [128]);
        assert_eq!(thread_counts(&[1536, 3]), [32, 1]);
        assert_eq!(thread_counts(&[1, 1]), [1, 1]);
        assert!(thread_counts(&[]).is_empty());
    }

    #[test]
    fn grids_stay_within_limits() {
        for extents in [
            vec![1 << 29, 1 << 10],
            vec![1, 1 << 29],
            vec![7, 1 << 29, 1],
            vec![5, 5, 1 << 20, 1 << 10],
            vec![64, 64, 64, 64, 64],
            vec![1 << 19, 1 << 20],
        ] {
            let threads = thread_counts(&extents);
            let sizes = block_sizes(&extents, &threads, LIMITS);
            assert_eq!(oversized(&extents, &sizes, LIMITS), None, "{extents:?}");
            assert!(sizes.iter().zip(&threads).all(|(size, threads)| size % threads == 0));
            assert!(threads.iter().product::<i64>() <= MAX_THREADS);
        }
    }
}
