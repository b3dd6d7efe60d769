//! Options for generated pipelines.

use std::ops::RangeInclusive;

/// Options of [`random_pipeline`](crate::random_pipeline).
///
/// ```
/// use warploom_randpipe::{Options, Scale};
/// let options = Options { scale: Scale::Small, ..Options::default() };
/// assert!(options.stages.contains(&8));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The number of stages to draw; at least one is made. A stage may make several Funcs. Inputs
    /// are not counted.
    pub stages: RangeInclusive<usize>,
    /// The size of the images.
    pub scale: Scale,
}

impl Default for Options {
    fn default() -> Options {
        Options { stages: 2..=12, scale: Scale::Tiny }
    }
}

/// The size of the images, chosen for the tool that runs them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scale {
    /// Extents up to about 20, often odd, and at most 2,000 points per output: for simulators.
    Tiny,
    /// Extents up to about 64: for the reference evaluator.
    Small,
    /// Extents around 512: for GPUs, and for slow runs of the reference evaluator.
    Medium,
    /// Outputs of about 1 to 4 million points: for performance measurements.
    Benchmark,
}

impl Scale {
    /// Every scale, smallest first.
    pub const ALL: [Scale; 4] = [Scale::Tiny, Scale::Small, Scale::Medium, Scale::Benchmark];

    /// The maximum number of points that all stages together visit when each Func is computed once
    /// over its region.
    pub const fn max_work(self) -> u64 {
        self.limits().work
    }

    pub(crate) const fn limits(self) -> Limits {
        match self {
            Scale::Tiny => Limits {
                extents: (1, 20),
                image: 4_000,
                output: (1, 2_000),
                work: 400_000,
                memory: 4 << 20,
                serial: 4_000,
                functions: 1.0,
            },
            Scale::Small => Limits {
                extents: (2, 64),
                image: 20_000,
                output: (1, 16_384),
                work: 8_000_000,
                memory: 64 << 20,
                serial: 20_000,
                functions: 0.8,
            },
            Scale::Medium => Limits {
                extents: (300, 540),
                image: 1 << 20,
                output: (1 << 14, 1 << 20),
                work: 1 << 30,
                memory: 1 << 30,
                serial: 20_000,
                functions: 0.4,
            },
            Scale::Benchmark => Limits {
                extents: (1000, 2100),
                image: 1 << 24,
                output: (1 << 20, 1 << 22),
                work: 1 << 34,
                memory: 4 << 30,
                serial: 20_000,
                functions: 0.2,
            },
        }
    }
}

/// The numbers behind a [`Scale`].
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// The smallest and largest width or height of an image.
    pub extents: (i64, i64),
    /// The maximum number of points of an intermediate image.
    pub image: i64,
    /// The minimum and maximum number of points of an output. The minimum is only a target: an
    /// output may be a single number.
    pub output: (i64, i64),
    /// The maximum number of points that all stages together visit.
    pub work: u64,
    /// The maximum total size of all inputs and Funcs, in bytes.
    pub memory: u64,
    /// The maximum number of steps that must run sequentially.
    pub serial: i64,
    /// The probability of an elementary function where one fits.
    pub functions: f64,
}
