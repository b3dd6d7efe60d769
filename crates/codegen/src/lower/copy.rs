//! Copies the requested part of outputs that are computed on a larger region.

use warploom_lang::affine::Interval;
use warploom_lang::op::BinaryOp;
use warploom_lang::{IdVec, Range, Type};

use crate::builder::Builder;
use crate::ir::{Array, ArrayId, BufferDecl, BufferId, Kernel, Leaf, NodeId, Space, Stmt};
use crate::lower::context::{Context, OutputCopy};
use crate::lower::error::LowerError;
use crate::lower::kernel::{Shape, block_count, finished};
use crate::lower::layout::Layout;

/// Threads per block.
const THREADS: u32 = 256;

impl OutputCopy {
    /// The kernel that fills the output, one point per thread.
    pub fn kernel(self, context: &Context<'_>) -> Result<Kernel, LowerError> {
        let (from, to) = (&context.buffers[self.from], &context.buffers[self.to]);
        let mut builder = Builder::default();
        let mut arrays: IdVec<ArrayId, Array> = IdVec::new();
        let mut array = |decl: &BufferDecl, buffer: BufferId| {
            let (name, space) = (decl.name.clone(), Space::Global(buffer));
            arrays.push(Array { name, ty: decl.ty, space, elements: decl.elements() })
        };
        let (source, target) = (array(from, self.from), array(to, self.to));
        let narrow = to.elements() as u64 <= context.narrow_elements.unsigned_abs();
        let points = if narrow { each_point(&mut builder, to) } else { each_row(&mut builder, to, context) };
        let Points { blocks, at, index, inside } = points;
        let element = Layout::of_buffer(&mut builder, from, context.narrow_elements);
        let element = element.index(&mut builder, &at);
        let value = builder.load(source, from.ty, element);
        let store = Stmt::Store { array: target, index, value };
        let name = format!("{}.copy", to.name);
        let blocks = block_count(&name, blocks, context.problem.device())?;
        let shape = Shape { name, grid: [blocks, 1, 1], threads: THREADS, arrays };
        finished(shape, vec![Stmt::when(inside, vec![store])], builder, context.problem.device())
    }
}

/// The mapping from threads to points of an output.
struct Points {
    /// Number of blocks.
    blocks: u64,
    /// The coordinates of the thread's point.
    at: Vec<NodeId>,
    /// The element index of the point in the output.
    index: NodeId,
    /// Whether the thread has a point.
    inside: NodeId,
}

/// Maps the global thread index to a linear point index.
fn each_point(builder: &mut Builder, to: &BufferDecl) -> Points {
    let total = to.elements() as u64;
    let blocks = total.div_ceil(THREADS.into());
    let block = block(builder, blocks);
    let index = thread_of(builder, block);
    let at = coordinates(builder, index, &to.region.0);
    let last = builder.int(total as i64 - 1);
    let inside = builder.binary(BinaryOp::Le, index, last);
    Points { blocks, at, index, inside }
}

/// Maps several blocks to each row. Used if the number of points does not fit in a 32-bit index.
fn each_row(builder: &mut Builder, to: &BufferDecl, context: &Context<'_>) -> Points {
    let width = to.region[0].extent.unsigned_abs();
    let across = width.div_ceil(THREADS.into());
    let blocks = across * (to.elements() as u64 / width);
    let block = block(builder, blocks);
    let divisor = builder.int(across as i64);
    let row = builder.binary(BinaryOp::Div, block, divisor);
    let part = builder.binary(BinaryOp::Mod, block, divisor);
    let along = thread_of(builder, part);
    let mut at = vec![builder.offset(along, to.region[0].min)];
    at.extend(coordinates(builder, row, &to.region.0[1..]));
    let last = builder.int(width as i64 - 1);
    let inside = builder.binary(BinaryOp::Le, along, last);
    let index = Layout::of_buffer(builder, to, context.narrow_elements).index(builder, &at);
    Points { blocks, at, index, inside }
}

/// The block's index.
fn block(builder: &mut Builder, blocks: u64) -> NodeId {
    builder.leaf(Leaf::Block(0), Type::I32, Some(Interval::new(0, blocks as i64 - 1)))
}

/// The index of a thread, counted through all blocks, in the given block.
fn thread_of(builder: &mut Builder, block: NodeId) -> NodeId {
    let threads = i64::from(THREADS);
    let thread = builder.leaf(Leaf::Thread, Type::I32, Some(Interval::new(0, threads - 1)));
    let start = builder.scale(block, threads);
    builder.add(start, thread)
}

/// The coordinates of the point with a linear index; the first dimension varies fastest.
fn coordinates(builder: &mut Builder, index: NodeId, ranges: &[Range]) -> Vec<NodeId> {
    let mut below = 1_i64;
    let mut at = Vec::new();
    for range in ranges {
        let (divisor, extent) = (builder.int(below), builder.int(range.extent));
        let along = builder.binary(BinaryOp::Div, index, divisor);
        let along = builder.binary(BinaryOp::Mod, along, extent);
        at.push(builder.offset(along, range.min));
        below = below.saturating_mul(range.extent);
    }
    at
}
