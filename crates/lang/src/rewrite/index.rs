//! Builds the expressions that rewrites add, folded where operands are constants.

use std::num::NonZeroU32;
use std::panic::Location;

use smallvec::SmallVec;

use crate::draft::Draft;
use crate::ids::{ExprId, FuncId};
use crate::ir::{Node, NodeKind, Stage, StageRef};
use crate::op::{BinaryOp, Op};
use crate::types::{Type, Value};

impl Draft {
    /// An `i32` constant.
    pub(super) fn int(&mut self, value: i32) -> ExprId {
        self.constant(Value::from(value))
    }

    /// The variable of a dimension.
    pub(super) fn var(&mut self, dimension: usize) -> ExprId {
        self.node(NodeKind::Var(dimension as u32), Type::I32, &[])
    }

    /// A variable of the stage's reduction domain.
    pub(super) fn rvar(&mut self, number: usize) -> ExprId {
        self.node(NodeKind::RVar(number as u32), Type::I32, &[])
    }

    /// A read of a Func's value.
    pub(super) fn call(&mut self, func: FuncId, value: usize, at: &[ExprId]) -> ExprId {
        let ty = self.funcs[func].types[value];
        self.node(NodeKind::Call(func, value as u32), ty, at)
    }

    /// A read of all values of a Func.
    pub(super) fn calls(&mut self, func: FuncId, at: &[ExprId]) -> Vec<ExprId> {
        (0..self.funcs[func].types.len()).map(|value| self.call(func, value, at)).collect()
    }

    /// A name that no Func has yet: the wish, or the wish with a number from 2 on.
    pub(super) fn free_name(&self, wish: String) -> String {
        let taken = |name: &String| self.funcs.values().any(|func| func.name == *name);
        let numbered = (2..).map(|number| format!("{wish}{number}"));
        std::iter::once(wish.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(wish)
    }

    /// A pure definition over all dimensions.
    pub(super) fn pure_stage(
        &mut self,
        dimensions: usize,
        values: Vec<ExprId>,
        place: Option<&'static Location<'static>>,
    ) -> Stage {
        let indices = (0..dimensions).map(|d| self.var(d)).collect();
        Stage::pure(indices, values, place)
    }

    /// Lets a Func read `to` wherever it reads `from`; value 0 of `from` is value `first` of `to`.
    pub(super) fn redirect(&mut self, reader: FuncId, from: FuncId, to: FuncId, first: usize) {
        for stage in 0..self.funcs[reader].stages.len() {
            self.rebuild(StageRef { func: reader, stage }, &mut |exprs, _, mut node| {
                if let NodeKind::Call(func, value) = &mut node.kind
                    && *func == from
                {
                    (*func, *value) = (to, *value + first as u32);
                }
                exprs.intern(node)
            });
        }
    }

    /// The result of an operator on operands of one type.
    pub(super) fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        if let Some(folded) = self.folded(op, a, b) {
            return folded;
        }
        let op = Op::Binary(op);
        let ty = self.exprs[a].ty;
        let ty = op.result_type(&[ty, self.exprs[b].ty]).unwrap_or(ty);
        self.node(NodeKind::Op(op), ty, &[a, b])
    }

    /// `condition ? a : b`; both sides must be in bounds.
    pub(super) fn select(&mut self, condition: ExprId, a: ExprId, b: ExprId) -> ExprId {
        let ty = self.exprs[a].ty;
        self.node(NodeKind::Op(Op::Select), ty, &[condition, a, b])
    }

    /// The conjunction of two conditions, either of which may be missing.
    pub(super) fn both(&mut self, a: Option<ExprId>, b: Option<ExprId>) -> Option<ExprId> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.binary(BinaryOp::And, a, b)),
            (one, other) => one.or(other),
        }
    }

    /// The number of groups of `by` values among `extent`, rounded up.
    pub(super) fn groups(&mut self, extent: ExprId, by: NonZeroU32) -> ExprId {
        let by = by.get() as i32;
        let (more, by) = (self.int(by - 1), self.int(by));
        let sum = self.binary(BinaryOp::Add, extent, more);
        self.binary(BinaryOp::Div, sum, by)
    }

    fn node(&mut self, kind: NodeKind, ty: Type, args: &[ExprId]) -> ExprId {
        self.exprs.intern(Node { kind, ty, args: SmallVec::from_slice(args) })
    }

    /// The result if both operands are constants, or if one of them is neutral.
    fn folded(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> Option<ExprId> {
        let int = |id: ExprId| self.exprs.constant(id).and_then(Value::get::<i32>);
        match (op, int(a), int(b)) {
            (BinaryOp::Add | BinaryOp::Sub, _, Some(0)) | (BinaryOp::Mul | BinaryOp::Div, _, Some(1)) => {
                Some(a)
            }
            (BinaryOp::Add, Some(0), _) | (BinaryOp::Mul, Some(1), _) => Some(b),
            (BinaryOp::Add, Some(a), Some(b)) => a.checked_add(b).map(|sum| self.int(sum)),
            (BinaryOp::Sub, Some(a), Some(b)) => a.checked_sub(b).map(|difference| self.int(difference)),
            (BinaryOp::Mul, Some(a), Some(b)) => a.checked_mul(b).map(|product| self.int(product)),
            (BinaryOp::Div, Some(a), Some(b)) => a.checked_div_euclid(b).map(|quotient| self.int(quotient)),
            (BinaryOp::Min, Some(a), Some(b)) => Some(self.int(a.min(b))),
            _ => None,
        }
    }
}

/// The position `low + high * by` in a domain of `extent` values, whose last group may be partial.
pub(super) struct Position {
    /// The position, never beyond the last value.
    pub index: ExprId,
    /// Whether the position exists; `None` if all do.
    pub exists: Option<ExprId>,
}

impl Position {
    pub(super) fn new(
        draft: &mut Draft,
        low: ExprId,
        high: ExprId,
        by: NonZeroU32,
        extent: ExprId,
    ) -> Position {
        let step = draft.int(by.get() as i32);
        let start = draft.binary(BinaryOp::Mul, high, step);
        let index = draft.binary(BinaryOp::Add, low, start);
        let known = draft.exprs.constant(extent).and_then(Value::as_int);
        if known.is_some_and(|extent| extent % i64::from(by.get()) == 0) {
            return Position { index, exists: None };
        }
        let exists = draft.binary(BinaryOp::Lt, index, extent);
        let one = draft.int(1);
        let last = draft.binary(BinaryOp::Sub, extent, one);
        Position { index: draft.binary(BinaryOp::Min, index, last), exists: Some(exists) }
    }
}

/// Replaces reduction variables in some expressions; `new` has one entry per old variable.
pub(super) fn replace_rvars(draft: &mut Draft, roots: &[ExprId], new: &[ExprId]) -> Vec<ExprId> {
    let made = draft.rebuilt(roots.to_vec(), &mut |exprs, _, node| match node.kind {
        NodeKind::RVar(number) => new[number as usize],
        _ => exprs.intern(node),
    });
    roots.iter().map(|root| made[root]).collect()
}
