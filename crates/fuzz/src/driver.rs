//! The driver: many random pipelines, each under many random schedules.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use warploom_lang::{BoundsError, Regions, infer};
use warploom_randpipe::{RandomPipeline, random_pipeline};
use warploom_schedule::schedule::{Coverage, Schedule};
use warploom_target::Device;

use crate::case::Case;
use crate::check::{Failure, Kind, Verdict};
use crate::data::mixed;
use crate::panics::catch;

/// Pipelines between two looks at the number of failures; a constant, so that threads don't matter.
const BATCH: u64 = 64;

/// What checks a case: [`Case::check`], or something like it on another machine.
pub type Checker<'a> = dyn Fn(&Case) -> Result<Verdict, Failure> + Sync + 'a;

/// What to try.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many pipelines.
    pub pipelines: u64,
    /// How many schedules of each.
    pub schedules: u64,
    /// What both follow from.
    pub seed: u64,
    /// What pipelines are like.
    pub random: warploom_randpipe::Options,
    /// How many threads; as many as there are cores if `None`.
    pub threads: Option<usize>,
    /// No new pipelines are tried after this many failures.
    pub max_failures: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            pipelines: 100,
            schedules: 3,
            seed: 1,
            random: warploom_randpipe::Options::default(),
            threads: None,
            max_failures: 10,
        }
    }
}

/// How far a run is, in pairs of a pipeline and a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Those that are done.
    pub done: u64,
    /// Those that there will be.
    pub total: u64,
    /// Those among the done that failed.
    pub failed: u64,
}

/// A failure and how to find it again.
#[derive(Debug)]
pub struct Found {
    /// The seed of the pipeline.
    pub pipeline_seed: u64,
    /// The seed of the schedule.
    pub schedule_seed: u64,
    /// The case; there is none where making it failed.
    pub case: Option<Case>,
    /// What is wrong with it.
    pub failure: Failure,
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Summary {
    /// Pipelines that were tried.
    pub pipelines: u64,
    /// Pairs of a pipeline and a schedule.
    pub pairs: u64,
    /// Those of the pairs that have no reference to compare with.
    pub skipped: u64,
    /// Those that failed, in order.
    pub failures: Vec<Found>,
    /// Whether there were too many failures to go on.
    pub stopped: bool,
    /// How long it took.
    pub time: Duration,
    /// What the schedules had in them.
    pub coverage: Coverage,
}

impl Summary {
    /// How many failures there are of each kind that there is.
    pub fn kinds(&self) -> BTreeMap<Kind, usize> {
        let mut kinds = BTreeMap::new();
        for found in &self.failures {
            *kinds.entry(found.failure.kind()).or_insert(0) += 1;
        }
        kinds
    }

    fn add(&mut self, other: Summary) {
        self.pipelines += other.pipelines;
        self.pairs += other.pairs;
        self.skipped += other.skipped;
        self.failures.extend(other.failures);
        self.coverage.merge(&other.coverage);
    }
}

/// Checks random pipelines under random schedules, in parallel.
///
/// What is tried and found depends on the options alone, not on threads or time; `progress` is called after every
/// pair, from any thread.
///
/// ```
/// use warploom_fuzz::{Case, Options, fuzz};
/// use warploom_target::Device;
///
/// let device = Device::preset("h200")?;
/// let options = Options { pipelines: 2, schedules: 2, ..Options::default() };
/// let summary = fuzz(&options, &device, &|case: &Case| case.check(&device), &|_| ())?;
/// assert_eq!(summary.pairs, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the threads cannot be started.
pub fn fuzz(
    options: &Options,
    device: &Device,
    check: &Checker<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Summary, rayon::ThreadPoolBuildError> {
    let run = Run { options, device, check, progress, done: AtomicU64::new(0), failed: AtomicU64::new(0) };
    match options.threads {
        None => Ok(run.all()),
        Some(threads) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
            Ok(pool.install(|| run.all()))
        }
    }
}

struct Run<'a> {
    options: &'a Options,
    device: &'a Device,
    check: &'a Checker<'a>,
    progress: &'a (dyn Fn(Progress) + Sync),
    done: AtomicU64,
    failed: AtomicU64,
}

impl Run<'_> {
    fn all(&self) -> Summary {
        let start = Instant::now();
        let mut summary = Summary::default();
        let Options { pipelines, seed, max_failures, .. } = *self.options;
        for first in (0..pipelines).step_by(BATCH as usize) {
            summary.stopped = summary.failures.len() >= max_failures.max(1);
            if summary.stopped {
                break;
            }
            let numbers = first..(first + BATCH).min(pipelines);
            let batch: Vec<Summary> =
                numbers.into_par_iter().map(|number| self.pipeline(mixed(mixed(seed) ^ number))).collect();
            batch.into_iter().for_each(|part| summary.add(part));
        }
        summary.time = start.elapsed();
        summary
    }

    /// Tries all schedules of one pipeline.
    fn pipeline(&self, pipeline_seed: u64) -> Summary {
        let mut summary = Summary { pipelines: 1, ..Summary::default() };
        let random = catch(|| random_pipeline(pipeline_seed, &self.options.random));
        for number in 0..self.options.schedules {
            let schedule_seed = mixed(pipeline_seed ^ number);
            let made = random.as_ref().map_err(Clone::clone);
            let made = made.and_then(|random| catch(|| self.case(random, pipeline_seed, schedule_seed)));
            let (case, outcome) = match made {
                Err(message) => (None, Err(Failure::Panic(message))),
                Ok(Err(error)) => (None, Ok(Verdict::Skipped(error.to_string()))),
                Ok(Ok((case, regions))) => {
                    let outcome = (self.check)(&case);
                    // Only legal schedules can be counted.
                    if !matches!(outcome, Err(Failure::Illegal(_))) {
                        summary.coverage.add(&case.pipeline, &regions, &case.schedule);
                    }
                    (Some(case), outcome)
                }
            };
            summary.pairs += 1;
            match outcome {
                Ok(Verdict::Passed) => {}
                Ok(Verdict::Skipped(_)) => summary.skipped += 1,
                Err(failure) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    summary.failures.push(Found { pipeline_seed, schedule_seed, case, failure });
                }
            }
            self.report();
        }
        summary
    }

    /// A random pipeline under a random schedule.
    fn case(
        &self,
        random: &RandomPipeline,
        seed: u64,
        schedule_seed: u64,
    ) -> Result<(Case, Regions), BoundsError> {
        let RandomPipeline { pipeline, request, .. } = random;
        let regions = infer(pipeline, request)?;
        let schedule = Schedule::random(pipeline, &regions, self.device, schedule_seed);
        Ok((Case { pipeline: pipeline.clone(), request: request.clone(), schedule, seed }, regions))
    }

    fn report(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let total = self.options.pipelines * self.options.schedules;
        (self.progress)(Progress { done, total, failed: self.failed.load(Ordering::Relaxed) });
    }
}
