//! Runs the built program as its users do.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_size;
mod browser;
mod closed;
mod commands;
mod compile;
mod completions;
mod devices;
mod documented;
#[cfg(unix)]
mod documents;
mod examples;
mod explain;
mod exported;
#[cfg(all(feature = "farm", unix))]
mod farm;
mod file;
mod fuzz;
mod golden;
mod help;
mod json;
mod kernels;
mod landscape;
mod limits;
mod manual;
mod mistakes;
#[cfg(feature = "train")]
mod model;
mod names;
mod operators;
#[cfg(unix)]
mod outputs;
mod page;
mod place;
#[cfg(unix)]
mod read_only;
mod run;
mod search;
mod site;
mod strange;
mod strategies;
mod stubbed;
mod tensor;
mod tour;
mod trace;
mod tune;
mod verify;
mod voice;
mod width;
