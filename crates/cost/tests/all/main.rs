//! The tests of this crate, in one program: building many takes longer than running them.

mod copies;
mod ground_truth;
