//! The stages, one file per family.

mod fold;
mod long;
mod lookup;
mod pointwise;
mod reduce;
mod resample;
mod scan;
mod stencil;
mod table;
mod tuple;

use crate::grow::Grower;
use crate::image::Image;
use crate::kind::StageKind;
use crate::stages::reduce::SumForm;

impl Grower {
    /// Makes a stage of this kind from one or two images; `None` if they do not fit.
    pub fn make(&mut self, kind: StageKind, f: &Image, g: &Image) -> Option<Image> {
        match kind {
            StageKind::Source => Some(self.source()),
            StageKind::Pattern => Some(self.pattern()),
            StageKind::Binary => Some(self.binary(f, g)),
            StageKind::Activation => Some(self.activation(f)),
            StageKind::Unary => self.unary(f),
            StageKind::Mask => Some(self.mask(f, g)),
            StageKind::Pad => self.pad(f),
            StageKind::Transpose => self.transpose(f),
            StageKind::Stencil => self.stencil(f),
            StageKind::Diamond => self.diamond(f),
            StageKind::Conv1d => self.conv1d(f, SumForm::Update),
            StageKind::Conv1dInline => self.conv1d(f, SumForm::Inline),
            StageKind::Conv2d => self.conv2d(f),
            StageKind::Pool => self.pool(f),
            StageKind::Window => self.window(f),
            StageKind::Mix => self.mix(f),
            StageKind::MixUpdate => self.mix_sum(f, SumForm::Update),
            StageKind::MixInline => self.mix_sum(f, SumForm::Inline),
            StageKind::MatMul => self.mat_mul(f, g),
            StageKind::Total => self.total(f),
            StageKind::Long => self.long_reduction(f),
            StageKind::Siblings => self.siblings(f),
            StageKind::Softmax => self.softmax(f),
            StageKind::Scan => self.scan(f),
            StageKind::Recursive => self.recursive(f),
            StageKind::Integral => self.integral(f),
            StageKind::LogSteps => self.log_steps(f),
            StageKind::Upsample => self.upsample(f),
            StageKind::Downsample => self.downsample(f),
            StageKind::Pyramid => self.pyramid(f),
            StageKind::Interleave => self.interleave(f),
            StageKind::Zip => self.zip(f, g),
            StageKind::Mosaic => self.mosaic(f),
            StageKind::Reshape => self.reshape(f),
            StageKind::TileHistogram => self.tile_histogram(f),
            StageKind::Histogram => self.histogram(f),
            StageKind::Equalize => self.equalize(f),
            StageKind::Curve => Some(self.curve(f)),
            StageKind::Slice => self.slice(f, g),
            StageKind::Gather => self.gather(f, g),
            StageKind::Scatter => self.scatter(f),
            StageKind::Extreme => self.extreme(f),
            StageKind::Match => self.match_extreme(f, g),
            StageKind::Tuple => self.tuple(f),
            StageKind::Filtered => self.filtered(f),
            StageKind::Constants => self.constants(f),
        }
    }
}
