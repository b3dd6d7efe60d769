//! How much is collected, by `warploom collect` and by farms.

use std::time::Duration;

use warploom_training::collect::Options;

/// How much to measure, and of what.
#[derive(Clone, Copy, PartialEq, Debug, clap::Args)]
pub(crate) struct Amount {
    /// Number of random pipelines to measure
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) pipelines: u64,
    /// Number of schedules per random pipeline
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) per_pipeline: usize,
    /// Number of schedules per app
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) per_app: usize,
    /// The fraction of samples whose results are compared, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.03)]
    pub(crate) verify: f64,
    /// Seed of all random choices, an integer
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

impl Amount {
    /// The options of a collection.
    pub(crate) fn options(self, threads: usize, time_limit: Option<Duration>) -> Options {
        let Amount { pipelines, per_pipeline, per_app, verify, seed } = self;
        Options { pipelines, per_pipeline, per_app, seed, verify, threads, time_limit }
    }
}
