//! What words about the rows of an array have in common.

use thiserror::Error;
use warploom_schedule::{Item, StageRef};

use crate::decisions::{Line, Refusals};
use crate::plan::NestPlan;
use crate::random::Generator;
use crate::trace::read_of;

/// Why nothing can be said about the rows of an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum RowsRefusal {
    /// It has none in shared memory.
    #[error(
        "`{word}` belongs to the first stage of an array with rows in shared memory, which `{item}` is not; remove it"
    )]
    None {
        /// The word.
        word: &'static str,
        /// The stage or staged input.
        item: String,
    },
}

/// A word about rows belongs to the first stage of an array with rows in shared memory.
pub(super) fn refusals(at: &Line<'_>, nest: &NestPlan, word: &'static str) -> Refusals {
    let same = |item: Item| read_of(item) == read_of(nest.nest.item);
    let first = at.plan.nests_of(nest.kernel).iter().find(|other| same(other.nest.item));
    let array = at.kernel.allocations.iter().find(|array| same(array.item));
    let is_first = first.is_some_and(|first| first.path == nest.path);
    let has_rows = array.is_none_or(|array| nest.nest.storage.is_shared() && array.extents.len() > 1);
    match is_first && has_rows {
        true => Vec::new(),
        false => at.refuse(RowsRefusal::None { word, item: at.item() }),
    }
}

impl Generator<'_> {
    /// The arrays of a kernel in shared memory, and the elements of their rows.
    pub(super) fn shared_rows(&self, stage: StageRef) -> Vec<(Item, i64)> {
        let plan = self.facts.problem.plan(&self.schedule);
        let kernel = plan.kernels.values().find(|kernel| kernel.kernel.stage == stage);
        let arrays = kernel.into_iter().flat_map(|kernel| &kernel.allocations);
        arrays.filter(|array| array.storage.is_shared()).map(|array| (array.item, array.row)).collect()
    }
}
