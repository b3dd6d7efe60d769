//! How far collecting is.

use std::time::Duration;

use warploom_training::collect::{Options, Summary};

use crate::progress::{self, Unit};

pub(super) struct Progress {
    progress: progress::Progress,
    limit: Option<Duration>,
}

impl Progress {
    pub(super) fn new(options: &Options, apps: usize) -> Progress {
        let expected = options.pipelines * options.per_pipeline as u64 + (apps * options.per_app) as u64;
        let progress = progress::Progress::new("collecting", Unit::Things("samples"));
        progress.set_length(expected);
        Progress { progress, limit: options.time_limit }
    }

    /// Shows what was done so far.
    pub(super) fn show(&self, summary: &Summary) {
        self.progress.set_position(summary.samples);
        self.progress.set_message(self.message(summary));
    }

    fn message(&self, summary: &Summary) -> String {
        let Summary { pipelines, measured, spilling, numeric, wrong, .. } = summary;
        let failed = summary.not_lowered + summary.not_compiled + summary.failed;
        let limit = self.limit.map_or(String::new(), |limit| {
            format!("; time is up in {:.0} s", (limit.as_secs_f64() - summary.seconds).max(0.0))
        });
        format!(
            "{pipelines} pipelines, {:.1}/s: {measured} measured, {failed} failed, {spilling} spilling, {numeric} numeric, \
             {wrong} wrong; GPU busy {:.0} %{limit}",
            summary.rate(),
            1e2 * summary.machine_seconds / summary.seconds.max(1e-9),
        )
    }
}
