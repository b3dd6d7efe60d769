//! Tutorials, in reading order: from a first Func to a kernel that was tuned on a GPU. Every example is compiled and run by
//! the tests, but for those that need a GPU.

pub mod _01_first_pipeline;
pub mod _02_schedules;
pub mod _03_on_the_gpu;
pub mod _04_tuning;
