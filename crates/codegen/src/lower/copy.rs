//! Copies of outputs of which more is computed than was asked for.

use warploom_lang::op::BinaryOp;
use warploom_lang::{IdVec, Region, Type};

use crate::builder::{Bounds, Builder};
use crate::ir::{Array, ArrayId, BufferDecl, BufferId, Kernel, Leaf, NodeId, Space, Stmt};
use crate::lower::Context;

/// Threads of a block.
const THREADS: u32 = 256;

/// An output buffer that is a part of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub from: BufferId,
    pub to: BufferId,
}

impl Copy {
    /// The kernel that fills the output, one point a thread.
    pub fn kernel(self, context: &Context<'_>) -> Kernel {
        let (from, to) = (&context.buffers[self.from], &context.buffers[self.to]);
        let total = to.elements() as i64;
        let blocks = (total + i64::from(THREADS) - 1) / i64::from(THREADS);
        let mut builder = Builder::default();
        let mut arrays: IdVec<ArrayId, Array> = IdVec::new();
        let mut array = |decl: &BufferDecl, buffer: BufferId| {
            let (name, space) = (decl.name.clone(), Space::Global(buffer));
            arrays.push(Array { name, ty: decl.ty, space, elements: decl.elements() })
        };
        let (source, target) = (array(from, self.from), array(to, self.to));
        let index = point_index(&mut builder, blocks);
        let at = coordinates(&mut builder, index, &to.region);
        let element = element(&mut builder, &at, from);
        let value = builder.load(source, from.ty, element);
        let end = builder.int(total);
        let inside = builder.binary(BinaryOp::Lt, index, end);
        let store = Stmt::Store { array: target, index, value };
        Kernel {
            name: format!("{}.copy", to.name),
            grid: [blocks as u32, 1, 1],
            threads: THREADS,
            arrays,
            vars: builder.vars,
            exprs: builder.exprs,
            body: vec![Stmt::If { condition: inside, body: vec![store] }],
        }
    }
}

/// The number of a thread among those of all blocks.
fn point_index(builder: &mut Builder, blocks: i64) -> NodeId {
    let threads = i64::from(THREADS);
    let block = builder.leaf(Leaf::Block(0), Type::I32, Some(Bounds::new(0, blocks - 1)));
    let thread = builder.leaf(Leaf::Thread, Type::I32, Some(Bounds::new(0, threads - 1)));
    let start = builder.scale(block, threads);
    builder.add(start, thread)
}

/// The point of a region, first dimension fastest, that has this number.
fn coordinates(builder: &mut Builder, index: NodeId, region: &Region) -> Vec<NodeId> {
    let mut below = 1;
    let mut at = Vec::new();
    for range in &region.0 {
        let (divisor, extent) = (builder.int(below), builder.int(range.extent));
        let along = builder.binary(BinaryOp::Div, index, divisor);
        let along = builder.binary(BinaryOp::Mod, along, extent);
        at.push(builder.offset(along, range.min));
        below *= range.extent;
    }
    at
}

/// The element of a buffer that holds a point.
fn element(builder: &mut Builder, at: &[NodeId], decl: &BufferDecl) -> NodeId {
    let mut element = builder.int(0);
    for ((index, range), stride) in at.iter().zip(&decl.region.0).zip(&decl.strides) {
        let along = builder.offset(*index, -range.min);
        let along = builder.scale(along, *stride);
        element = builder.add(element, along);
    }
    element
}
