//! The GPU threads, and the thread that records.
//!
//! Every machine has its own thread. It takes a compiled candidate, judges it, and waits until the
//! result is recorded before it takes the next one. The thread that called `measure` does the
//! recording, so `record` need not be `Send` or `Sync`.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use super::judge::judge;
use super::prepare::Prepared;
use super::{Failure, Machine, MeasureError, Measured, Setup};
use crate::sample::Status;

/// After this many consecutive failures to run, the cause is not the candidates.
pub(super) const FAILURES: u32 = 50;

/// Interval between checks of the deadline while the queue is empty.
const PATIENCE: Duration = Duration::from_millis(500);

/// The result of one candidate on one machine.
struct Judged {
    measured: Measured,
    failure: Option<Failure>,
    /// Signals the machine that the result was recorded, and whether to continue.
    recorded: SyncSender<ControlFlow<()>>,
}

/// Judges candidates until the queue closes, the deadline passes, `record` breaks off, or no
/// machine is left.
pub(super) fn run_all(
    setup: &Setup<'_>,
    prepared: Receiver<Prepared>,
    machines: Vec<&mut dyn Machine>,
    record: &mut dyn FnMut(Measured) -> ControlFlow<()>,
) -> Result<(), MeasureError> {
    let shared = Shared {
        setup,
        prepared: Mutex::new(prepared),
        best: Mutex::new(setup.contest.and_then(|contest| contest.best_us).unwrap_or(f64::INFINITY)),
    };
    let mut recorder = Recorder { left: machines.len(), failures: 0, record };
    thread::scope(|scope| {
        let (sender, judged) = channel();
        for machine in machines {
            let (sender, shared) = (sender.clone(), &shared);
            let run = move || shared.run(machine, &sender);
            Builder::new().spawn_scoped(scope, run).map_err(MeasureError::Threads)?;
        }
        drop(sender);
        judged.iter().try_for_each(|judged| recorder.hear(judged)).or_else(End::into_result)
    })
}

/// State shared by all machine threads.
struct Shared<'a, 'b> {
    setup: &'a Setup<'b>,
    prepared: Mutex<Receiver<Prepared>>,
    /// The shortest time so far, in microseconds.
    best: Mutex<f64>,
}

impl Shared<'_, '_> {
    /// The body of a machine thread.
    fn run(&self, machine: &mut dyn Machine, sender: &Sender<Judged>) {
        let (recorded, heard) = sync_channel(1);
        while let Some(prepared) = self.next() {
            let best = *self.best.lock().unwrap_or_else(PoisonError::into_inner);
            let (measured, failure) = judge(self.setup, prepared, machine, best);
            if let (Status::Measured, Some(times)) = (&measured.sample.status, measured.sample.times) {
                let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
                *best = best.min(times.min);
            }
            let is_lost = matches!(failure, Some(Failure::Lost(_)));
            let judged = Judged { measured, failure, recorded: recorded.clone() };
            let goes_on = sender.send(judged).is_ok() && heard.recv() == Ok(ControlFlow::Continue(()));
            if is_lost || !goes_on {
                return;
            }
        }
    }

    /// The next candidate; `None` if the queue is closed or it is time to stop.
    fn next(&self) -> Option<Prepared> {
        loop {
            let setup = self.setup;
            let left = setup.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) || setup.is_stopped() {
                return None;
            }
            // Another thread may hold the lock while it waits for a candidate; waiting here is no
            // worse.
            let prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
            match prepared.recv_timeout(left.unwrap_or(PATIENCE).min(PATIENCE)) {
                Ok(prepared) => return Some(prepared),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

/// Why recording stopped.
enum End {
    Asked,
    Failed(MeasureError),
}

impl End {
    fn into_result(self) -> Result<(), MeasureError> {
        match self {
            End::Asked => Ok(()),
            End::Failed(error) => Err(error),
        }
    }
}

struct Recorder<'r> {
    /// Number of machines that are still usable.
    left: usize,
    /// Consecutive failures.
    failures: u32,
    record: &'r mut dyn FnMut(Measured) -> ControlFlow<()>,
}

impl Recorder<'_> {
    fn hear(&mut self, judged: Judged) -> Result<(), End> {
        let Judged { measured, failure, recorded } = judged;
        let result = self.keep(measured, failure);
        let flow = if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        // The send fails only if the machine thread has panicked.
        let _ = recorded.send(flow);
        result
    }

    fn keep(&mut self, measured: Measured, failure: Option<Failure>) -> Result<(), End> {
        if let Some(Failure::Lost(why)) = failure {
            // The candidate is not to blame, so nothing is recorded for it.
            self.left -= 1;
            tracing::warn!("{why}; {} left to measure with", self.left);
            return if self.left > 0 { Ok(()) } else { Err(End::Failed(MeasureError::Lost(why))) };
        }
        let failed = match &measured.sample.status {
            Status::Failed(error) | Status::TimedOut(error) | Status::Crashed(error) => Some(error.clone()),
            _ => None,
        };
        let flow = (self.record)(measured);
        self.failures = if failed.is_some() { self.failures + 1 } else { 0 };
        if let Some(Failure::Fault(fault)) = failure {
            return Err(End::Failed(MeasureError::Fault(fault)));
        }
        if let (Some(error), FAILURES..) = (failed, self.failures) {
            return Err(End::Failed(MeasureError::Failures(error)));
        }
        if flow.is_break() { Err(End::Asked) } else { Ok(()) }
    }
}
