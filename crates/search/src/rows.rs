//! Kernels that own whole rows, as a start for the search.
//!
//! A block that owns a whole row can compute every reduction and scan of that row: it reads the input once, and the
//! results never leave the SM. Decisions on one Func at a time do not lead there, because a block of whole rows pays
//! off only once all of these Funcs are in it.

use std::sync::Arc;

use smallvec::smallvec;
use warploom_lang::FuncId;
use warploom_lang::rewrite::Rewrite;
use warploom_schedule::{RootItem, Size, StageRef, ThreadTiles, Tile};

use crate::evaluate::Evaluator;
use crate::expand::accepted;
use crate::places::Places;
use crate::search::Search;
use crate::space::{SearchSpace, Span};
use crate::staging::best_copies;
use crate::state::{Child, Sketch, State};
use crate::statistics::Statistics;
use crate::tiles::points;

/// Blocks get as many rows as they need to have this many points.
const BLOCK_POINTS: i64 = 256;

/// Blocks have no more points than this, so that a few of their Funcs fit in shared memory.
const MOST_POINTS: i64 = 1 << 14;

/// The most blocks that are tried for a stage. If there are more, those with the fewest whole dimensions are tried.
const MOST_BLOCKS: usize = 256;

/// Neighbouring points along a dimension that a block does not own whole.
const NEIGHBOURS: i64 = 32;

/// Threads along a row.
const ROW_THREADS: [u32; 3] = [128, 256, 512];

/// Dimensions up to this extent are never whole: they are channels, not rows.
const CHANNELS: i64 = 8;

/// The state in which kernels own whole rows wherever this makes them faster.
pub(crate) fn with_whole_rows(search: &Search<'_>, start: &Arc<State>) -> Arc<State> {
    let space = search.evaluator.space;
    let mut best = start.clone();
    for func in space.funcs() {
        let at_root = search.counted(|counts| at_root(&search.evaluator, &best, func, counts));
        let (Some(owner), Some(before)) = (space.stages_of(func).last(), at_root) else { continue };
        for block in blocks(space, owner) {
            if search.is_over() {
                return best;
            }
            let grown = search.counted(|counts| grown(&search.evaluator, &before, owner, block, counts));
            if let Some(state) = grown.filter(|state| state.cost() < best.cost()) {
                best = state;
            }
        }
    }
    best
}

/// The state with a Func in kernels of its own. `None` if it is in kernels of others, or is inlined and not the result
/// of a scan or reduction.
fn at_root(
    evaluator: &Evaluator<'_>,
    state: &Arc<State>,
    func: FuncId,
    counts: &mut Statistics,
) -> Option<Arc<State>> {
    let (space, dag) = (evaluator.space, evaluator.space.dag);
    let node = dag.func_node(func);
    if !state.kernels_of(func).is_empty() {
        return Some(state.clone());
    }
    let producers = dag.nodes()[node].stages.iter().flat_map(|stage| &dag.stages()[*stage].producers);
    let mut producers = producers.map(|edge| &dag.nodes()[dag.edges()[*edge].producer]);
    if !state.inlined.contains(node) || !producers.any(|producer| producer.has_updates()) {
        return None;
    }
    let change = Places::new(space, state, func).root();
    Some(accepted(evaluator, state, &change, counts)?.state())
}

/// The blocks of whole rows of a stage: each dimension is whole, or as long as a chunk of a scan, or short.
fn blocks(space: &SearchSpace<'_>, owner: StageRef) -> Vec<Vec<Tile>> {
    let chunks = space.problem.pipeline().rewrites().iter().filter_map(|rewrite| match rewrite {
        Rewrite::Chunk { by, .. } => Some(i64::from(by.get())),
        _ => None,
    });
    let chunks: Vec<i64> = chunks.collect();
    let mut found: Vec<Vec<i64>> = vec![Vec::new()];
    let pure = &space.stage(owner).pure;
    for (position, span) in pure.iter().enumerate() {
        let mut sizes = vec![if position == 0 { span.extent.min(NEIGHBOURS) } else { 1 }];
        if span.extent > CHANNELS {
            sizes.extend(chunks.iter().copied().filter(|size| *size < span.extent));
            sizes.push(span.extent);
        }
        sizes.sort_unstable();
        sizes.dedup();
        let longer = |block: &Vec<i64>| {
            sizes.iter().map(|size| [block.as_slice(), &[*size]].concat()).collect::<Vec<_>>()
        };
        found = found.iter().flat_map(longer).filter(|block| points(block) <= MOST_POINTS).collect();
        if found.len() > MOST_BLOCKS {
            // The sort is stable.
            found.sort_by_key(|block| whole(pure, block));
            found.truncate(MOST_BLOCKS);
        }
    }
    found.into_iter().map(|block| tiles(pure, block)).collect()
}

/// How many dimensions a block owns whole.
fn whole(pure: &[Span], block: &[i64]) -> usize {
    pure.iter().zip(block).filter(|(span, size)| span.extent > CHANNELS && span.extent == **size).count()
}

