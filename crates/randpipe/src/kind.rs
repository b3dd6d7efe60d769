//! The kinds of stages, and which follows which.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal $operands:literal;)*) => {
        /// What kind of stage made a Func.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum StageKind {
            $($(#[$doc])* $kind,)*
        }

        impl StageKind {
            /// Every kind.
            pub const ALL: &[StageKind] = &[$(StageKind::$kind),*];

            /// The name, which the names of its Funcs begin with.
            pub const fn name(self) -> &'static str {
                match self {
                    $(StageKind::$kind => $name,)*
                }
            }

            /// How many images it is made from.
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
    /// A convolution over two dimensions and channels: unrolled, as an update or inline; maybe with a stride.
    Conv2d "conv2d" 1;
    /// The mean or maximum of windows, maybe with a stride.
    Pool "pool" 1;
    /// A rectifier or a smooth activation, maybe to a narrower type.
    Activation "activation" 1;
    /// A boundary condition around a Func.
    Pad "pad" 1;
    /// More points along one dimension, nearest or linear.
    Upsample "upsample" 1;
    /// Fewer points along one dimension, picked or averaged.
    Downsample "downsample" 1;
    /// Every channel from all channels, unrolled.
    Mix "mix" 1;
    /// Every channel from all channels, as an update.
    MixUpdate "mix_update" 1;
    /// Every channel from all channels, as an inline sum.
    MixInline "mix_inline" 1;
    /// A running value forth, and back again, along one dimension.
    Scan "scan" 1;
    /// Two dimensions exchanged.
    Transpose "transpose" 1;
    /// An elementary function.
    Unary "unary" 1;
    /// How often values fall into each bin, for each tile.
    TileHistogram "tile_histogram" 1;
    /// An image whose last index is a value of another one.
    Slice "slice" 2;
    /// A random expression of two images.
    Binary "binary" 2;
    /// Where in a window a value is smallest or largest.
    Extreme "extreme" 1;
    /// What another image has where this one is smallest or largest.
    Match "match" 2;
    /// A Func of several values whose updates use all of them.
    Tuple "tuple" 1;
    /// A reduction over part of a domain: a triangle, a disc, a pattern, or where values are large.
    Filtered "filtered" 1;
    /// A recursive filter that starts from nothing but its first row.
    Recursive "recursive" 1;
    /// An integral image, and means of boxes from it.
    Integral "integral" 1;
    /// An update that writes where its domain says: mirrored, spread, overlapping, or by values.
    Scatter "scatter" 1;
    /// A histogram, its running sum and a lookup in it.
    Equalize "equalize" 1;
    /// Levels of half the size, and the way back up.
    Pyramid "pyramid" 1;
    /// Points moved between one dimension and another: `x * 3 + c`, or `x / 3` and `x % 3`.
    Interleave "interleave" 1;
    /// Points of two images in turn.
    Zip "zip" 2;
    /// Channels laid out as a sensor's mosaic, and completed again.
    Mosaic "mosaic" 1;
    /// The maximum over 2^t neighbours from that over 2^(t-1), for every t.
    LogSteps "log_steps" 1;
    /// The product of two matrices.
    MatMul "mat_mul" 2;
    /// The largest or smallest of a window, as an inline reduction.
    Window "window" 1;
    /// One number from a whole image or from each row, and the image relative to it.
    Total "total" 1;
    /// A dimension more or less: a cut, a diagonal, shifted copies.
    Reshape "reshape" 1;
    /// An image read where another one says.
    Gather "gather" 2;
    /// A curve as a table, read at an image's values.
    Curve "curve" 1;
    /// A comparison, and a choice by it.
    Mask "mask" 2;
    /// Two stencils of one image, combined.
    Diamond "diamond" 1;
}

impl StageKind {
    /// The kinds that often follow this one, with their probability; the rest is spread over all kinds.
    fn habits(self) -> &'static [(StageKind, f64)] {
        match self {
            StageKind::Conv2d => &[(StageKind::Activation, 0.5)],
            StageKind::Activation => &[(StageKind::Pad, 0.2), (StageKind::Pool, 0.2)],
            StageKind::Pad => &[(StageKind::Conv2d, 0.25), (StageKind::Pool, 0.15)],
            StageKind::Pool => &[(StageKind::Conv2d, 0.4)],
            _ => &[],
        }
    }

    /// How likely each of [`StageKind::ALL`] follows this one.
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
