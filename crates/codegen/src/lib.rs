//! Compiles schedules to kernels.
//!
//! [`build()`](build::build) is the only path from a pipeline, a schedule and sizes to kernels: it
//! checks the schedule, lowers it and verifies the result. [`lower()`](lower::lower) turns them
//! into a [`Program`](ir::Program) of kernel IR; the page of that module defines what the IR means.
//! Everything downstream (the simulator, the printers and the drivers) reads only the IR.
//! [`verify`](verify::verify) checks its rules.
//!
//! A [`Printer`](printer::Printer) gives the text for a back end. [`cuda`] is the one in use, which also writes
//! packages for programs that do not use Warploom; here, [`PRINTER`](printer::PRINTER) and [`export`] stand for them.

pub mod build;
pub mod builder;
pub mod cuda;
mod elementary;
pub mod instance;
pub mod ir;
pub mod lower;
pub mod points;
pub mod printer;
pub mod verify;

pub use cuda::export;
