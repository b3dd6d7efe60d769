//! Building, checking and measuring scheduled pipelines.
//!
//! [`build()`](build::build) is the one path from a pipeline and a schedule to kernels. A
//! [`Workload`](workload::Workload) is a pipeline with data; it runs on the reference evaluator, in the
//! simulator or on a GPU. [`sample`] is how measurements are kept.

pub mod build;
pub mod sample;
pub mod workload;
