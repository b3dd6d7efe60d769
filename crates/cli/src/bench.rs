//! `warploom bench`: times a pipeline on a GPU.

use std::io::Write;

use warploom::app::{App, AppError, Sizes, Subject};
use warploom::check::Builds;
use warploom::codegen::ir::Program;
use warploom::codegen::printer::Build;
use warploom::plan::Problem;
use warploom::runtime::{Execute, Timing, TimingOptions};
use warploom::schedule_file::problem;
use warploom::target::Device;
use warploom::tune::workload::PERTURBED_RUNS;

use crate::any_size::AnySize;
use crate::backend::{Kernels, no_schedule, open_gpu};
use crate::choice::{Choice, Chosen};
use crate::error::Error;
use crate::report::{self, Format};
use crate::show;
use crate::table::{PlainText as _, Table};

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

report! {
    struct Report = "warploom.bench/2" {
        app: String, "the app";
        sizes: Sizes, "its sizes by name";
        device: String, "the GPU";
        exact: Option<bool>, "`true` if `--check` found no difference; `null` without it";
        min_us: f64, "the shortest time of the faster mode";
        median_us: f64, "its median";
        gigabytes_per_second: f64 ["GB/s"], "compulsory bytes divided by the shortest time";
        floor_us: f64, "a lower bound from the bandwidth and arithmetic throughput of the GPU";
        fraction_of_floor: f64 ["share"], "the lower bound divided by the shortest time";
        timing: Timing, "all measurements";
        kernels: Vec<Kernel>, "the kernels";
    }

    struct Kernel = "timed kernel" {
        name: String, "its name";
        grid: [u32; 3] ["blocks"], "along x, y and z";
        threads: u32, "the threads per block";
        registers: u32, "registers per thread";
        local_bytes: u32, "local memory per thread";
        shared_bytes: u32, "shared memory per block";
        blocks_per_sm: u32, "resident blocks per SM";
    }
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
    let failed = |error: warploom::tune::workload::GpuError| Error::Gpu(error.to_string());
    let mut loaded = load(Build::Timing).map_err(failed)?;
    loaded.run().map_err(failed)?;
    let timing = loaded.time(&TimingOptions::default()).map_err(failed)?;
    let facts = loaded.executable.facts().map_err(|error| Error::Gpu(error.to_string()))?;
    let kernels = loaded.executable.program().kernels.iter().zip(facts).map(|(kernel, facts)| Kernel {
        name: kernel.entry.clone(),
        grid: kernel.grid,
        threads: kernel.threads,
        registers: facts.registers,
        local_bytes: facts.local_bytes,
        shared_bytes: facts.shared_bytes,
        blocks_per_sm: facts.blocks_per_sm,
    });
    let report = Report::new(&chosen.subject, gpu.device(), exact, timing, kernels.collect())?;
    report::print(out, arguments.format, &report, || report.text())
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

impl Report {
    fn new(
        subject: &Subject,
        device: &Device,
        exact: Option<bool>,
        timing: Timing,
        kernels: Vec<Kernel>,
    ) -> Result<Report, Error> {
        let best = timing.best().ok_or_else(|| Error::NothingMeasured("no run was timed".to_owned()))?;
        let (min_us, median_us) = (best.min_us, best.median_us);
        let floor_us = subject.floor_us(device);
        Ok(Report {
            app: subject.name.clone(),
            sizes: subject.sizes.clone(),
            device: device.name.clone(),
            exact,
            min_us,
            median_us,
            gigabytes_per_second: subject.compulsory_bytes() as f64 / (min_us * 1e3),
            floor_us,
            fraction_of_floor: floor_us / min_us,
            timing,
            kernels,
        })
    }

    fn text(&self) -> String {
        let check = match self.exact {
            Some(_) => ", checked",
            None => "",
        };
        let mut text = format!("{}{} on {}{check}\n\n", self.app, self.sizes, self.device);
        for sample in &self.timing.samples {
            text += &format!(
                "{:>8}  {:.2} us minimum, {:.2} us median, spread {:.1} %, {} runs\n",
                format!("{:?}", sample.mode).to_lowercase(),
                sample.min_us,
                sample.median_us,
                sample.spread * 100.0,
                sample.runs
            );
        }
        text += &format!(
            "{:>8}  {:.0} GB/s of compulsory bytes, {:.0} % of the floor of {:.1} us\n\n",
            "best",
            self.gigabytes_per_second,
            self.fraction_of_floor * 100.0,
            self.floor_us
        );
        text + &Table::of(&self.kernels)
            .left("kernel", |kernel| kernel.name.clone())
            .right("grid", |kernel| show::grid(kernel.grid))
            .right("threads", |kernel| kernel.threads.to_string())
            .right("registers", |kernel| kernel.registers.to_string())
            .right("local bytes", |kernel| kernel.local_bytes.to_string())
            .right("shared bytes", |kernel| kernel.shared_bytes.to_string())
            .right("blocks per SM", |kernel| kernel.blocks_per_sm.to_string())
            .text()
    }
}

#[cfg(test)]
mod tests {
    use warploom::runtime::{Mode, Sample};

    use super::*;
    use crate::documented::Documented;
    use crate::report::Declared as _;

    #[test]
    fn the_report_is_as_its_page_says() {
        let sample = |mode| Sample {
            mode,
            min_us: 4.5,
            median_us: 4.75,
            mean_us: 4.875,
            spread: 0.25,
            batches: 3,
            runs: 60,
        };
        let kernel = Kernel {
            name: "output".to_owned(),
            grid: [4, 2, 1],
            threads: 256,
            registers: 32,
            local_bytes: 0,
            shared_bytes: 1024,
            blocks_per_sm: 8,
        };
        let report = Report {
            app: "blur".to_owned(),
            sizes: Sizes::default(),
            device: "H200".to_owned(),
            exact: None,
            min_us: 4.5,
            median_us: 4.75,
            gigabytes_per_second: 1.5,
            floor_us: 2.25,
            fraction_of_floor: 0.5,
            timing: Timing { samples: vec![sample(Mode::Stream), sample(Mode::Graph)] },
            kernels: vec![kernel],
        };
        let mut out = Vec::new();
        report::json(&mut out, Report::NAME, &report).unwrap();
        Documented::read().check(&serde_json::from_slice(&out).unwrap());
    }
}
