//! Random asynchronous copies: copies in loops over the block, loops whose last slice is cut, and depths.

use std::num::NonZeroU32;

use warploom_schedule::{
    BlockItem, Item, LoopKind, Loops, Nest, ReductionTile, Size, Source, StageRef, ThreadTiles, Tile,
};

use crate::ids::LoopId;
use crate::legality::ASYNC_DEPTHS;
use crate::plan::NestPlan;
use crate::random::Generator;

/// The probability that an input that can be copied asynchronously is copied in a loop that reads it.
const IN_LOOP: f64 = 0.7;

/// The probability that a reduction over such an input without loops over the block gets one.
const SLICED: f64 = 0.7;

/// The probability that the loop around such a copy gets a size that cuts its last slice.
const CUT: f64 = 0.6;

/// The probability that a copy is asynchronous if it can be.
const ASYNC: f64 = 0.6;

/// The probability that a copy ahead of time is made by vectors if its rows have an even number of points.
const BY_VECTORS: f64 = 0.5;

/// The most threads along a dimension of such a copy, and the most dimensions with threads.
const MOST_THREADS: i64 = 8;
const MOST_DIMENSIONS: usize = 2;

impl Generator<'_> {
    /// Makes some copies asynchronous, after everything else is decided.
    pub(super) fn asynchronous_copies(&mut self) {
        self.slice_reductions();
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

    /// Makes some copies ahead of time by vectors, after everything else is decided.
    pub(super) fn vector_copies(&mut self) {
        let plan = self.facts.problem.plan(&self.schedule);
        let is_even = |extents: &Vec<i64>| extents.first().is_some_and(|extent| extent % 2 == 0);
        let place = |info: &NestPlan| {
            let extents = info.footprint.as_ref()?.points.extents();
            let place = (plan.kernels[info.kernel].kernel.stage, info.nest.item);
            Some((place, Some(extents).filter(is_even)?))
        };
        let ahead = plan.nests.values().filter(|info| !plan.ahead_of(info).is_empty());
        for ((kernel, item), extents) in ahead.filter_map(place).collect::<Vec<_>>() {
            if self.draw.chance(BY_VECTORS) {
                let tiles = self.vector_tiles(&extents);
                let mut next = self.schedule.clone();
                let nest = next.kernel_mut(kernel).and_then(|kernel| kernel.nest_mut(item));
                nest.into_iter().for_each(|nest| {
                    nest.mapping = tiles.clone().into();
                    (nest.numbers.vector, nest.numbers.interleave) = (true, false);
                });
                self.keep(next);
            }
        }
    }

    /// Tiles of two or four points along the first dimension.
    fn vector_tiles(&mut self, extents: &[i64]) -> ThreadTiles {
        let width = if extents[0] % 4 == 0 && self.draw.chance(0.7) { 4 } else { 2 };
        let mut threads = Vec::new();
        for (d, extent) in extents.iter().enumerate() {
            let tiles = if d == 0 { extent / width } else { *extent };
            let number = self.draw.between(1, tiles.min(MOST_THREADS));
            threads.push(Tile { dim: LoopKind::Pure(d), size: Size::Of(number as u32) });
        }
        threads.truncate(MOST_DIMENSIONS);
        let serial = vec![Tile { dim: LoopKind::Pure(0), size: Size::Of(width as u32) }];
        ThreadTiles { threads, serial, unroll: true }
    }

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
