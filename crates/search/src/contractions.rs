//! Tiled contractions, as a start for the search.
//!
//! A matrix product or convolution reads each of its values for many points. It is fast with a block tile, a register
//! tile per thread, and operands staged in shared memory for a few steps of the reduction at a time. Decisions on one
//! Func at a time do not lead there: loops over the block pay off only once the copies are inside, and until then small
//! tiles are cheaper than large ones.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use rayon::prelude::*;
use smallvec::smallvec;
use warploom_lang::FuncId;
use warploom_plan::decisions::interleaved;
use warploom_plan::{Problem, row_dimension};
use warploom_schedule::{EdgeId, Item, Load, LoopKind, Nest, NodeId, NodeSet, RootItem, Source, StageRef};

use crate::evaluate::Evaluator;
use crate::expand::accepted;
use crate::hash::of_words;
use crate::kernels::{Shape, Tiler};
use crate::places::Places;
use crate::propagate::{ReaderLoops, reader_loops};
use crate::reductions::{Variant, steps, tiled};
use crate::search::Search;
use crate::space::{SearchSpace, Span};
use crate::state::{Child, EvaluatedKernel, Sketch, State};
use crate::statistics::Statistics;
use crate::unfuse::unfused;

/// The most tiles of a block that are evaluated.
const MOST_SHAPES: usize = 240;

/// The most tiles of some dimensions that are continued to the next.
const MOST_PARTIAL: usize = 4000;

/// The tiles for which all ways to run the reduction are evaluated.
const BEST_SHAPES: usize = 16;

/// The most kernels that are kept, each with another number of points per thread. Register pressure decides how many
/// points are too many, and only the kernel compiler knows it.
const MOST_KEPT: usize = 4;

/// Threads of a block: at least, at most.
const THREADS: (i64, i64) = (64, 512);

/// The fewest threads of a block that covers each dimension whole or with one point: a small matrix.
const FEW_THREADS: i64 = 32;

/// Points of a thread: at least, at most.
const POINTS: (i64, i64) = (4, 64);

/// Points of a thread along a dimension. Those that are no power of two must divide it.
const SERIAL: [i64; 12] = [1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 14, 16];

/// The largest ratio of points in all blocks to points of the stage.
const MOST_PADDED: f64 = 1.3;

/// Reductions with at most this many steps join the kernel that stores their results, even if they are no contractions.
const FEW_STEPS: i64 = 64;

/// The states in which contractions have tiled kernels wherever this is faster: the best one, and those with other
/// tiles of the last contraction.
pub(crate) fn with_contractions(search: &Search<'_>, start: &Arc<State>) -> Vec<Arc<State>> {
    let space = search.evaluator.space;
    let mut found: Vec<Arc<State>> = Vec::new();
    if !space.funcs().any(|func| space.stages_of(func).any(|stage| is_contraction(space.problem, stage))) {
        return found;
    }
    for func in space.funcs() {
        if search.is_over() {
            break;
        }
        let best = found.first().unwrap_or(start);
        let tiled = Contraction::of(search, best, func).map(|contraction| contraction.tiled(search));
        if let Some(tiled) = tiled.filter(|tiled| tiled.first().is_some_and(|of| of.cost() < best.cost())) {
            found = tiled;
        }
    }
    found
}

/// Whether a stage reduces to points of its own, and everything that it reads is read for several of them.
pub(crate) fn is_contraction(problem: &Problem, stage: StageRef) -> bool {
    let of = &problem.dag().stages()[problem.stage_id(stage)];
    let (reductions, points): (Vec<LoopKind>, Vec<LoopKind>) =
        of.loops.iter().map(|of| of.kind).partition(|kind| matches!(kind, LoopKind::Reduction(_)));
    if reductions.is_empty() || points.len() != problem.pipeline().funcs()[stage.func].dims.len() {
        return false;
    }
    let several = |kind: &&LoopKind| problem.loop_range(stage.into(), **kind).extent > 1;
    let several: Vec<LoopKind> = points.iter().filter(several).copied().collect();
    let loads = loads(problem, stage);
    let reuses = |load: &Reading<'_>| several.iter().any(|kind| load.stays_along(*kind));
    !loads.is_empty() && loads.iter().all(reuses)
}

