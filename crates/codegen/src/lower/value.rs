//! The expressions of a stage at one point.

use ahash::AHashMap;
use smallvec::SmallVec;
use warploom_lang::ir::NodeKind;
use warploom_lang::op::Op;
use warploom_lang::{ExprId, FuncId, Type};

use crate::ir::{Leaf, NodeId};
use crate::lower::LowerError;
use crate::lower::arrays::Read;
use crate::lower::kernel::KernelLowering;
use crate::lower::place::Place;

/// The values of a stage's variables at the point in question.
pub(crate) struct Point {
    /// One a dimension; unused for dimensions that are not pure.
    pub vars: Vec<NodeId>,
    pub rvars: Vec<NodeId>,
}

impl KernelLowering<'_> {
    /// An expression of a stage at `point`.
    pub fn value(&mut self, root: ExprId, point: &Point) -> Result<NodeId, LowerError> {
        let exprs = self.context.pipeline.exprs();
        let mut known: AHashMap<ExprId, NodeId> = AHashMap::new();
        for id in exprs.reachable([root]) {
            let node = &exprs[id];
            let args: SmallVec<[NodeId; 3]> = node.args.iter().map(|arg| known[arg]).collect();
            let lowered = match node.kind {
                NodeKind::Var(d) => point.vars[d as usize],
                NodeKind::RVar(r) => point.rvars[r as usize],
                NodeKind::Param(param) => match self.context.fixed[param] {
                    Some(value) => self.builder.constant(value),
                    None => {
                        let position = self.context.scalars[param];
                        self.builder.leaf(Leaf::Param(position), node.ty, None)
                    }
                },
                NodeKind::InputMin(input, d) => self.builder.int(self.context.inputs[input][d as usize].min),
                NodeKind::InputExtent(input, d) => {
                    self.builder.int(self.context.inputs[input][d as usize].extent)
                }
                NodeKind::Load(input) => self.load(Read::Input(input), 0, node.ty, &args)?,
                NodeKind::Call(func, value) => match self.context.places.of(func) {
                    Place::Inlined => self.inlined(func, value as usize, &args)?,
                    _ => self.load(Read::Func(func), value as usize, node.ty, &args)?,
                },
                NodeKind::Op(Op::Const(value)) => self.builder.constant(value),
                NodeKind::Op(op) => self.builder.op(op, &args),
            };
            known.insert(id, lowered);
        }
        Ok(known[&root])
    }

    /// The value of an inlined Func at a point; the same point is written out once.
    fn inlined(&mut self, func: FuncId, value: usize, at: &[NodeId]) -> Result<NodeId, LowerError> {
        let key = (func, value, SmallVec::from_slice(at));
        if let Some(node) = self.inlined.get(&key) {
            return Ok(*node);
        }
        let root = self.context.pipeline.funcs()[func].stages[0].values[value];
        let node = self.value(root, &Point { vars: at.to_vec(), rvars: Vec::new() })?;
        self.inlined.insert(key, node);
        Ok(node)
    }

    /// A value of a Func or input that is stored somewhere.
    fn load(&mut self, read: Read, value: usize, ty: Type, at: &[NodeId]) -> Result<NodeId, LowerError> {
        let stored = self.stored(read, value)?;
        let index = stored.index(&mut self.builder, at);
        Ok(self.builder.load(stored.array, ty, index))
    }
}
