//! Runs the built program as its users do.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
mod commands;
mod compile;
mod completions;
#[cfg(unix)]
mod documents;
mod explain;
mod exported;
mod file;
mod fuzz;
mod golden;
mod help;
mod kernels;
mod limits;
mod mistakes;
#[cfg(feature = "train")]
mod model;
mod page;
mod place;
mod run;
mod search;
mod tune;
mod verify;
mod voice;
