//! The quantities that positions depend on: blocks, loops, threads and sizes.

use warploom_lang::dynamic::AtomId;
use warploom_schedule::LoopKind;

use crate::ids::LoopId;

/// A quantity that is constant at one position in the schedule and changes from iteration to iteration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Symbol {
    /// The block number along a loop of the kernel's own stage.
    Block(LoopKind),
    /// The iteration number of a loop around kernels or over a block.
    Loop(LoopId),
    /// The number of a thread's tile along a loop of the stage that the thread computes.
    Thread(LoopKind),
    /// The smallest value of some reaches, if it is not a sum of the other symbols. Each number is a
    /// separate symbol; [`Plan::lowest`](crate::Plan) holds its reaches.
    Lowest(usize),
    /// A number that follows from the sizes of a launch.
    Size(AtomId),
}
