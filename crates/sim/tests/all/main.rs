//! The tests of this crate, in one program: building many takes longer than running them.

mod copies;
mod counters;
mod kernels;
mod mutations;
mod random;
mod shuffles;
mod support;
mod vectors;
