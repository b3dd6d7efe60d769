//! The options of a search and all its thresholds.

use std::time::Duration;

use warploom_plan::Problem;

use crate::fixed::Fixed;

/// How to search.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Seeds all random choices.
    pub seed: u64,
    /// The number of states that the beam search expands at each decision.
    pub beam: usize,
    /// Passes of the beam search. The first one only decides between root and inline.
    pub passes: usize,
    /// The number of searches: one beam search, and greedy searches with random choices.
    pub samples: usize,
    /// Whether options are sampled by the structure of their trees. Otherwise all are evaluated.
    pub sampling: bool,
    /// Whether Funcs that cost next to nothing keep the placement that the first pass gives them.
    pub freezing: bool,
    /// Approximate bytes of the memo of evaluated kernels; 0 disables it.
    pub memo: usize,
    /// Worker threads; 0 uses all cores. The result does not depend on it.
    pub threads: usize,
    /// When to stop with the best result so far. A search that is cut short is not reproducible.
    pub time_limit: Option<Duration>,
    /// How many rewritten forms of the pipeline are searched besides the original one, if it has updates with too little
    /// parallelism.
    pub rewrites: usize,
    /// Decisions that are already made. The search decides the rest. The pipeline is then not rewritten.
    pub fixed: Option<Fixed>,
    /// The same problem with ranges of sizes. Schedules are then legal at all of these sizes, and shared memory at the
    /// largest sizes never halves the number of blocks that fit.
    pub any_size: Option<Problem>,
    /// Thresholds for the options that are considered.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            beam: 32,
            passes: 5,
            samples: 80,
            sampling: true,
            freezing: true,
            memo: 512 << 20,
            threads: 0,
            time_limit: None,
            rewrites: 2,
            fixed: None,
            any_size: None,
            limits: Limits::default(),
        }
    }
}

/// Thresholds of the search. The limits of the device apply in addition.
#[derive(Clone, PartialEq, Debug)]
pub struct Limits {
    /// The largest ratio of evaluations of a Func to evaluations at root.
    pub recompute: f64,
    /// The most expression nodes of a kernel, after unrolling and inlining. A kernel of one stage
    /// may have more.
    pub nodes: f64,
    /// The most bytes per thread of Funcs in registers that lanes do not share.
    pub register_array_bytes: u64,
    /// The most bytes per thread of private memory that cannot be in registers.
    pub local_bytes: f64,
    /// The most unrolled points per thread.
    pub serial_points: i64,
    /// The most serial points along one dimension for a nest in a block.
    pub block_serial: i64,
    /// A thread may hold the full extent of dimensions up to this extent.
    pub small_extent: i64,
    /// The most threads along the vector dimension.
    pub vector_threads: i64,
    /// The most threads along any other dimension.
    pub other_threads: i64,
    /// The most launches of one kernel.
    pub launches: i64,
    /// The desired number of blocks per SM. Kernels with fewer are considered only if none has that
    /// many.
    pub blocks_per_sm: f64,
    /// The largest ratio of waves rounded up to waves. Above it, a tiling is a last resort.
    pub idle_cores: f64,
    /// The largest fraction of idle lanes in the warps of a block. Above it, a tiling is a last
    /// resort.
    pub idle_lanes: f64,
    /// The largest share of the predicted time that all frozen Funcs have together.
    pub frozen_share: f64,
    /// Finished states within this factor of the best one bless the structures that led to them.
    pub blessed: f64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            recompute: 10.0,
            nodes: 20_000.0,
            register_array_bytes: 256,
            local_bytes: 4096.0,
            serial_points: 64,
            block_serial: 16,
            small_extent: 16,
            vector_threads: 256,
            other_threads: 32,
            launches: 4096,
            blocks_per_sm: 2.0,
            idle_cores: 1.2,
            idle_lanes: 0.5,
            frozen_share: 0.05,
            blessed: 1.2,
        }
    }
}
