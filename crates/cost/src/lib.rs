//! Predicts the run time of a schedule without compiling it.
//!
//! A [`Subject`] is one pipeline at one size on one device. [`Subject::features`] describes a kernel
//! of a schedule in numbers: a row of [`StageFeatures`] per stage that the kernel computes, and
//! [`KernelFeatures`] for what the stages share. The features of a kernel depend only on that
//! kernel, so they can be memoized, and the costs of kernels add up.
//!
//! A [`CostModel`] turns features into microseconds: [`Analytic`] uses only the device's rates,
//! [`Network`] uses learned weights.

mod analytic;
mod features;
mod kernel;
mod model;
mod network;
mod schema;

pub use analytic::{Analytic, Constants, Parts};
pub use features::Subject;
pub use kernel::{ArrayTraffic, KernelFeatures, Memory, RowSource, StageRow, Traffic};
pub use model::{Chosen, CostModel, Term, Terms, choose};
pub use network::{KernelInputs, Network, RowInputs, Weights, WeightsError};
pub use schema::{FEATURES, Feature, SCHEMA_VERSION, StageFeatures, schema_hash};
