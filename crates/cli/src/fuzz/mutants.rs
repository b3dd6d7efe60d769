//! `warploom fuzz --mutate`: removes or alters barriers, atomics, shuffles and waits, and lists the mutants that survive.

use std::io::Write;

use warploom::fuzz::{mutate as run, random_schedules};
use warploom::target::Device;
use warploom_results::fuzzing::mutants::Report;

use super::Arguments;
use crate::error::Error;
use crate::progress::{Progress, Unit};
use crate::report;
use crate::table::PlainText as _;

/// Mutates the kernels of random pipelines and reports what the checks notice.
pub(super) fn mutate(
    kernels: usize,
    arguments: &Arguments,
    device: &Device,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let progress = Progress::new("mutating", Unit::Things("kernels"));
    progress.set_length(kernels as u64);
    let schedules = random_schedules(arguments.schedules);
    let mutated = run(kernels, &arguments.options(), device, &schedules, &|done| progress.advance(done));
    drop(progress);
    let mutated = mutated.map_err(|error| Error::Threads(error.to_string()))?;
    if let Some((_, failure)) = mutated.failures.first() {
        return Err(Error::Unmutated { failed: mutated.failures.len(), first: failure.to_string() });
    }
    let report = Report::new(arguments.seed, device, &mutated);
    report::print(out, arguments.format, &report, || report.text(&|table| table.text()))?;
    match report.unexplained() {
        0 => Ok(()),
        survived => Err(Error::Survivors { survived }),
    }
}
