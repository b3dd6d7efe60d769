//! `warploom collect`: measures schedules, as samples for training and comparison.

mod amount;
mod given;
mod progress;
mod report;

use std::io::Write;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use warploom::app::App;
use warploom::lang::files::read_text;
use warploom::runtime::TimingOptions;
use warploom::tune::measure::{GpuMachine, compile_here};
use warploom_training::collect::{Bench, CollectError, Options};

use crate::backend::open_gpu;
use crate::error::Error;
use crate::model::Model;
use crate::pipeline::Values;
use crate::report::Format;
use crate::search::duration;
use crate::writable::Output;
use progress::Progress;

pub(crate) use amount::Amount;

/// Time many schedules on a GPU and save the measurements
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom collect --pipelines 800 --per-pipeline 24 --seed 1 -o samples --time-limit 20m
  warploom collect --pipelines 0 --per-app 40 --seed 2 -o samples    apps only
  warploom collect -o day1.samples apps/schedules/*.schedule          given schedules only

Measures random pipelines and apps alternately, under searched schedules, random schedules and the default schedule.
Kernels are compiled on all cores and timed one at a time. Each sample is written as soon as it is measured, so the run can
be killed at any time. Schedules that cannot be built or run are saved too, with the reason. The same seed measures the same
pipelines and schedules, another seed measures others.

If files are given, only their schedules are measured. The first word of a schedule is the name of its pipeline.

Exits with 4 if a kernel fails and the GPU cannot be used afterwards; start again with another seed.")]
pub(crate) struct Arguments {
    /// Measure only these schedules
    #[arg(value_name = "FILE")]
    schedules: Vec<PathBuf>,
    #[command(flatten)]
    amount: Amount,
    /// A folder with hand-written schedules of apps to measure as well
    #[arg(long = "schedules", alias = "schedules-of-apps", value_name = "DIR")]
    schedules_of_apps: Option<PathBuf>,
    /// Stop after this time, as 8h, 30m or 90s (default: no limit)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,
    /// Number of threads that compile (default: one less than there are cores)
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// The output folder; a new file if schedules are given
    #[arg(short, long, alias = "out", value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    model: Model,
    #[command(flatten)]
    values: Values,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn collect(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    if !arguments.schedules.is_empty() {
        return given::collect(apps, arguments, out);
    }
    let options = arguments.options();
    let schedules = arguments.schedules_of_apps(apps)?;
    let gpu = open_gpu()?;
    gpu.arch().map_err(|error| Error::Gpu(error.to_string()))?;
    let model = arguments.model.load(gpu.device())?;
    let bench = Bench {
        device: gpu.device(),
        model: model.as_ref(),
        compile: &|program| compile_here(program, gpu.device()),
        timing: TimingOptions::collection(),
        machine: &mut GpuMachine::new(&gpu),
    };
    let progress = Progress::new(&options, apps.len());
    let (summary, collected) = warploom_training::collect::collect(
        &options,
        apps,
        &schedules,
        bench,
        &arguments.output,
        &mut |summary| progress.show(summary),
    );
    drop(progress);
    let failed = match (collected, summary.measured) {
        (Err(CollectError::Shard(error)), _) => Some(Error::Shard(error)),
        (Err(CollectError::Case(error)), _) => Some(Error::Case(error)),
        (Err(error), _) => Some(Error::Gpu(error.to_string())),
        (Ok(()), 0) => Some(Error::NothingMeasured(format!("there were {} candidates", summary.samples))),
        (Ok(()), _) => None,
    };
    // With --json there is one object, and an error is one.
    if failed.is_none() || !arguments.format.json {
        report::print(&summary, gpu.device(), arguments, out)?;
    }
    failed.map_or(Ok(()), Err)
}

impl Arguments {
    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        match self.schedules.is_empty() {
            true => vec![Output::Folder(&self.output)],
            false => vec![Output::File(&self.output)],
        }
    }

    fn options(&self) -> Options {
        let cores = available_parallelism().map_or(2, NonZero::get);
        let threads = self.threads.map_or(cores.saturating_sub(1).max(1), NonZero::get);
        self.amount.options(threads, self.time_limit)
    }

    /// The text of the apps' hand-written schedules.
    fn schedules_of_apps(&self, apps: &[App]) -> Result<Vec<String>, Error> {
        let Some(folder) = &self.schedules_of_apps else { return Ok(Vec::new()) };
        if !folder.is_dir() {
            return Err(Error::NoFolder { folder: folder.display().to_string() });
        }
        let files = apps.iter().map(|app| folder.join(format!("{}.schedule", app.name)));
        files.filter(|file| file.exists()).map(|file| Ok(read_text(file)?)).collect()
    }
}
