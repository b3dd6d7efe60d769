//! Copies the requested part of outputs that are computed on a larger region.

use warploom_lang::affine::Interval;
use warploom_lang::dynamic::{Formula, FormulaRange};
use warploom_lang::op::BinaryOp;
use warploom_lang::{IdVec, Range, Type};

use crate::builder::Builder;
use crate::ir::{Array, ArrayId, BufferDecl, BufferId, Kernel, Leaf, NodeId, Space, Stmt};
use crate::lower::context::{Context, OutputCopy};
use crate::lower::error::LowerError;
use crate::lower::kernel::{Shape, block_count, finished};
use crate::lower::layout::Layout;
use crate::lower::sizes::Scalars;
use crate::lower::touch::held;
use crate::points::{AccessPoint, KernelPoints, Key};

/// Threads per block.
const THREADS: u32 = 256;

impl OutputCopy {
    /// The kernel that fills the output, one point per thread.
    pub fn kernel(self, context: &Context<'_>) -> Result<(Kernel, Option<KernelPoints>), LowerError> {
        let (from, to) = (&context.buffers[self.from], &context.buffers[self.to]);
        let (mut builder, mut scalars) = (Builder::default(), Scalars::default());
        let mut arrays: IdVec<ArrayId, Array> = IdVec::new();
        let mut array = |decl: &BufferDecl, buffer: BufferId| {
            let (name, space) = (decl.name.clone(), Space::Global(buffer));
            arrays.push(Array::new(name, decl.ty, space, decl.elements()))
        };
        let (source, target) = (array(from, self.from), array(to, self.to));
        let narrow = to.elements() as u64 <= context.narrow_elements.unsigned_abs();
        let fixed = context.layouts.is_empty();
        let points = match narrow && fixed {
            true => each_point(&mut builder, to),
            false => each_row(&mut builder, &mut scalars, context, self.to),
        };
        let Points { blocks, factors, at, index, inside } = points;
        let element = Layout::of_buffer(&mut builder, &mut scalars, context, self.from);
        let element = element.index(&mut builder, &at);
        let value = builder.load(source, from.ty, element);
        let store = Stmt::Store { array: target, index, value };
        let mut points = KernelPoints::default();
        let at = || at.iter().copied().collect();
        points.add(Key { array: source, index: element, value: None }, AccessPoint { at: at(), stage: 0 });
        points.add(Key { array: target, index, value: Some(value) }, AccessPoint { at: at(), stage: 0 });
        points.arrays = held(context, &arrays, |_| None);
        let name = format!("{}.copy", to.name);
        let grid = [block_count(&name, blocks, context.problem.device())?, 1, 1];
        let blocks = (!fixed).then(|| Box::new([factors, Vec::new(), Vec::new()]));
        let shape = Shape { name, grid, blocks, scalars: scalars.0, threads: THREADS, arrays, shared: None };
        let body = vec![Stmt::when(inside, vec![store])];
        Ok((finished(shape, body, builder, context.problem.device())?, Some(points)))
    }
}

/// The mapping from threads to points of an output.
struct Points {
    /// The largest number of blocks.
    blocks: u64,
    /// The factors of the number of blocks at any sizes.
    factors: Vec<Formula>,
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
    Points { blocks, factors: Vec::new(), at, index, inside }
}

/// Maps several blocks to each row. Used if the number of points exceeds 32-bit indices or depends on the sizes.
fn each_row(builder: &mut Builder, scalars: &mut Scalars, context: &Context<'_>, buffer: BufferId) -> Points {
    let to = &context.buffers[buffer];
    let width = to.region[0].extent.unsigned_abs();
    let across = width.div_ceil(THREADS.into());
    let rows: u64 = to.region.0[1..].iter().map(|range| range.extent.unsigned_abs()).product();
    let Extents { first, extents } = Extents::of(context, buffer);
    let steps = FormulaRange { first: Formula::default(), last: minus_one(&extents[0]) };
    let factor = context.steps(&steps, 0, THREADS.into(), 1);
    let factor = factor.unwrap_or_else(|| Formula::constant(across as i64));
    let block = block(builder, across * rows);
    let divisor = scalars.whole(context, builder, &factor);
    let row = builder.binary(BinaryOp::Div, block, divisor);
    let part = builder.binary(BinaryOp::Mod, block, divisor);
    let along = thread_of(builder, part);
    let mut rest = row;
    let mut at = vec![along];
    for extent in &extents[1..] {
        let extent = scalars.whole(context, builder, extent);
        at.push(builder.binary(BinaryOp::Mod, rest, extent));
        rest = builder.binary(BinaryOp::Div, rest, extent);
    }
    for (at, first) in at.iter_mut().zip(&first) {
        let first = scalars.node(context, builder, first);
        *at = builder.add(*at, first);
    }
    let last = scalars.node(context, builder, &minus_one(&extents[0]));
    let inside = builder.binary(BinaryOp::Le, along, last);
    let index = Layout::of_buffer(builder, scalars, context, buffer).index(builder, &at);
    let factors = std::iter::once(factor).chain(extents[1..].iter().cloned()).collect();
    Points { blocks: across * rows, factors, at, index, inside }
}

/// The first coordinates and the extents of a buffer at any sizes.
struct Extents {
    first: Vec<Formula>,
    extents: Vec<Formula>,
}

impl Extents {
    fn of(context: &Context<'_>, buffer: BufferId) -> Extents {
        let ranges = match context.layouts.get(buffer) {
            Some(layout) => layout.region.clone(),
            None => {
                context.buffers[buffer].region.0.iter().map(|range| FormulaRange::constant(*range)).collect()
            }
        };
        let extent = |range: &FormulaRange| {
            let width = range.last.add_scaled(&range.first, -1)?;
            width.add_scaled(&Formula::constant(1), 1)
        };
        let extents = ranges.iter().map(|range| extent(range).unwrap_or_default()).collect();
        Extents { first: ranges.into_iter().map(|range| range.first).collect(), extents }
    }
}

fn minus_one(formula: &Formula) -> Formula {
    formula.add_scaled(&Formula::constant(1), -1).unwrap_or_default()
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
