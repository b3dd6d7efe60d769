//! The summary of `warploom collect`, as a table or as JSON.

use std::io::Write;

use warploom::target::Device;
use warploom_training::collect::Summary;

use super::Arguments;
use crate::error::Error;
use crate::report;
use crate::show;
use crate::table::{PlainText as _, Table};

report! {
    struct Report<'a> = "warploom.collect/2" {
        device: &'a str, "the GPU";
        out: String, "the folder with the samples";
        seed: u64, "the seed of all random choices";
        pipelines: usize, "the pipelines";
        samples: u64, "the samples";
        measured: u64, "those with a time";
        not_lowered: u64, "those that could not be built";
        not_compiled: u64, "those that NVRTC refused";
        failed: u64, "those that failed to run";
        wrong: u64, "those with wrong outputs";
        numeric: u64, "those beyond the tolerance";
        verified: u64, "those that were compared with the reference";
        spilling: u64, "those that spill registers";
        random: u64, "those with random schedules";
        skipped: u64, "candidates that were too slow to run";
        rejected: u64, "pipelines that were too fast, slow or large";
        panics: u64, "panics of the compiler";
        seconds: f64, "how long it took";
        samples_per_second: f64 ["1/s"], "the samples divided by that";
        machine_seconds: f64, "how long the GPU was busy";
        compile_seconds: f64, "how long NVRTC was busy, summed over threads";
        bytes: u64, "the size of the files";
    }
}

pub(super) fn print(
    summary: &Summary,
    device: &Device,
    arguments: &Arguments,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let Summary { pipelines, samples, measured, not_lowered, not_compiled, failed, wrong, .. } = *summary;
    let Summary { numeric, verified, spilling, random, skipped, rejected, panics, .. } = *summary;
    let Summary { seconds, machine_seconds, compile_seconds, bytes, .. } = *summary;
    let report = Report {
        device: &device.name,
        out: arguments.output.display().to_string(),
        seed: arguments.amount.seed,
        samples_per_second: summary.rate(),
        pipelines,
        samples,
        measured,
        not_lowered,
        not_compiled,
        failed,
        wrong,
        numeric,
        verified,
        spilling,
        random,
        skipped,
        rejected,
        panics,
        seconds,
        machine_seconds,
        compile_seconds,
        bytes,
    };
    report::print(out, arguments.format, &report, || report.text())
}

impl Report<'_> {
    fn text(&self) -> String {
        let Report { device, out, seed, pipelines, samples, seconds, samples_per_second: rate, .. } = self;
        let head = format!(
            "{samples} samples of {pipelines} pipelines on {device}, seed {seed}, in {seconds:.0} s: {rate:.1} per second, \
             {} in {}\n",
            show::bytes(self.bytes),
            show::path(out)
        );
        let rows = [
            ("measured", self.measured, "samples"),
            ("not lowered", self.not_lowered, "samples"),
            ("not compiled", self.not_compiled, "samples"),
            ("failed", self.failed, "samples"),
            ("spilling", self.spilling, "samples"),
            ("random schedules", self.random, "samples"),
            ("verified", self.verified, "samples"),
            ("wrong", self.wrong, "verified"),
            ("numeric", self.numeric, "verified"),
        ];
        type Line = (&'static str, u64, &'static str);
        let share = |&(_, count, of): &Line| {
            let all = if of == "samples" { *samples } else { self.verified };
            format!("{:.2} % of {of}", 1e2 * count as f64 / all.max(1) as f64)
        };
        let tail = format!(
            "GPU busy {:.0} %; {:.0} s in the kernel compiler; {} candidates too slow to run, {} pipelines too fast, slow or \
             large, {} panics\n",
            1e2 * self.machine_seconds / seconds.max(1e-9),
            self.compile_seconds,
            self.skipped,
            self.rejected,
            self.panics
        );
        head + &Table::of(&rows)
            .left("what", |line| line.0.to_owned())
            .right("count", |line| line.1.to_string())
            .left("share", share)
            .text()
            + &tail
    }
}
