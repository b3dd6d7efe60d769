//! Measures the schedules that the search picks for random pipelines that no weights were trained on, on the GPU of this
//! machine, and writes them as samples. `docs/model.md` says what they are for:
//! `cargo run --release -p warploom --example picks -- training/data/later/h200-picks-0.samples 4000 777 270`.
//!
//! `picks FILE again OLD SECONDS` searches again for the pipelines of a file of samples. Where today's pick is another one, it
//! measures both in the same run, and says how they compare.
#![allow(clippy::print_stdout, reason = "a program whose output this is")]

use std::collections::HashMap;
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use warploom::codegen::ir::Program;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::cost::CostModel;
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::randpipe::{self, RandomPipeline, Scale, random_pipeline};
use warploom::runtime::TimingOptions;
use warploom::schedule::Schedule;
use warploom::search::Options;
use warploom::tune::measure::{Candidate, Compile, Feed, Measured, Setup, Subject, measure};
use warploom::tune::one_shot::one_shot_without_spills;
use warploom::tune::sample::{Origin, Shard, ShardWriter};
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
    let [out, source @ .., seconds] = arguments.as_slice() else { return Err(USAGE.into()) };
    let source = Source::parse(source)?;
    let deadline = Instant::now() + Duration::from_secs(seconds.parse()?);
    let mut shard = ShardWriter::create(out)?;
    let mut pairs = Pairs::default();
    let mut bench = OpenBench::open(&BenchOptions::default())?;
    let model = warploom::model_for(bench.device()).model;
    let next = AtomicUsize::new(0);
    bench.with(|bench| {
        let (device, compile, threads) = (bench.device, bench.compile, bench.threads);
        let feed = || {
            let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
            let numbers = numbers.take_while(|number| *number < source.len());
            let candidates = numbers.flat_map(|number| source.candidates(number, device, &*model, compile));
            Box::new(candidates) as Feed<'_>
        };
        let setup = Setup {
            deadline: Some(deadline),
            skip_spilling: true,
            ..Setup::new(device, compile, TimingOptions::default())
        };
        let mut record = |measured: Measured| {
            let (predicted, times) = (measured.candidate.predicted_us, measured.sample.times);
            println!("{} {predicted:?} {:?}", measured.sample.status.kind(), times.map(|times| times.min));
            pairs.add(&measured);
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
    if let Source::Again(_) = source {
        let searched = next.load(Ordering::Relaxed).min(source.len());
        println!("{searched} of {} pipelines were searched before the time was up", source.len());
        pairs.print();
    }
    Ok(())
}

const USAGE: &str = "usage: picks FILE COUNT SEED SECONDS, or picks FILE again OLD SECONDS";

/// Where pipelines come from.
enum Source {
    Random { count: usize, seed: u64 },
    Again(Shard),
}

impl Source {
    fn parse(arguments: &[String]) -> Result<Source, Box<dyn Error>> {
        match arguments {
            [again, old] if again == "again" => Ok(Source::Again(Shard::read(old)?)),
            [count, seed] => Ok(Source::Random { count: count.parse()?, seed: seed.parse()? }),
            _ => Err(USAGE.into()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Source::Random { count, .. } => *count,
            Source::Again(old) => old.samples.len(),
        }
    }

    /// What is measured for one pipeline: today's pick, and the old one if there is one. Nothing if the two are the same, or if
    /// the pipeline is too large or too slow to be measured.
    fn candidates(
        &self,
        number: usize,
        device: &Device,
        model: &dyn CostModel,
        compile: Compile<'_>,
    ) -> Vec<Candidate> {
        match self {
            Source::Random { seed, .. } => {
                let seed = seed * 1_000_000 + number as u64;
                let RandomPipeline { pipeline, request, .. } = random_pipeline(seed, &shape(seed));
                let points =
                    request.inputs.values().flatten().map(|region| region.points().unwrap_or(u64::MAX));
                if points.fold(0, u64::saturating_add) > MOST_POINTS {
                    return Vec::new();
                }
                let subject = Arc::new(Subject::noise(pipeline, request, seed));
                pick(subject, device, model, compile).into_iter().collect()
            }
            Source::Again(old) => {
                let sample = &old.samples[number];
                let pipeline = &old.pipelines[&sample.pipeline];
                let request = sample.sizes.realise(pipeline);
                let Ok(schedule) = Schedule::parse(&sample.schedule, pipeline) else { return Vec::new() };
                let subject = Arc::new(Subject::noise(pipeline.clone(), request, number as u64));
                // Old picks are told from new ones by their origin.
                let (origin, checks) = (Origin::Random, Vec::new());
                let again =
                    Candidate { subject: subject.clone(), schedule, origin, predicted_us: None, checks };
                let pick = pick(subject, device, model, compile);
                let pick =
                    pick.filter(|pick| pick.schedule.to_text(pipeline) != again.schedule.to_text(pipeline));
                pick.map_or_else(Vec::new, |pick| vec![again, pick])
            }
        }
    }
}

/// The schedule that `warploom compile` would use for a pipeline; `None` if it is too slow to be measured.
fn pick(
    subject: Arc<Subject>,
    device: &Device,
    model: &dyn CostModel,
    compile: Compile<'_>,
) -> Option<Candidate> {
    let problem = Problem::new(subject.pipeline(), subject.request(), device).ok()?;
    let options = Options { threads: 1, time_limit: Some(SEARCH), ..Options::default() };
    let spills = |program: &Program| {
        let compiled = compile(&PRINTER.describe(program, Build::Timing)).ok()?;
        Some(compiled.kernels.values().map(|used| u64::from(used.spill_stores + used.spill_loads)).sum())
    };
    let shot = one_shot_without_spills(&problem, model, &options, &spills, &|_| {}).ok()?;
    let (schedule, predicted_us) = (shot.planned.schedule, Some(shot.predicted_us));
    let candidate = Candidate { subject, schedule, origin: Origin::Search, predicted_us, checks: Vec::new() };
    (shot.predicted_us < SLOWEST).then_some(candidate)
}

/// Length and size of a pipeline: as in the training data, and some longer ones.
fn shape(seed: u64) -> randpipe::Options {
    let stages = [1..=2, 2..=4, 4..=6, 6..=10][seed as usize % 4].clone();
    let scale = if seed % 10 < 3 { Scale::Medium } else { Scale::Benchmark };
    randpipe::Options { stages, scale }
}

/// The times of old and new picks for the same pipelines, by structural hash.
#[derive(Default)]
struct Pairs(HashMap<u128, [Option<f64>; 2]>);

impl Pairs {
    fn add(&mut self, measured: &Measured) {
        let is_new = measured.candidate.origin == Origin::Search;
        let times = self.0.entry(measured.sample.pipeline).or_default();
        times[usize::from(is_new)] = measured.sample.times.map(|times| times.min);
        if let [Some(old), Some(new)] = times {
            println!("{old:.2} us before, {new:.2} now, {:.2}x", *old / *new);
        }
    }

    fn print(&self) {
        let ratios = self.0.values().filter_map(|[old, new]| Some((*old)? / (*new)?));
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let slower = ratios.iter().filter(|ratio| **ratio < 0.95).count();
        let faster = ratios.iter().filter(|ratio| **ratio > 1.05).count();
        let shown: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        println!(
            "{} pipelines with another pick: today's are {mean:.3}x as fast as the old ones in geometric mean, {faster} \
             faster and {slower} slower by more than 5 %",
            ratios.len()
        );
        println!("{}", shown.join(" "));
    }
}
