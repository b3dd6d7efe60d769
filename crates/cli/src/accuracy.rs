//! `warploom accuracy`: the tolerances of apps, and how much of them is used.

use std::io::Write;

use clap::ValueEnum;
use warploom::app::App;
use warploom::target::Device;
use warploom::tune::workload::Workload;
use warploom_results::accuracy::Report;

use crate::backend::{Kernels, open_gpu};
use crate::error::Error;
use crate::names::find_app;
use crate::report::{self, Format};
use crate::table::PlainText as _;

/// Show the tolerance of each app's timing build, and how much of it is used
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom accuracy                                          every app, without a GPU
  warploom accuracy harris hist --json                       two apps, as JSON
  warploom accuracy --on cuda --schedule default             both builds on a GPU, at the small and the default sizes
  warploom accuracy --on cuda --schedule search              the same with schedules that the search finds

The reference evaluator runs several times with perturbed rounding, at small sizes. The spread is the difference between
those runs, as a fraction of the output's largest sample. The tolerance that the app states has the same unit. Without a
GPU, one more perturbed run replaces the timing build. A margin is the used part of the tolerance: of the one that the app
states, and of the one derived from the pipeline. Exits with 6 if a result is out of tolerance.")]
pub(crate) struct Arguments {
    /// The apps; all if not given
    #[arg(value_name = "APP")]
    apps: Vec<String>,
    /// What to run on
    #[arg(long, value_enum, default_value_t = On::Reference, requires_if("cuda", "schedule"))]
    on: On,
    /// The same as --on cuda, as it used to be written
    #[arg(long, hide = true, requires = "schedule", conflicts_with = "on")]
    gpu: bool,
    #[command(flatten)]
    kernels: Kernels,
    #[command(flatten)]
    format: Format,
}

/// What runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum On {
    /// The reference evaluator alone, with perturbed rounding
    Reference,
    /// Also both builds of the kernels on a GPU, at the small and the default sizes
    Cuda,
}

/// Prints the tolerance of every app and how much of it is used.
pub(crate) fn accuracy(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let chosen: Vec<&App> = match arguments.apps.is_empty() {
        true => {
            apps.iter().filter(|app| warploom_apps::APPS.iter().any(|known| known.name == app.name)).collect()
        }
        false => arguments.apps.iter().map(|name| find_app(apps, name)).collect::<Result<_, _>>()?,
    };
    let gpu = (arguments.gpu || arguments.on == On::Cuda).then(open_gpu).transpose()?;
    let build = |workload: &mut Workload, device: &Device| {
        arguments.kernels.build(workload, device).map_err(|error| error.to_string())
    };
    let report = Report::new(chosen.iter().copied(), gpu.as_ref(), &build);
    report::print(out, arguments.format, &report, || report.text(&|table| table.text()))?;
    match report.failed() {
        failed if failed.is_empty() => Ok(()),
        failed => {
            let (count, names, failed) = (chosen.len(), failed.join(", "), failed.len());
            Err(Error::Verification { failed, count, names })
        }
    }
}
