//! The tests of this crate, in one program: building many takes longer than running them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_size;
mod bounds;
mod edges;
mod elementary;
mod files;
mod large;
mod mistakes;
mod names;
mod pipelines;
mod spans;
mod tables;
