//! Building, checking and measuring scheduled pipelines.

pub mod sample;
