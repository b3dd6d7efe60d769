//! Random atomics: threads and blocks share reduction variables whose values meet at one point.

use warploom_schedule::{Item, LoopKind, Nest, StageRef};

use crate::random::Generator;
use crate::random::tiles::{self, Span};

/// The probability that an update is atomic if it can be.
const ATOMIC: f64 = 0.5;

/// The probability that blocks share its reduction variables, if it is the kernel's own stage.
const ON_BLOCKS: f64 = 0.9;

impl Generator<'_> {
    /// Makes some updates atomic, after they have their place.
    pub(super) fn atomics(&mut self) {
        for (kernel, stage) in self.updates() {
            if !self.draw.chance(ATOMIC) {
                continue;
            }
            let mut next = self.schedule.clone();
            let nest = next.kernel_mut(kernel).and_then(|kernel| kernel.nest_mut(Item::Stage(stage)));
            nest.into_iter().for_each(|nest| nest.numbers.atomic = true);
            if self.keep(next) {
                if kernel == stage && self.draw.chance(ON_BLOCKS) {
                    self.split_reductions(stage);
                }
                self.spread(kernel, Item::Stage(stage));
            }
        }
    }

    /// The updates that can be atomic, each with its kernel.
    fn updates(&self) -> Vec<(StageRef, StageRef)> {
        let of = |(kernel, nest): (StageRef, &Nest)| {
            let stage = nest.item.stage().filter(|_| !nest.storage.is_private())?;
            self.facts.problem.atomic_update(stage).map(|_| (kernel, stage))
        };
        let nests =
            self.schedule.kernels().flat_map(|kernel| kernel.nests().map(|nest| (kernel.stage, nest)));
        nests.filter_map(of).collect()
    }

    /// Lets the blocks of a kernel share reduction variables of its stage that no loop takes.
    fn split_reductions(&mut self, stage: StageRef) {
        let span = |(var, extent): (usize, i64)| {
            let dim = LoopKind::Reduction(var);
            Span { dim, extent, shared: extent > 1, exchanged: true }
        };
        let spans: Vec<Span> = self.facts.domain(stage).into_iter().enumerate().map(span).collect();
        for tile in tiles::block(&spans, &mut self.draw) {
            let mut next = self.schedule.clone();
            next.kernel_mut(stage).into_iter().for_each(|kernel| kernel.block.push(tile));
            self.keep(next);
        }
    }
}
