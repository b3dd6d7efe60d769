//! Scheduling, building, checking and measuring pipelines.
//!
//! [`one_shot()`](one_shot::one_shot) is the quickest way to a schedule that nobody wrote. An
//! [`Explanation`](explain::Explanation) says what the kernels of a schedule do and what they are predicted to cost. A
//! [`Workload`](workload::Workload) is a pipeline with data; it runs on the reference evaluator, in the
//! simulator or on a GPU.
//!
//! [`top()`](top::top) and [`autotune()`](autotune::autotune) look for the fastest schedule with a GPU at hand. Below them,
//! [`measure()`](measure::measure) times many schedules, [`worker`] does so in processes that may fail, [`records`] keeps every
//! result, and [`sample`] is what the cost model learns from.

pub mod autotune;
pub mod cache;
pub mod explain;
pub mod given;
pub mod measure;
pub mod one_shot;
pub mod records;
pub mod retrain;
pub mod sample;
pub mod top;
pub mod tuning;
pub mod worker;
pub mod workload;
