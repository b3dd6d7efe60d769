//! The schedule that is used where nobody wrote one: legal for every pipeline, and sensible.

use std::collections::{BTreeMap, BTreeSet};

use warploom_lang::ir::NodeKind;
use warploom_lang::{FuncId, IdVec, Pipeline, Regions};

use crate::dag::{Dag, LoopKind, Node};
use crate::features::Row;
use crate::ids::NodeId;
use crate::schedule::tree::{RootItem, Schedule, Size, StageRef, ThreadTiles, Tile};

/// A Func with at most this many operations may be computed several times.
const CHEAP_OPERATIONS: u32 = 8;

/// How many times as often a cheap Func may be computed as at root.
const CHEAP_REPEATS: f64 = 4.0;

/// The most nodes of a stage's expressions, with all inlined Funcs written out.
const MAX_NODES: u64 = 2000;

/// Threads along the fastest dimension: a warp at first, and more where there is nothing else to share.
const WARP: i64 = 32;

/// The most threads along the fastest dimension.
const MAX_ROW: i64 = 128;

/// The most threads of a block.
const MAX_THREADS: i64 = 256;

/// Blocks are smaller where there would be fewer of them than this.
const MIN_BLOCKS: i64 = 256;

/// The most blocks along y, and along all dimensions after it together.
const MAX_GRID: i64 = 65_535;

/// The most blocks of a kernel.
const MAX_BLOCKS: i64 = i32::MAX as i64;

impl Schedule {
    /// The default schedule of a pipeline at the sizes of a realisation.
    ///
    /// Funcs that cost little where they are used are inlined: boundary conditions, Funcs that are read no more
    /// often than they have points, and cheap ones that are read a few times as often. Each stage of the others is a
    /// kernel of its own, whose blocks are one tile of threads; reduction variables run inside each thread.
    ///
    /// ```
    /// use warploom_lang::*;
    /// use warploom_schedule::schedule::Schedule;
    /// let (x, y) = vars!(x, y);
    /// let input = Input::f32("input", 2);
    /// let edge = func("edge", (x, y), input.at((clamp(x, 0, 999), y)));
    /// let row = func("row", (x, y), (0..9).map(|i| edge.at((x + i - 4, y))).reduce(|a, b| a + b).unwrap());
    /// let output = func("output", (x, y), (0..9).map(|i| row.at((x, y + i))).reduce(|a, b| a + b).unwrap());
    /// let pipeline = Pipeline::new("blur", [output])?;
    /// let request = Realisation::new(&pipeline)
    ///     .input("input", Region::of_extents(&[1000, 1008]))
    ///     .output("output", Region::of_extents(&[1000, 1000]));
    /// let regions = infer(&pipeline, &request)?;
    /// assert_eq!(Schedule::default_for(&pipeline, &regions).to_text(&pipeline), "\
    /// blur             inline edge
    ///   kernel row     block x 32, y 8  threads x 32, y 8
    ///   kernel output  block x 32, y 8  threads x 32, y 8
    /// ");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If the regions are those of another pipeline.
    pub fn default_for(pipeline: &Pipeline, regions: &Regions) -> Schedule {
        let inlined = within_budget(pipeline, inlined(pipeline, regions));
        let mut root = Vec::new();
        for (func, decl) in pipeline.funcs().iter().filter(|(func, _)| !inlined.contains(func)) {
            let defined = (0..decl.stages.len()).filter(|stage| !decl.stages[*stage].values.is_empty());
            root.extend(defined.map(|stage| kernel(pipeline, regions, StageRef { func, stage })));
        }
        Schedule { inlined, root }
    }

    /// The kernel that [`Schedule::default_for`] has for a stage that it does not inline.
    pub fn default_kernel(pipeline: &Pipeline, regions: &Regions, stage: StageRef) -> RootItem {
        kernel(pipeline, regions, stage)
    }
}

/// The Funcs that are best computed where they are used.
fn inlined(pipeline: &Pipeline, regions: &Regions) -> BTreeSet<FuncId> {
    let dag = Dag::new(pipeline);
    let mut inlined = BTreeSet::new();
    // How often each Func is computed if it is inlined; its consumers are decided before it.
    let mut evaluations: IdVec<FuncId, f64> = pipeline.funcs().values().map(|_| 0.0).collect();
    for func in pipeline.funcs().keys().rev() {
        let node = dag.func_node(func);
        evaluations[func] = reads(&dag, regions, node, &inlined, &evaluations);
        let points = points(regions, StageRef { func, stage: 0 });
        if is_inlined(&dag, &dag.nodes()[node], evaluations[func] / points) {
            inlined.insert(func);
        }
    }
    inlined
}

/// How often the stages that read a Func do so.
fn reads(
    dag: &Dag,
    regions: &Regions,
    node: NodeId,
    inlined: &BTreeSet<FuncId>,
    evaluations: &IdVec<FuncId, f64>,
) -> f64 {
    let edges = dag.nodes()[node].consumers.iter().map(|edge| &dag.edges()[*edge]);
    let times = edges.map(|edge| {
        let consumer = &dag.stages()[edge.consumer];
        let visits = if inlined.contains(&consumer.func) {
            evaluations[consumer.func]
        } else {
            visits(dag, regions, StageRef { func: consumer.func, stage: consumer.number })
        };
        edge.calls as f64 * visits
    });
    times.sum()
}

/// The points of a stage's Func after that stage, at least 1.
fn points(regions: &Regions, stage: StageRef) -> f64 {
    let needed = &regions.funcs[stage.func].stages[stage.stage].needed;
    needed.0.iter().map(|range| range.extent.max(1) as f64).product()
}

