//! The driver: checks many random pipelines, each under several schedules.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use warploom_plan::{Coverage, Problem};
use warploom_randpipe::{RandomPipeline, random_pipeline};
use warploom_schedule::Schedule;
use warploom_target::Device;

use crate::case::Case;
use crate::check::{Failure, FailureKind, Verdict};
use crate::data::mixed;
use crate::panics::catch;
use crate::skip::{Reason, Skip};

/// Number of pipelines between checks of the failure count; a constant, so that results do not
/// depend on the number of threads.
const BATCH: u64 = 64;

/// A function that checks a case: [`Case::check`], or an equivalent on another machine.
pub type Checker<'a> = dyn Fn(&Case) -> Result<Verdict, Failure> + Sync + 'a;

/// A function that produces the schedules of a problem: [`random_schedules`], or a search for good ones. The seeds of
/// schedules are derived from the given seed, that of the pipeline.
pub type Scheduler<'a> = dyn Fn(&Problem, u64) -> Vec<Schedule> + Sync + 'a;

/// Produces `count` random schedules per pipeline, half of them with rewrites.
pub fn random_schedules(count: u64) -> impl Fn(&Problem, u64) -> Vec<Schedule> + Sync {
    move |problem, seed| {
        let random = |number| {
            let seed = schedule_seed(seed, number);
            // Every other schedule rewrites the pipeline first.
            match number % 2 {
                0 => problem.random_schedule(seed),
                _ => problem.randomly_rewritten(seed).random_schedule(seed),
            }
        };
        (0..count).map(random).collect()
    }
}

/// The seed of the `number`th pipeline of a run.
pub(crate) fn pipeline_seed(seed: u64, number: u64) -> u64 {
    mixed(mixed(seed) ^ number)
}

/// The seed of the `number`th schedule of a pipeline.
pub(crate) fn schedule_seed(pipeline_seed: u64, number: u64) -> u64 {
    mixed(pipeline_seed ^ number)
}

/// Options of a fuzzing run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of pipelines to try.
    pub pipelines: u64,
    /// Seed from which all pipelines are derived.
    pub seed: u64,
    /// Options of the pipeline generator.
    pub random: warploom_randpipe::Options,
    /// Number of threads; one per core if `None`.
    pub threads: Option<usize>,
    /// The run stops after this many failures, at the end of a batch of pipelines.
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

impl Options {
    /// Runs `work` with as many threads as the options say.
    pub(crate) fn on_threads<T: Send>(
        &self,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, rayon::ThreadPoolBuildError> {
        match self.threads {
            None => Ok(work()),
            Some(threads) => Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?.install(work)),
        }
    }
}

/// Progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Number of pipelines checked so far.
    pub done: u64,
    /// Total number of pipelines.
    pub total: u64,
    /// Number of failures so far, one per pair of a pipeline and a schedule.
    pub failed: u64,
}

/// A failure and how to reproduce it.
#[derive(Debug)]
pub struct Found {
    /// Seed of the pipeline.
    pub pipeline_seed: u64,
    /// Seed of the schedule if it is a random one; otherwise just an identifier.
    pub schedule_seed: u64,
    /// The failing case. It has the default schedule if the scheduler panicked, and is `None` if
    /// the pipeline could not be generated.
    pub case: Option<Case>,
    /// The failure.
    pub failure: Failure,
}

/// The cases that were skipped for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    /// The number of cases.
    pub count: u64,
    /// The seed of the first one's schedule.
    pub schedule_seed: u64,
    /// The message of the first one.
    pub why: String,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Summary {
    /// Number of pipelines tried.
    pub pipelines: u64,
    /// Number of pairs of a pipeline and a schedule.
    pub pairs: u64,
    /// Pairs with nothing to check, by reason.
    pub skipped: BTreeMap<Reason, Skipped>,
    /// Sizes with nothing to check, of pairs of kernels for any size that passed at other sizes, by reason.
    pub skipped_sizes: BTreeMap<Reason, Skipped>,
    /// Pairs with an ill-conditioned pipeline: the seed of the schedule, and how far its kernels
    /// deviate.
    pub ill_conditioned: Vec<(u64, String)>,
    /// Pairs that failed, in order.
    pub failures: Vec<Found>,
    /// Whether the run stopped early because of too many failures.
    pub stopped: bool,
    /// Wall-clock time of the run.
    pub time: Duration,
    /// Features that the schedules covered.
    pub coverage: Coverage,
}

impl Summary {
    /// Number of failures per kind; kinds without failures are absent.
    pub fn kinds(&self) -> BTreeMap<FailureKind, usize> {
        let mut kinds = BTreeMap::new();
        for found in &self.failures {
            *kinds.entry(found.failure.kind()).or_insert(0) += 1;
        }
        kinds
    }

