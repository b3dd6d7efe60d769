//! `warploom farm collect`: samples for training, measured by the workers of a farm.

use std::io::Write;

use warploom::app::App;
use warploom_training::collect::Collecting;

use super::launching::{Asked, Launching, Words};
use super::tasks::Task;
use crate::collect::Amount;
use crate::error::Error;
use crate::names::find_app;
use crate::show;

/// Let a farm measure what `warploom collect` would measure: samples for training
///
/// Starts the database and workers as `warploom farm start` does. Each random pipeline is a run, and so are 20 schedules of an
/// app.
#[derive(Debug, clap::Args)]
#[command(override_usage = "warploom farm collect --database <DIR> [OPTIONS] [APP]...")]
#[command(after_long_help = "Examples:
  warploom farm collect --pipelines 800 --per-app 90 --seed 1 --database farm --listen 10.0.0.5 --slurm gpu:8,cpu:4
  warploom farm collect --pipelines 20 --database farm --local 2
  warploom farm collect --pipelines 0 --per-app 40 harris --farm farm/farm.json     one app, for workers that are there
  warploom farm status farm/farm.json --watch
  warploom records export night.samples --records farm/farm.json                    when no run is left

The same seed gives the pipelines and schedules that it gives `warploom collect`, if the searches end before their time
limits. Those that are tried already are not measured again, so a larger number of pipelines continues a collection.

Samples are trials in the database of the farm: `warploom records export` writes all of them to a file for `warploom train`.
The results of a share of them are compared with those of the default schedule.

A run waits for its own 24 schedules only, so a farm with many GPUs needs many runs at a time: give the workers that propose
a larger --runs, or start more of them.")]
pub(super) struct Arguments {
    /// The apps to measure with --per-app (default: all)
    #[arg(value_name = "APP")]
    apps: Vec<String>,
    #[command(flatten)]
    amount: Amount,
    #[command(flatten)]
    launching: Launching,
}

pub(super) fn collect(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let chosen: Vec<&App> = match arguments.apps.is_empty() {
        true => apps.iter().collect(),
        false => arguments.apps.iter().map(|name| find_app(apps, name)).collect::<Result<_, _>>()?,
    };
    let units = Collecting::all(&arguments.amount.options(1, None), &chosen);
    if units.is_empty() {
        return Err(Error::NothingMeasured("--pipelines and --per-app are 0".to_owned()));
    }
    let random = units.iter().filter(|unit| unit.is_random()).count();
    let runs = format!(
        "{}, {} of apps",
        show::count(random, "random pipeline"),
        show::count(units.len() - random, "round")
    );
    let asked = units.into_iter().map(|unit| {
        let (name, expected) = (unit.name(), unit.samples());
        Asked { name, task: Task::Collect(unit), expected }
    });
    let afterwards = |place: &str| {
        format!(
            "\nwrite the samples when no run is left:\n  warploom records export night.samples --records {place}\n"
        )
    };
    let words = Words { runs: &runs, afterwards: &afterwards };
    arguments.launching.launch(&asked.collect::<Vec<_>>(), &words, out)
}
