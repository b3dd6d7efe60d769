//! A summary of collected samples.

use std::collections::HashSet;

use warploom::tune::measure::Measured;
use warploom::tune::sample::{Origin, Status};

/// Counters of a collection run.
#[derive(Clone, Default, Debug)]
pub struct Summary {
    /// Number of distinct pipelines, including apps.
    pub pipelines: usize,
    /// Number of samples, including failed ones.
    pub samples: u64,
    /// Samples that were timed.
    pub measured: u64,
    /// Samples that could not be lowered.
    pub not_lowered: u64,
    /// Samples that the kernel compiler rejected.
    pub not_compiled: u64,
    /// Samples that could not run, timed out or crashed.
    pub failed: u64,
    /// Samples whose checking build differs from the reference.
    pub wrong: u64,
    /// Samples whose timing build exceeds the tolerance.
    pub numeric: u64,
    /// Samples that were compared with the reference.
    pub verified: u64,
    /// Samples with a kernel that spills registers.
    pub spilling: u64,
    /// Samples with random schedules.
    pub random: u64,
    /// Candidates skipped because they are predicted to run, or compile, for too long.
    pub skipped: u64,
    /// Random pipelines rejected because they are too fast, too slow or too large.
    pub rejected: u64,
    /// Units of work that panicked.
    pub panics: u64,
    /// Seconds since the start.
    pub seconds: f64,
    /// Seconds that the GPU spent loading, checking or timing.
    pub machine_seconds: f64,
    /// Seconds spent in the kernel compiler, summed over all threads.
    pub compile_seconds: f64,
    /// Total bytes of all files.
    pub bytes: u64,
    known: HashSet<u128>,
}

impl Summary {
    /// Samples per second.
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
