//! Tutorials, in reading order. Every example is compiled and run by the tests.

pub mod _01_first_pipeline;
