//! Statistics of a search, and the events that it reports.

use std::time::Duration;

/// Why an option was refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Refusal {
    /// It breaks a rule of schedules, or lowers occupancy at a size of [`Options::any_size`](crate::Options::any_size).
    Illegal,
    /// It needs more registers than a thread may have.
    Registers,
    /// It needs larger arrays in registers than
    /// [`Limits::register_array_bytes`](crate::Limits::register_array_bytes).
    RegisterArrays,
    /// It needs more private memory per thread than
    /// [`Limits::local_bytes`](crate::Limits::local_bytes).
    LocalBytes,
    /// It recomputes a Func too often.
    Recompute,
    /// Its kernel has too many expression nodes.
    CodeSize,
    /// Its footprint is no smaller than at a site further outside.
    NoSmaller,
    /// The time was up before it was evaluated.
    OutOfTime,
}

impl Refusal {
    /// All reasons, in order.
    pub const ALL: [Refusal; 8] = [
        Refusal::Illegal,
        Refusal::Registers,
        Refusal::RegisterArrays,
        Refusal::LocalBytes,
        Refusal::Recompute,
        Refusal::CodeSize,
        Refusal::NoSmaller,
        Refusal::OutOfTime,
    ];

    /// The name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Illegal => "illegal",
            Refusal::Registers => "registers",
            Refusal::RegisterArrays => "register arrays",
            Refusal::LocalBytes => "local bytes",
            Refusal::Recompute => "recompute",
            Refusal::CodeSize => "code size",
            Refusal::NoSmaller => "no smaller",
            Refusal::OutOfTime => "out of time",
        }
    }
}

/// Counters and timings of a search.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Statistics {
    /// The number of expanded states.
    pub decisions: u64,
    /// The number of options listed.
    pub enumerated: u64,
    /// Options that were not evaluated because sampling chose others of their bucket.
    pub sampled_away: u64,
    /// Refused options by reason; see [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
    /// States that resulted from options.
    pub states: u64,
    /// Kernels whose features and cost were computed.
    pub kernels: u64,
    /// Kernels whose features and cost were in the memo.
    pub memo_hits: u64,
    /// Schedules that were dropped because they break a rule as a whole.
    pub dropped: u64,
    /// Funcs whose placement was frozen.
    pub frozen: u64,
    /// Time spent on rules and footprints, summed over all threads.
    pub examining: Duration,
    /// Time spent on features, summed over all threads.
    pub featuring: Duration,
    /// Time spent in the cost model, summed over all threads.
    pub costing: Duration,
    /// Wall-clock time of the search.
    pub elapsed: Duration,
    /// The results of each pass of the beam search.
    pub passes: Vec<PassStatistics>,
}

/// The results of one pass of the beam search.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PassStatistics {
    /// The predicted time of the best schedule, in microseconds.
    pub best: f64,
    /// The number of expanded states.
    pub decisions: u64,
    /// States that resulted from options.
    pub states: u64,
}

impl Statistics {
    /// Counts a refused option.
    pub(crate) fn refuse(&mut self, reason: Refusal) {
        self.refused[reason as usize] += 1;
    }

    /// The number of options refused for a reason.
    pub fn refused_for(&self, reason: Refusal) -> u64 {
        self.refused[reason as usize]
    }

    /// Adds the statistics of another part of the search.
    pub(crate) fn add(&mut self, other: &Statistics) {
        self.decisions += other.decisions;
        self.enumerated += other.enumerated;
        self.sampled_away += other.sampled_away;
        for (sum, more) in self.refused.iter_mut().zip(other.refused) {
            *sum += more;
        }
        self.states += other.states;
        self.kernels += other.kernels;
        self.memo_hits += other.memo_hits;
        self.dropped += other.dropped;
        self.frozen += other.frozen;
        self.examining += other.examining;
        self.featuring += other.featuring;
        self.costing += other.costing;
        self.passes.extend(other.passes.iter().cloned());
    }
}

/// Why a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// The search ran to completion.
    Finished,
    /// The time limit was reached. The result is not reproducible.
    TimeLimit,
}

/// A progress report of a running search.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A search begins: that of the pipeline, or of one of its rewritten forms. Its steps are counted: as many per pass
    /// of the beam search as the beam is wide, and one per further sample.
    SearchStarted {
        /// The steps of the searches before it.
        before: usize,
        /// Its own steps.
        steps: usize,
        /// The steps of all searches, if none is skipped.
        of: usize,
    },
    /// A pass of the beam search begins.
    PassStarted {
        /// The number of the pass. Pass 0 only decides between root and inline.
        pass: usize,
        /// The number of passes.
        of: usize,
    },
    /// The beam search has made a decision.
    Decided {
        /// The number of the decision in its pass, from 1.
        decision: usize,
        /// The number of decisions in the pass.
        of: usize,
        /// The predicted time of the best state, in microseconds.
        best: f64,
    },
    /// A pass of the beam search has finished.
    PassFinished {
        /// The number of the pass, from 0.
        pass: usize,
        /// The predicted time of its best schedule, in microseconds.
        best: f64,
    },
    /// One of the searches of the batch has finished. Several run at once.
    SampleFinished {
        /// The number of the search; 0 is the beam search.
        sample: usize,
        /// The predicted time of its best schedule, in microseconds.
        best: f64,
    },
}
