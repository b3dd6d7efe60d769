//! Measures many candidates: many threads compile, and each GPU times one candidate at a time.
//!
//! A [`Candidate`] is a schedule of a [`Subject`]; a subject is a pipeline at fixed sizes, with its
//! data. Each worker thread takes candidates from its own [`Feed`], lowers and compiles them, and
//! hands them to a thread that owns a GPU, a [`Machine`]. Every candidate yields a [`Sample`],
//! whether it succeeds or fails. Compilation overlaps with the timing of other candidates. The
//! queue between the two is short, which bounds memory use.
//!
//! A candidate may have [`Check`]s: the same pipeline at sizes for which the expected outputs are
//! known. Its schedule is then also built for those sizes, and the outputs are compared.
//!
//! Processes that do only one of the two call [`build`] or [`run`] themselves: a [`Built`] schedule can be stored and
//! sent.
//!
//! Candidates compile and run either in this process ([`compile_here`], [`GpuMachine`]) or in
//! separate processes that may crash or be killed ([`worker`](crate::worker)).

mod at_once;
mod check;
mod failure;
mod gpu;
mod judge;
mod machines;
mod parts;
mod prepare;
mod subject;

use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use warploom_runtime::{Driver, Gpu, TimingOptions};
use warploom_schedule::Schedule;
use warploom_target::{Device, Program};

use crate::sample::{Origin, Sample, Times};
pub(crate) use at_once::{at_once, both_builds};
use machines::{FAILURES, run_all};
use prepare::{Prepared, prepare};

pub(crate) use judge::compare_builds;
pub(crate) use parts::by_parts;

pub use check::Check;
pub use failure::Failure;
pub use gpu::GpuMachine;
pub use judge::run;
pub use prepare::{Built, build, versions};
pub use subject::Subject;
pub use warploom_runtime::Compiled;

/// Stack size of worker threads. Lowering and compiling recurse as deeply as expressions nest.
const STACK_BYTES: usize = 64 << 20;

/// Compiled candidates that may wait for a GPU, per worker thread.
const WAITING: usize = 2;

/// A schedule to measure.
#[derive(Clone)]
pub struct Candidate {
    /// The pipeline, sizes and data that it runs on.
    pub subject: Arc<Subject>,
    /// The schedule to build, check and time.
    pub schedule: Schedule,
    /// How the schedule was found; stored in the sample.
    pub origin: Origin,
    /// Predicted time, in microseconds; `None` if no model predicted it.
    pub predicted_us: Option<f64>,
    /// Outputs are compared at the size of each of these checks; a check is skipped if the schedule
    /// is not legal at its size.
    pub checks: Vec<Arc<Check>>,
}

/// The source of a worker's candidates; each worker iterates its own feed in its own thread.
pub type Feed<'a> = Box<dyn Iterator<Item = Candidate> + Send + 'a>;

/// A function that compiles a program. Many threads call it concurrently.
pub type Compile<'a> = &'a (dyn Fn(&Program) -> Result<Compiled, Failure> + Sync);

/// Compiles in this process, bypassing the [`cache`](crate::cache); that module explains why.
///
/// # Errors
/// If the compiler is missing or rejects the code.
pub fn compile_here(program: &Program, device: &Device) -> Result<Compiled, Failure> {
    by_parts(program, |program| Ok(Gpu::compile(program, device)?))
}

/// The measured time of a program.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Timed {
    /// Shortest and median time.
    pub times: Times,
    /// Interquartile range of the batch times, divided by their median.
    pub spread: f64,
}

/// A device that runs one program at a time.
pub trait Machine: Send {
    /// Times whole runs.
    ///
    /// # Errors
    /// If the program cannot be loaded or run.
    fn time(
        &mut self,
        subject: &Arc<Subject>,
        program: &Program,
        timing: &TimingOptions,
    ) -> Result<Timed, Failure>;

    /// Runs once in poisoned memory, so that the outputs contain only what the program wrote.
    /// Returns the bytes of each output; the values of a tuple are separate, consecutive entries.
    ///
    /// # Errors
    /// If the program cannot be loaded or run.
    fn run(&mut self, subject: &Arc<Subject>, program: &Program) -> Result<Vec<Vec<u8>>, Failure>;

