//! Kernel IR: what the verifier refuses of it, what the CUDA printer prints, that NVRTC compiles it, and that a GPU
//! computes with it what the language says.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod addresses;
mod chain;
mod elementary;
mod gpu;
mod large;
mod lines;
mod nvrtc;
mod printer;
mod programs;
mod raw;
mod tables;
mod toy;
mod verify;
