//! The kinds of stages, and the transition probabilities between them.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal $operands:literal;)*) => {
        /// The kind of stage that made a Func.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum StageKind {
            $($(#[$doc])* $kind,)*
        }

        impl StageKind {
            /// Every kind, in declaration order.
            pub const ALL: &[StageKind] = &[$(StageKind::$kind),*];

            /// The name. The names of the stage's Funcs start with it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(StageKind::$kind => $name,)*
                }
            }

            /// The number of images that the stage reads.
            pub(crate) const fn operands(self) -> usize {
                match self {
                    $(StageKind::$kind => $operands,)*
                }
            }
        }
    };
}

kinds! {
    /// An input, plain or with a boundary condition.
    Source "source" 0;
    /// A function of coordinates alone: noise, ramps, waves.
    Pattern "pattern" 0;
    /// A random expression over neighbours along one dimension.
    Stencil "stencil" 1;
    /// A convolution along one dimension, as an update.
    Conv1d "conv1d" 1;
    /// A convolution along one dimension, as an inline sum.
    Conv1dInline "conv1d_inline" 1;
    /// A convolution over two dimensions and channels: unrolled, as an update or inline; possibly
    /// strided.
    Conv2d "conv2d" 1;
    /// The mean or maximum over windows, possibly strided.
    Pool "pool" 1;
    /// A rectifier or a smooth activation, possibly with a cast to a narrower type.
    Activation "activation" 1;
    /// A boundary condition around a Func.
    Pad "pad" 1;
    /// Upsampling along one dimension, nearest or linear.
    Upsample "upsample" 1;
    /// Downsampling along one dimension, by picking or averaging points.
    Downsample "downsample" 1;
    /// Channel mixing: every channel from all channels, unrolled.
    Mix "mix" 1;
    /// Channel mixing: every channel from all channels, as an update.
    MixUpdate "mix_update" 1;
    /// Channel mixing: every channel from all channels, as an inline sum.
    MixInline "mix_inline" 1;
    /// A scan along one dimension: forward, backward, or both.
    Scan "scan" 1;
    /// A transposition of two dimensions.
    Transpose "transpose" 1;
    /// An elementary function of each value.
    Unary "unary" 1;
    /// A histogram per tile.
    TileHistogram "tile_histogram" 1;
    /// An image whose last index is a value of another image.
    Slice "slice" 2;
    /// A random expression of two images.
    Binary "binary" 2;
    /// The position of the smallest or largest value in a window.
    Extreme "extreme" 1;
    /// The value of another image where this one is smallest or largest.
    Match "match" 2;
    /// A Func with several values, whose updates use all of them.
    Tuple "tuple" 1;
    /// A reduction over part of a domain: a triangle, a disc, a pattern, or the points with large
    /// values.
    Filtered "filtered" 1;
    /// A recursive filter in one or both directions. Its start is undefined; only its first row is
    /// initialised.
    Recursive "recursive" 1;
    /// An integral image, and box means computed from it.
    Integral "integral" 1;
    /// An update that writes at computed indices: mirrored, strided, overlapping, or
    /// data-dependent.
    Scatter "scatter" 1;
    /// A histogram, its cumulative sum and a lookup in it.
    Equalize "equalize" 1;
    /// A pyramid of levels of half the size, and the way back up.
    Pyramid "pyramid" 1;
    /// Points moved between two dimensions: `x * 3 + c`, or `x / 3` and `x % 3`.
    Interleave "interleave" 1;
    /// Points of two images, alternating.
    Zip "zip" 2;
    /// Channels arranged as a sensor mosaic, and demosaicked again.
    Mosaic "mosaic" 1;
    /// The maximum over 2^t neighbours from the maxima over 2^(t-1), for every t.
    LogSteps "log_steps" 1;
    /// A matrix product.
    MatMul "mat_mul" 2;
    /// The largest or smallest value of a window, as an inline reduction.
    Window "window" 1;
    /// One number from a whole image or per row, and the image relative to it.
    Total "total" 1;
    /// A reduction of long rows or whole images with any operator, alone or with the image relative
    /// to its result.
    Long "long" 1;
    /// Several reductions over one domain.
    Siblings "siblings" 1;
    /// A softmax along one dimension.
    Softmax "softmax" 1;
    /// A histogram of a whole image: counts or sums of values, possibly of some points only.
    Histogram "histogram" 1;
    /// One dimension more or less: a slice, a diagonal, shifted copies.
    Reshape "reshape" 1;
    /// An image read at data-dependent positions.
    Gather "gather" 2;
    /// A curve as a lookup table, indexed by an image's values.
    Curve "curve" 1;
    /// A comparison, and a select that uses it.
    Mask "mask" 2;
    /// Two stencils of the same image, combined.
    Diamond "diamond" 1;
    /// Constant tables: values looked up, a repeated pattern, or the offsets and weights of a sum.
    Constants "constants" 1;
}

impl StageKind {
    /// The kinds that often follow this one, with their probabilities. The remaining probability is
    /// spread over all kinds.
    fn habits(self) -> &'static [(StageKind, f64)] {
        match self {
            StageKind::Conv2d => &[(StageKind::Activation, 0.5)],
            StageKind::Activation => &[(StageKind::Pad, 0.2), (StageKind::Pool, 0.2)],
            StageKind::Pad => &[(StageKind::Conv2d, 0.25), (StageKind::Pool, 0.15)],
            StageKind::Pool => &[(StageKind::Conv2d, 0.4)],
            _ => &[],
        }
    }

    /// The weight of each of [`StageKind::ALL`] as the next kind.
    pub(crate) fn next_weights(self) -> Vec<f64> {
        let habits = self.habits();
        let rest = 1.0 - habits.iter().map(|(_, weight)| weight).sum::<f64>();
        let even = rest / StageKind::ALL.len() as f64;
        let habit = |kind| habits.iter().find(|(next, _)| *next == kind).map_or(0.0, |(_, weight)| *weight);
        StageKind::ALL.iter().map(|kind| even + habit(*kind)).collect()
    }
}

impl fmt::Display for StageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
