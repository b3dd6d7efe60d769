//! Random asynchronous copies: copies in loops over the block, loops whose last slice is cut, and depths.

use std::num::NonZeroU32;

use crate::dag::Source;
use crate::ids::LoopId;
use crate::schedule::legality::ASYNC_DEPTHS;
use crate::schedule::plan::NestPlan;
use crate::schedule::random::Generator;
use crate::schedule::tree::{BlockItem, Item, Loops, Nest, ReductionTile, Size, StageRef};

/// The probability that an input that can be copied asynchronously is copied in a loop that reads it.
const IN_LOOP: f64 = 0.6;

/// The probability that the loop around such a copy gets a size that cuts its last slice.
const CUT: f64 = 0.6;

/// The probability that a copy is asynchronous if it can be.
const ASYNC: f64 = 0.6;

impl Generator<'_> {
    /// Makes some copies asynchronous, after everything else is decided.
    pub(super) fn asynchronous_copies(&mut self) {
        self.copy_in_loops();
        for (kernel, tile) in self.loops_of_copies() {
            if self.draw.chance(CUT) {
                self.cut(kernel, &tile);
            }
        }
        for (kernel, item) in self.possible(|_, _, item| Some(item)) {
            if self.draw.chance(ASYNC) {
                let (least, most) = ASYNC_DEPTHS;
                let depth = NonZeroU32::new(self.draw.between(least.into(), most.into()) as u32);
                let mut next = self.schedule.clone();
                let nest = next.kernel_mut(kernel).and_then(|kernel| kernel.nest_mut(item));
                nest.into_iter().for_each(|nest| nest.numbers.depth = depth);
                self.keep(next);
            }
        }
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
        of: impl Fn(&NestPlan<'_>, &dyn Fn(LoopId) -> ReductionTile, Item) -> Option<T>,
    ) -> Vec<(StageRef, T)> {
        let plan = self.facts.problem.plan(&self.schedule);
        let tile = |id: LoopId| plan.loops[id].tile.clone();
        let nests = plan.nests.values().filter(|info| self.facts.problem.can_be_async(&plan, info));
        let found = nests.filter_map(|info| {
            Some((plan.kernels[info.kernel].kernel.stage, of(info, &tile, info.nest.item)?))
        });
        found.collect()
    }

    /// Gives a loop over a block at least three iterations, the last of which has fewer values, if there are enough.
    fn cut(&mut self, kernel: StageRef, tile: &ReductionTile) {
        let extent = self.facts.domain(tile.stage)[tile.var];
        let sizes: Vec<i64> = (2..=(extent - 1) / 2).filter(|size| extent % size != 0).collect();
        if sizes.is_empty() {
            return;
        }
        let size = sizes[self.draw.position(sizes.len())];
        let mut next = self.schedule.clone();
        let Some(tree) = next.kernel_mut(kernel) else { return };
        let mut bodies = vec![&mut tree.body];
        while let Some(body) = bodies.pop() {
            for item in body {
                let BlockItem::Over(Loops { loops, body }) = item else { continue };
                let same = loops.iter_mut().filter(|own| own.variable() == tile.variable());
                same.for_each(|own| own.size = Size::Of(size as u32));
                bodies.push(body);
            }
        }
        self.keep(next);
    }
}
