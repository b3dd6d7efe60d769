//! The tests of this crate, in one program: building many takes longer than running them.

mod common;
mod drawn;
mod lanes;
mod points;
mod quality;
mod search;
mod strategies;
