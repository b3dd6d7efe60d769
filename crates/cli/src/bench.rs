//! `warploom bench`: times a pipeline on a GPU.

use std::io::Write;

use warploom::app::{App, AppError};
use warploom::check::Builds;
use warploom::codegen::ir::Program;
use warploom::codegen::printer::Build;
use warploom::plan::Problem;
use warploom::runtime::{Execute, TimingOptions};
use warploom::schedule_file::problem;
use warploom::target::Device;
use warploom::tune::workload::PERTURBED_RUNS;
use warploom_results::benched::{Report, kernels};

use crate::any_size::AnySize;
use crate::backend::{Kernels, no_schedule, open_gpu};
use crate::choice::{Choice, Chosen};
use crate::error::Error;
use crate::report::{self, Format};
use crate::table::PlainText as _;

/// Time a pipeline on a GPU under a schedule
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom bench unsharp --schedule apps/schedules
  warploom bench harris --schedule my.schedule --size 640x480 --check --json
  warploom bench mine.json --schedule out --size 640x480
  warploom bench harris --schedule search --dynamic W=64..8192,H=64..8192   kernels for all these sizes, at the default one

Inputs without a file are generated and never all zeros. A time is that of a whole run with all data on the GPU. Runs are
timed back to back on a stream, and as one CUDA graph. Exits with 4 if there is no GPU, and with 6 if --check finds a
difference.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    kernels: Kernels,
    #[command(flatten)]
    any_size: AnySize,
    /// First compare the kernels with the reference evaluator: the checking build bit for bit, the timing build within tolerance
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn bench(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    if arguments.kernels.schedule.is_none() {
        return Err(no_schedule("`warploom bench`"));
    }
    let subject = arguments.choice.subject(apps)?;
    let gpu = open_gpu()?;
    let mut chosen = arguments.choice.with_inputs(subject)?;
    let (program, sizes) = arguments.build(&mut chosen, gpu.device())?;
    let load = |build| chosen.workload.load_at(&gpu, &program, build, &sizes);
    let exact = if arguments.check {
        let expected = chosen.workload.expected(chosen.subject.app.tolerance, PERTURBED_RUNS);
        let expected = expected.map_err(|error| chosen.subject.failed(error))?;
        if let Some(difference) = Builds::run(&expected, load)?.fault() {
            return Err(Error::Inexact { app: chosen.subject.name.clone(), difference });
        }
        Some(true)
    } else {
        None
    };
    let mut loaded = load(Build::Timing)?;
    loaded.run()?;
    let timing = loaded.time(&TimingOptions::default())?;
    let facts = loaded.executable.facts().map_err(|error| Error::Gpu(error.to_string()))?;
    let kernels = kernels(loaded.executable.program(), &facts);
    let report = Report::new(&chosen.subject, gpu.device(), exact, timing, kernels);
    let report = report.ok_or_else(|| Error::NothingMeasured("no run was timed".to_owned()))?;
    report::print(out, arguments.format, &report, || report.text(&|table| table.text()))
}

impl Arguments {
    /// The kernels, and the sizes to give them at launch. The workload's pipeline becomes the rewritten one.
    fn build(&self, chosen: &mut Chosen, device: &Device) -> Result<(Program, Vec<i64>), Error> {
        let asked = &chosen.subject;
        let problem = problem(&asked.pipeline, &asked.request, device)?;
        let any_size = self.any_size.dynamic.problem(asked, device)?;
        let obtained = self.kernels.obtain(&problem, any_size.as_ref())?;
        let scheduled = obtained.build(problem, any_size.clone(), self.any_size.pitch)?;
        chosen.workload.pipeline = scheduled.problem().pipeline().clone();
        let request = any_size.as_ref().and_then(Problem::sizes).map(|sizes| &sizes.request);
        let sizes = request.map(|request| request.sizes_of(&asked.pipeline, &asked.request));
        let sizes = sizes.transpose().map_err(AppError::from)?;
        Ok((scheduled.program().clone(), sizes.unwrap_or_default()))
    }
}
