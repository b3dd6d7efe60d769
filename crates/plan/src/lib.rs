//! Plans: what a schedule comes to at some sizes on a device.
//!
//! A [`Problem`] is what is scheduled: a pipeline at given sizes on a device. [`Problem::check`] resolves a schedule
//! against a problem. It returns a [`Plan`], or all rules that the schedule breaks. Lowering prints a plan, features
//! count it, and `explain` shows it.
//!
//! | file | contents |
//! | --- | --- |
//! | `problem` | a pipeline at some sizes on a device: regions, what each stage reads, what may run in parallel |
//! | `reach` | the values that an index takes: sums over blocks, loops and threads, with limits |
//! | `plan` | kernels, nests and loops of a schedule, under typed ids |
//! | `planned` | a legal schedule with its plan, for all that follow |
//! | `trace` | the box of each nest, from the last nest of a kernel to the first |
//! | `ids` | typed ids of kernels, nests and loops |
//! | `footprint`, `axes` | the sizes of one nest, and its loops |
//! | `allocate` | arrays in shared memory and in registers |
//! | `barriers` | where threads wait for each other |
//! | `ahead`, `lanes`, `rows`, `warps` | software pipelining, registers shared by lanes, sliding windows, exchange in a warp |
//! | `body` | what one block of a kernel does, as data: axes, arrays, accesses |
//! | `decisions` | the words of a line: each with its rules, where it is possible, and how it is drawn and tried |
//! | `legality` | all other rules of schedules |
//! | `default`, `random` | schedules to start from |
//! | `coverage` | which decisions a set of schedules has seen |

mod ahead;
mod allocate;
mod axes;
mod barriers;
pub mod body;
mod coverage;
pub mod decisions;
mod default;
mod footprint;
mod ids;
mod lanes;
mod legality;
mod plan;
mod planned;
mod problem;
mod random;
mod reach;
mod rows;
mod trace;
mod warps;

pub use barriers::{Barriers, LoopBarriers};
pub use coverage::{Choice, Coverage, Share, StageKind};
pub use footprint::{
    Allocation, Axis, AxisKind, FLAT_THREADS, Footprint, LaunchExtent, MAX_REGISTER_BYTES, MOST_KEPT,
    NestFootprint, RegisterFootprint, Rows, SHARED_ALIGNMENT, Spread, StagedFootprint, ThreadLoop,
    row_dimension, strides,
};
pub use ids::{KernelId, LoopId, NestId};
pub use legality::rule::{Rule, Side};
pub use legality::violation::Violation;
pub use legality::{MAX_PRIVATE_BYTES, SMALL_EXTENT};
pub use plan::{KernelPlan, LoopIds, LoopPlan, NestPlan, Plan, Sequence, Stepped, Steps};
pub use planned::{PlanError, Planned};
pub use problem::{AtomicUpdate, Problem, RewrittenError};
pub use random::{MAX_SIZE, MAX_WORK, size, work};
pub use reach::Reach;
pub use reach::limit::{Limit, Limits};
pub use reach::symbol::Symbol;