/// A load of another Func or an input, with the loops around it.
struct Reading<'a> {
    load: &'a Load,
    loops: Vec<LoopKind>,
}

impl Reading<'_> {
    /// Whether it reads the same value at all points along a loop (it is invariant there).
    fn stays_along(&self, kind: LoopKind) -> bool {
        let Some(column) = self.loops.iter().position(|other| *other == kind) else { return true };
        let map = &self.load.map;
        (0..map.rows().len()).all(|row| map.slope(row, column).is_some_and(|slope| slope.is_zero()))
    }
}

/// The reads of a stage other than of its own Func.
fn loads(problem: &Problem, stage: StageRef) -> Vec<Reading<'_>> {
    let dag = problem.dag();
    let of = &dag.stages()[problem.stage_id(stage)];
    let loops: Vec<LoopKind> = of.loops.iter().map(|of| of.kind).collect();
    let others = of.producers.iter().map(|edge| &dag.edges()[*edge]).filter(|edge| edge.producer != of.node);
    others.flat_map(|edge| &edge.loads).map(|load| Reading { load, loops: loops.clone() }).collect()
}

/// A Func that is a contraction, and the Func that stores its results.
struct Contraction<'a> {
    evaluator: &'a Evaluator<'a>,
    /// The state in which the Func and its reader have kernels of their own.
    base: Arc<State>,
    func: FuncId,
    /// The stage that reduces.
    reduces: StageRef,
    /// The stage whose kernel it joins.
    owner: StageRef,
    reader_loops: ReaderLoops,
    /// Whether its operands are reused enough to be worth a copy.
    reuses: bool,
    /// Inlined Funcs that only the reduction reads. They can be copied like inputs.
    copied: Vec<FuncId>,
    /// The inlined Funcs without `copied`.
    inlined: NodeSet,
}

