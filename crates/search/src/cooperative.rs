//! Cooperative tilings: how the threads of a block share the points of nests in shared memory.

use warploom_schedule::{LoopKind, Size, StageRef, ThreadTiles, Tile};

use crate::options::Limits;
use crate::space::{SearchSpace, StageFacts};
use crate::tiles::{Bounds, MIN_VECTOR, thread_tilings};

/// The chunk size of a reduction variable that is unrolled.
const CHUNK: u32 = 8;

/// The most threads along the vector dimension, and along any other.
const MOST_THREADS: (i64, i64) = (64, 16);

/// The most tilings by which threads share a nest.
const MOST_TILINGS: u64 = 2000;

/// The stages of a Func, with the extents of their points inside a kernel.
pub(crate) type StageExtents = Vec<(StageRef, Vec<i64>)>;

/// The ways in which the threads of a block may share the stages of a Func: tiles for each stage.
pub(crate) fn cooperative_tilings(space: &SearchSpace<'_>, stages: &StageExtents) -> Vec<Vec<ThreadTiles>> {
    let Some((first, extents)) = stages.first() else { return Vec::new() };
    let dims: Vec<LoopKind> = space.stage(*first).pure.iter().map(|span| span.dim).collect();
    let sizes: Vec<i64> = dims.iter().map(|kind| along(*kind, extents)).collect();
    let vector = sizes.iter().position(|extent| *extent >= MIN_VECTOR).unwrap_or(0);
    let block = i64::from(space.problem.device().threads.per_block);
    let bounds = Bounds { vector: MOST_THREADS.0, other: MOST_THREADS.1, block, dims: 3 };
    let reduces = stages.iter().any(|(stage, _)| !space.stage(*stage).reductions.is_empty());
    let mut found = Vec::new();
    for threads in thread_tilings(&sizes, vector, dims.len() == 1, bounds).some(MOST_TILINGS) {
        let order = std::iter::once(vector).chain((0..dims.len()).filter(|d| *d != vector));
        let order = order.filter(|d| *d < dims.len());
        let threads: Vec<(LoopKind, i64)> = order.map(|d| (dims[d], threads[d])).collect();
        for unrolled in if reduces { &[false, true][..] } else { &[false] } {
            let tiles = stages.iter().map(|(stage, extents)| {
                let facts = space.stage(*stage);
                let inner = if *unrolled { chunk(facts) } else { Vec::new() };
                cooperative_tiling(facts, &space.options.limits, &threads, extents, inner)
            });
            found.extend(tiles.collect::<Option<Vec<ThreadTiles>>>());
        }
    }
    found
}

/// Adapts the tiles of a nest to new extents, with the same number of threads. `None` if each
/// thread would get too many points.
pub(crate) fn refitted(
    facts: &StageFacts,
    limits: &Limits,
    tiles: &ThreadTiles,
    extents: &[i64],
) -> Option<ThreadTiles> {
    let extent_of = |kind: LoopKind| along(kind, extents);
    let (reductions, points): (Vec<Tile>, Vec<Tile>) =
        tiles.threads.iter().partition(|tile| matches!(tile.dim, LoopKind::Reduction(_)));
    let mut threads: Vec<(LoopKind, i64)> =
        points.iter().map(|tile| (tile.dim, tile.size.of(extent_of(tile.dim)))).collect();
    let others = facts.pure.iter().filter(|span| tiles.threads.iter().all(|tile| tile.dim != span.dim));
    threads.extend(others.map(|span| (span.dim, 1)));
    let inner = tiles.serial.iter().filter(|tile| matches!(tile.dim, LoopKind::Reduction(_)));
    let mut tiles = cooperative_tiling(facts, limits, &threads, extents, inner.copied().collect())?;
    tiles.threads.splice(0..0, reductions);
    Some(tiles)
}

/// The tiles of a stage for the given threads, the vector dimension first. `None` if each thread
/// would get too many points.
fn cooperative_tiling(
    facts: &StageFacts,
    limits: &Limits,
    threads: &[(LoopKind, i64)],
    extents: &[i64],
    inner: Vec<Tile>,
) -> Option<ThreadTiles> {
    let known = |kind: LoopKind| facts.pure.iter().any(|span| span.dim == kind);
    let threads: Vec<(LoopKind, i64)> = threads.iter().copied().filter(|(kind, _)| known(*kind)).collect();
    let shared = threads.iter().filter(|(_, count)| *count > 1);
    let shared = shared.map(|(dim, count)| Tile { dim: *dim, size: size(*count) }).collect();
    let mut serial = inner;
    let mut points = 1;
    for (dim, count) in threads.iter().rev() {
        let points_each = (along(*dim, extents) + count - 1) / count;
        points *= points_each;
        if points_each > limits.block_serial || points > limits.serial_points {
            return None;
        }
        if points_each > 1 {
            serial.push(Tile { dim: *dim, size: size(points_each) });
        }
    }
    Some(ThreadTiles { threads: shared, unroll: !serial.is_empty(), serial })
}

fn along(kind: LoopKind, extents: &[i64]) -> i64 {
    match kind {
        LoopKind::Pure(d) => extents.get(d).copied().unwrap_or(1),
        LoopKind::Reduction(_) => 1,
    }
}

/// A chunk of the fastest reduction variable.
fn chunk(facts: &StageFacts) -> Vec<Tile> {
    let fastest = facts.reductions.iter().find(|span| span.extent > 1);
    fastest.map(|span| Tile { dim: span.dim, size: Size::Of(CHUNK) }).into_iter().collect()
}

fn size(size: i64) -> Size {
    u32::try_from(size).map_or(Size::All, Size::Of)
}
