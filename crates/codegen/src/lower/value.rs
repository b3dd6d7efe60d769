//! The expressions of a stage at one point.

use ahash::AHashMap;
use smallvec::SmallVec;
use warploom_lang::bounds::Span;
use warploom_lang::ir::NodeKind;
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{ExprId, TableId, Type};

use crate::ir::{Leaf, NodeId};
use crate::lower::error::LowerError;
use crate::lower::place::Place;
use crate::lower::state::{InlinedAt, KernelLowering, Read};

/// The most expressions per kernel. Funcs inlined into each other at several points can make exponentially many, more
/// than any compiler could handle.
const MAX_NODES: usize = 250_000;

/// The values of a stage's variables at one point.
#[derive(Clone)]
pub(crate) struct Point {
    /// One per dimension; unused for dimensions that are not pure.
    pub vars: Vec<NodeId>,
    pub rvars: Vec<NodeId>,
}

/// An expression that is being lowered.
struct Frame {
    root: ExprId,
    point: Point,
    /// The nodes, operands first.
    nodes: Vec<ExprId>,
    position: usize,
    known: AHashMap<ExprId, NodeId>,
    /// The inlined value that this expression computes.
    value: Option<InlinedAt>,
}

/// The result of lowering one node.
enum Step {
    Lowered(NodeId),
    /// The node needs this inlined value, which must be lowered first.
    Into(InlinedAt),
}

impl KernelLowering<'_> {
    /// Lowers an expression of a stage at `point`. Uses an explicit stack, so deep inlining cannot
    /// overflow the call stack.
    pub fn value(&mut self, root: ExprId, point: Point) -> Result<NodeId, LowerError> {
        let mut frame = self.frame(root, point, None);
        let mut outer: Vec<Frame> = Vec::new();
        loop {
            if let Some(at) = self.advance(&mut frame)? {
                let (func, value, vars) = &at;
                let root = self.context.pipeline().funcs()[*func].stages[0].values[*value];
                let point = Point { vars: vars.to_vec(), rvars: Vec::new() };
                let inner = self.frame(root, point, Some(at));
                outer.push(std::mem::replace(&mut frame, inner));
                continue;
            }
            let lowered = frame.known[&frame.root];
            match (frame.value.take(), outer.pop()) {
                (Some(at), Some(around)) => {
                    self.inlined.insert(at, lowered);
                    frame = around;
                }
                _ => return Ok(lowered),
            }
        }
    }

    fn frame(&self, root: ExprId, point: Point, value: Option<InlinedAt>) -> Frame {
        let nodes = self.context.pipeline().exprs().reachable([root]);
        Frame { root, point, nodes, position: 0, known: AHashMap::new(), value }
    }

    /// Lowers nodes until the end of the expression, or until an inlined value must be lowered
    /// first.
    fn advance(&mut self, frame: &mut Frame) -> Result<Option<InlinedAt>, LowerError> {
        if self.builder.exprs.nodes().len() > MAX_NODES {
            return Err(LowerError::TooLong { kernel: self.name(), limit: MAX_NODES });
        }
        while let Some(&id) = frame.nodes.get(frame.position) {
            match self.step(frame, id)? {
                Step::Lowered(lowered) => _ = frame.known.insert(id, lowered),
                Step::Into(at) => return Ok(Some(at)),
            }
            frame.position += 1;
        }
        Ok(None)
    }

    /// Lowers a node whose operands are lowered.
    fn step(&mut self, frame: &Frame, id: ExprId) -> Result<Step, LowerError> {
        let node = &self.context.pipeline().exprs()[id];
        let args: SmallVec<[NodeId; 4]> = node.args.iter().map(|arg| frame.known[arg]).collect();
        Ok(Step::Lowered(match node.kind {
            NodeKind::Var(d) => frame.point.vars[d as usize],
            NodeKind::RVar(r) => frame.point.rvars[r as usize],
            NodeKind::Param(param) => match self.context.fixed[param] {
                Some(value) => self.builder.constant(value),
                None => {
                    let position = self.context.scalars[param];
                    self.builder.leaf(Leaf::Param(position), node.ty, None)
                }
            },
            NodeKind::InputMin(input, d) => self.input_min(input, d as usize),
            NodeKind::InputExtent(input, d) => self.input_extent(input, d as usize),
            NodeKind::Load(input) => self.load(Read::Input(input), 0, node.ty, &args)?,
            NodeKind::Call(func, value) => match self.context.places.of(func) {
                Place::Inlined => {
                    // Each point of an inlined Func is lowered once.
                    let at = (func, value as usize, args);
                    return Ok(match self.inlined.get(&at) {
                        Some(lowered) => Step::Lowered(*lowered),
                        None => Step::Into(at),
                    });
                }
                _ => match self.carried_read(id, &args) {
                    Some(carried) => carried,
                    None => self.load(Read::Func(func), value as usize, node.ty, &args)?,
                },
            },
            NodeKind::Table(table) => self.table(table, node.ty, &args),
            NodeKind::Op(Op::Const(value)) => self.builder.constant(value),
            NodeKind::Op(op) => self.builder.op(op, &args),
        }))
    }

    /// An element of a constant table; a constant if its index is known.
    fn table(&mut self, table: TableId, ty: Type, at: &[NodeId]) -> NodeId {
        let known: Option<Vec<i64>> = at.iter().map(|index| self.builder.known_int(*index)).collect();
        let decl = &self.context.pipeline().tables()[table];
        if let Some(value) = known.and_then(|at| decl.value(at)) {
            return self.builder.constant(value);
        }
        let span = decl.span();
        let stored = self.global(self.context.table_buffers[table]);
        let index = stored.index(&mut self.builder, at);
        let element = self.builder.load(stored.array, ty, index);
        if let Span::Int(span) = span {
            self.builder.narrow(element, span.interval());
        }
        element
    }

    /// Loads a value of a Func or input that is stored in an array, or in a register of the warp.
    fn load(&mut self, read: Read, value: usize, ty: Type, at: &[NodeId]) -> Result<NodeId, LowerError> {
        let stored = self.stored(read, value)?;
        let nearest = self.nearest_stored(read, at);
        let index = self.loaded(&stored, &nearest);
        let own = self.builder.load(stored.array, ty, index);
        Ok(self.exchanged(read, at, own))
    }

    /// The nearest stored point. A kernel stores only the core of a Func, beyond which its values repeat. A stage that
    /// reads its own Func stays within the core.
    fn nearest_stored(&mut self, read: Read, at: &[NodeId]) -> SmallVec<[NodeId; 4]> {
        let mut nearest = SmallVec::from_slice(at);
        let Read::Func(func) = read else { return nearest };
        if !self.context.places.is_root(func) || self.plan.kernel.stage.func == func {
            return nearest;
        }
        let problem = self.context.problem;
        let ranges = problem.regions().funcs[func].region.0.iter().zip(&problem.stored(func).0);
        for (index, (read, stored)) in nearest.iter_mut().zip(ranges) {
            if stored.last() < read.last() {
                let last = self.builder.int(stored.last());
                *index = self.builder.binary(BinaryOp::Min, *index, last);
            }
            if read.min < stored.min {
                let first = self.builder.int(stored.min);
                *index = self.builder.binary(BinaryOp::Max, *index, first);
            }
        }
        nearest
    }
}
