//! The tests of this crate, in one program: building many takes longer than running them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod decisions;
mod footprints;
mod pipelines;
mod problem;
mod random;
mod schedule_rules;
mod schedule_text;