impl<'a> Contraction<'a> {
    /// `None` unless the Func is a reduction that exactly one other Func reads, point by point.
    fn of(search: &'a Search<'_>, state: &Arc<State>, func: FuncId) -> Option<Contraction<'a>> {
        let (evaluator, space) = (&search.evaluator, search.evaluator.space);
        let reduces = space.stages_of(func).last()?;
        let facts = space.stage(reduces);
        let dims = space.problem.pipeline().funcs()[func].dims.len();
        let reuses = is_contraction(space.problem, reduces);
        let is_tileable = !facts.reductions.is_empty() && facts.pure.len() == dims;
        if !is_tileable || !(reuses || steps(&facts.reductions) <= FEW_STEPS) || space.is_decided(func) {
            return None;
        }
        let owner = only_reader(space, func).filter(|owner| !space.is_decided(owner.func))?;
        let base = search.counted(|counts| alone(evaluator, state, func, owner, counts))?;
        let reader_loops = reader_loops(space, &Nest::global(owner), func, &base.inlined)?;
        if !reader_loops.iter().all(|kind| matches!(kind, Some(LoopKind::Pure(_)))) {
            return None;
        }
        let copied = if reuses { copied(space, &base, reduces) } else { Vec::new() };
        let mut inlined = base.inlined.clone();
        copied.iter().for_each(|func| inlined.remove(space.dag.func_node(*func)));
        Some(Contraction { evaluator, base, func, reduces, owner, reader_loops, reuses, copied, inlined })
    }

    /// The states with the best kernels that were found for some numbers of points per thread, cheapest first.
    fn tiled(&self, search: &Search<'_>) -> Vec<Arc<State>> {
        let space = self.evaluator.space;
        let variants = tiled(space.stage(self.reduces));
        let Some((usual, others)) = variants.split_first() else { return Vec::new() };
        let tiler = Tiler::new(space, space.stage(self.owner));
        let shapes = self.shapes(search);
        let mut found = self.judged(search, shapes.iter().map(|shape| (shape, usual)), &tiler);
        first_of_each(&mut found);
        found.truncate(BEST_SHAPES);
        let best: Vec<&Shape> = found.iter().map(|(_, shape)| *shape).collect();
        let more = best.into_iter().flat_map(|shape| others.iter().map(move |variant| (shape, variant)));
        found.extend(self.judged(search, more, &tiler));
        found.sort_by(|(a, _), (b, _)| a.cost().total_cmp(&b.cost()));
        let state = |(kernel, _): &(Arc<EvaluatedKernel>, &Shape)| {
            let inlined = Some(self.inlined.clone());
            Child::new(&self.base, smallvec![kernel.clone()], Some(self.func), inlined).state()
        };
        let kinds = first_of_each(&mut found);
        found.iter().take(kinds.min(MOST_KEPT)).map(state).collect()
    }

    /// The kernels of some tiles that are accepted, cheapest first.
    fn judged<'s>(
        &self,
        search: &Search<'_>,
        wanted: impl Iterator<Item = (&'s Shape, &'s Variant)>,
        tiler: &Tiler<'_>,
    ) -> Vec<(Arc<EvaluatedKernel>, &'s Shape)> {
        let wanted: Vec<(&Shape, &Variant)> = wanted.collect();
        let judged = wanted.into_par_iter().filter_map(|(shape, variant)| {
            let sketch = self.sketch(tiler, shape, variant)?;
            search.counted(|counts| Some((self.cheapest(sketch, counts)?, shape)))
        });
        let mut found: Vec<(Arc<EvaluatedKernel>, &Shape)> = judged.collect();
        // The sort is stable, and the order before it does not depend on threads.
        found.sort_by(|(a, _), (b, _)| a.cost().total_cmp(&b.cost()));
        found
    }

    /// The owner's kernel with these tiles: the reduction in registers, and copies of its operands in its innermost
    /// loop over the block.
    fn sketch(&self, tiler: &Tiler<'_>, shape: &Shape, variant: &Variant) -> Option<Sketch> {
        let space = self.evaluator.space;
        let tiles = tiler.thread_tiles(shape);
        let places = Places::new(space, &self.base, self.func);
        let items = places.private_items(&tiles, &self.reader_loops, variant);
        let mut item = tiler.item(shape).with(|kernel| kernel.body.splice(0..0, items).for_each(drop));
        let stages = self.copied.iter().flat_map(|func| space.stages_of(*func));
        let mut copies: Vec<Item> = stages.map(Item::Stage).collect();
        if self.reuses {
            let reads = space.reads(&Nest::private(self.reduces), &self.inlined).0;
            copies.extend(reads.iter().filter_map(|node| match space.dag.nodes()[node].source {
                Source::Input(input) => Some(Item::Input(input)),
                Source::Func(_) => None,
            }));
        }
        for copy in copies {
            item = self.with_copy(&item, copy)?;
        }
        Sketch::new(space, item, &self.inlined)
    }

    fn with_copy(&self, item: &RootItem, copy: Item) -> Option<RootItem> {
        let kernel = item.kernels().next()?;
        let readers: Vec<bool> = kernel.nests().map(|nest| nest.item == Item::Stage(self.reduces)).collect();
        let site = kernel.sites(&readers).pop()?;
        Some(item.with(|kernel| site.insert(kernel, vec![Nest::shared(copy).into()])))
    }

    /// The kernel with adjacent or interleaved register tiles, whichever is cheaper.
    fn cheapest(&self, sketch: Sketch, counts: &mut Statistics) -> Option<Arc<EvaluatedKernel>> {
        let grouped = interleaved(&sketch.item).map(|item| sketch.with_tiles(item));
        let all = [Some(sketch), grouped.filter(|of| self.evaluator.knows(&of.item))];
        let found = all.into_iter().flatten().filter_map(|sketch| self.cheaper_pitch(sketch, counts));
        found.min_by(|a, b| a.cost().total_cmp(&b.cost()))
    }

    /// The kernel with or without row pitches that avoid bank conflicts in its copies, whichever is cheaper.
    fn cheaper_pitch(&self, sketch: Sketch, counts: &mut Statistics) -> Option<Arc<EvaluatedKernel>> {
        let mut judge = |sketch: Sketch| {
            counts.enumerated += 1;
            self.evaluator.judge(vec![sketch], counts).pop()?.ok()
        };
        let plain = judge(sketch)?;
        let item = plain.sketch.item.with(|kernel| {
            for (nest, extents) in kernel.nests_mut().zip(&plain.extents) {
                let row = row_dimension(extents, nest.numbers.transpose).map_or(1, |d| extents[d]);
                if nest.storage.is_shared() && extents.len() > 1 {
                    nest.numbers.pitch = u32::try_from(row | 1).ok().and_then(NonZeroU32::new);
                }
            }
        });
        let padded = Some(plain.sketch.with_tiles(item)).filter(|of| self.evaluator.knows(&of.item));
        let padded = padded.and_then(judge).filter(|evaluated| evaluated.cost() < plain.cost());
        padded.or(Some(plain))
    }

    /// Tiles of the owner: threads along its first dimensions, and several points per thread along the dimensions in
    /// which loaded values are reused.
    fn shapes(&self, search: &Search<'_>) -> Vec<Shape> {
        let space = self.evaluator.space;
        let pure = &space.stage(self.owner).pure;
        let loads = loads(space.problem, self.reduces);
        let is_reused = |span: &Span| {
            let dim = self.reader_loops.iter().position(|kind| *kind == Some(span.dim));
            let of_reduction = dim.map(LoopKind::Pure);
            !self.reuses || of_reduction.is_some_and(|kind| loads.iter().any(|load| load.stays_along(kind)))
        };
        let vector = pure.iter().position(|span| span.extent > 1).unwrap_or(0);
        let mut partial =
            vec![Partial { serial: Vec::new(), threads: Vec::new(), padded: 1.0, all_or_one: true }];
        for span in pure {
            if search.is_over() {
                return Vec::new();
            }
            let most = if is_reused(span) { POINTS.1 } else { 1 };
            partial = partial.iter().flat_map(|shorter| shorter.longer(span.extent, most)).collect();
            thin_out(&mut partial, MOST_PARTIAL);
        }
        partial.retain(|of| of.is_whole(self.reuses));
        thin_out(&mut partial, MOST_SHAPES);
        let shape = |of: Partial| Shape { variant: 0, vector, serial: of.serial, threads: of.threads };
        partial.into_iter().map(shape).collect()
    }
}

