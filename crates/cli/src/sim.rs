//! `warploom sim`: runs a pipeline's kernels in the GPU simulator.

use std::io::Write;
use std::time::Instant;

use warploom::app::Sizes;
use warploom::sim::{Counters, KernelCounters};

use crate::backend::{self, Kernels, no_schedule};
use crate::choice::Choice;
use crate::error::Error;
use crate::report::{self, Format};

/// Run a pipeline's kernels in the simulator and compare them with the reference evaluator
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("device", backend::of_schedule),
    after_long_help = "Examples:
  warploom sim unsharp --schedule apps/schedules --size 256x128
  warploom sim harris --schedule my.schedule --size 256x128 --counters
  warploom sim harris --schedule random:7 --size 64x48
  warploom sim mine.json --schedule search --size 64x48

The simulator reports data races, reads of uninitialised memory and out-of-bounds accesses as errors. Exits with 6
unless the outputs match the reference bit for bit."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    kernels: Kernels,
    /// Print simulated hardware counters: sectors, bank conflicts, operations
    #[arg(long)]
    counters: bool,
    #[command(flatten)]
    format: Format,
}

report! {
    struct Report = "warploom.sim/2" {
        app: String, "the app";
        sizes: Sizes, "its sizes by name";
        device: String, "the GPU that the kernels were built for";
        seconds: f64, "how long the simulation took";
        lane_operations: u64, "operations, loads, stores, atomics and shuffles, one per active thread";
        kernels: Vec<KernelCounters>, "the kernels, each with the sum of its launches";
        #[serde(skip)]
        counters: Counters;
    }
}

pub(crate) fn sim(
    apps: &[warploom::app::App],
    arguments: &Arguments,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if arguments.kernels.schedule.is_none() {
        return Err(no_schedule("`warploom sim`"));
    }
    let mut chosen = arguments.choice.make(apps)?;
    let subject = &chosen.subject;
    let device = arguments.kernels.device_of_schedule(&subject.name, arguments.format)?;
    let program = arguments.kernels.build(&mut chosen.workload, &device)?;
    let start = Instant::now();
    let outcome = chosen.workload.simulate(&program, &device, 0);
    let outcome = outcome.map_err(|error| Error::Simulation(Box::new(error)))?;
    let seconds = start.elapsed().as_secs_f64();
    let reference = chosen.workload.reference().map_err(|error| subject.failed(error))?;
    if outcome.outputs != reference {
        let difference = "the outputs differ from the reference evaluator's".to_owned();
        return Err(Error::Inexact { app: subject.name.clone(), difference });
    }
    let report = Report {
        app: subject.name.clone(),
        sizes: subject.sizes.clone(),
        device: device.name,
        seconds,
        lane_operations: outcome.counters.lane_operations(),
        kernels: outcome.counters.kernels(),
        counters: outcome.counters,
    };
    report::print(out, arguments.format, &report, || {
        let Report { app, sizes, device, seconds, lane_operations, counters, .. } = &report;
        let counters = if arguments.counters { format!("\n{counters}") } else { String::new() };
        format!(
            "{app}{sizes} simulated for {device}: outputs match the reference bit for bit, {seconds:.2} s, \
             {:.1} million lane operations\n{counters}",
            *lane_operations as f64 / 1e6
        )
    })
}
