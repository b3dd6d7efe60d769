//! Random kernels, and random mappings of their nests.

use warploom_lang::FuncId;
use warploom_schedule::{Item, LoopKind, ReductionTile, RootItem, Size, StageRef, Tile};

use crate::plan::NestPlan;
use crate::random::Generator;
use crate::random::draw::Draw;
use crate::random::facts::Facts;
use crate::random::tiles::{self, Span};
use crate::reach::blocks;

/// The maximum number of iterations of the loops around a kernel, and of those over a block.
const MAX_ITERATIONS: i64 = 128;

/// How often to redraw a kernel or mapping that was rejected.
const TRIES: usize = 3;

impl Generator<'_> {
    /// Gives every stage of a Func at root a kernel.
    pub(super) fn tile_kernels(&mut self, func: FuncId) {
        for stage in self.facts.problem.defined_stages(func) {
            for _ in 0..TRIES {
                let kernel = self.kernel(stage);
                let mut next = self.schedule.clone();
                next.replace_kernel(stage, kernel);
                if self.keep(next) {
                    break;
                }
            }
        }
    }

    /// A kernel of one stage, with loops around it and over its blocks.
    fn kernel(&mut self, stage: StageRef) -> RootItem {
        let outside = if self.draw.chance(0.45) { self.loops(stage, &[]) } else { Vec::new() };
        let inside = if self.draw.chance(0.45) { self.loops(stage, &outside) } else { Vec::new() };
        let extent = |kind: LoopKind| self.facts.problem.loop_range(Item::Stage(stage), kind).extent.max(1);
        let spans = spans(self.facts, Item::Stage(stage), &outside, false, extent);
        let loops: Vec<ReductionTile> = outside.iter().chain(&inside).cloned().collect();
        let free = spans.into_iter().filter(|span| taken(&loops, span.dim).is_none());
        let block = tiles::block(&free.collect::<Vec<_>>(), &mut self.draw);
        let mut tiles = None;
        if self.draw.chance(0.8) {
            let left = |kind: LoopKind| {
                let tile = block.iter().find(|tile| tile.dim == kind).map(|tile| tile.size);
                tile.or_else(|| taken(&loops, kind)).unwrap_or(Size::All).of(extent(kind))
            };
            let spans = self::spans(self.facts, Item::Stage(stage), &loops, false, left);
            tiles = Some(tiles::threads_and_serial(&spans, self.thread_limit(), &mut self.draw));
        }
        RootItem::lone(stage, outside, block, inside, tiles)
    }

    /// Loops over some of a stage's reduction variables that no outer loop takes, outermost first.
    pub(super) fn loops(&mut self, stage: StageRef, outside: &[ReductionTile]) -> Vec<ReductionTile> {
        let extents = self.facts.domain(stage);
        let left = |var: &usize| extents[*var] > 1 && taken(outside, LoopKind::Reduction(*var)).is_none();
        let mut variables: Vec<usize> = (0..extents.len()).rev().filter(left).collect();
        if variables.is_empty() {
            return Vec::new();
        }
        let mut sizes: Vec<i64> = vec![1; variables.len()];
        let waiting = variables.iter().position(|var| self.waits(stage, *var)).unwrap_or(0);
        if waiting > 0 && self.draw.chance(0.7) {
            // Variables that are fixed outside allow others to run in parallel.
            sizes.truncate(waiting);
        } else {
            let free = |var: &usize| *var > 0 && self.facts.freedom(stage, *var).under_outer;
            if variables.iter().any(free) && self.draw.chance(0.3) {
                self.draw.shuffle(&mut variables);
            }
            // Only the innermost takes several values at once; otherwise the others would run in parts.
            sizes.truncate(1 + self.draw.position(variables.len()));
            let innermost = sizes.len() - 1;
            sizes[innermost] = loop_size(extents[variables[innermost]], &mut self.draw);
        }
        let mut iterations = MAX_ITERATIONS;
        let draw = &mut self.draw;
        let tile = |(&var, size): (&usize, i64)| {
            let size = size.max(blocks(extents[var], iterations));
            iterations /= blocks(extents[var], size);
            let whole = size >= extents[var] && draw.chance(0.5);
            let size = u32::try_from(size).ok().filter(|_| !whole);
            ReductionTile { stage, var, size: size.map_or(Size::All, Size::Of) }
        };
        variables.iter().zip(sizes).map(tile).collect()
    }

    /// Whether the values of a variable may run in parallel only if other variables are fixed.
    fn waits(&self, stage: StageRef, var: usize) -> bool {
        let freedom = self.facts.freedom(stage, var);
        freedom.under_outer && !freedom.always
    }

    /// The reduction variables of a stage among its serial loops, outermost first.
    pub(super) fn serial_reductions(&mut self, stage: StageRef, loops: &[ReductionTile]) -> Vec<Tile> {
        let domain = self.facts.domain(stage);
        let extent = |kind: LoopKind| match kind {
            LoopKind::Reduction(var) => taken(loops, kind).unwrap_or(Size::All).of(domain[var]),
            LoopKind::Pure(_) => 1,
        };
        tiles::reductions(&spans(self.facts, Item::Stage(stage), loops, false, extent), &mut self.draw)
    }

    /// Gives a nest new thread loops, if a legal draw is found.
    pub(crate) fn spread(&mut self, kernel: StageRef, item: Item) {
        let plan = self.facts.problem.plan(&self.schedule);
        let own =
            |nest: &&NestPlan| nest.nest.item == item && plan.kernels[nest.kernel].kernel.stage == kernel;
        let found = plan.nests.values().find(own).and_then(|info| Some((info, info.footprint.as_ref()?)));
        let Some((info, nest)) = found else { return };
        let loops: Vec<ReductionTile> = info.loops.iter().map(|id| plan.loops[*id].tile).collect();
        let atomic = info.nest.numbers.atomic;
        let spans = spans(self.facts, item, &loops, atomic, |kind| nest.extent(kind));
        for _ in 0..TRIES {
            let tiles = tiles::threads_and_serial(&spans, self.thread_limit(), &mut self.draw);
            let mut next = self.schedule.clone();
            if let Some(nest) = next.kernel_mut(kernel).and_then(|kernel| kernel.nest_mut(item)) {
                nest.mapping = tiles.into();
            }
            if self.keep(next) {
                return;
            }
        }
    }

    fn thread_limit(&self) -> i64 {
        i64::from(self.facts.problem.device().threads.per_block)
    }
}

