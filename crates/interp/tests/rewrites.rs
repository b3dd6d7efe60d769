//! Rewritten pipelines compute what the original ones do: the same bits where the result does not depend on
//! the order, otherwise within the rounding error of a sum.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "rewrites/check.rs"]
mod check;
#[path = "rewrites/chunk.rs"]
mod chunk;
#[path = "rewrites/clone.rs"]
mod clone;
#[path = "rewrites/cut.rs"]
mod cut;
#[path = "rewrites/expand.rs"]
mod expand;
#[path = "rewrites/factor.rs"]
mod factor;
#[path = "rewrites/gather.rs"]
mod gather;
#[path = "rewrites/join.rs"]
mod join;
#[path = "rewrites/permute.rs"]
mod permute;
#[path = "rewrites/separate.rs"]
mod separate;
#[path = "rewrites/split.rs"]
mod split;
#[path = "rewrites/tabulate.rs"]
mod tabulate;
#[path = "rewrites/tree.rs"]
mod tree;
#[path = "rewrites/unroll.rs"]
mod unroll;