/// Moves the first kernel with each number of points per thread to the front. Returns how many there are.
fn first_of_each(kernels: &mut Vec<(Arc<EvaluatedKernel>, &Shape)>) -> usize {
    let mut seen = BTreeSet::new();
    let is_first =
        |(_, shape): &(Arc<EvaluatedKernel>, &Shape)| seen.insert(shape.serial.iter().product::<i64>());
    let (mut first, others): (Vec<_>, Vec<_>) = kernels.drain(..).partition(is_first);
    let kinds = first.len();
    first.extend(others);
    *kernels = first;
    kinds
}

/// The only stage of another Func that reads a Func.
fn only_reader(space: &SearchSpace<'_>, func: FuncId) -> Option<StageRef> {
    let dag = space.dag;
    let node = dag.func_node(func);
    let reader = |edge: &EdgeId| &dag.stages()[dag.edges()[*edge].consumer];
    let mut readers = dag.nodes()[node].consumers.iter().map(reader).filter(|stage| stage.node != node);
    let (Some(owner), None) = (readers.next(), readers.next()) else { return None };
    Some(StageRef { func: owner.func, stage: owner.number })
}

/// The state in which a Func and the stage that reads it have kernels of their own.
fn alone(
    evaluator: &Evaluator<'_>,
    state: &Arc<State>,
    func: FuncId,
    owner: StageRef,
    counts: &mut Statistics,
) -> Option<Arc<State>> {
    let space = evaluator.space;
    let mut base = state.clone();
    if base.inlined.contains(space.dag.func_node(owner.func)) {
        let change = Places::new(space, &base, owner.func).root();
        base = accepted(evaluator, &base, &change, counts)?.state();
    }
    let base = unfused(evaluator, &base, func, counts)?;
    base.kernel_of(owner).is_some_and(|kernel| kernel.is_lone()).then_some(base)
}

