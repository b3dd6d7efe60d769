//! What was collected.

use std::collections::HashSet;

use warploom::tune::measure::Measured;
use warploom::tune::sample::{Origin, Status};

/// Counts of everything.
#[derive(Clone, Default, Debug)]
pub struct Summary {
    /// Different pipelines, apps among them.
    pub pipelines: usize,
    /// Samples, whatever became of them.
    pub samples: u64,
    /// Those that were timed.
    pub measured: u64,
    /// Those that could not be lowered.
    pub not_lowered: u64,
    /// Those that the kernel compiler refused.
    pub not_compiled: u64,
    /// Those that could not be run.
    pub failed: u64,
    /// Those whose exact kernels give another result than the reference.
    pub wrong: u64,
    /// Those whose fast kernels are too far from it.
    pub numeric: u64,
    /// Those that were compared with the reference.
    pub verified: u64,
    /// Those with a kernel that stores registers to memory for want of room.
    pub spilling: u64,
    /// Those that are random schedules.
    pub random: u64,
    /// Candidates left out because they are predicted to take too long.
    pub skipped: u64,
    /// Random pipelines left out because they are too fast, too slow or too large.
    pub rejected: u64,
    /// Pipelines for which the compiler panicked.
    pub panics: u64,
    /// Seconds since the start.
    pub seconds: f64,
    /// Seconds in which the GPU was loading, checking or timing.
    pub machine_seconds: f64,
    /// Seconds of all threads in the kernel compiler.
    pub compile_seconds: f64,
    /// Bytes of all files.
    pub bytes: u64,
    known: HashSet<u128>,
}

impl Summary {
    /// Samples a second.
    pub fn rate(&self) -> f64 {
        self.samples as f64 / self.seconds.max(1e-9)
    }

    pub(super) fn add(&mut self, measured: &Measured) {
        let sample = &measured.sample;
        if self.known.insert(measured.candidate.subject.pipeline().structural_hash()) {
            self.pipelines += 1;
        }
        self.samples += 1;
        self.measured += u64::from(sample.times.is_some());
        self.verified += u64::from(sample.verified);
        self.random += u64::from(sample.origin == Origin::Random);
        self.spilling += u64::from(sample.kernels.iter().any(|kernel| kernel.spill_stores > 0));
        self.machine_seconds += measured.machine_time.as_secs_f64();
        self.compile_seconds += sample.compile_ms / 1e3;
        match sample.status {
            Status::Measured => {}
            Status::NotLowered(_) => self.not_lowered += 1,
            Status::NotCompiled(_) => self.not_compiled += 1,
            Status::Failed(_) | Status::Spilled(_) | Status::TimedOut(_) | Status::Crashed(_) => {
                self.failed += 1
            }
            Status::Wrong(_) => self.wrong += 1,
            Status::Numeric(_) => self.numeric += 1,
        }
    }
}
