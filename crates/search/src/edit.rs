//! Parts of kernels under the names that the search has for them.

use warploom_schedule::schedule::{
    BlockItem, Kernel, Mapping, Nest, ReductionTile, RootItem, StageRef, Tile,
};

pub(crate) fn lone_kernel(
    stage: StageRef,
    around: Vec<ReductionTile>,
    block: Vec<Tile>,
    over: Vec<ReductionTile>,
    mapping: Mapping,
) -> RootItem {
    RootItem::lone(stage, around, block, over, mapping)
}

/// The kernel of an item of root, which holds one.
pub(crate) fn kernel(item: &RootItem) -> Option<&Kernel> {
    item.kernels().next()
}

/// The nests of a body, in the order they run.
pub(crate) fn nests(body: &[BlockItem]) -> impl Iterator<Item = &Nest> {
    body.iter().flat_map(BlockItem::nests)
}
