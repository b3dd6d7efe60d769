//! The driver: many random pipelines, each under several schedules.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use warploom_lang::{Pipeline, Realisation, Regions, infer};
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

/// What gives a pipeline its schedules: [`random_schedules`], or a search for good ones.
pub type Scheduler<'a> = dyn Fn(&Subject<'_>) -> Vec<Schedule> + Sync + 'a;

/// A pipeline that schedules are to be found for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The pipeline.
    pub pipeline: &'a Pipeline,
    /// Its sizes and Params.
    pub request: &'a Realisation,
    /// What is computed at these sizes.
    pub regions: &'a Regions,
    /// The seed of the pipeline, from which that of the schedules should follow.
    pub seed: u64,
}

/// As many random schedules of each pipeline.
pub fn random_schedules(device: &Device, count: u64) -> impl Fn(&Subject<'_>) -> Vec<Schedule> + Sync {
    move |subject| {
        let random = |number| {
            let seed = schedule_seed(subject.seed, number);
            Schedule::random(subject.pipeline, subject.regions, device, seed)
        };
        (0..count).map(random).collect()
    }
}

/// The seed of a pipeline's schedule with a number.
fn schedule_seed(pipeline_seed: u64, number: u64) -> u64 {
    mixed(pipeline_seed ^ number)
}

/// What to try.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many pipelines.
    pub pipelines: u64,
    /// What they follow from.
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
            seed: 1,
            random: warploom_randpipe::Options::default(),
            threads: None,
            max_failures: 10,
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Pipelines that are done.
    pub done: u64,
    /// Pipelines that there will be.
    pub total: u64,
    /// Pairs of a pipeline and a schedule that failed.
    pub failed: u64,
}

/// A failure and how to find it again.
#[derive(Debug)]
pub struct Found {
    /// The seed of the pipeline.
    pub pipeline_seed: u64,
    /// The seed of the schedule where it is a random one, and a number of its own where not.
    pub schedule_seed: u64,
    /// The case, with the default schedule if giving it another failed; there is none without a pipeline.
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
    /// Those of pipelines that are ill-conditioned: the seed of the schedule, and how far off its kernels are.
    pub ill_conditioned: Vec<(u64, String)>,
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

    /// Counts one pair.
    fn count(
        &mut self,
        pipeline_seed: u64,
        number: u64,
        case: Option<Case>,
        outcome: Result<Verdict, Failure>,
    ) {
        self.pairs += 1;
        match outcome {
            Ok(Verdict::Passed) => {}
            Ok(Verdict::Skipped(_)) => self.skipped += 1,
            Ok(Verdict::IllConditioned(why)) => {
                self.ill_conditioned.push((schedule_seed(pipeline_seed, number), why));
            }
            Err(failure) => {
                let schedule_seed = schedule_seed(pipeline_seed, number);
                self.failures.push(Found { pipeline_seed, schedule_seed, case, failure });
            }
        }
    }

    fn add(&mut self, other: Summary) {
        self.pipelines += other.pipelines;
        self.pairs += other.pairs;
        self.skipped += other.skipped;
        self.ill_conditioned.extend(other.ill_conditioned);
        self.failures.extend(other.failures);
        self.coverage.merge(&other.coverage);
    }
}

/// Checks random pipelines under the schedules that they are given, in parallel.
///
/// What is tried and found depends on the options and on what gives schedules alone, not on threads or time;
/// `progress` is called after every pipeline, from any thread.
///
/// ```
/// use warploom_fuzz::{Case, Options, fuzz, random_schedules};
/// use warploom_target::Device;
///
/// let device = Device::preset("h200")?;
/// let options = Options { pipelines: 2, ..Options::default() };
/// let schedules = random_schedules(&device, 2);
/// let summary = fuzz(&options, &schedules, &|case: &Case| case.check(&device), &|_| ())?;
/// assert_eq!(summary.pairs, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the threads cannot be started.
pub fn fuzz(
    options: &Options,
    schedules: &Scheduler<'_>,
    check: &Checker<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Summary, rayon::ThreadPoolBuildError> {
    let run = Run { options, schedules, check, progress, done: AtomicU64::new(0), failed: AtomicU64::new(0) };
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
    schedules: &'a Scheduler<'a>,
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
    fn pipeline(&self, seed: u64) -> Summary {
        let mut summary = Summary { pipelines: 1, ..Summary::default() };
        let made = catch(|| {
            let random = random_pipeline(seed, &self.options.random);
            infer(&random.pipeline, &random.request).map(|regions| (random, regions))
        });
        match made {
            Err(message) => summary.count(seed, 0, None, Err(Failure::Panic(message))),
            Ok(Err(error)) => {
                let skipped = Verdict::Skipped(error.to_string());
                summary.count(seed, 0, None, Ok(skipped));
            }
            Ok(Ok((random, regions))) => self.schedules(seed, &random, &regions, &mut summary),
        }
        let failures = summary.failures.len() as u64;
        let failed = self.failed.fetch_add(failures, Ordering::Relaxed) + failures;
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.progress)(Progress { done, total: self.options.pipelines, failed });
        summary
    }

    /// Gives a pipeline its schedules and checks them.
    fn schedules(&self, seed: u64, random: &RandomPipeline, regions: &Regions, summary: &mut Summary) {
        let RandomPipeline { pipeline, request, .. } = random;
        let case = |schedule| Case { pipeline: pipeline.clone(), request: request.clone(), schedule, seed };
        let subject = Subject { pipeline, request, regions, seed };
        match catch(|| (self.schedules)(&subject)) {
            Err(message) => {
                let case = case(Schedule::default_for(pipeline, regions));
                summary.count(seed, 0, Some(case), Err(Failure::Panic(message)));
            }
            Ok(schedules) => {
                for (number, schedule) in (0..).zip(schedules) {
                    let case = case(schedule);
                    let outcome = (self.check)(&case);
                    // Only legal schedules can be counted.
                    if !matches!(outcome, Err(Failure::Illegal(_))) {
                        summary.coverage.add(pipeline, regions, &case.schedule);
                    }
                    summary.count(seed, number, Some(case), outcome);
                }
            }
        }
    }
}
