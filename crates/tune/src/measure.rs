//! Measuring many candidates: compiled by many threads, timed one at a time on each GPU.
//!
//! A [`Candidate`] is a schedule of a [`Subject`], which is a pipeline at some sizes with its data. Every worker thread
//! takes candidates from a [`Feed`] of its own, lowers and compiles them, and hands them to a thread that owns a GPU: a
//! [`Machine`]. What became of each is a [`Sample`], whatever that was. What a worker
//! does for a candidate overlaps with the timing of others, and few candidates wait between the two, so that memory
//! stays small.
//!
//! A candidate may come with [`Check`]s: the same pipeline at sizes at which the right results are known. Its kernels are
//! then also built for those sizes, and compared.
//!
//! Compiling and running may be done by this process ([`compile_here`], [`GpuMachine`]) or by others that it may lose
//! ([`worker`](crate::worker)).

mod at_once;
mod failure;
mod gpu;
mod judge;
mod machines;
mod parts;
mod prepare;
mod subject;

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use warploom_interp::expected::Expected;
use warploom_runtime::TimingOptions;
use warploom_runtime::nvrtc::{self, Arch, Resources};
use warploom_schedule::schedule::Schedule;
use warploom_target::{Device, Program};

use crate::sample::{Origin, Sample, Times};
pub(crate) use at_once::{at_once, both_builds};
use machines::{FAILURES, run_all};
use prepare::{Prepared, prepare};

pub(crate) use judge::compare_builds;
pub(crate) use parts::by_parts;

pub use failure::Failure;
pub use gpu::GpuMachine;
pub use prepare::versions;
pub use subject::Subject;

/// Lowering and compiling recurse as deeply as expressions are nested.
const STACK_BYTES: usize = 64 << 20;

/// Candidates that wait for the GPU, for each worker.
const WAITING: usize = 2;

/// A schedule to be measured.
#[derive(Clone)]
pub struct Candidate {
    /// Of what.
    pub subject: Arc<Subject>,
    /// The schedule.
    pub schedule: Schedule,
    /// Where it came from.
    pub origin: Origin,
    /// How long it is predicted to take, microseconds.
    pub predicted_us: Option<f64>,
    /// What to compare it with.
    pub checks: Vec<Arc<Check>>,
}

/// A size at which the right results are known.
pub struct Check {
    /// The same pipeline, mostly smaller.
    pub subject: Arc<Subject>,
    /// What comes out of it, and how far kernels that are built for speed may be off.
    pub expected: Expected,
}

/// Where a worker gets its candidates from, in its own thread.
pub type Feed<'a> = Box<dyn Iterator<Item = Candidate> + Send + 'a>;

/// A program with the code to be loaded, and what is known of that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Compiled {
    /// The program.
    pub program: Program,
    /// What each kernel takes, by entry name, if the code is machine code.
    pub kernels: BTreeMap<String, Resources>,
    /// How long it took to compile, whenever that was.
    pub time: Duration,
}

/// Compiles a program; called by many threads at once.
pub type Compile<'a> = &'a (dyn Fn(&Program) -> Result<Compiled, Failure> + Sync);

/// Compiles in this process. Nothing is taken from a [`cache`](crate::cache) or goes there, which says why.
///
/// # Errors
/// If NVRTC is missing or refuses the code.
pub fn compile_here(program: &Program, arch: Arch) -> Result<Compiled, Failure> {
    by_parts(program, |program| {
        let (program, image) = nvrtc::compile_program(program, arch)?;
        let (kernels, time) = image.map(|image| (image.kernels, image.time)).unwrap_or_default();
        Ok(Compiled { program, kernels, time })
    })
}

/// How long a program takes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Timed {
    /// The times.
    pub times: Times,
    /// Distance between the quartiles of the batches, over the median.
    pub spread: f64,
}

/// What runs programs, one at a time.
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

    /// Runs from memory that is poisoned, and only results that are the program's own; the bytes of each output, a tuple's
    /// values one after the other.
    ///
    /// # Errors
    /// If the program cannot be loaded or run.
    fn run(&mut self, subject: &Arc<Subject>, program: &Program) -> Result<Vec<Vec<u8>>, Failure>;

    /// Brings the inputs back as they were. Called after a program that gave wrong results: it may have written anywhere.
    fn restore(&mut self);
}

/// What all candidates have in common.
pub struct Setup<'a> {
    /// The device that kernels are made for.
    pub device: &'a Device,
    /// What compiles them.
    pub compile: Compile<'a>,
    /// How they are timed.
    pub timing: TimingOptions,
    /// Versions that are kept with every sample; see [`versions`].
    pub versions: Vec<String>,
    /// When to stop.
    pub deadline: Option<Instant>,
    /// Stops after the candidate at hand when it becomes true.
    pub stop: Option<&'a AtomicBool>,
    /// Whether candidates with kernels that spill registers are not run.
    pub skip_spilling: bool,
    /// Whether candidates compete.
    pub contest: Option<Contest>,
}

/// Candidates that compete: those much slower than the best are not timed at length. For runs over one subject.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contest {
    /// The best that is known before, microseconds.
    pub best_us: Option<f64>,
}

impl<'a> Setup<'a> {
    /// For a device, with what compiles for it; without limits.
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

/// What became of a candidate.
pub struct Measured {
    /// The candidate.
    pub candidate: Candidate,
    /// What is known of it now.
    pub sample: Sample,
    /// Distance between the quartiles of the timed batches, over the median.
    pub spread: f64,
    /// How long a machine was busy with it.
    pub machine_time: Duration,
}

/// Why measuring ended early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A kernel broke what this process has of the GPU. Its sample was recorded.
    #[error("{0}; this process can use the GPU no more")]
    Fault(String),
    /// Nothing runs any more.
    #[error("{FAILURES} candidates in a row could not be run; the last: {0}")]
    Failures(String),
    /// There is nothing left to compile or run with.
    #[error("{0}")]
    Lost(String),
    /// The worker threads could not be started.
    #[error("cannot start threads: {0}; use fewer")]
    Threads(io::Error),
}

/// Measures all candidates of some feeds, with one worker thread a feed and one thread a machine, until they are at their
/// ends, the time is up, `record`, which is given every sample, breaks off or no machine is left. A machine takes the next
/// candidate when its last is recorded.
///
/// # Errors
/// If a kernel faults in this process, nothing runs any more, or threads cannot be started.
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
        // Whoever waits to hand something over when this ends finds that nobody takes it.
        let measured = started.and_then(|()| run_all(setup, receiver, machines, record));
        stop.store(true, Ordering::Relaxed);
        measured
    })
}

/// What a worker does.
fn work(setup: &Setup<'_>, mut feed: Feed<'_>, sender: &SyncSender<Prepared>, stop: &AtomicBool) {
    let next = |feed: &mut Feed<'_>| catch_unwind(AssertUnwindSafe(|| feed.next())).unwrap_or_default();
    while !stop.load(Ordering::Relaxed) && !setup.is_stopped() {
        let Some(candidate) = next(&mut feed) else { break };
        if sender.send(prepare(setup, candidate)).is_err() {
            break;
        }
    }
}
