//! `warploom collect`: measured samples for training and comparison.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use warploom::app::App;
use warploom::codegen::cuda::{Build, describe};
use warploom::runtime::{Gpu, TimingOptions, driver_version, nvrtc};
use warploom::schedule::schedule::Schedule;
use warploom::tune::build::build;
use warploom::tune::sample::{KernelUse, Sample, ShardWriter, Sizes, Status, Times};

use crate::backend::open_gpu;
use crate::choice::{Chosen, Values};
use crate::error::Error;
use crate::names::find_app;
use crate::report::{self, Format};

/// Time schedules of apps on a GPU and keep the measurements
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  warploom collect --out day1.samples apps/schedules/*.schedule
  warploom collect --out small.samples --size 640x480 unsharp.schedule other.schedule

A schedule names its pipeline first. Each sample is written as soon as it is measured; a schedule that cannot be
built or run is kept too, with the reason.")]
pub(crate) struct Arguments {
    /// The schedules
    #[arg(value_name = "FILE", required = true)]
    schedules: Vec<PathBuf>,
    /// Where the samples go; never overwritten
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    values: Values,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Report {
    file: String,
    measured: usize,
    failed: usize,
}

/// Measures schedules.
pub(crate) fn collect(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let gpu = open_gpu()?;
    let mut shard = ShardWriter::create(&arguments.out)?;
    let mut report = Report { file: arguments.out.display().to_string(), measured: 0, failed: 0 };
    for file in &arguments.schedules {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|error| Error::Read { path: name.clone(), error })?;
        let app = find_app(apps, text.split_whitespace().next().unwrap_or_default())?;
        let chosen = arguments.values.make(app)?;
        let sample = measure(&gpu, &chosen, &text);
        let line = match (&sample.status, &sample.times) {
            (Status::Measured, Some(times)) => {
                report.measured += 1;
                format!("{name}: {:.2} us", times.min)
            }
            (status, _) => {
                report.failed += 1;
                format!("{name}: {status:?}")
            }
        };
        shard.add(&chosen.workload.pipeline, sample)?;
        if !arguments.format.json {
            report::text(out, &(line + "\n"))?;
        }
    }
    if arguments.format.json {
        report::json(out, "warploom.collect/1", &report)?;
    }
    match report.measured {
        0 => Err(Error::NothingMeasured(format!("{} samples failed; see {}", report.failed, report.file))),
        _ => Ok(()),
    }
}

/// One sample, whatever becomes of it.
fn measure(gpu: &Gpu, chosen: &Chosen<'_>, text: &str) -> Sample {
    let version = |version: Option<(i32, i32)>| version.map_or("?".into(), |(a, b)| format!("{a}.{b}"));
    let mut sample = Sample {
        pipeline: 0,
        sizes: Sizes::of(&chosen.workload.realisation()),
        schedule: text.to_owned(),
        device: gpu.device().name.clone(),
        fingerprint: gpu.device().fingerprint(),
        versions: vec![
            format!("warploom {}", env!("CARGO_PKG_VERSION")),
            format!("nvrtc {}", version(nvrtc::version().ok())),
            format!("driver {}", version(driver_version().ok())),
        ],
        status: Status::Measured,
        times: None,
        kernels: Vec::new(),
        compile_ms: 0.0,
    };
    if let Err(status) = fill(&mut sample, gpu, chosen, text) {
        sample.status = status;
    }
    sample
}

fn fill(sample: &mut Sample, gpu: &Gpu, chosen: &Chosen<'_>, text: &str) -> Result<(), Status> {
    let workload = &chosen.workload;
    let schedule = Schedule::parse(text, &workload.pipeline);
    let schedule = schedule.map_err(|errors| Status::NotLowered(errors.to_string()))?;
    let program = build(&workload.pipeline, &schedule, &workload.realisation(), gpu.device());
    let program = program.map_err(|error| Status::NotLowered(error.to_string()))?;
    let shared = describe(&program, Build::Timing).kernels;
    let loaded = workload.load(gpu, &program, Build::Timing);
    let mut loaded = loaded.map_err(|error| Status::NotCompiled(error.to_string()))?;
    if let Some(image) = loaded.executable.image() {
        sample.compile_ms = image.time.as_secs_f64() * 1e3;
        let of = |name: &str| shared.iter().find(|kernel| kernel.entry == *name);
        sample.kernels = image
            .kernels
            .iter()
            .map(|(name, used)| KernelUse {
                name: name.clone(),
                registers: used.registers,
                spill_stores: used.spill_stores,
                spill_loads: used.spill_loads,
                shared: of(name).map_or(0, |kernel| kernel.shared_bytes),
            })
            .collect();
    }
    let timing = loaded.time(&TimingOptions::quick()).map_err(|error| Status::Failed(error.to_string()))?;
    let best = timing.best().ok_or_else(|| Status::Failed("no run was timed".into()))?;
    sample.times = Some(Times { min: best.min_us, median: best.median_us, runs: best.runs as u32 });
    Ok(())
}
