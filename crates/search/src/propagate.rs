//! Propagates tiles from readers to private Funcs, so that every thread reads what it wrote.

use std::collections::BTreeSet;

use ahash::AHashMap;
use warploom_lang::FuncId;
use warploom_schedule::{
    AccessMap, Kernel, LoopKind, Nest, NodeId, NodeSet, Size, StageId, ThreadTiles, Tile,
};

use crate::space::{SearchSpace, StageFacts};

/// The most access paths from a reader to a Func. With more, the analysis gives up.
const MAX_PATHS: usize = 64;

/// The most unrolled points per thread, including reduction variables.
const MAX_UNROLLED: i64 = 1024;

/// For each dimension of a Func, the reader's loop that indexes it, if all reads agree on one.
pub(crate) type ReaderLoops = Vec<Option<LoopKind>>;

/// Each dimension is indexed by its own variable, as between the stages of one Func.
pub(crate) fn own_loops(space: &SearchSpace<'_>, func: FuncId) -> ReaderLoops {
    let dims = space.problem.pipeline().funcs()[func].dims.len();
    (0..dims).map(|d| Some(LoopKind::Pure(d))).collect()
}

/// How a nest indexes a Func, possibly through inlined Funcs.
pub(crate) fn reader_loops(
    space: &SearchSpace<'_>,
    reader: &Nest,
    func: FuncId,
    inlined: &NodeSet,
) -> Option<ReaderLoops> {
    let stage = reader.item.stage()?;
    let id = space.stage_id(stage);
    let maps = reading(space, id, space.dag.func_node(func), inlined)?;
    let loops = &space.dag.stages()[id].loops;
    let dims = space.problem.pipeline().funcs()[func].dims.len();
    let loop_of = |map: &AccessMap, d: usize| Some(loops[map.rows().get(d)?.unit_loop()?].kind);
    let first = maps.first()?;
    let same = |d: usize| {
        let kind = loop_of(first, d)?;
        maps.iter().all(|map| loop_of(map, d) == Some(kind)).then_some(kind)
    };
    Some((0..dims).map(same).collect())
}

/// The maps by which a stage reads a node, possibly through inlined Funcs. `None` if there are too
/// many or some are unknown.
///
/// Each inlined Func is visited once, however often it is read. The Funcs that it reads come before
/// it.
fn reading(
    space: &SearchSpace<'_>,
    stage: StageId,
    target: NodeId,
    inlined: &NodeSet,
) -> Option<Vec<AccessMap>> {
    let dag = space.dag;
    let mut known: AHashMap<NodeId, Vec<AccessMap>> = AHashMap::new();
    for node in through(space, stage, inlined) {
        let first = *dag.nodes()[node].stages.first()?;
        let maps = composed(space, first, target, &known)?;
        known.insert(node, maps);
    }
    composed(space, stage, target, &known)
}

/// The inlined Funcs that a stage reads, directly or through others, producers first.
fn through(space: &SearchSpace<'_>, stage: StageId, inlined: &NodeSet) -> BTreeSet<NodeId> {
    let dag = space.dag;
    let (mut found, mut open) = (BTreeSet::new(), vec![stage]);
    while let Some(stage) = open.pop() {
        for producer in dag.stages()[stage].producers.iter().map(|edge| dag.edges()[*edge].producer) {
            if inlined.contains(producer) && found.insert(producer) {
                open.extend(dag.nodes()[producer].stages.first());
            }
        }
    }
    found
}

/// The maps by which a stage reads a node, given those of the inlined Funcs that it reads.
fn composed(
    space: &SearchSpace<'_>,
    stage: StageId,
    target: NodeId,
    known: &AHashMap<NodeId, Vec<AccessMap>>,
) -> Option<Vec<AccessMap>> {
    let dag = space.dag;
    let mut maps: Vec<AccessMap> = Vec::new();
    for edge in dag.stages()[stage].producers.iter().map(|edge| &dag.edges()[*edge]) {
        let mut inner = Vec::new();
        if edge.producer == target {
            inner.extend(edge.loads.iter().map(|load| load.map.clone()));
        } else if let Some(further) = known.get(&edge.producer) {
            for load in &edge.loads {
                for map in further {
                    inner.push(map.compose(&load.map).ok()?);
                }
            }
        }
        for map in inner {
            if !maps.iter().any(|known| known.moves_like(&map)) {
                maps.push(map);
            }
        }
        if maps.len() > MAX_PATHS {
            return None;
        }
    }
    Some(maps)
}

