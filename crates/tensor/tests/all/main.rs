//! The tests of this crate, in one program: building many takes longer than running them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod differential;
mod document;
mod errors;
mod examples;
mod mutate;
mod naive;
mod numpy;
mod reference;
mod robust;
mod types;
