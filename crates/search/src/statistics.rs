//! What a search did, and what it says while it runs.

use std::time::Duration;

/// Why an option was refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Refusal {
    /// A rule of schedules forbids it.
    Illegal,
    /// It needs more registers than a thread may have.
    Registers,
    /// It needs larger arrays in registers than [`Limits::register_array_bytes`](crate::Limits::register_array_bytes).
    RegisterArrays,
    /// It needs more of a thread's own memory than [`Limits::local_bytes`](crate::Limits::local_bytes).
    LocalBytes,
    /// It computes a Func too often.
    Recompute,
    /// Its kernel is too long.
    CodeSize,
    /// It computes no less at its place than further outside.
    NoSmaller,
    /// The time was up before it was looked at.
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

/// What a search did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Statistics {
    /// States that were expanded.
    pub decisions: u64,
    /// Options there were.
    pub enumerated: u64,
    /// Options that were never looked at because others stood for them.
    pub sampled_away: u64,
    /// Options that were refused, by reason; see [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
    /// States that came out of options.
    pub states: u64,
    /// Kernels whose features and cost were computed.
    pub kernels: u64,
    /// Kernels whose features and cost were known.
    pub memo_hits: u64,
    /// Schedules that were found to break a rule only as a whole, and dropped.
    pub dropped: u64,
    /// Funcs whose place was frozen.
    pub frozen: u64,
    /// Time in rules and footprints, all threads together.
    pub examining: Duration,
    /// Time in features, all threads together.
    pub featuring: Duration,
    /// Time in the cost model, all threads together.
    pub costing: Duration,
    /// Time of the search from start to end.
    pub elapsed: Duration,
    /// What each pass of the beam search found.
    pub passes: Vec<PassStatistics>,
}

/// What one pass of the beam search did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PassStatistics {
    /// The cost of the best schedule, microseconds.
    pub best: f64,
    /// States that were expanded.
    pub decisions: u64,
    /// States that came out of options.
    pub states: u64,
}

impl Statistics {
    /// Counts a refused option.
    pub(crate) fn refuse(&mut self, reason: Refusal) {
        self.refused[reason as usize] += 1;
    }

    /// How many options were refused for a reason.
    pub fn refused_for(&self, reason: Refusal) -> u64 {
        self.refused[reason as usize]
    }

    /// Adds what another part of the search did.
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
    /// There was nothing left to do.
    Finished,
    /// The time limit. The result is not reproducible.
    TimeLimit,
}

/// What a search says while it runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A pass of the beam search begins.
    PassStarted {
        /// Its number; the pass that only decides between root and inline comes first.
        pass: usize,
        /// Passes there are.
        of: usize,
    },
    /// The beam search has made a decision.
    Decided {
        /// The number of the decision in its pass, from 1.
        decision: usize,
        /// Decisions of the pass.
        of: usize,
        /// The predicted time of the best state, microseconds.
        best: f64,
    },
    /// A pass of the beam search is over.
    PassFinished {
        /// Its number.
        pass: usize,
        /// The predicted time of its best schedule, microseconds.
        best: f64,
    },
    /// One of the batch's searches is over; several run at once.
    SampleFinished {
        /// Its number; 0 is the beam search.
        sample: usize,
        /// The predicted time of its best schedule, microseconds.
        best: f64,
    },
}