    /// Number of pairs with nothing to check.
    pub fn skipped_pairs(&self) -> u64 {
        self.skipped.values().map(|skipped| skipped.count).sum()
    }

    /// Records the outcome of one pair.
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
            Ok(Verdict::PassedPartly(skips)) => {
                let seed = schedule_seed(pipeline_seed, number);
                skips.into_iter().for_each(|skip| count_skip(&mut self.skipped_sizes, skip, seed));
            }
            Ok(Verdict::Skipped(skip)) => {
                count_skip(&mut self.skipped, skip, schedule_seed(pipeline_seed, number));
            }
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
        for (all, others) in
            [(&mut self.skipped, other.skipped), (&mut self.skipped_sizes, other.skipped_sizes)]
        {
            for (reason, skipped) in others {
                let count = skipped.count;
                all.entry(reason).and_modify(|known| known.count += count).or_insert(skipped);
            }
        }
        self.ill_conditioned.extend(other.ill_conditioned);
        self.failures.extend(other.failures);
        self.coverage.merge(&other.coverage);
    }
}

fn count_skip(counts: &mut BTreeMap<Reason, Skipped>, skip: Skip, schedule_seed: u64) {
    let first = Skipped { count: 0, schedule_seed, why: skip.why };
    counts.entry(skip.reason).or_insert(first).count += 1;
}

/// Checks random pipelines under the schedules that `schedules` produces, in parallel.
///
/// The results depend only on the options and on `schedules`, not on threads or time. `progress` is
/// called after every pipeline, from any thread.
///
/// ```
/// use warploom_fuzz::{Case, Options, fuzz, random_schedules};
/// use warploom_target::Device;
///
/// let device = Device::preset("h200")?;
/// let options = Options { pipelines: 2, ..Options::default() };
/// let check = |case: &Case| case.check(&device);
/// let summary = fuzz(&options, &device, &random_schedules(2), &check, &|_| ())?;
/// assert_eq!(summary.pairs, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the threads cannot be started.
pub fn fuzz(
    options: &Options,
    device: &Device,
    schedules: &Scheduler<'_>,
    check: &Checker<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Summary, rayon::ThreadPoolBuildError> {
    let (done, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let run = Run { options, device, schedules, check, progress, done, failed };
    options.on_threads(|| run.all())
}

struct Run<'a> {
    options: &'a Options,
    device: &'a Device,
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
                numbers.into_par_iter().map(|number| self.pipeline(pipeline_seed(seed, number))).collect();
            batch.into_iter().for_each(|part| summary.add(part));
        }
        summary.time = start.elapsed();
        summary
    }

    /// Generates one pipeline and checks all its schedules.
    fn pipeline(&self, seed: u64) -> Summary {
        let mut summary = Summary { pipelines: 1, ..Summary::default() };
        let made = catch(|| {
            let RandomPipeline { pipeline, request, .. } = random_pipeline(seed, &self.options.random);
            Problem::new(&pipeline, &request, self.device)
        });
        match made {
            Err(message) => summary.count(seed, 0, None, Err(Failure::Panic(message))),
            Ok(Err(error)) => {
                summary.count(seed, 0, None, Ok(Verdict::Skipped(Reason::Sizes.because(error))));
            }
            Ok(Ok(problem)) => self.schedules(seed, &problem, &mut summary),
        }
        let failures = summary.failures.len() as u64;
        let failed = self.failed.fetch_add(failures, Ordering::Relaxed) + failures;
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.progress)(Progress { done, total: self.options.pipelines, failed });
        summary
    }

    /// Produces the schedules of a pipeline and checks them.
    fn schedules(&self, seed: u64, problem: &Problem, summary: &mut Summary) {
        let case = |schedule| {
            let (pipeline, request) = (problem.pipeline().clone(), problem.request().clone());
            Case { pipeline, request, schedule, seed }
        };
        match catch(|| (self.schedules)(problem, seed)) {
            Err(message) => {
                let case = case(problem.default_schedule());
                summary.count(seed, 0, Some(case), Err(Failure::Panic(message)));
            }
            Ok(schedules) => {
                for (number, schedule) in (0..).zip(schedules) {
                    let case = case(schedule);
                    let outcome = (self.check)(&case);
                    // Coverage is defined only for legal schedules.
                    if !matches!(outcome, Err(Failure::Illegal(_))) {
                        summary.coverage.add(problem, &case.schedule);
                    }
                    summary.count(seed, number, Some(case), outcome);
                }
            }
        }
    }
}
