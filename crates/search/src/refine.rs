//! Refines complete kernels: keeps the Funcs that a kernel computes, and improves everything else
//! step by step. The costs of kernels add up, so each kernel is refined separately.

use std::sync::Arc;

use warploom_plan::NestPlan;
use warploom_plan::decisions::{Edit, Tree, adjacent, edits, interleaved, remap};
use warploom_schedule::{
    Item, Kernel, LoopKind, Mapping, Nest, NodeMut, NodeSet, ReductionTile, RootItem, StageRef, ThreadTiles,
    Tile,
};

use crate::cooperative::{cooperative_tilings, refitted};
use crate::evaluate::Evaluator;
use crate::kernels::{Shape, Tiler};
use crate::propagate::propagate_tiles;
use crate::reductions::{Variant, in_threads, tiled};
use crate::rows::along_rows;
use crate::space::SearchSpace;
use crate::staging::best_copies;
use crate::state::{EvaluatedKernel, Sketch, funcs};
use crate::statistics::Statistics;

/// The most rounds over all changes of one kernel.
const MAX_ROUNDS: usize = 6;

/// The most steps of a kernel's own tiles per round.
const MAX_STEPS: usize = 4;

/// Improves the kernel until no single step helps.
pub(crate) fn refined(
    evaluator: &Evaluator<'_>,
    kernel: &Arc<EvaluatedKernel>,
    counts: &mut Statistics,
) -> Arc<EvaluatedKernel> {
    let inlined = &kernel.sketch.inlined;
    let mut refiner = Refiner { evaluator, inlined, best: kernel.clone(), counts };
    if evaluator.space.is_fixed(kernel.sketch.own) {
        return refiner.best;
    }
    for _ in 0..MAX_ROUNDS {
        let before = refiner.best.cost();
        let settled = refiner.own_tiles();
        let tiled = refiner.best.totals.identity;
        let along_rows = refiner.along_rows();
        refiner.take(along_rows);
        for number in 0..refiner.best.extents.len() {
            let mappings = refiner.mappings(number);
            refiner.take(mappings);
            for edit in edits() {
                if let Edit::Sharing(edit) = edit {
                    let edited = refiner.edited(|tree| edit(tree, number));
                    refiner.take(edited);
                }
            }
        }
        refiner.reductions();
        refiner.copies();
        for edit in edits() {
            if let Edit::Kernel(edit) = edit {
                let edited = refiner.edited(edit);
                refiner.take_known(edited);
            }
        }
        for number in 0..refiner.best.extents.len() {
            for edit in edits() {
                if let Edit::Nest(edit) = edit {
                    let edited = refiner.edited(|tree| edit(tree, number));
                    refiner.take_known(edited);
                }
            }
        }
        // With these tiles every other step was tried, so another round would find nothing.
        let is_done = settled && refiner.best.totals.identity == tiled;
        if refiner.best.cost() >= before || is_done || refiner.best.is_lone() {
            break;
        }
    }
    refiner.best
}

/// The kernels one step away that are legal and within the limits.
pub(crate) fn steps(
    evaluator: &Evaluator<'_>,
    kernel: &Arc<EvaluatedKernel>,
    counts: &mut Statistics,
) -> Vec<Arc<EvaluatedKernel>> {
    if evaluator.space.is_fixed(kernel.sketch.own) {
        return Vec::new();
    }
    let inlined = &kernel.sketch.inlined;
    let refiner = Refiner { evaluator, inlined, best: kernel.clone(), counts };
    let mut sketches = refiner.fewer_copies();
    sketches.extend(refiner.along_rows());
    if let Some((tiler, shape)) = refiner.own_shape() {
        sketches.extend(tiler.neighbours(&shape).iter().map(|shape| refiner.reshaped(&tiler, shape)));
    }
    for number in 0..kernel.extents.len() {
        sketches.extend(refiner.mappings(number));
        sketches.extend(refiner.reduced(number));
    }
    for edit in edits() {
        sketches.extend(refiner.edited(|tree| match edit {
            Edit::Kernel(edit) => edit(tree),
            Edit::Sharing(edit) | Edit::Nest(edit) | Edit::Neighbour(edit) => {
                (0..kernel.extents.len()).flat_map(|number| edit(tree, number)).collect()
            }
        }));
    }
    counts.enumerated += sketches.len() as u64;
    evaluator.judge(sketches, counts).into_iter().flatten().collect()
}

