//! The build script of an example in the documentation, which a test runs.

#![allow(clippy::print_stdout, reason = "a build script talks to Cargo")]

include!("../../../docs/examples/build-rs/build.rs");
