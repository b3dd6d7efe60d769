//! What a search is asked to do, and every threshold it uses.

use std::time::Duration;

use crate::fixed::Fixed;

/// How to search.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Decides all random choices.
    pub seed: u64,
    /// States that a beam search expands at each decision.
    pub beam: usize,
    /// Passes of the beam search, the first of which only decides between root and inline.
    pub passes: usize,
    /// Searches in all: one beam search, the rest greedy with random choices.
    pub samples: usize,
    /// Whether options are sampled by the structure of their trees; otherwise all are evaluated.
    pub sampling: bool,
    /// Whether Funcs that cost next to nothing keep the place that the first pass gives them.
    pub freezing: bool,
    /// Bytes, roughly, in which evaluated kernels are remembered; 0 remembers none.
    pub memo: usize,
    /// Worker threads; 0 takes as many as there are cores. The result is the same for any number.
    pub threads: usize,
    /// When to stop with what is there. A search that it cuts short is not reproducible.
    pub time_limit: Option<Duration>,
    /// Decisions that are made already; what they leave open is searched.
    pub fixed: Option<Fixed>,
    /// Thresholds.
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
            fixed: None,
            limits: Limits::default(),
        }
    }
}

/// Where the search draws its lines. Limits of the device come on top.
#[derive(Clone, PartialEq, Debug)]
pub struct Limits {
    /// How many times as often a Func may be computed as at root.
    pub recompute: f64,
    /// Nodes of a kernel's text, unrolled loops and inlined Funcs written out. A kernel of one stage may have more.
    pub nodes: f64,
    /// Bytes of a thread's Funcs in registers, together.
    pub register_array_bytes: u64,
    /// Bytes of a thread's own memory that cannot be registers.
    pub local_bytes: f64,
    /// Points of a thread that are written out one after the other.
    pub serial_points: i64,
    /// Serial points of a nest in a block along one dimension.
    pub block_serial: i64,
    /// Dimensions up to this extent may lie in a thread whole.
    pub small_extent: i64,
    /// Most threads along the vector dimension.
    pub vector_threads: i64,
    /// Most threads along any other.
    pub other_threads: i64,
    /// Launches of one kernel.
    pub launches: i64,
    /// Blocks that a kernel should have for each SM; kernels with fewer are considered only if none has as many.
    pub blocks_per_sm: f64,
    /// Waves of blocks rounded up, as a multiple of the waves: above this, a tiling is a last resort.
    pub idle_cores: f64,
    /// Idle lanes of active warps as a share of a block's most threads: above this, a tiling is a last resort.
    pub idle_lanes: f64,
    /// The share of the predicted time that all frozen Funcs together have, at most.
    pub frozen_share: f64,
    /// Finished states within this factor of the best bless the structures that led to them.
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
