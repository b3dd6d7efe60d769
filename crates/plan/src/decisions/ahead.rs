//! `async`: software-pipelined copies.

use std::num::NonZeroU32;

use thiserror::Error;
use warploom_lang::FuncId;
use warploom_schedule::{BlockItem, Item, Loops, Nest, ReductionTile, RootItem, Size, Source, StageRef};

use crate::body::{Builder, Part};
use crate::decisions::{Decision, Edit, Facts, Line, Refusals, Tree};
use crate::ids::LoopId;
use crate::legality::rule::Rule;
use crate::plan::{LoopPlan, NestPlan, Plan};
use crate::problem::Problem;
use crate::random::{Generator, Turn};

/// The smallest and largest number of slices that exist at once.
const DEPTHS: (u32, u32) = (2, 4);

/// The fewest bytes that an asynchronous copy moves.
const LEAST_BYTES: usize = 4;

/// The probability that an input that can be copied asynchronously is copied in a loop that reads it.
const IN_LOOP: f64 = 0.7;

/// The probability that a reduction over such an input without loops over the block gets one.
const SLICED: f64 = 0.7;

/// The probability that the loop around such a copy gets a size that cuts its last slice.
const CUT: f64 = 0.6;

/// The probability that a copy is asynchronous if it can be.
const DRAWN: f64 = 0.6;

/// Copies for the next iterations of a loop over the block while the threads work on one.
pub(super) struct Ahead;

/// Why a nest cannot copy ahead of time.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum AheadRefusal {
    /// The number of slices is out of range.
    #[error("`{item}` has `async {depth}`; write a number from {least} to {most}")]
    Depth {
        /// The stage or staged input.
        item: String,
        /// The number in the schedule.
        depth: u32,
        /// The smallest number.
        least: u32,
        /// The largest number.
        most: u32,
    },
    /// The copy is not in shared memory, or in no loop over the block.
    #[error(
        "`{item}` cannot be `async`: that takes a copy in shared memory inside an `over` loop, whose iterations copy ahead; remove it"
    )]
    Place {
        /// The stage or staged input.
        item: String,
    },
    /// The nest is not a copy from global memory.
    #[error(
        "`{item}` cannot be `async`: that takes a copy of an input, or a Func whose value is one read of an input or of a Func with a kernel of its own, not staged in this kernel; remove it"
    )]
    Form {
        /// The stage or staged input.
        item: String,
    },
    /// The copy has elements that are too small.
    #[error(
        "`{item}` cannot be `async`: a copy moves 4 or 8 bytes, and its elements have {bytes}; remove it"
    )]
    Bytes {
        /// The stage or staged input.
        item: String,
        /// The bytes of an element.
        bytes: usize,
    },
}

impl Decision for Ahead {
    fn facts(&self) -> Facts {
        Facts {
            word: "async",
            about: "a software-pipelined copy: asynchronous copies for later iterations overlap the computation of this one",
            // Words about Funcs in registers, which a copy has none of.
            excludes: &["lanes", "slide"],
            edits: &[Edit::Kernel(depths)],
            ..Facts::PLAIN
        }
    }

    fn apply(&self, part: &mut Part<'_>, builder: &Builder<'_, '_>) {
        if part.nest.is_some_and(|nest| nest.numbers.depth.is_some()) {
            part.slices = builder.allocation(part.node).map_or(1, |array| array.slices);
        }
    }

    fn refusals(&self, at: &Line<'_>) -> Refusals {
        let with_depth = at.nest.and_then(|nest| Some((nest, nest.nest.numbers.depth?.get())));
        let Some((nest, depth)) = with_depth else { return Vec::new() };
        let (least, most) = DEPTHS;
        if !(least..=most).contains(&depth) {
            return at.refuse(AheadRefusal::Depth { item: at.item(), depth, least, most });
        }
        let rule = at.problem.async_rule(at.plan, nest, || at.item());
        rule.map_or_else(Vec::new, |rule| at.refuse(rule))
    }

    /// Whether asynchronous copies would be put to the test: at least three slices, the last of them cut, in a kernel with
    /// several blocks.
    fn is_possible(&self, at: &Line<'_>) -> bool {
        let Some(nest) = at.nest else { return false };
        let several = at.kernel.blocks.iter().any(|count| *count > 1);
        let over = &nest.loops[at.kernel.around.len()..];
        let innermost = over.iter().rev().find(|id| at.plan.loops[**id].count > 1);
        let tested = innermost.is_some_and(|id| {
            let LoopPlan { tile, count, .. } = at.plan.loops[*id];
            let extent = at.problem.domain(tile.stage, tile.var).extent;
            count >= 3 && extent % tile.size.of(extent) != 0
        });
        several && tested && at.problem.can_be_async(at.plan, nest)
    }