fn loop_size(extent: i64, draw: &mut Draw) -> i64 {
    match draw.position(4) {
        0 | 1 => 1,
        2 => draw.between(2, 8.min(extent)),
        _ => draw.between(1, extent),
    }
}

/// The tile size of the loop that takes a variable, if there is one.
fn taken(loops: &[ReductionTile], kind: LoopKind) -> Option<Size> {
    loops.iter().find(|tile| LoopKind::Reduction(tile.var) == kind).map(|tile| tile.size)
}

/// The loops of a stage or staged input inside some outer loops. An `atomic` stage can share all of them.
fn spans(
    facts: &Facts<'_>,
    item: Item,
    loops: &[ReductionTile],
    atomic: bool,
    extent: impl Fn(LoopKind) -> i64,
) -> Vec<Span> {
    let span = |dim: LoopKind| {
        let (shared, exchanged) = match (item, dim) {
            (Item::Stage(stage), LoopKind::Reduction(var)) if !atomic => {
                (is_free(facts, stage, var, loops), facts.freedom(stage, var).under_outer)
            }
            _ => (true, atomic),
        };
        Span { dim, extent: extent(dim), shared, exchanged }
    };
    facts.problem.loops(item).into_iter().map(span).collect()
}

/// Whether the values of a reduction variable may run in parallel inside some loops.
fn is_free(facts: &Facts<'_>, stage: StageRef, var: usize, loops: &[ReductionTile]) -> bool {
    let freedom = facts.freedom(stage, var);
    let domain = facts.domain(stage);
    let fixed = |other: usize| {
        let one = |tile: &ReductionTile| (tile.stage, tile.var, tile.size) == (stage, other, Size::Of(1));
        domain[other] <= 1 || loops.iter().any(one)
    };
    freedom.always || (freedom.under_outer && (var + 1..domain.len()).all(fixed))
}
