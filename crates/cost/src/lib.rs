//! What a schedule costs, before anything is compiled.
//!
//! [`Featurizer::features`] describes the kernels of a plan in
//! numbers: a row of [`StageFeatures`] for every stage that the kernel computes, and [`KernelFeatures`] for what they
//! share. Features of a kernel depend on nothing outside it, so that they can be memoized, and costs of kernels add up.
//!
//! A [`CostModel`] turns features into microseconds: [`Analytic`] from the device's rates alone, [`Network`] with
//! learned weights.

mod analytic;
mod features;
mod kernel;
mod model;
mod network;
mod schema;

pub use analytic::{Analytic, Constants, Parts};
pub use features::Featurizer;
pub use kernel::{ArrayTraffic, KernelFeatures, Memory, NewDecisions, RowSource, StageRow, Traffic};
pub use model::{Chosen, CostModel, Term, Terms, choose};
pub use network::{KernelInputs, Network, RowInputs, SCHEMA_VERSION, Weights, WeightsError, schema_hash};
pub use schema::{FEATURES, Feature, StageFeatures};
