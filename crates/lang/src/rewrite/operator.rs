//! Recognises reductions: updates of the form `f(..) = f(..) op term`.

use crate::draft::Draft;
use crate::ids::{ExprId, FuncId};
use crate::ir::{Exprs, NodeKind, Stage, StageRef};
use crate::op::{BinaryOp, Op};
use crate::rewrite::{RewriteError, StageName};
use crate::types::{Type, Value};

/// An update of the form `f(..) = f(..) op term`, value by value.
pub struct Reduction {
    /// The operator of each value.
    pub ops: Vec<BinaryOp>,
    /// The term that is combined with each value.
    pub terms: Vec<ExprId>,
}

impl Reduction {
    /// An update as a reduction, if its result is the same in any order or the author allows another order.
    pub(super) fn in_any_order(draft: &Draft, at: StageRef) -> Result<Reduction, RewriteError> {
        let name = || StageName::of(draft, at);
        let form = "f(..) = f(..) op term, with one of + * & | ^ min max for op, and f nowhere else";
        let reduction = Reduction::of(&draft.exprs, at.func, draft.stage(at))
            .ok_or_else(|| RewriteError::NotAReduction { stage: name(), form })?;
        let types = &draft.funcs[at.func].types;
        let inexact = reduction.ops.iter().zip(types).find(|(op, ty)| !is_exact(**op, **ty));
        match inexact {
            Some((op, ty)) if !draft.stage(at).reassociate => {
                Err(RewriteError::OrderMatters { stage: name(), op: op.name(), ty: *ty })
            }
            _ => Ok(reduction),
        }
    }

    /// The values `func(indices) op term`.
    pub(super) fn combined(
        &self,
        draft: &mut Draft,
        func: FuncId,
        indices: &[ExprId],
        terms: &[ExprId],
    ) -> Vec<ExprId> {
        let combine = |(value, (op, term)): (usize, (&BinaryOp, &ExprId))| {
            let old = draft.call(func, value, indices);
            draft.binary(*op, old, *term)
        };
        self.ops.iter().zip(terms).enumerate().map(combine).collect()
    }

    /// An update of `func` as a reduction, in whatever order.
    pub fn of(exprs: &Exprs, func: FuncId, stage: &Stage) -> Option<Reduction> {
        let (mut ops, mut terms) = (Vec::new(), Vec::new());
        for (number, value) in stage.values.iter().enumerate() {
            let node = &exprs[*value];
            let NodeKind::Op(Op::Binary(op)) = node.kind else { return None };
            let is_old = |id: ExprId| {
                let old = &exprs[id];
                old.kind == NodeKind::Call(func, number as u32) && old.args[..] == stage.indices[..]
            };
            let (old, term) = (node.args[0], node.args[1]);
            let term = match (is_old(old), is_old(term)) {
                (true, _) => term,
                (false, true) => old,
                (false, false) => return None,
            };
            if !is_associative(op, node.ty) {
                return None;
            }
            ops.push(op);
            terms.push(term);
        }
        let others = terms.iter().chain(&stage.indices).chain(&stage.predicate).copied();
        (!terms.is_empty() && !exprs.reads(func, others)).then_some(Reduction { ops, terms })
    }
}

/// Whether an operator is associative and commutative for real numbers.
pub(super) fn is_associative(op: BinaryOp, ty: Type) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Mul => ty != Type::Bool,
        BinaryOp::Min | BinaryOp::Max => true,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => !ty.is_float(),
        _ => false,
    }
}

/// Whether an associative operator gives the same bits in any order.
pub(super) fn is_exact(op: BinaryOp, ty: Type) -> bool {
    !ty.is_float() || matches!(op, BinaryOp::Min | BinaryOp::Max)
}

/// The value that an associative operator leaves unchanged.
pub(super) fn identity(op: BinaryOp, ty: Type) -> Value {
    match op {
        BinaryOp::Mul => Value::one(ty),
        // `min` and `max` give the other operand for NaN; an infinity would win over a result of NaN.
        BinaryOp::Min | BinaryOp::Max if ty.is_float() => {
            Value::rounded(ty, f64::NAN).unwrap_or(Value::zero(ty))
        }
        BinaryOp::Min => Value::largest(ty),
        BinaryOp::Max => Value::smallest(ty),
        BinaryOp::And => Value::from_int(ty, -1).unwrap_or(Value::largest(ty)),
        _ => Value::zero(ty),
    }
}
