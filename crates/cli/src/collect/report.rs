//! The summary of `warploom collect`, as a table or as JSON.

use std::io::Write;

use serde::Serialize;
use warploom::target::Device;
use warploom_training::collect::Summary;

use super::Arguments;
use crate::error::Error;
use crate::report;
use crate::show;
use crate::table::{Align, Columns};

#[derive(Serialize)]
struct Report<'a> {
    device: &'a str,
    out: String,
    seed: u64,
    pipelines: usize,
    samples: u64,
    measured: u64,
    not_lowered: u64,
    not_compiled: u64,
    failed: u64,
    wrong: u64,
    numeric: u64,
    verified: u64,
    spilling: u64,
    random: u64,
    skipped: u64,
    rejected: u64,
    panics: u64,
    seconds: f64,
    samples_per_second: f64,
    machine_seconds: f64,
    compile_seconds: f64,
    bytes: u64,
}

pub(super) fn print(
    summary: &Summary,
    device: &Device,
    arguments: &Arguments,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let place = arguments.output.display().to_string();
    if arguments.format.json {
        return report::json(
            out,
            "warploom.collect/2",
            &object(summary, device, place, arguments.amount.seed),
        );
    }
    let head = format!(
        "{} samples of {} pipelines on {}, seed {}, in {:.0} s: {:.1} per second, {} in {}\n",
        summary.samples,
        summary.pipelines,
        device.name,
        arguments.amount.seed,
        summary.seconds,
        summary.rate(),
        show::bytes(summary.bytes),
        show::path(&place)
    );
    let rows = [
        ("measured", summary.measured, summary.samples),
        ("not lowered", summary.not_lowered, summary.samples),
        ("not compiled", summary.not_compiled, summary.samples),
        ("failed", summary.failed, summary.samples),
        ("spilling", summary.spilling, summary.samples),
        ("random schedules", summary.random, summary.samples),
        ("verified", summary.verified, summary.samples),
        ("wrong", summary.wrong, summary.verified),
        ("numeric", summary.numeric, summary.verified),
    ];
    let cells = rows.map(|(name, count, of)| {
        let share = 1e2 * count as f64 / of.max(1) as f64;
        let of = if of == summary.samples { "samples" } else { "verified" };
        [name.to_owned(), count.to_string(), format!("{share:.2} % of {of}")]
    });
    let mut columns = Columns::new(&[("what", Align::Left), ("count", Align::Right), ("share", Align::Left)]);
    cells.iter().for_each(|cells| columns.fit(cells));
    let lines: Vec<String> = cells.iter().map(|cells| columns.line(cells) + "\n").collect();
    let tail = format!(
        "GPU busy {:.0} %; {:.0} s in the kernel compiler; {} candidates too slow to run, {} pipelines too fast, slow or \
         large, {} panics\n",
        1e2 * summary.machine_seconds / summary.seconds.max(1e-9),
        summary.compile_seconds,
        summary.skipped,
        summary.rejected,
        summary.panics
    );
    report::text(out, &(head + &columns.header() + "\n" + &lines.concat() + &tail))
}

fn object<'a>(summary: &Summary, device: &'a Device, out: String, seed: u64) -> Report<'a> {
    Report {
        device: &device.name,
        out,
        seed,
        pipelines: summary.pipelines,
        samples: summary.samples,
        measured: summary.measured,
        not_lowered: summary.not_lowered,
        not_compiled: summary.not_compiled,
        failed: summary.failed,
        wrong: summary.wrong,
        numeric: summary.numeric,
        verified: summary.verified,
        spilling: summary.spilling,
        random: summary.random,
        skipped: summary.skipped,
        rejected: summary.rejected,
        panics: summary.panics,
        seconds: summary.seconds,
        samples_per_second: summary.rate(),
        machine_seconds: summary.machine_seconds,
        compile_seconds: summary.compile_seconds,
        bytes: summary.bytes,
    }
}
