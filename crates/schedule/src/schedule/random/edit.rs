//! The kernels that a random schedule starts with.

use crate::schedule::tree::{RootItem, StageRef};

/// One block that computes all of a stage.
pub(super) fn one_block(stage: StageRef) -> RootItem {
    RootItem::single(stage)
}
