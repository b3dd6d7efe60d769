//! Scheduling, building, checking and measuring pipelines.
//!
//! [`build()`](build::build) is the one path from a pipeline and a schedule to kernels, and
//! [`one_shot()`](one_shot::one_shot) the quickest to a schedule that nobody wrote. An
//! [`Explanation`](explain::Explanation) says what the kernels of a schedule do and what they are predicted to cost. A
//! [`Workload`](workload::Workload) is a pipeline with data; it runs on the reference evaluator, in the
//! simulator or on a GPU. [`measure()`](measure::measure) times many schedules, and [`sample`] is how measurements are
//! kept.

pub mod build;
pub mod explain;
pub mod measure;
pub mod one_shot;
pub mod records;
pub mod sample;
pub mod workload;
