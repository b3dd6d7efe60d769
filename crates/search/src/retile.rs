//! Tiles once more: when all that is in a kernel is known, its own tiles are improved step by step.

use std::sync::Arc;

use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{Item, Kernel, Mapping, RootItem, ThreadTiles};

use crate::bits::Bits;
use crate::edit::{kernel, loops_of, nests, nests_mut, with_kernel};
use crate::evaluate::Evaluator;
use crate::follow::refollow;
use crate::kernels::{Shape, Tiler};
use crate::places::hashed;
use crate::state::{Kern, Sketch, State};
use crate::statistics::Statistics;

/// Steps of one kernel at most.
const MAX_STEPS: usize = 12;

/// The state with every kernel's own tiles as good as single steps can make them.
pub(crate) fn retiled(evaluator: &Evaluator<'_>, state: &State, counts: &mut Statistics) -> State {
    let kernels = state.kernels.iter().map(|kern| climb(evaluator, kern, &state.inlined, counts));
    State::new(kernels.collect(), state.inlined.clone())
}

/// Goes to the cheapest neighbour for as long as one is cheaper.
fn climb(evaluator: &Evaluator<'_>, kern: &Arc<Kern>, inlined: &Bits, counts: &mut Statistics) -> Arc<Kern> {
    let space = evaluator.space;
    let tiler = Tiler::new(space, space.stage(kern.sketch.own));
    let mut best = kern.clone();
    if space.is_fixed(kern.sketch.own) {
        return best;
    }
    let Some(mut shape) = kernel(&kern.sketch.item).and_then(|of| shape(&tiler, &kern.sketch.item, of))
    else {
        return best;
    };
    for _ in 0..MAX_STEPS {
        let neighbours = tiler.neighbours(&shape);
        let sketches: Vec<(Shape, Sketch)> = neighbours
            .into_iter()
            .filter_map(|next| {
                let (item, hashes) = hashed(reshaped(evaluator, &best, &tiler, &next, inlined));
                Some((next, Sketch::new(space, item, hashes, inlined)?))
            })
            .collect();
        counts.enumerated += sketches.len() as u64;
        let (shapes, sketches): (Vec<Shape>, Vec<Sketch>) = sketches.into_iter().unzip();
        let mut next = None;
        for (shape, verdict) in shapes.into_iter().zip(evaluator.judge(sketches, counts)) {
            match verdict {
                Ok(kern) if kern.cost < best.cost => {
                    best = kern;
                    next = Some(shape);
                }
                Ok(_) => {}
                Err(reason) => counts.refuse(reason),
            }
        }
        let Some(next) = next else { break };
        shape = next;
    }
    best
}

/// The shape of a kernel's own nest.
fn shape(tiler: &Tiler<'_>, item: &RootItem, kernel: &Kernel) -> Option<Shape> {
    let all = nests(&kernel.body);
    let own = all.last()?;
    let Mapping::Threads(tiles) = &own.mapping else { return None };
    let around = match item {
        RootItem::Around(around) => around.loops.as_slice(),
        RootItem::Kernel(_) => &[],
    };
    let mut over = loops_of(&kernel.body, all.len() - 1);
    over.retain(|tile| Item::Stage(tile.stage) == own.item);
    let is_reduction = |dim: LoopKind| matches!(dim, LoopKind::Reduction(_));
    let shared = |dim: LoopKind| kernel.block.iter().any(|tile| tile.dim == dim);
    let inner: Vec<_> =
        tiles.serial.iter().filter(|tile| is_reduction(tile.dim) && !shared(tile.dim)).copied().collect();
    let variant = tiler.variants.iter().position(|variant| {
        variant.around == around
            && variant.over == over
            && variant.inner == inner
            && variant.shared.iter().all(|span| shared(span.dim))
            && variant.shared.len() == kernel.block.iter().filter(|tile| is_reduction(tile.dim)).count()
    })?;
    tiler.shape(&kernel.block, tiles, variant)
}

/// A kernel with its own nest in another shape, and private nests that follow it.
fn reshaped(
    evaluator: &Evaluator<'_>,
    kern: &Kern,
    tiler: &Tiler<'_>,
    shape: &Shape,
    inlined: &Bits,
) -> RootItem {
    with_kernel(&kern.sketch.item, |kernel| {
        kernel.block = tiler.block(shape);
        let tiles: ThreadTiles = tiler.thread_tiles(shape);
        if let Some(own) = nests_mut(&mut kernel.body).pop() {
            own.mapping = Mapping::Threads(tiles);
        }
        refollow(evaluator.space, kernel, inlined);
    })
}
