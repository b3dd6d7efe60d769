//! (under construction)
pub mod buffer;
pub mod compare;
mod evaluate;
pub mod files;
mod lanes;
mod machine;
mod memory;
pub mod npy;
pub mod picture;
mod program;
mod samples;
mod stage;

pub use evaluate::{EvalError, Evaluation, Progress};
