//! Collects samples: measures random pipelines and apps under schedules of varying quality.
//!
//! [`collect`] processes work in units. A unit is a random pipeline or one more round of an app.
//! The units of apps are spread evenly, so a run that is cut short has some of everything. A worker
//! generates the pipeline and its data, searches, and compiles the schedules it found, the default
//! schedule and random ones; [`measure`] times them. Every sample is written to a file as soon as
//! it is measured.

mod app;
#[cfg(feature = "farm")]
mod farmed;
mod plan;
mod random;
mod schedules;
mod summary;
mod unit;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;
use warploom::app::App;
use warploom::check;
use warploom::cost::CostModel;
use warploom::fuzz::{Case, CaseError, Seen};
use warploom::runtime::TimingOptions;
use warploom::target::Device;
use warploom::tune::measure::{Candidate, Compile, Feed, Machine, MeasureError, Measured, Setup, measure};
use warploom::tune::sample::{ShardError, ShardFolder, Status};

use app::AppRounds;

pub use app::subject_of;
#[cfg(feature = "farm")]
pub use farmed::{Collecting, Finding};
pub use plan::{Plan, Unit};
pub use random::Generated;
pub use summary::Summary;
pub use unit::{Recipe, Selected, Selection};

/// What to collect, and with which limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of random pipelines.
    pub pipelines: u64,
    /// Number of samples per random pipeline.
    pub per_pipeline: usize,
    /// Number of samples per app.
    pub per_app: usize,
    /// Seed of the pipelines and schedules.
    pub seed: u64,
    /// Fraction of samples whose results are compared with the reference, from 0 to 1.
    pub verify: f64,
    /// Number of worker threads.
    pub threads: usize,
    /// Time after which collection stops; `None` means no limit.
    pub time_limit: Option<Duration>,
}

/// The test bench for collection.
pub struct Bench<'a> {
    /// The device to measure on.
    pub device: &'a Device,
    /// The cost model of the schedule search.
    pub model: &'a dyn CostModel,
    /// Compiles kernels for the device.
    pub compile: Compile<'a>,
    /// How samples are timed.
    pub timing: TimingOptions,
    /// Runs and times kernels.
    pub machine: &'a mut dyn Machine,
}

/// Why collection ended early. Samples measured before are in the files.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CollectError {
    /// A kernel corrupted the GPU context of this process, nothing runs any more, or threads could
    /// not be started.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// Samples could not be written.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The file of a failing case could not be written.
    #[error(transparent)]
    Case(#[from] CaseError),
}

/// State shared by all workers.
struct Collector<'a> {
    options: &'a Options,
    device: &'a Device,
    model: &'a dyn CostModel,
    plan: Plan,
    apps: Vec<AppRounds<'a>>,
    next: AtomicU64,
    /// Candidates skipped because their predicted time or their size is too large.
    skipped: AtomicU64,
    /// Random pipelines rejected because they are too fast, too slow or too large.
    rejected: AtomicU64,
    /// Units that panicked.
    panics: AtomicU64,
}

/// Collects samples into shards in the folder `out`. `given` are schedules of apps, as text.
/// `progress` is called after every sample.
///
/// The summary covers everything that was done, even if an error ended the collection.
pub fn collect(
    options: &Options,
    apps: &[App],
    given: &[String],
    bench: Bench<'_>,
    out: &Path,
    progress: &mut dyn FnMut(&Summary),
) -> (Summary, Result<(), CollectError>) {
    let started = Instant::now();
    let mut summary = Summary::default();
    let collected = Collector::new(options, apps, given, bench.device, bench.model).run(
        bench,
        out,
        started,
        &mut summary,
        progress,
    );
    summary.seconds = started.elapsed().as_secs_f64();
    (summary, collected)
}

impl<'a> Collector<'a> {
    fn new(
        options: &'a Options,
        apps: &'a [App],
        given: &'a [String],
        device: &'a Device,
        model: &'a dyn CostModel,
    ) -> Collector<'a> {
        Collector {
            options,
            device,
            model,
            plan: Plan::new(options.pipelines, apps.len(), options.per_app),
            apps: apps.iter().map(|app| AppRounds::new(app, given)).collect(),
            next: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        }
    }

    fn run(
        &self,
        bench: Bench<'_>,
        out: &Path,
        started: Instant,
        summary: &mut Summary,
        progress: &mut dyn FnMut(&Summary),
    ) -> Result<(), CollectError> {
        let name = format!("{}-seed{}", self.device.name.to_lowercase().replace(' ', "-"), self.options.seed);
        let mut shards = ShardFolder::create(out, &name)?;
        let setup = Setup {
            deadline: self.options.time_limit.map(|limit| started + limit),
            ..Setup::new(self.device, bench.compile, bench.timing)
        };
        let feeds = (0..self.options.threads.max(1)).map(|_| self.feed()).collect();
        let mut written: Result<(), CollectError> = Ok(());
        let mut record = |measured: Measured| {
            summary.add(&measured);
            summary.skipped = self.skipped.load(Ordering::Relaxed);
            summary.rejected = self.rejected.load(Ordering::Relaxed);
            summary.panics = self.panics.load(Ordering::Relaxed);
            summary.seconds = started.elapsed().as_secs_f64();
            written = self.write(measured, &mut shards, out, summary);
            summary.bytes = shards.bytes();
            progress(summary);
            if written.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let measured = measure(&setup, feeds, vec![bench.machine], &mut record);
        written.and(measured.map_err(CollectError::from))
    }

    fn write(
        &self,
        measured: Measured,
        shards: &mut ShardFolder,
        out: &Path,
        summary: &Summary,
    ) -> Result<(), CollectError> {
        let Measured { candidate, sample, .. } = measured;
        if let (Status::Wrong(difference), Some(check)) = (&sample.status, candidate.checks.first()) {
            let case = Case {
                pipeline: check.subject.pipeline().clone(),
                request: check.subject.request().clone(),
                schedule: candidate.schedule.clone(),
                seed: check::SEED,
            };
            let message = difference.lines().map(str::to_owned).collect();
            let seen = Seen { device: self.device.name.clone(), kind: "wrong".to_owned(), message };
            case.save(&seen, out.join(format!("wrong-{}-{}.json", self.options.seed, summary.wrong)))?;
        }
        Ok(shards.add(candidate.subject.pipeline(), sample)?)
    }

    /// The candidates of successive units, for one worker.
    fn feed(&self) -> Feed<'_> {
        let mut waiting: VecDeque<Candidate> = VecDeque::new();
        Box::new(std::iter::from_fn(move || {
            while waiting.is_empty() {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                let unit = self.plan.unit(number)?;
                // A bug that one pipeline exposes must not end the run.
                let made = catch_unwind(AssertUnwindSafe(|| self.candidates(&unit)));
                waiting = made.unwrap_or_else(|_| {
                    self.panics.fetch_add(1, Ordering::Relaxed);
                    VecDeque::new()
                });
            }
            waiting.pop_front()
        }))
    }

    fn recipe(&self) -> Recipe<'a> {
        let Options { seed, verify, .. } = *self.options;
        Recipe { device: self.device, model: self.model, seed, verify }
    }

    fn candidates(&self, unit: &Unit) -> VecDeque<Candidate> {
        match *unit {
            Unit::Random { number } => self.random_pipeline(number),
            Unit::App { app, round, samples } => self.app_round(&self.apps[app], round, samples),
        }
    }
}

/// Hashes several numbers into one (chained finalizer of SplitMix64).
fn mixed(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |hash, number| {
        let mut z = (hash ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}