/// The inlined Funcs that only this stage reads.
fn copied(space: &SearchSpace<'_>, state: &State, stage: StageRef) -> Vec<FuncId> {
    let own = space.stage(stage).reads.iter().filter(|node| state.inlined.contains(*node));
    let only = |node: &NodeId| {
        let consumers = &space.dag.nodes()[*node].consumers;
        consumers.iter().all(|edge| space.dag.edges()[*edge].consumer == space.stage_id(stage))
    };
    let funcs = own.filter(only).filter_map(|node| space.func_of(node));
    funcs.filter(|func| !space.is_decided(*func)).collect()
}

/// Thins out the tiles to at most `most`, drawn evenly.
fn thin_out(tiles: &mut Vec<Partial>, most: usize) {
    if tiles.len() > most {
        tiles.sort_by_cached_key(Partial::draw);
        tiles.truncate(most);
    }
}

/// Tiles along the first dimensions.
struct Partial {
    serial: Vec<i64>,
    threads: Vec<i64>,
    /// The ratio of points in all blocks to points of the stage.
    padded: f64,
    /// Whether a block covers each dimension whole or with one point.
    all_or_one: bool,
}

impl Partial {
    /// All continuations by one dimension, with at most `most` points of a thread along it.
    fn longer(&self, extent: i64, most: i64) -> Vec<Partial> {
        let is_fair = |serial: &i64| {
            let divides = extent % serial == 0;
            *serial == 1
                || *serial <= extent && (divides || (*serial as u64).is_power_of_two() && *serial <= 8)
        };
        let mut found = Vec::new();
        for serial in SERIAL.into_iter().filter(|serial| *serial <= most).filter(is_fair) {
            let left = (extent + serial - 1) / serial;
            let powers = (0..=6).map(|power| 1 << power).filter(|threads| *threads <= left);
            let whole = [left].into_iter().filter(|left| *left < 64 && !(*left as u64).is_power_of_two());
            for threads in powers.chain(whole) {
                let tile = serial * threads;
                let padded = self.padded * ((extent + tile - 1) / tile * tile) as f64 / extent as f64;
                let next = Partial {
                    serial: [&self.serial[..], &[serial]].concat(),
                    threads: [&self.threads[..], &[threads]].concat(),
                    padded,
                    all_or_one: self.all_or_one && (tile == 1 || tile >= extent),
                };
                found.extend(Some(next).filter(Partial::is_short));
            }
        }
        found
    }

    /// A pseudo-random number for an even draw, derived from the tiles.
    fn draw(&self) -> u64 {
        let sizes = self.serial.iter().chain(&self.threads);
        of_words(&sizes.map(|size| *size as u64).collect::<Vec<u64>>())
    }

    fn is_short(&self) -> bool {
        self.serial.iter().product::<i64>() <= POINTS.1
            && self.threads.iter().product::<i64>() <= THREADS.1
            && self.threads.iter().filter(|threads| **threads > 1).count() <= 3
            && self.padded <= MOST_PADDED
    }

    /// Whether a block has enough threads, and each of them enough points to use a value several times.
    fn is_whole(&self, reuses: bool) -> bool {
        let points = if reuses { POINTS.0 } else { 1 };
        let threads = if self.all_or_one { FEW_THREADS } else { THREADS.0 };
        self.serial.iter().product::<i64>() >= points && self.threads.iter().product::<i64>() >= threads
    }
}