    /// Restores the inputs. Called after a program gave wrong results, because it may have written
    /// anywhere.
    fn restore(&mut self);
}

/// Settings shared by all candidates of one call of `measure()`.
pub struct Setup<'a> {
    /// The device that kernels are built for.
    pub device: &'a Device,
    /// Compiles the kernels.
    pub compile: Compile<'a>,
    /// How programs are timed.
    pub timing: TimingOptions,
    /// Versions recorded in every sample; see [`versions`].
    pub versions: Vec<String>,
    /// No machine takes a candidate after this instant; `None` means no time limit.
    pub deadline: Option<Instant>,
    /// When it becomes true, measuring stops after the current candidate.
    pub stop: Option<&'a AtomicBool>,
    /// Whether candidates whose kernels spill registers are recorded without being run.
    pub skip_spilling: bool,
    /// Set if candidates compete for the shortest time.
    pub contest: Option<Contest>,
}

/// Candidates compete: those much slower than the best are timed only briefly. For runs over one
/// subject.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contest {
    /// The shortest time known before this run, in microseconds.
    pub best_us: Option<f64>,
}

impl<'a> Setup<'a> {
    /// A setup without deadline, stop flag, spill filter or contest.
    pub fn new(device: &'a Device, compile: Compile<'a>, timing: TimingOptions) -> Setup<'a> {
        let versions = versions();
        Setup {
            device,
            compile,
            timing,
            versions,
            deadline: None,
            stop: None,
            skip_spilling: false,
            contest: None,
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// The result of a candidate.
pub struct Measured {
    /// The candidate that was measured.
    pub candidate: Candidate,
    /// Status, times and resource usage, as recorded.
    pub sample: Sample,
    /// Interquartile range of the batch times, divided by their median; 0 if it was not timed.
    pub spread: f64,
    /// Time that a machine spent checking and timing it.
    pub machine_time: Duration,
}

/// Why `measure()` stopped early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A kernel corrupted the GPU context of this process. Its sample was recorded.
    #[error("{0}; this process can no longer use the GPU")]
    Fault(String),
    /// Too many candidates in a row failed to run.
    #[error("{FAILURES} candidates in a row could not be run; the last: {0}")]
    Failures(String),
    /// No compiler process or no machine is left.
    #[error("{0}")]
    Lost(String),
    /// The worker threads could not be started.
    #[error("cannot start threads: {0}; use fewer")]
    Threads(io::Error),
}

/// Measures the candidates of all feeds, with one worker thread per feed and one thread per
/// machine. It returns when the feeds are exhausted, the deadline passes, `record` breaks off, or
/// no machine is left. `record` receives every sample. A machine takes its next candidate only
/// after its last one was recorded.
///
/// # Errors
/// If a kernel faults in this process, if nothing runs any more, or if threads cannot be started.
pub fn measure(
    setup: &Setup<'_>,
    feeds: Vec<Feed<'_>>,
    machines: Vec<&mut dyn Machine>,
    record: &mut dyn FnMut(Measured) -> ControlFlow<()>,
) -> Result<(), MeasureError> {
    let stop = AtomicBool::new(false);
    let (sender, receiver) = sync_channel(WAITING * feeds.len().max(1));
    std::thread::scope(|scope| {
        let mut started = Ok(());
        for feed in feeds {
            let (sender, stop) = (sender.clone(), &stop);
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let spawned = thread.spawn_scoped(scope, move || work(setup, feed, &sender, stop));
            started = started.and(spawned.map(|_| ()).map_err(MeasureError::Threads));
        }
        drop(sender);
        // This drops the receiver, so workers that are blocked in `send` return with an error.
        let measured = started.and_then(|()| run_all(setup, receiver, machines, record));
        stop.store(true, Ordering::Relaxed);
        measured
    })
}

/// The body of a worker thread.
fn work(setup: &Setup<'_>, mut feed: Feed<'_>, sender: &SyncSender<Prepared>, stop: &AtomicBool) {
    let next = |feed: &mut Feed<'_>| catch_unwind(AssertUnwindSafe(|| feed.next())).unwrap_or_default();
    while !stop.load(Ordering::Relaxed) && !setup.is_stopped() {
        let Some(candidate) = next(&mut feed) else { break };
        if sender.send(prepare(setup, candidate)).is_err() {
            break;
        }
    }
}
