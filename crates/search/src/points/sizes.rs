//! The sizes of nests and arrays at their place in a kernel.

use std::collections::BTreeSet;

use warploom_lang::FuncId;
use warploom_plan::{Allocation, Problem};
use warploom_schedule::{Item, Kernel, Loops, ReductionTile, RootItem};

/// The sizes that a kernel's plan gives to its nests. They do not depend on how threads share the nests.
#[derive(Default, Debug)]
pub(super) struct Sizes {
    /// The extents of the points of each nest.
    points: Vec<(Item, Vec<i64>)>,
    /// The elements of a row of each array in the block that has several rows.
    rows: Vec<(Item, i64)>,
}

impl Sizes {
    /// Plans a kernel inside some loops.
    pub fn new(
        problem: &Problem,
        inlined: &BTreeSet<FuncId>,
        around: &[ReductionTile],
        kernel: &Kernel,
    ) -> Sizes {
        let root: RootItem = Loops::holding(around.to_vec(), kernel.clone());
        let plan = problem.plan_of(&inlined.iter().copied().collect(), [&root]);
        let points = plan.nests.values().map(|nest| {
            let extents = nest.footprint.as_ref().map(|footprint| footprint.points.extents());
            (nest.nest.item, extents.unwrap_or_default())
        });
        let arrays = plan.kernels.values().flat_map(|kernel| &kernel.allocations);
        let has_rows = |array: &&Allocation| array.extents.len() > 1;
        let rows = arrays.filter(has_rows).map(|array| (array.item, array.row));
        Sizes { points: points.collect(), rows: rows.collect() }
    }

    /// The extents of the points of a nest.
    pub fn extents(&self, item: Item) -> &[i64] {
        let found = self.points.iter().find(|(other, _)| *other == item);
        found.map_or(&[], |(_, extents)| extents)
    }

    /// The length of a row of the array of a nest, if it has several.
    pub fn row(&self, item: Item) -> Option<i64> {
        let same = |other: Item| match (item.stage(), other.stage()) {
            (Some(own), Some(other)) => own.func == other.func,
            _ => item == other,
        };
        self.rows.iter().find(|(other, _)| same(*other)).map(|(_, row)| *row)
    }
}