    fn draw(&self, generator: &mut Generator<'_>, turn: Turn) {
        if let Turn::Last = turn {
            generator.slice_reductions();
            generator.copy_in_loops();
            for (kernel, tile) in generator.loops_of_copies() {
                if generator.draw.chance(CUT) {
                    generator.cut(kernel, &tile);
                }
            }
            for (kernel, item) in generator.possible(|_, _, item| Some(item)) {
                if generator.draw.chance(DRAWN) {
                    let (least, most) = DEPTHS;
                    let depth = NonZeroU32::new(generator.draw.between(least.into(), most.into()) as u32);
                    generator.change(kernel, item, |nest| nest.numbers.depth = depth);
                }
            }
        }
    }
}

/// The kernel with other numbers of slices of what its loops copy, or with one, if it copies in loops.
fn depths(tree: &Tree<'_>) -> Vec<RootItem> {
    let mut found = Vec::new();
    let bodies = tree.item.kernels().flat_map(|kernel| &kernel.body);
    bodies.filter_map(BlockItem::over).for_each(|over| nests_of(over, &mut found));
    let copies = found.into_iter().filter(|nest| tree.is_copy(nest));
    let items: Vec<Item> = copies.map(|nest| nest.item).collect();
    let own: Vec<&Nest> = tree.item.nests().filter(|nest| items.contains(&nest.item)).collect();
    let (least, most) = DEPTHS;
    let all = [None].into_iter().chain((least..=most).map(NonZeroU32::new)).filter(|_| !items.is_empty());
    let other = all.filter(|depth| own.iter().any(|nest| nest.numbers.depth != *depth));
    let with = |depth| {
        tree.item.with(|kernel| {
            let copies = kernel.nests_mut().filter(|nest| items.contains(&nest.item));
            copies.for_each(|nest| nest.numbers.depth = depth);
        })
    };
    other.map(with).collect()
}

/// The nests of loops over a block, and of those inside them.
fn nests_of<'a>(over: &'a Loops<BlockItem>, found: &mut Vec<&'a Nest>) {
    for item in &over.body {
        match item {
            BlockItem::Nest(nest) => found.push(nest),
            BlockItem::Over(inner) => nests_of(inner, found),
        }
    }
}

impl Problem {
    /// Whether a stage or staged input is a copy that the device could make asynchronously, if what it reads is in global
    /// memory.
    pub(crate) fn is_copy(&self, item: Item, is_inlined: impl Fn(FuncId) -> bool) -> bool {
        let copies = item.stage().is_none_or(|stage| self.copied(stage, is_inlined).is_some());
        let large = self.types(item).iter().all(|ty| ty.bytes() >= LEAST_BYTES);
        copies && large && self.device().features().async_copies
    }

    /// Whether a nest could copy asynchronously.
    fn can_be_async(&self, plan: &Plan, nest: &NestPlan) -> bool {
        self.async_rule(plan, nest, String::new).is_none()
    }

    /// The rule that keeps a nest from copying asynchronously.
    fn async_rule(&self, plan: &Plan, nest: &NestPlan, item: impl Fn() -> String) -> Option<Rule> {
        let in_loop = nest.loops.len() > plan.kernels[nest.kernel].around.len();
        if !nest.nest.storage.is_shared() || !in_loop {
            return Some(AheadRefusal::Place { item: item() }.into());
        }
        if !self.copies_from_global(plan, nest) {
            return Some(AheadRefusal::Form { item: item() }.into());
        }
        let mut bytes = self.types(nest.nest.item).iter().map(|ty| ty.bytes());
        if let Some(bytes) = bytes.find(|bytes| *bytes < LEAST_BYTES) {
            return Some(AheadRefusal::Bytes { item: item(), bytes }.into());
        }
        let has_copies = self.device().features().async_copies;
        (!has_copies).then(|| self.no_feature(item(), "async", "asynchronous copies"))
    }

    /// Whether a nest copies from global memory that its own kernel only reads.
    fn copies_from_global(&self, plan: &Plan, nest: &NestPlan) -> bool {
        let Item::Stage(stage) = nest.nest.item else { return true };
        match self.copied(stage, |func| plan.inlined.contains(func)) {
            None => false,
            Some(Source::Input(input)) => {
                let mut nests = plan.nests_of(nest.kernel).iter();
                !nests.any(|other| other.nest.item == Item::Input(input))
            }
            Some(Source::Func(func)) => {
                let mut places = plan.computing(func);
                !nest.nest.registers.contains(&func) && !places.any(|(_, other)| other.kernel == nest.kernel)
            }
        }
    }
}

