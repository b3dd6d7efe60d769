//! Measures the schedules that the search picks for random pipelines that no weights were trained on, on the GPU of this
//! machine, and writes them as samples. `docs/model.md` says what they are for:
//! `cargo run --release -p warploom --example picks -- training/data/later/h200-picks-0.samples 4000 777 270`.
#![allow(clippy::print_stdout, reason = "a program whose output this is")]

use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use warploom::codegen::cuda::{Build, describe};
use warploom::codegen::ir::Program;
use warploom::cost::CostModel;
use warploom::prelude::*;
use warploom::randpipe::{self, RandomPipeline, Scale, random_pipeline};
use warploom::runtime::TimingOptions;
use warploom::schedule::schedule::Problem;
use warploom::search::Options;
use warploom::tune::measure::{Candidate, Compile, Feed, Setup, Subject, measure};
use warploom::tune::one_shot::one_shot_without_spills;
use warploom::tune::sample::{Origin, ShardWriter};
use warploom::tune::worker::{BenchOptions, OpenBench};

/// No kernel may occupy the GPU for longer, in microseconds.
const SLOWEST: f64 = 50_000.0;
/// Searches that take longer end early.
const SEARCH: Duration = Duration::from_secs(20);
/// The largest inputs of a pipeline, in points.
const MOST_POINTS: u64 = 1 << 28;

fn main() -> Result<(), Box<dyn Error>> {
    warploom::worker_entry();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, count, seed, seconds] = arguments.as_slice() else {
        return Err("usage: picks FILE COUNT SEED SECONDS".into());
    };
    let (count, seed): (u64, u64) = (count.parse()?, seed.parse()?);
    let deadline = Instant::now() + Duration::from_secs(seconds.parse()?);
    let mut shard = ShardWriter::create(out)?;
    let mut bench = OpenBench::open(&BenchOptions::default())?;
    let model = warploom::model_for(bench.device()).model;
    let next = AtomicU64::new(0);
    bench.with(|bench| {
        let (device, compile, threads) = (bench.device, bench.compile, bench.threads);
        let feed = || {
            let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
            let numbers = numbers.take_while(|number| *number < count);
            let picks =
                numbers.filter_map(|number| pick(seed * 1_000_000 + number, device, &*model, compile));
            Box::new(picks) as Feed<'_>
        };
        let setup = Setup {
            deadline: Some(deadline),
            skip_spilling: true,
            ..Setup::new(device, compile, TimingOptions::default())
        };
        let mut record = |measured: warploom::tune::measure::Measured| {
            let (predicted, times) = (measured.candidate.predicted_us, measured.sample.times);
            println!("{} {predicted:?} {:?}", measured.sample.status.kind(), times.map(|times| times.min));
            match shard.add(measured.candidate.subject.pipeline(), measured.sample) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    println!("{error}");
                    ControlFlow::Break(())
                }
            }
        };
        let feeds = (0..threads).map(|_| feed()).collect();
        measure(&setup, feeds, bench.machines(), &mut record)
    })?;
    Ok(())
}

/// The schedule that `warploom compile` would use for a random pipeline; `None` if it is too large or too slow to be
/// measured.
fn pick(seed: u64, device: &Device, model: &dyn CostModel, compile: Compile<'_>) -> Option<Candidate> {
    let RandomPipeline { pipeline, request, .. } = random_pipeline(seed, &shape(seed));
    let points = request.inputs.values().flatten().map(|region| region.points().unwrap_or(u64::MAX));
    if points.fold(0, u64::saturating_add) > MOST_POINTS {
        return None;
    }
    let problem = Problem::new(&pipeline, &request, device).ok()?;
    let options = Options { threads: 1, time_limit: Some(SEARCH), ..Options::default() };
    let spills = |program: &Program| {
        let compiled = compile(&describe(program, Build::Timing)).ok()?;
        Some(compiled.kernels.values().map(|used| u64::from(used.spill_stores + used.spill_loads)).sum())
    };
    let shot = one_shot_without_spills(&problem, model, &options, &spills, &|_| {}).ok()?;
    (shot.predicted_us < SLOWEST).then(|| Candidate {
        subject: Arc::new(Subject::noise(pipeline, request, seed)),
        schedule: shot.schedule,
        origin: Origin::Search,
        predicted_us: Some(shot.predicted_us),
        checks: Vec::new(),
    })
}

/// Length and size of a pipeline: as in the training data, and some longer ones.
fn shape(seed: u64) -> randpipe::Options {
    let stages = [1..=2, 2..=4, 4..=6, 6..=10][seed as usize % 4].clone();
    let scale = if seed % 10 < 3 { Scale::Medium } else { Scale::Benchmark };
    randpipe::Options { stages, scale }
}
