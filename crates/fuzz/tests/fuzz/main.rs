//! Cases, their files, the reducer and the driver.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod atomics;
mod boxes;
mod cases;
mod copies;
mod driver;
mod edges;
mod functions;
mod interleave;
mod lanes;
mod mutants;
mod mutated;
mod pairs;
mod reducer;
mod rounding;
mod shuffles;
mod support;
mod tables;
mod vectors;
mod wide;