/// How often the expressions of a stage are evaluated.
fn visits(dag: &Dag, regions: &Regions, stage: StageRef) -> f64 {
    let loops = &regions.funcs[stage.func].stages[stage.stage];
    let decl = &dag.stages()[dag.nodes()[dag.func_node(stage.func)].stages[stage.stage]];
    let extent = |kind: LoopKind| match kind {
        LoopKind::Pure(d) => loops.needed[d].extent,
        LoopKind::Reduction(r) => loops.domain[r].extent,
    };
    decl.loops.iter().map(|dim| extent(dim.kind).max(1) as f64).product()
}

/// Whether a Func that is computed `repeats` times as often when inlined is better inlined.
fn is_inlined(dag: &Dag, node: &Node, repeats: f64) -> bool {
    let stage = &dag.stages()[node.stages[0]];
    if node.is_output || node.has_updates() || stage.values == 0 {
        return false;
    }
    let operations = Row::ALL.into_iter().filter(|row| is_operation(*row));
    let operations: u32 = operations.map(|row| stage.features.total(row)).sum();
    let cheap = operations <= CHEAP_OPERATIONS && stage.features.total(Row::Transcendental) == 0;
    let constant = cheap && stage.accesses.is_empty();
    node.is_boundary_condition
        || node.is_wrapper
        || constant
        || repeats <= 1.0
        || (cheap && repeats <= CHEAP_REPEATS)
}

/// Whether a row counts operations that take time.
fn is_operation(row: Row) -> bool {
    let free = [Row::Const, Row::Variable, Row::Param, Row::Size, Row::Reinterpret];
    (row as usize) < (Row::LoadInput as usize) && !free.contains(&row)
}

/// Takes Funcs out of `inlined` until no stage grows too large: the largest part of each that does.
fn within_budget(pipeline: &Pipeline, mut inlined: BTreeSet<FuncId>) -> BTreeSet<FuncId> {
    // Nodes of each Func's first stage, inlined Funcs written out; producers come first.
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

/// The nodes of a stage once the largest Funcs that it reads are no longer inlined, as far as needed.
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

/// A kernel that computes one stage and nothing else.
fn kernel(pipeline: &Pipeline, regions: &Regions, stage: StageRef) -> RootItem {
    let decl = &pipeline.funcs()[stage.func].stages[stage.stage];
    let needed = &regions.funcs[stage.func].stages[stage.stage].needed;
    let dims: Vec<usize> = (0..decl.indices.len()).filter(|d| decl.is_pure(pipeline.exprs(), *d)).collect();
    let extents: Vec<i64> = dims.iter().map(|d| needed[*d].extent.max(1)).collect();
    let threads = thread_counts(&extents);
    let block = block_sizes(&extents, &threads);
    let tiles = |sizes: &[i64]| -> Vec<Tile> {
        let tile = |(d, size): (&usize, &i64)| Tile {
            dim: LoopKind::Pure(*d),
            size: u32::try_from(*size).map_or(Size::All, Size::Of),
        };
        dims.iter().zip(sizes).map(tile).collect()
    };
    let mut shared = tiles(&threads);
    shared.retain(|tile| tile.size != Size::Of(1));
    let mapping = ThreadTiles { threads: shared, ..ThreadTiles::default() };
    RootItem::lone(stage, Vec::new(), tiles(&block), Vec::new(), mapping)
}

/// Threads along each loop, the fastest first: no more than there are points, in powers of two.
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

/// Threads of a block: fewer where the points would make too few blocks to fill a device.
fn thread_limit(extents: &[i64]) -> i64 {
    let points = extents.iter().fold(1i64, |points, extent| points.saturating_mul(*extent));
    let mut limit = MAX_THREADS;
    while limit > WARP && points / limit < MIN_BLOCKS {
        limit /= 2;
    }
    limit
}

/// The part of each loop that a block takes: its threads, or more of them where the grid would be too large.
fn block_sizes(extents: &[i64], threads: &[i64]) -> Vec<i64> {
    let mut sizes = threads.to_vec();
    while let Some(d) = oversized(extents, &sizes) {
        sizes[d] *= 2;
    }
    sizes
}

/// A loop of which a block must take more, if the grid is beyond the limits.
fn oversized(extents: &[i64], sizes: &[i64]) -> Option<usize> {
    let counts: Vec<i64> =
        extents.iter().zip(sizes).map(|(extent, size)| (extent + size - 1) / size).collect();
    let product = |counts: &[i64]| counts.iter().fold(1i64, |product, count| product.saturating_mul(*count));
    let largest = |from: usize| (from..counts.len()).max_by_key(|d| counts[*d]);
    // Loops of one block take no axis of the grid.
    let split: Vec<usize> = (0..counts.len()).filter(|d| counts[*d] > 1).collect();
    let beyond = |from: usize| split.get(from).copied().filter(|d| product(&counts[*d..]) > MAX_GRID);
    if let Some(last) = beyond(2) {
        return largest(last);
    }
    match split.get(1) {
        Some(d) if counts[*d] > MAX_GRID => Some(*d),
        _ if product(&counts) > MAX_BLOCKS => largest(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let sizes = block_sizes(&extents, &threads);
            assert_eq!(oversized(&extents, &sizes), None, "{extents:?}");
            assert!(sizes.iter().zip(&threads).all(|(size, threads)| size % threads == 0));
            assert!(threads.iter().product::<i64>() <= MAX_THREADS);
        }
    }
}
