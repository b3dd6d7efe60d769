//! Schedules: the tree of decisions, its text form, its rules.
//!
//! A [`Schedule`] says for every stage of a pipeline where it is computed and how blocks and threads share it. It holds no
//! sizes of images, and names nothing but the stages and inputs of its pipeline. [`Schedule::parse`] and
//! [`Schedule::to_text`] are its text form, and [`ScheduleBuilder`] writes one in Rust. A [`Problem`] is what is
//! scheduled: a pipeline at some sizes on a device. [`Problem::check`] resolves a schedule against it: the result is a
//! [`Plan`], or every rule that the schedule breaks.
//!
//! # The text form
//!
//! One line a node of the tree, indented below what it stands in:
//!
//! ```text
//! cuda_mat_mul
//!   kernel out   block x 64, y 64
//!     prod.0     threads x 16, y 16  serial x 4, y 4         unroll  private
//!     over prod.1.r 16
//!       A.stage  flat                                                shared
//!       B.stage  flat                                                shared
//!       prod.1   threads x 16, y 16  serial r all, x 4, y 4  unroll  private
//!     out        threads x 16, y 16  serial x 4, y 4         unroll
//! ```
//!
//! | line | says |
//! | --- | --- |
//! | `NAME inline F, G` | the pipeline; Funcs that are computed wherever they are used. `inline` may have lines of its own |
//! | `kernel STAGE block x 64, y 16` | a kernel, each block of which computes 64 x 16 points of a stage; the rest of the stage's loops lies inside whole |
//! | `around STAGE.r 1` | serial loops over reduction variables, one launch an iteration, the outermost first |
//! | `over STAGE.r 16, STAGE.s 1` | the same inside a block |
//! | `STAGE flat shared` | a stage, its points spread over all threads; it lives in shared memory |
//! | `STAGE threads x 16 serial r all, x 4 unroll private` | a stage with 16 threads along x, each of which computes 4 points in loops that are written out; it lives in memory of each thread's own |
//! | `INPUT.stage flat shared` | a copy of the part of an input that is read below |
//! | `FUNC registers` | below a stage: a Func that each thread computes just before, for its own points |
//!
//! - A stage is named by its Func, with a number behind it if the Func has several: `prod.1`.
//! - A size is a number or `all`. It says how much lies inside; how often follows from the sizes of the images.
//! - A kernel's own stage has no storage: it is in global memory. It is the last one of its kernel; where it is the only
//!   one, the kernel's line says how threads share it.
//! - `#` starts a comment. A line that ends in a comma goes on in the next one, if that is further indented.

mod barriers;
mod builder;
mod coverage;
mod default;
mod dependence;
mod error;
mod flow;
mod footprint;
mod hash;
mod legality;
mod lines;
mod names;
mod parse;
mod path;
mod plan;
mod print;
mod problem;
mod program;
mod random;
mod reach;
mod trace;
mod tree;
mod violation;

pub use barriers::{Barriers, LoopBarriers};
pub use builder::{BlockBuilder, ScheduleBuilder, Tiles};
pub use coverage::{Coverage, Decision, Share, StageKind};
pub use error::{ScheduleError, ScheduleErrors, ScheduleFault, Spot};
pub use footprint::{
    Allocation, Axis, AxisKind, FLAT_THREADS, Footprint, MAX_REGISTER_BYTES, NestFootprint,
    RegisterFootprint, SHARED_ALIGNMENT, StagedFootprint, ThreadLoop, strides,
};
pub use hash::{FULL_DEPTH, combined_hash, item_hash, kernel_hash, structural_hash};
pub use legality::{MAX_PRIVATE_BYTES, SMALL_EXTENT};
pub use path::Path;
pub use plan::{Body, KernelPlan, LoopIds, LoopPlan, NestPlan, Plan, Stepped, Steps};
pub use problem::Problem;
pub use random::{MAX_SIZE, MAX_WORK, size, work};
pub use reach::{Reach, Symbol};
pub use tree::edit::{NodeMut, Site};
pub use tree::*;
pub use violation::{Rule, Side, Violation};
