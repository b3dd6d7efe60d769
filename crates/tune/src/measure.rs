//! Measuring many candidates: compiled by many threads, timed one at a time.
//!
//! A [`Candidate`] is a schedule of a [`Subject`], which is a pipeline at some sizes with its data. Every worker thread
//! takes candidates from a [`Feed`] of its own, lowers and compiles them, and hands them to the thread that called
//! [`measure`], which owns the GPU: a [`Machine`]. What became of each is a [`Sample`], whatever that was. What a worker
//! does for a candidate overlaps with the timing of others, and few candidates wait between the two, so that memory
//! stays small.
//!
//! A candidate may come with a [`Check`]: the same pipeline at a size at which the reference is known. Its kernels are
//! then also built for that size, and compared.

mod gpu;
mod judge;
mod prepare;
mod subject;

use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use thiserror::Error;
use warploom_interp::buffer::Buffer;
use warploom_interp::compare::Tolerance;
use warploom_runtime::nvrtc::Image;
use warploom_schedule::schedule::Schedule;
use warploom_target::{Device, Program};

use crate::sample::{Origin, Sample, Status, Times};
use judge::judge;
use prepare::{Prepared, prepare};

pub use gpu::GpuMachine;
pub use prepare::versions;
pub use subject::Subject;

/// Lowering and compiling recurse as deeply as expressions are nested.
const STACK_BYTES: usize = 64 << 20;

/// Candidates that wait for the GPU, for each worker.
const WAITING: usize = 2;

/// After as many candidates in a row that could not be run, something else is wrong.
const FAILURES: u32 = 50;

/// How often to look whether the time is up while nothing comes.
const PATIENCE: Duration = Duration::from_millis(500);

/// A schedule to be measured.
#[derive(Clone)]
pub struct Candidate {
    /// Of what.
    pub subject: Arc<Subject>,
    /// The schedule.
    pub schedule: Schedule,
    /// Where it came from.
    pub origin: Origin,
    /// What to compare it with, if it is to be compared.
    pub check: Option<Arc<Check>>,
}

/// A size at which the right results are known.
pub struct Check {
    /// The same pipeline, smaller.
    pub subject: Arc<Subject>,
    /// What the reference evaluator makes of it.
    pub expected: Vec<Buffer>,
    /// How far kernels that are built for speed may be off.
    pub tolerance: Tolerance,
}

/// Where a worker gets its candidates from, in its own thread.
pub type Feed<'a> = Box<dyn Iterator<Item = Candidate> + Send + 'a>;

/// Compiles a program; called by many threads at once.
pub type Compile<'a> =
    &'a (dyn Fn(&Program) -> Result<(Program, Option<Image>), warploom_runtime::Error> + Sync);

/// What runs programs, one at a time.
pub trait Machine {
    /// Times whole runs.
    ///
    /// # Errors
    /// If the program cannot be loaded or run.
    fn time(&mut self, subject: &Arc<Subject>, program: &Program) -> Result<Times, warploom_runtime::Error>;

    /// Runs once; the bytes of each output, a tuple's values one after the other.
    ///
    /// # Errors
    /// If the program cannot be loaded or run.
    fn run(
        &mut self,
        subject: &Arc<Subject>,
        program: &Program,
    ) -> Result<Vec<Vec<u8>>, warploom_runtime::Error>;
}

/// What all candidates have in common.
pub struct Setup<'a> {
    /// The device that kernels are made for.
    pub device: &'a Device,
    /// What compiles them.
    pub compile: Compile<'a>,
    /// Versions that are kept with every sample; see [`versions`].
    pub versions: Vec<String>,
    /// When to stop.
    pub deadline: Option<Instant>,
}

/// What became of a candidate.
pub struct Measured {
    /// The candidate.
    pub candidate: Candidate,
    /// What is known of it now.
    pub sample: Sample,
    /// How long the thread with the GPU was busy with it.
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
    /// The worker threads could not be started.
    #[error("cannot start threads: {0}; use fewer")]
    Threads(io::Error),
}

/// Measures all candidates of some feeds, with one worker thread a feed, until they are at their ends, the time is up
/// or `record`, which is given every sample, breaks off.
///
/// # Errors
/// If a kernel faults, or threads cannot be started.
pub fn measure(
    setup: &Setup<'_>,
    feeds: Vec<Feed<'_>>,
    machine: &mut dyn Machine,
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
        let measured = started.and_then(|()| run(setup, &receiver, machine, record));
        stop.store(true, Ordering::Relaxed);
        // Whoever waits to hand something over finds that nobody takes it.
        drop(receiver);
        measured
    })
}

/// What a worker does.
fn work(setup: &Setup<'_>, mut feed: Feed<'_>, sender: &SyncSender<Prepared>, stop: &AtomicBool) {
    let next = |feed: &mut Feed<'_>| catch_unwind(AssertUnwindSafe(|| feed.next())).unwrap_or_default();
    while !stop.load(Ordering::Relaxed) {
        let Some(candidate) = next(&mut feed) else { break };
        if sender.send(prepare(setup, candidate)).is_err() {
            break;
        }
    }
}

/// What the thread with the GPU does.
fn run(
    setup: &Setup<'_>,
    receiver: &Receiver<Prepared>,
    machine: &mut dyn Machine,
    record: &mut dyn FnMut(Measured) -> ControlFlow<()>,
) -> Result<(), MeasureError> {
    let mut failures = 0;
    loop {
        let left = setup.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(());
        }
        let prepared = match receiver.recv_timeout(left.unwrap_or(PATIENCE).min(PATIENCE)) {
            Ok(prepared) => prepared,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let (measured, fault) = judge(setup, prepared, machine);
        let failed = match &measured.sample.status {
            Status::Failed(error) => Some(error.clone()),
            _ => None,
        };
        let flow = record(measured);
        failures = if failed.is_some() { failures + 1 } else { 0 };
        if let Some(fault) = fault {
            return Err(MeasureError::Fault(fault));
        }
        if let (Some(error), FAILURES..) = (failed, failures) {
            return Err(MeasureError::Failures(error));
        }
        if flow.is_break() {
            return Ok(());
        }
    }
}
