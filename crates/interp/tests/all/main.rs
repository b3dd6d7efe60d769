//! The tests of this crate, in one program: building many takes longer than running them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod boundaries;
mod buffer;
mod compare;
mod expected;
mod functions;
mod naive;
mod npy;
mod picture;
mod properties;
mod rewrites;
mod semantics;
mod types;
