//! Schedules: the tree of decisions, its text form, its rules.

mod tree;

pub use tree::*;
