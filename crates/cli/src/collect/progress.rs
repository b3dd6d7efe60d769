//! The progress of `warploom collect`.

use warploom_training::collect::{Options, Summary};

use crate::progress::{self, Unit};

pub(super) struct Progress(progress::Progress);

impl Progress {
    pub(super) fn new(options: &Options, apps: usize) -> Progress {
        let expected = options.pipelines * options.per_pipeline as u64 + (apps * options.per_app) as u64;
        let samples = Unit::Things("samples");
        let progress = progress::Progress::limited("collecting", samples, options.time_limit);
        progress.set_length(expected);
        Progress(progress)
    }

    pub(super) fn show(&self, summary: &Summary) {
        let Summary { pipelines, measured, spilling, numeric, wrong, .. } = summary;
        let failed = summary.not_lowered + summary.not_compiled + summary.failed;
        self.0.set_position(summary.samples);
        self.0.set_message(format!(
            "{pipelines} pipelines, {:.1}/s: {measured} measured, {failed} failed, {spilling} spilling, {numeric} numeric, \
             {wrong} wrong; GPU busy {:.0} %",
            summary.rate(),
            1e2 * summary.machine_seconds / summary.seconds.max(1e-9),
        ));
    }
}