fn tiles(pure: &[Span], mut block: Vec<i64>) -> Vec<Tile> {
    // Short rows: blocks of several rows.
    for d in 0..block.len() {
        let points: i64 = block.iter().product();
        if block[d] < pure[d].extent && points < BLOCK_POINTS {
            let wanted = BLOCK_POINTS / (points / block[d]).max(1);
            block[d] = block[d].max(wanted.min(pure[d].extent));
        }
    }
    let tile = |(span, size): (&Span, i64)| Tile {
        dim: span.dim,
        size: u32::try_from(size).ok().filter(|_| size < span.extent).map_or(Size::All, Size::Of),
    };
    pure.iter().zip(block).map(tile).collect()
}

/// Blocks and threads for the own nest of a kernel of whole rows: threads along its longest dimension, each computing
/// all channels of a point. Subexpressions that channels share are then computed once.
pub(crate) fn along_rows(pure: &[Span], block: &[Tile]) -> Vec<(Vec<Tile>, ThreadTiles)> {
    let is_channel = |span: &Span| span.extent > 1 && span.extent <= CHANNELS;
    let points = |span: &Span| {
        let tile = block.iter().find(|tile| tile.dim == span.dim);
        tile.map_or(1, |tile| tile.size.of(span.extent))
    };
    let rows = pure.iter().filter(|span| !is_channel(span));
    let Some(longest) = rows.max_by_key(|span| points(span)) else { return Vec::new() };
    let channels: Vec<Tile> = pure
        .iter()
        .filter(|span| is_channel(span))
        .map(|span| Tile { dim: span.dim, size: Size::All })
        .collect();
    let whole = |tile: &Tile| *channels.iter().find(|channel| channel.dim == tile.dim).unwrap_or(tile);
    let with = |threads: u32| {
        let threads = vec![Tile { dim: longest.dim, size: Size::Of(threads) }];
        let tiles = ThreadTiles { threads, unroll: !channels.is_empty(), serial: channels.clone() };
        (block.iter().map(whole).collect(), tiles)
    };
    ROW_THREADS.into_iter().filter(|threads| i64::from(*threads) <= points(longest)).map(with).collect()
}

/// The state in which the kernel of a stage has these blocks, and also computes all Funcs that only it reads and whose
/// points no two blocks share. `None` if there are none.
fn grown(
    evaluator: &Evaluator<'_>,
    state: &Arc<State>,
    owner: StageRef,
    block: Vec<Tile>,
    counts: &mut Statistics,
) -> Option<Arc<State>> {
    let space = evaluator.space;
    let item = RootItem::lone(owner, Vec::new(), block, Vec::new(), None);
    let kernel = evaluator.judge(vec![Sketch::new(space, item, &state.inlined)?], counts).pop()?.ok()?;
    let lone = Child::new(state, smallvec![kernel], None, None).state();
    let mut grown = lone.clone();
    let producers = || space.funcs().filter(|func| *func < owner.func);
    for func in producers() {
        if !grown.kernels_of(func).is_empty()
            && let Some(more) = with_func(evaluator, &grown, owner, func, counts)
        {
            grown = more;
        }
    }
    if grown.kernels.len() == lone.kernels.len() {
        return None;
    }
    let kernel = best_copies(evaluator, grown.kernel_of(owner)?, &grown.inlined, counts);
    grown = Child::new(&grown, smallvec![kernel], None, None).state();
    // The threads of a block share work that inlining would give to one of them, such as the levels of a tree.
    for func in producers() {
        if grown.inlined.contains(space.dag.func_node(func))
            && let Some(more) = with_func(evaluator, &grown, owner, func, counts)
            && more.cost() < grown.cost()
        {
            grown = more;
        }
    }
    Some(grown)
}

/// The state in which the kernel of `owner` also computes a Func that was in other kernels or inlined.
fn with_func(
    evaluator: &Evaluator<'_>,
    state: &Arc<State>,
    owner: StageRef,
    func: FuncId,
    counts: &mut Statistics,
) -> Option<Arc<State>> {
    let places = Places::new(evaluator.space, state, func);
    let kernel = places.owned(owner, evaluator, counts)?;
    Some(Child::new(state, smallvec![kernel], Some(func), Some(places.inlined.clone())).state())
}

#[cfg(test)]
mod tests {
    use warploom_schedule::LoopKind;

    use super::*;

    #[test]
    fn threads_run_along_rows_and_compute_all_channels() {
        let span = |d: usize, extent: i64| Span { dim: LoopKind::Pure(d), extent };
        let tile = |d: usize, size: Size| Tile { dim: LoopKind::Pure(d), size };
        let block = [tile(0, Size::All), tile(1, Size::Of(1)), tile(2, Size::Of(1))];
        let found = along_rows(&[span(0, 300), span(1, 2000), span(2, 3)], &block);
        let threads: Vec<&[Tile]> = found.iter().map(|(_, tiles)| tiles.threads.as_slice()).collect();
        assert_eq!(threads, [[tile(0, Size::Of(128))], [tile(0, Size::Of(256))]], "rows of 300 points");
        for (block, tiles) in &found {
            assert_eq!(block[..], [tile(0, Size::All), tile(1, Size::Of(1)), tile(2, Size::All)]);
            assert_eq!((tiles.serial.as_slice(), tiles.unroll), (&[tile(2, Size::All)][..], true));
        }
    }
}
