//! What kind of pipelines to make.

use std::ops::RangeInclusive;

/// What [`random_pipeline`](crate::random_pipeline) is asked for.
///
/// ```
/// use warploom_randpipe::{Options, Scale};
/// let options = Options { scale: Scale::Small, ..Options::default() };
/// assert!(options.stages.contains(&8));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// How many stages are drawn. A stage may make several Funcs; inputs are not counted,
    /// and there is at least one stage.
    pub stages: RangeInclusive<usize>,
    /// How large images are.
    pub scale: Scale,
}

impl Default for Options {
    fn default() -> Options {
        Options { stages: 2..=12, scale: Scale::Tiny }
    }
}

/// How large images are, and so what can run them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scale {
    /// Extents up to about 20, often odd, and at most 2,000 points an output: for simulators.
    Tiny,
    /// Extents up to about 64: for the reference evaluator.
    Small,
    /// Extents around 512: for GPUs, and for the reference evaluator with patience.
    Medium,
    /// Outputs of about 1 to 4 million points: for measurements.
    Benchmark,
}

impl Scale {
    /// Every scale, the smallest first.
    pub const ALL: [Scale; 4] = [Scale::Tiny, Scale::Small, Scale::Medium, Scale::Benchmark];

    /// Points that all stages together may visit when each Func is computed once over its region.
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
    /// Smallest and largest extent of a picture's width or height.
    pub extents: (i64, i64),
    /// Most points of an image inside.
    pub image: i64,
    /// Fewest and most points of an output. The first is a wish: an output may be a single number.
    pub output: (i64, i64),
    /// Most points that all stages visit together.
    pub work: u64,
    /// Most bytes of all inputs and Funcs together.
    pub memory: u64,
    /// Most steps that can only be done one after the other.
    pub serial: i64,
    /// How likely an elementary function is where one would fit.
    pub functions: f64,
}
