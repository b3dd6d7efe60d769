//! The reference evaluator of Warploom pipelines, and the buffers and files it works on.
//!
//! [`Evaluation`] computes every Func at root over the region that is needed, straight from the definitions:
//! it is the oracle that all compiled code is compared with. [`compare`](mod@compare) says what "equal" means,
//! [`expected`] how far code built for speed may be off, [`buffer`] holds images, [`npy`], [`picture`] and [`files`] read and write them.
//!
//! Inside, a stage becomes a `program` over rows, a `machine` runs it with the operations of `lanes` on
//! typed `samples`, and `stage` has the loops around it.
pub mod buffer;
pub mod compare;
mod evaluate;
pub mod expected;
pub mod files;
pub mod lanes;
mod machine;
mod memory;
pub mod npy;
mod perturb;
pub mod picture;
mod program;
mod samples;
mod stage;

pub use evaluate::{EvalError, Evaluation, Progress};
pub use memory::available_memory;
