//! From schedules to kernels: lowering, kernel IR, CUDA text.

pub mod ir;
pub mod builder;