/// The tiles of a stage that is read along the loops of a nest with `tiles`. Each thread holds the
/// full extent of dimensions that the reader does not iterate over.
pub(crate) fn propagated(
    facts: &StageFacts,
    tiles: &ThreadTiles,
    reader_loops: &ReaderLoops,
    inner: &[Tile],
) -> ThreadTiles {
    let own = |tile: &Tile| {
        let d = reader_loops.iter().position(|kind| *kind == Some(tile.dim))?;
        let known = facts.pure.iter().any(|span| span.dim == LoopKind::Pure(d));
        known.then_some(Tile { dim: LoopKind::Pure(d), size: tile.size })
    };
    let threads = tiles.threads.iter().filter_map(own).collect();
    let mut serial = inner.to_vec();
    serial.extend(tiles.serial.iter().filter_map(own));
    let whole = facts.pure.iter().filter(|span| {
        let LoopKind::Pure(d) = span.dim else { return false };
        !matches!(reader_loops.get(d), Some(Some(LoopKind::Pure(_))))
    });
    serial.extend(whole.map(|span| Tile { dim: span.dim, size: Size::All }));
    let extent = |tile: &Tile| {
        let spans = facts.pure.iter().chain(&facts.reductions);
        spans.into_iter().find(|span| span.dim == tile.dim).map_or(1, |span| span.extent)
    };
    let written: i64 = serial.iter().fold(1, |sum: i64, tile| sum.saturating_mul(tile.size.of(extent(tile))));
    ThreadTiles { threads, unroll: !serial.is_empty() && written <= MAX_UNROLLED, serial }
}

/// Updates the tiles of a kernel's private nests after the tiles of their readers have changed.
pub(crate) fn propagate_tiles(space: &SearchSpace<'_>, kernel: &mut Kernel, inlined: &NodeSet) {
    for number in (0..kernel.nests().count()).rev() {
        let tiles = tiles_for_reader(space, kernel, number, inlined);
        if let (Some(tiles), Some(nest)) = (tiles, kernel.nests_mut().nth(number)) {
            nest.mapping = tiles.into();
        }
    }
}

/// The tiles of a private nest that follow those of its reader.
fn tiles_for_reader(
    space: &SearchSpace<'_>,
    kernel: &Kernel,
    number: usize,
    inlined: &NodeSet,
) -> Option<ThreadTiles> {
    let (reader, reader_loops) = reader_of_private(space, kernel, number, inlined)?;
    let nest = kernel.nests().nth(number)?;
    let (stage, tiles) = (nest.item.stage()?, nest.mapping.tiles()?);
    let reductions = tiles.serial.iter().filter(|tile| matches!(tile.dim, LoopKind::Reduction(_)));
    let inner: Vec<Tile> = reductions.copied().collect();
    Some(propagated(space.stage(stage), reader.mapping.tiles()?, &reader_loops, &inner))
}

/// The nest that a private nest follows, and how it indexes it.
pub(crate) fn reader_of_private<'k>(
    space: &SearchSpace<'_>,
    kernel: &'k Kernel,
    number: usize,
    inlined: &NodeSet,
) -> Option<(&'k Nest, ReaderLoops)> {
    let nest = kernel.nests().nth(number).filter(|nest| nest.storage.is_private())?;
    let stage = nest.item.stage()?;
    let later = || kernel.nests().skip(number + 1);
    let of_func = |other: &&Nest| other.item.stage().is_some_and(|of| of.func == stage.func);
    let node = space.dag.func_node(stage.func);
    if let Some(next) = later().find(of_func) {
        return Some((next, own_loops(space, stage.func)));
    }
    let reader = later().find(|other| space.reads(other, inlined).0.contains(node))?;
    Some((reader, reader_loops(space, reader, stage.func, inlined)?))
}
