//! The tests of this crate, in one program: building many takes longer than running them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accuracy;
mod calibration;
mod chained;
mod common;
mod compiled;
mod default_schedule;
mod dynamic;
mod edges;
mod learned_demosaic;
mod odd_sizes;
mod printed;
mod schedules;
mod searched;
mod simulated;
