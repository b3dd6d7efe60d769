//! Predicts the run time of a schedule without compiling it.
//!
//! [`Featurizer::features`] describes the kernels of a plan in numbers: a row of [`StageFeatures`] per
//! stage that the kernel computes, and [`KernelFeatures`] for what the stages share. The features of a
//! kernel depend only on that kernel, so they can be memoized, and the costs of kernels add up.
//!
//! A [`CostModel`] turns features into microseconds: [`Analytic`] uses only the device's rates,
//! [`Network`] uses learned weights.

mod analytic;
mod features;
mod kernel;
mod model;
mod network;
mod range;
mod schema;

pub use analytic::{Analytic, Constants, Parts};
pub use features::Featurizer;
pub use kernel::{ArrayTraffic, KernelFeatures, NewDecisions, RowSource, StageRow, Traffic};
pub use model::{Basis, ChosenModel, CostModel, Term, Terms, choose};
pub use network::{KernelInputs, Network, RowInputs, SCHEMA_VERSION, Weights, WeightsError, schema_hash};
pub use range::{Band, Ranges, TimeRange};
pub use schema::{FEATURES, Feature, StageFeatures};
pub use warploom_plan::body::Memory;
