//! `blocks`: the least occupancy in blocks per SM.

use std::num::NonZeroU32;

use thiserror::Error;
use warploom_schedule::{Item, Kernel, RootItem};

use crate::decisions::open::with;
use crate::decisions::{Decision, Edit, Facts, Line, Open, Refusals, Row, Tree, Values};
use crate::random::{Generator, Turn, WORD};

/// The most blocks per SM that random schedules draw and refinement tries.
const MOST: u32 = 8;

/// Limits registers so that an SM can hold some blocks at once.
#[derive(Debug)]
pub(super) struct Blocks;

/// Why an SM cannot hold so many blocks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum BlocksRefusal {
    /// It can hold fewer, whatever the blocks are.
    #[error("the kernel of `{stage}` asks for {blocks} blocks per SM; the limit is {limit} on {device}")]
    Limit {
        /// The kernel's own stage.
        stage: String,
        /// The number of blocks per SM in the schedule.
        blocks: u32,
        /// The number of blocks that an SM can hold.
        limit: u32,
        /// The name of the device.
        device: String,
    },
}

impl Decision for Blocks {
    fn facts(&self) -> Facts {
        Facts {
            word: "blocks",
            about: "an occupancy of at least two blocks per SM: the compiler limits registers to allow it",
            edits: &[Edit::Kernel(resident)],
            open: Some(&Blocks),
            ..Facts::PLAIN
        }
    }

    fn refusals(&self, at: &Line<'_>) -> Refusals {
        let limit = at.problem.device().threads.blocks_per_sm;
        let blocks = at.kernel.kernel.numbers.blocks.map(NonZeroU32::get).filter(|_| at.nest.is_none());
        match blocks.filter(|blocks| *blocks > limit) {
            Some(blocks) => {
                let device = at.problem.device().name.clone();
                at.refuse(BlocksRefusal::Limit { stage: at.item(), blocks, limit, device })
            }
            None => Vec::new(),
        }
    }

    fn is_possible(&self, at: &Line<'_>) -> bool {
        at.nest.is_none()
    }

    fn draw(&self, generator: &mut Generator<'_>, turn: Turn) {
        let Turn::Kernel(stage) = turn else { return };
        if generator.draw.chance(WORD) {
            let blocks = NonZeroU32::new(generator.draw.between(1, MOST.into()) as u32);
            let mut next = generator.schedule.clone();
            next.kernel_mut(stage).into_iter().for_each(|kernel| kernel.numbers.blocks = blocks);
            generator.keep(next);
        }
    }
}

impl Open for Blocks {
    fn name(&self) -> &'static str {
        "blocks"
    }

    fn values(&self, kernel: &Kernel, row: &Row<'_>) -> Vec<Values> {
        let found = self.read(kernel, &[], row).unwrap_or(0);
        let all: Vec<i64> = [0].into_iter().chain(2..=MOST.into()).collect();
        vec![Values { of: kernel.stage.into(), items: Vec::new(), values: with(&all, found) }]
    }

    fn read(&self, kernel: &Kernel, _: &[Item], _: &Row<'_>) -> Option<i64> {
        Some(kernel.numbers.blocks.map_or(0, |blocks| i64::from(blocks.get())))
    }

    fn write(&self, kernel: &mut Kernel, _: &[Item], value: i64, _: &Row<'_>) {
        kernel.numbers.blocks = u32::try_from(value).ok().and_then(NonZeroU32::new);
    }

    fn clear(&self, kernel: &mut Kernel) {
        kernel.numbers.blocks = None;
    }
}

/// The kernel with other numbers of blocks that must fit on an SM.
fn resident(tree: &Tree<'_>) -> Vec<RootItem> {
    let own = tree.item.kernels().next().and_then(|kernel| kernel.numbers.blocks);
    let all = [None].into_iter().chain((2..=MOST).map(NonZeroU32::new));
    tree.with_others(all, own, |kernel, blocks| kernel.numbers.blocks = blocks)
}
