//! The tests of this crate, in one program: building many takes longer than running them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod harness;
#[cfg(unix)]
mod launch;
#[cfg(unix)]
mod places;
mod postgres;
mod queue;
mod status_postgres;
