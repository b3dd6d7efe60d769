//! Tutorials in reading order, from a first Func to a kernel tuned on a GPU. The tests compile and
//! run every example, except those that need a GPU.

pub mod _01_first_pipeline;
pub mod _02_schedules;
pub mod _03_on_the_gpu;
pub mod _04_tuning;
pub mod _05_tensors;
