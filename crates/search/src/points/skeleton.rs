//! A schedule reduced to its structure.

use std::collections::BTreeSet;

use warploom_lang::InputId;
use warploom_plan::decisions::open;
use warploom_schedule::{
    BlockItem, Item, Kernel, LoopKind, Loops, Mapping, NodeMut, Schedule, Size, Storage, ThreadTiles,
};

use crate::points::knob::List;

/// A schedule without sizes, orders, copies of inputs, and everything else in which the points of one template differ.
#[derive(Debug)]
pub(super) struct Skeleton {
    bare: Schedule,
    /// The reduction variables that blocks or threads share in each kernel.
    shared: Vec<BTreeSet<usize>>,
}

impl Skeleton {
    pub fn new(schedule: &Schedule) -> Skeleton {
        let shared = schedule.kernels().map(shared).collect();
        let mut bare = schedule.clone();
        bare.kernels_mut().for_each(strip);
        Skeleton { bare, shared }
    }

    /// Whether another skeleton is the same, except that fewer reduction variables may be shared.
    pub fn covers(&self, other: &Skeleton) -> bool {
        let mut pairs = self.shared.iter().zip(&other.shared);
        self.bare == other.bare && pairs.all(|(own, other)| other.is_subset(own))
    }
}

fn strip(kernel: &mut Kernel) {
    kernel.block = Vec::new();
    open().for_each(|open| open.clear(kernel));
    without_copies(kernel, |_| true);
    kernel.edit(|node, _| {
        match node {
            NodeMut::Over(over) => over.loops.iter_mut().for_each(|tile| tile.size = Size::Of(1)),
            NodeMut::Nest(nest) => {
                nest.mapping = match (nest.storage, &nest.mapping) {
                    (Storage::Shared, _) | (_, Mapping::Flat) => Mapping::Flat,
                    (_, Mapping::Threads(_)) => ThreadTiles::default().into(),
                };
            }
            NodeMut::Around(_) | NodeMut::Kernel(_) => {}
        }
        true
    });
}

/// The reduction variables of a kernel's own stage that blocks or threads share.
fn shared(kernel: &Kernel) -> BTreeSet<usize> {
    let lists = [List::Block, List::Threads].into_iter().flat_map(|list| list.of(kernel));
    let vars = lists.filter_map(|tile| match tile.dim {
        LoopKind::Reduction(var) => Some(var),
        LoopKind::Pure(_) => None,
    });
    vars.collect()
}

/// Removes copies of inputs, and joins the loops that they divided.
pub(super) fn without_copies(kernel: &mut Kernel, goes: impl Fn(InputId) -> bool) {
    kernel.edit(|node, _| match node {
        NodeMut::Nest(nest) => match nest.item {
            Item::Input(input) => !goes(input),
            Item::Stage(_) => true,
        },
        _ => true,
    });
    join(&mut kernel.body);
}

/// Joins loops that hold nothing but loops.
fn join(body: &mut [BlockItem]) {
    for item in body {
        let BlockItem::Over(over) = item else { continue };
        join(&mut over.body);
        if let [BlockItem::Over(inner)] = &mut over.body[..] {
            let Loops { loops, body } = inner.clone();
            over.loops.extend(loops);
            over.body = body;
        }
    }
}
