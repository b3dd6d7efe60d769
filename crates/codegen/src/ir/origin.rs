//! The origins of a kernel's statements.

use warploom_plan::{LoopId, NestId};

/// The part of a plan that a statement belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanPart {
    /// The block as a whole: barriers, and the choice between versions of the block.
    Block,
    /// A loop over a part of the block.
    Over(LoopId),
    /// A nest.
    Nest(NestId),
}

/// Consecutive statements, in textual order, that belong to one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The place.
    pub place: PlanPart,
    /// The number of statements, nested ones included.
    pub statements: usize,
}