impl Generator<'_> {
    /// Divides reductions of kernels that read such inputs into slices.
    fn slice_reductions(&mut self) {
        let kernels: Vec<StageRef> = self.schedule.kernels().map(|kernel| kernel.stage).collect();
        for stage in kernels {
            let extents = self.facts.domain(stage);
            let Some(var) = extents.iter().rposition(|extent| *extent > 1) else { continue };
            let Some(size) = self.cutting(extents[var]).filter(|_| self.reads_copies(stage)) else {
                continue;
            };
            let mut next = self.schedule.clone();
            let body = next.kernel_mut(stage).map(|kernel| &mut kernel.body);
            if let Some(body) = body
                && let Some(own) = body.pop_if(|item| item.nest().is_some())
                && let BlockItem::Nest(own) = own
                && self.draw.chance(SLICED)
            {
                body.push(Loops::holding(vec![ReductionTile { stage, var, size }], own));
                self.keep(next);
            }
        }
    }

    /// Whether the own stage of a kernel reads an input that can be copied asynchronously.
    fn reads_copies(&self, stage: StageRef) -> bool {
        let own = self.schedule.nests().find(|nest| nest.item == Item::Stage(stage));
        let mut inputs = self.facts.problem.pipeline().inputs().keys();
        own.is_some_and(|own| {
            inputs.any(|input| {
                self.facts.reads(&self.schedule, own, Source::Input(input))
                    && self.facts.problem.is_copy(Item::Input(input), |_| false)
            })
        })
    }

    /// A size that divides an extent into at least three slices, the last of which is cut, if there is one.
    fn cutting(&mut self, extent: i64) -> Option<Size> {
        let sizes: Vec<i64> = (2..=(extent - 1) / 2).filter(|size| extent % size != 0).collect();
        let size = *sizes.get(self.draw.position(sizes.len().max(1)))?;
        Some(Size::Of(size as u32))
    }

    /// Copies inputs in the innermost loops over blocks that contain all their readers.
    fn copy_in_loops(&mut self) {
        for input in self.facts.problem.pipeline().inputs().keys() {
            if !self.facts.problem.is_copy(Item::Input(input), |_| false) {
                continue;
            }
            for (kernel, sites) in self.sites(Source::Input(input)) {
                let mut next = self.schedule.clone();
                let Some(tree) = next.kernel_mut(kernel) else { continue };
                let copied = tree.nests().any(|nest| nest.item == Item::Input(input));
                // All places but the first are in a loop.
                if let [_, .., innermost] = &sites[..]
                    && !copied
                    && self.draw.chance(IN_LOOP)
                {
                    innermost.insert(tree, vec![Nest::shared(input).into()]);
                    self.keep(next);
                }
            }
        }
    }

    /// The innermost loops around copies that could be asynchronous, each once, with their kernels.
    fn loops_of_copies(&self) -> Vec<(StageRef, ReductionTile)> {
        let mut found = self.possible(|info, tile, _| info.loops.last().map(|id| tile(*id)));
        found.dedup();
        found
    }

    /// What `of` gives for the nests that could copy asynchronously, with their kernels.
    fn possible<T>(
        &self,
        of: impl Fn(&NestPlan, &dyn Fn(LoopId) -> ReductionTile, Item) -> Option<T>,
    ) -> Vec<(StageRef, T)> {
        let plan = self.facts.problem.plan(&self.schedule);
        let tile = |id: LoopId| plan.loops[id].tile;
        let nests = plan.nests.values().filter(|info| self.facts.problem.can_be_async(&plan, info));
        let found = nests.filter_map(|info| {
            Some((plan.kernels[info.kernel].kernel.stage, of(info, &tile, info.nest.item)?))
        });
        found.collect()
    }

    /// Gives a loop over a block at least three iterations, the last of which has fewer values, if there are enough.
    fn cut(&mut self, kernel: StageRef, tile: &ReductionTile) {
        let extent = self.facts.domain(tile.stage)[tile.var];
        let Some(size) = self.cutting(extent) else { return };
        let mut next = self.schedule.clone();
        let Some(tree) = next.kernel_mut(kernel) else { return };
        let mut bodies = vec![&mut tree.body];
        while let Some(body) = bodies.pop() {
            for item in body {
                let BlockItem::Over(Loops { loops, body }) = item else { continue };
                let same = loops.iter_mut().filter(|own| own.variable() == tile.variable());
                same.for_each(|own| own.size = size);
                bodies.push(body);
            }
        }
        self.keep(next);
    }
}
