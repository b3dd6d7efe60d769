//! The CUDA printer: what it prints, that NVRTC compiles it, and that a GPU computes with it what the language
//! says.

mod gpu;
mod nvrtc;
mod programs;
mod raw;
mod snapshots;
