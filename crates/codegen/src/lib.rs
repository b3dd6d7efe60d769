//! From schedules to kernels.
//!
//! [`build()`](build::build) is the one path from a pipeline, a schedule and sizes to kernels: it checks the schedule, lowers it and
//! verifies the result. [`lower()`](lower::lower) turns a pipeline, a schedule and sizes into a [`Program`](ir::Program) of kernel IR, whose
//! page says what it means. Everything downstream, the simulator, the CUDA printer and the runtime,
//! reads only that. [`verify`](verify::verify) checks the rules of the IR.

pub mod build;
pub mod builder;
pub mod cuda;
pub mod export;
pub mod ir;
pub mod lower;
pub mod verify;
