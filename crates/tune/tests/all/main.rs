//! The tests of this crate, in one program: building many takes longer than running them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod explain;
mod landscape;
mod measure;
mod records;
mod renamed;
mod simulated;