/// A kernel that is being refined.
struct Refiner<'a, 'c> {
    evaluator: &'a Evaluator<'a>,
    inlined: &'a NodeSet,
    best: Arc<EvaluatedKernel>,
    counts: &'c mut Statistics,
}

impl<'a> Refiner<'a, '_> {
    fn space(&self) -> &'a SearchSpace<'a> {
        self.evaluator.space
    }

    /// The kernels that an edit makes of the best.
    fn edited(&self, edit: impl FnOnce(&Tree<'_>) -> Vec<RootItem>) -> Vec<Sketch> {
        let EvaluatedKernel { sketch, extents, .. } = &*self.best;
        let problem = self.space().problem;
        let tree = Tree { problem, item: &sketch.item, extents, inlined: self.inlined };
        edit(&tree).into_iter().map(|item| sketch.with_tiles(item)).collect()
    }

    /// Takes the cheapest of some kernels if it is cheaper than the best, and returns its position.
    fn take(&mut self, sketches: Vec<Sketch>) -> Option<usize> {
        self.counts.enumerated += sketches.len() as u64;
        let mut taken = None;
        for (position, verdict) in self.evaluator.judge(sketches, self.counts).into_iter().enumerate() {
            match verdict {
                Ok(kernel) if kernel.cost() < self.best.cost() => {
                    self.best = kernel;
                    taken = Some(position);
                }
                Ok(_) => {}
                Err(reason) => self.counts.refuse(reason),
            }
        }
        taken
    }

    /// Takes the cheapest of the kernels whose decisions the model knows.
    fn take_known(&mut self, mut sketches: Vec<Sketch>) {
        sketches.retain(|sketch| self.evaluator.knows(&sketch.item));
        self.take(sketches);
    }

    /// Improves the tiles of the kernel's own stage, one dimension at a time. Returns whether no further step
    /// helps.
    fn own_tiles(&mut self) -> bool {
        let Some((tiler, mut shape)) = self.own_shape() else { return true };
        for _ in 0..MAX_STEPS {
            let mut shapes = tiler.neighbours(&shape);
            let sketches = shapes.iter().map(|shape| self.reshaped(&tiler, shape)).collect();
            let Some(position) = self.take(sketches) else { return true };
            shape = shapes.swap_remove(position);
        }
        false
    }

    /// The shape of the kernel's own nest, if the search could have made it.
    fn own_shape(&self) -> Option<(Tiler<'a>, Shape)> {
        let (space, sketch) = (self.space(), &self.best.sketch);
        let tiler = Tiler::new(space, space.stage(sketch.own));
        let shape = shape(&tiler, &adjacent(&sketch.item))?;
        Some((tiler, shape))
    }

    /// The kernel with another shape of its own nest.
    fn reshaped(&self, tiler: &Tiler<'_>, shape: &Shape) -> Sketch {
        self.with_own(tiler.block(shape), tiler.thread_tiles(shape))
    }

    /// The kernel with threads along its rows, if its own nest is flat.
    fn along_rows(&self) -> Vec<Sketch> {
        let (space, sketch) = (self.space(), &self.best.sketch);
        let is_flat = |kernel: &&Kernel| kernel.nests().last().is_some_and(|own| own.mapping.is_flat());
        let Some(kernel) = sketch.item.kernels().next().filter(is_flat) else { return Vec::new() };
        let shapes = along_rows(&space.stage(sketch.own).pure, &kernel.block);
        shapes.into_iter().map(|(block, tiles)| self.with_own(block, tiles)).collect()
    }

    /// The kernel with other blocks and another mapping of its own nest. Private nests follow it; shared nests keep
    /// their number of threads and adapt to the new extents. Interleaved tiles stay interleaved.
    fn with_own(&self, block: Vec<Tile>, tiles: ThreadTiles) -> Sketch {
        let sketch = &self.best.sketch;
        let mut item = adjacent(&sketch.item).with(|kernel| {
            kernel.block = block;
            if let Some(own) = kernel.nests_mut().last() {
                own.mapping = tiles.into();
            }
            propagate_tiles(self.space(), kernel, self.inlined);
        });
        self.refit(&mut item);
        let grouped = self.in_groups().then(|| interleaved(&item)).flatten();
        sketch.with_tiles(grouped.unwrap_or(item))
    }

    fn refit(&self, item: &mut RootItem) {
        if !item.nests().any(|nest| nest.storage.is_shared() && !nest.mapping.is_flat()) {
            return;
        }
        let space = self.space();
        let inlined = funcs(space, &self.best.sketch.inlined);
        let plan = space.problem.plan_of(&inlined, [&*item]);
        let extents = |own: &NestPlan| own.footprint.as_ref().map(|nest| nest.points.extents());
        let extents: Vec<Option<Vec<i64>>> = plan.nests.values().map(extents).collect();
        for (nest, extents) in item.nests_mut().zip(extents) {
            if let (true, Some(stage), Some(tiles)) =
                (nest.storage.is_shared(), nest.item.stage(), nest.mapping.tiles())
            {
                let (facts, limits) = (space.stage(stage), &space.options.limits);
                nest.mapping = refitted(facts, limits, tiles, &extents.unwrap_or_default()).into();
            }
        }
    }

    /// The kernel with other thread mappings of one nest in shared memory.
    fn mappings(&self, number: usize) -> Vec<Sketch> {
        let sketch = &self.best.sketch;
        let nest = sketch.item.nests().nth(number).filter(|nest| nest.storage.is_shared());
        let Some((nest, stage)) = nest.and_then(|nest| Some((nest, nest.item.stage()?))) else {
            return Vec::new();
        };
        let placed = vec![(stage, self.best.extents[number].clone())];
        let tiled = cooperative_tilings(self.space(), &placed).into_iter().flatten().map(Some);
        let all = std::iter::once(None).chain(tiled).map(Mapping::from);
        let others = all.filter(|mapping| *mapping != nest.mapping);
        let with = |mapping| {
            sketch.item.with(|kernel| {
                if let Some(nest) = kernel.nests_mut().nth(number) {
                    remap(nest, mapping);
                }
            })
        };
        others.map(|mapping| sketch.with_tiles(with(mapping))).collect()
    }

    /// Improves the reduction loops of each private Func, with copies of inputs in new loops over
    /// the block.
    fn reductions(&mut self) {
        for number in 0..self.best.extents.len() {
            let sketches = self.reduced(number);
            if self.is_in_loops(number) {
                self.take(sketches);
            } else {
                self.take_with_copies(sketches);
            }
        }
    }

    fn is_in_loops(&self, number: usize) -> bool {
        self.best.sketch.item.kernels().any(|of| of.loops_over(number).next().is_some())
    }

    /// The kernel with other variants of the reduction loops of one private Func.
    fn reduced(&self, number: usize) -> Vec<Sketch> {
        let (space, item) = (self.space(), &self.best.sketch.item);
        let Some(of) = item.kernels().next() else { return Vec::new() };
        let nest = of.nests().nth(number).filter(|nest| nest.storage.is_private());
        let Some(stage) = nest.and_then(|nest| nest.item.stage()) else { return Vec::new() };
        let facts = space.stage(stage);
        if facts.reductions.is_empty() {
            return Vec::new();
        }
        let over: Vec<&ReductionTile> = of.loops_over(number).collect();
        let variants = in_threads(facts).into_iter().chain(tiled(facts));
        let items = variants.filter_map(|variant| varied(item, stage, &over, &variant));
        items.filter_map(|item| Sketch::new(space, item, self.inlined)).collect()
    }

    /// Takes the cheapest of some kernels, each with the best copies of inputs for it, if it is
    /// cheaper than the best.
    fn take_with_copies(&mut self, sketches: Vec<Sketch>) {
        self.counts.enumerated += sketches.len() as u64;
        for verdict in self.evaluator.judge(sketches, self.counts) {
            let Ok(kernel) = verdict.map_err(|reason| self.counts.refuse(reason)) else { continue };
            let kernel = best_copies(self.evaluator, &kernel, self.inlined, self.counts);
            if kernel.cost() < self.best.cost() {
                self.best = kernel;
            }
        }
    }

    fn in_groups(&self) -> bool {
        self.best.sketch.item.nests().last().is_some_and(Nest::interleaves)
    }

    /// Improves the copies of inputs: fewer, or others.
    fn copies(&mut self) {
        let fewer = self.fewer_copies();
        self.take(fewer);
        self.best = best_copies(self.evaluator, &self.best, self.inlined, self.counts);
    }

    /// The kernel without one of its copies of inputs.
    fn fewer_copies(&self) -> Vec<Sketch> {
        let (space, sketch) = (self.space(), &self.best.sketch);
        let copied = sketch.item.nests().map(|nest| nest.item).filter(|item| item.stage().is_none());
        let fewer = copied.map(|copy| {
            let other = |node: NodeMut<'_>| !matches!(node, NodeMut::Nest(nest) if nest.item == copy);
            sketch.item.with(|kernel| kernel.edit(|node, _| other(node)))
        });
        fewer.filter_map(|item| Sketch::new(space, item, self.inlined)).collect()
    }
}

