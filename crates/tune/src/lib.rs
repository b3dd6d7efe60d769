//! Schedules, builds, checks and measures pipelines.
//!
//! [`one_shot()`](one_shot::one_shot) is the fastest way to get a schedule: it searches
//! and never measures. An [`Explanation`](explain::Explanation) describes the kernels of a schedule
//! and their predicted cost. A [`Workload`](workload::Workload) is a pipeline with data; it runs on
//! the reference evaluator, in the simulator or on a GPU.
//!
//! [`top()`](top::top), [`autotune()`](autotune::autotune) and [`explore()`](explore::explore) measure on a GPU to find
//! the fastest schedule. They are built on [`measure()`](measure::measure), which times many schedules, [`worker`],
//! which compiles and runs them in separate processes that are allowed to fail, and [`records`], a database of every
//! result. [`compare`] compares how soon strategies find fast schedules. [`sample`] defines the training data of the
//! cost model.

pub mod autotune;
pub mod cache;
pub mod compare;
pub mod explain;
pub mod explore;
pub mod given;
pub mod landscape;
pub mod measure;
pub mod one_shot;
pub mod picks;
pub mod records;
pub mod retrain;
pub mod sample;
pub mod top;
pub mod tuning;
pub mod worker;
pub mod workload;
