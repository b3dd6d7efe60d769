//! How far collecting is, on standard error: a bar on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use warploom_training::collect::{Options, Summary};

/// How often there is a line where there is no terminal.
const LINES: Duration = Duration::from_secs(10);

pub(super) struct Progress {
    bar: ProgressBar,
    expected: u64,
    limit: Option<Duration>,
    next_line: Option<Instant>,
}

impl Progress {
    pub(super) fn new(options: &Options, apps: usize) -> Progress {
        let expected = options.pipelines * options.per_pipeline as u64 + (apps * options.per_app) as u64;
        let bar = ProgressBar::new(expected);
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        let next_line = (!stderr().is_terminal()).then(Instant::now);
        Progress { bar, expected, limit: options.time_limit, next_line }
    }

    /// Shows what was done so far.
    pub(super) fn show(&mut self, summary: &Summary) {
        match self.next_line {
            None => {
                self.bar.set_position(summary.samples);
                self.bar.set_message(self.line(summary));
            }
            Some(due) if Instant::now() >= due => {
                // Nothing can be done if even that cannot be said.
                let _ = writeln!(stderr(), "{} samples of {}", summary.samples, self.line(summary));
                self.next_line = Some(Instant::now() + LINES);
            }
            Some(_) => {}
        }
    }

    fn line(&self, summary: &Summary) -> String {
        let Summary { pipelines, measured, spilling, numeric, wrong, .. } = summary;
        let failed = summary.not_lowered + summary.not_compiled + summary.failed;
        let work = self.expected.saturating_sub(summary.samples) as f64 / summary.rate().max(1e-9);
        let left = self.limit.map_or(work, |limit| work.min(limit.as_secs_f64() - summary.seconds));
        format!(
            "{pipelines} pipelines, {:.1}/s: {measured} measured, {failed} failed, {spilling} spilling, {numeric} numeric, \
             {wrong} wrong; {:.0} s, at most {:.0} s left; GPU busy {:.0} %",
            summary.rate(),
            summary.seconds,
            left.max(0.0),
            1e2 * summary.machine_seconds / summary.seconds.max(1e-9),
        )
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
