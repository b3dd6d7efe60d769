//! Memory layout of arrays, and the index of an element.

use warploom_lang::affine::Linear;
use warploom_lang::op::BinaryOp;

use crate::builder::Builder;
use crate::ir::{BufferId, NodeId};
use crate::lower::context::Context;
use crate::lower::sizes::Scalars;

/// One dimension of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    /// The first coordinate.
    pub lower: NodeId,
    /// The number of coordinates.
    pub extent: i64,
    /// The distance between neighbours, in elements.
    pub stride: i64,
    /// The scalar that holds the stride, if it follows from the sizes of a launch.
    pub scalar: Option<NodeId>,
    /// The number of threads along this dimension and the number of consecutive points per thread,
    /// if each thread stores only its own points.
    pub share: Option<(i64, i64)>,
}

/// How an array is indexed.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    /// All offsets fit in 32 bits and are sums of 32-bit indices.
    Narrow(Vec<Axis>),
    /// Some offsets need 64 bits. They are sums of part strides times part offsets, where each
    /// part's own offset fits in 32 bits.
    Wide(Vec<Part>),
}

/// Some dimensions of an array that are adjacent in memory.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The distance in the array between consecutive offsets of the part, in elements.
    stride: i64,
    /// The axes with their dimension numbers. Their strides are relative to the stride of the part.
    axes: Vec<(usize, Axis)>,
}

impl Layout {
    /// The layout of a dense array: narrow up to `narrow_elements` elements, wide beyond.
    pub fn new(axes: Vec<Axis>, narrow_elements: i64) -> Layout {
        let ends = axes.iter().map(|axis| axis.stride.saturating_mul(axis.extent));
        let elements = ends.max().unwrap_or(1);
        if elements <= narrow_elements {
            return Layout::Narrow(axes);
        }
        let mut growing: Vec<(usize, Axis)> = axes.into_iter().enumerate().collect();
        growing.sort_by_key(|(_, axis)| axis.stride);
        let mut parts: Vec<Part> = Vec::new();
        for (d, axis) in growing {
            let end = axis.stride.saturating_mul(axis.extent);
            let fits = |part: &&mut Part| end / part.stride <= narrow_elements;
            match parts.last_mut().filter(fits) {
                Some(part) => part.axes.push((d, Axis { stride: axis.stride / part.stride, ..axis })),
                None => parts.push(Part { stride: axis.stride, axes: vec![(d, Axis { stride: 1, ..axis })] }),
            }
        }
        Layout::Wide(parts)
    }

    /// The layout of a buffer.
    pub fn of_buffer(
        builder: &mut Builder,
        scalars: &mut Scalars,
        context: &Context<'_>,
        buffer: BufferId,
    ) -> Layout {
        let decl = &context.buffers[buffer];
        let Some(layout) = context.layouts.get(buffer) else {
            let dims = decl.region.0.iter().zip(&decl.strides);
            let axis = |(range, stride): (&warploom_lang::Range, &i64)| {
                let (lower, extent) = (builder.int(range.min), range.extent);
                Axis { lower, extent, stride: *stride, scalar: None, share: None }
            };
            return Layout::new(dims.map(axis).collect(), context.narrow_elements);
        };
        let mut axes: Vec<Option<Axis>> = vec![None; layout.order.len()];
        let mut varies = false;
        for (position, &d) in layout.order.iter().enumerate() {
            let lower = scalars.node(context, builder, &layout.region[d].first);
            let (extent, stride) = (decl.region[d].extent, decl.strides[d]);
            let scalar = ((varies || layout.pitched) && position > 0)
                .then(|| scalars.stride(builder, buffer, &decl.name, d));
            axes[d] = Some(Axis { lower, extent, stride, scalar, share: None });
            varies |= !layout.region[d].is_constant();
        }
        Layout::Narrow(axes.into_iter().flatten().collect())
    }

    /// The index of the element at a point.
    pub fn index(&self, builder: &mut Builder, at: &[NodeId]) -> NodeId {
        match self {
            Layout::Narrow(axes) => sum(builder, axes.iter().zip(at)),
            Layout::Wide(parts) => {
                let term = |part: &Part| {
                    let axes = part.axes.iter().map(|(d, axis)| (axis, &at[*d]));
                    (sum(builder, axes), part.stride)
                };
                let terms: Vec<(NodeId, i64)> = parts.iter().map(term).collect();
                builder.wide_index(&terms)
            }
        }
    }
}

/// The 32-bit sum of the indices along some dimensions.
fn sum<'a>(builder: &mut Builder, axes: impl Iterator<Item = (&'a Axis, &'a NodeId)>) -> NodeId {
    let mut sum = builder.int(0);
    let mut scaled: Option<Linear<NodeId>> = None;
    for (axis, index) in axes {
        let mut along = builder.sub(*index, axis.lower);
        if let Some((threads, serial)) = axis.share {
            along = own_part(builder, along, threads, serial);
        }
        if let Some(stride) = axis.scalar {
            let term = builder.strided(along, stride);
            scaled = scaled.unwrap_or_default().add_scaled(&term, 1);
            continue;
        }
        let along = builder.scale(along, axis.stride);
        sum = builder.add(sum, along);
    }
    match scaled.and_then(|scaled| scaled.add_scaled(&builder.linear(sum), 1)) {
        Some(scaled) => builder.element(&scaled),
        None => sum,
    }
}

/// The index of a point among its thread's points, from the round and the position in the thread's
/// tile.
fn own_part(builder: &mut Builder, along: NodeId, threads: i64, serial: i64) -> NodeId {
    let (round, tile) = (builder.int(threads * serial), builder.int(serial));
    let round = builder.binary(BinaryOp::Div, along, round);
    let before = builder.scale(round, serial);
    let within = builder.binary(BinaryOp::Mod, along, tile);
    builder.add(before, within)
}