/// A kernel with another reduction variant of a private stage. Existing loops over the block stay,
/// with other sizes; otherwise new loops enclose only the stage. `None` if the variant has other
/// loops.
fn varied(item: &RootItem, stage: StageRef, over: &[&ReductionTile], variant: &Variant) -> Option<RootItem> {
    let variables = variant.over.iter().map(ReductionTile::variable);
    if !over.is_empty() && !over.iter().map(|tile| tile.variable()).eq(variables) {
        return None;
    }
    let changed = item.with(|kernel| {
        let nest = kernel.nest_mut(stage.into());
        if let Some(tiles) = nest.and_then(|nest| nest.mapping.tiles_mut()) {
            tiles.serial.retain(|tile| matches!(tile.dim, LoopKind::Pure(_)));
            tiles.serial.splice(0..0, variant.inner.iter().copied());
            tiles.unroll = !tiles.serial.is_empty();
        }
        if over.is_empty() && !variant.over.is_empty() {
            kernel.wrap(stage.into(), variant.over.clone());
        } else {
            resize(kernel, &variant.over);
        }
    });
    (changed != *item).then_some(changed)
}

/// Changes the sizes of loops over the block.
fn resize(kernel: &mut Kernel, loops: &[ReductionTile]) {
    kernel.edit(|node, _| {
        if let NodeMut::Over(over) = node {
            for tile in &mut over.loops {
                let other = loops.iter().find(|other| other.variable() == tile.variable());
                tile.size = other.map_or(tile.size, |other| other.size);
            }
        }
        true
    });
}

/// The shape of a kernel's own nest.
fn shape(tiler: &Tiler<'_>, item: &RootItem) -> Option<Shape> {
    let kernel = item.kernels().next()?;
    let (last, own) = kernel.nests().enumerate().last()?;
    let tiles = own.mapping.tiles()?;
    let around = item.around().map_or(&[][..], |around| &around.loops);
    let own_over = || kernel.loops_over(last).filter(|tile| Item::Stage(tile.stage) == own.item);
    let is_reduction = |dim: LoopKind| matches!(dim, LoopKind::Reduction(_));
    let shared = |dim: LoopKind| kernel.block.iter().any(|tile| tile.dim == dim);
    let inner: Vec<Tile> =
        tiles.serial.iter().filter(|tile| is_reduction(tile.dim) && !shared(tile.dim)).copied().collect();
    let variant = tiler.variants.iter().position(|variant| {
        variant.around == around
            && variant.over.iter().eq(own_over())
            && variant.inner == inner
            && variant.shared.iter().all(|span| shared(span.dim))
            && variant.shared.len() == kernel.block.iter().filter(|tile| is_reduction(tile.dim)).count()
    })?;
    tiler.shape(&kernel.block, tiles, variant)
}
