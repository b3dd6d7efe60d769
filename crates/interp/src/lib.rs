//! The reference evaluator of Warploom pipelines, with its buffers and file formats.
//!
//! [`Evaluation`] computes every Func at root over the region that is needed, directly from the
//! definitions. It is the oracle for all compiled code. [`compare`](mod@compare) defines when
//! buffers are equal, [`expected`] defines the tolerance for code built for speed, [`buffer`] holds
//! images, and [`npy`], [`picture`] and [`files`] read and write them.
//!
//! Internally, a stage is compiled to a `program` over rows; a `machine` runs it with the
//! operations of `lanes` on typed `samples`; `stage` contains the loops around it.
pub mod buffer;
pub mod compare;
mod evaluate;
pub mod expected;
pub mod files;
pub mod lanes;
mod machine;
mod memory;
mod noise;
pub mod npy;
mod perturb;
pub mod picture;
mod program;
mod samples;
mod stage;

pub use evaluate::{EvalError, Evaluation, Progress};
pub use memory::available_memory;
pub use noise::{noise, noise_bytes};
