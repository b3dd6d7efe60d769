//! The tests of this crate, in one program: building many takes longer than running them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_size;
mod boundaries;
mod compiled;
mod export;
mod idle;
mod large_on_gpu;
mod layering;
mod metadata;
mod observed;
mod on_gpu;
mod packages;
mod points;
mod policy;
mod statements;
mod tables;
mod tensors;
