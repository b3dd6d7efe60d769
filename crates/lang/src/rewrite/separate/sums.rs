//! Sums that are written out: `f(x, y) = g(x - 1, y - 1) + 2 * g(x, y - 1) + ...`, also inside other operations.

use std::collections::{BTreeMap, BTreeSet};

use crate::draft::Draft;
use crate::ids::ExprId;
use crate::ir::{Exprs, NodeKind, StageRef};
use crate::op::{BinaryOp, Op, UnaryOp};
use crate::rewrite::operator::is_exact;
use crate::rewrite::separate::taps::groups;
use crate::rewrite::separate::{Refusal, cast};
use crate::types::{Type, Value};

/// Separates the separable sums of a definition, outermost first.
pub(super) fn separate(draft: &mut Draft, at: StageRef, dim: usize) -> Result<(), Refusal> {
    let result = separate_one(draft, at, dim);
    while result.is_ok() && separate_one(draft, at, dim).is_ok() {}
    result
}

fn separate_one(draft: &mut Draft, at: StageRef, dim: usize) -> Result<(), Refusal> {
    let mut refusal = Refusal::NoTaps;
    let mut left: BTreeSet<ExprId> = draft.stage(at).values.iter().copied().collect();
    while let Some(root) = left.pop_last() {
        if !is_sum(&draft.exprs, root) {
            left.extend(&draft.exprs[root].args);
            continue;
        }
        let sum = Sum::of(&draft.exprs, root);
        match sum.separated(draft, at, dim) {
            Ok(new) => {
                let changed = |id: ExprId| (id == root).then_some(new);
                draft.rebuild(at, &mut |exprs, id, node| changed(id).unwrap_or_else(|| exprs.intern(node)));
                return Ok(());
            }
            Err(why) => {
                refusal = refusal.max(why);
                left.extend(sum.terms.keys());
            }
        }
    }
    Err(refusal)
}

fn is_sum(exprs: &Exprs, id: ExprId) -> bool {
    matches!(exprs[id].kind, NodeKind::Op(Op::Binary(BinaryOp::Add | BinaryOp::Sub)))
}

/// `constant + Σ weight · term`, in the arithmetic of a type.
pub(super) struct Sum {
    pub ty: Type,
    constant: Value,
    pub terms: BTreeMap<ExprId, Value>,
}

impl Sum {
    /// An expression as a sum. Each node is visited once, after all its users.
    fn of(exprs: &Exprs, root: ExprId) -> Sum {
        let ty = exprs[root].ty;
        let mut sum = Sum { ty, constant: Value::zero(ty), terms: BTreeMap::new() };
        let mut left = BTreeMap::from([(root, Value::one(ty))]);
        while let Some((id, weight)) = left.pop_last() {
            if weight == Value::zero(ty) {
                continue;
            }
            if let Some(value) = exprs.constant(id) {
                let value = binary(BinaryOp::Mul, weight, converted(value, ty));
                sum.constant = binary(BinaryOp::Add, sum.constant, value);
                continue;
            }
            let Some(parts) = parts(exprs, id) else {
                sum.terms.insert(id, weight);
                continue;
            };
            for (part, factor) in parts {
                let more = binary(BinaryOp::Mul, weight, converted(factor, ty));
                let known = left.entry(part).or_insert(Value::zero(ty));
                *known = binary(BinaryOp::Add, *known, more);
            }
        }
        sum
    }

    /// The sum with its separable groups of terms in two passes, the first as new Funcs.
    fn separated(&self, draft: &mut Draft, at: StageRef, dim: usize) -> Result<ExprId, Refusal> {
        let mut result = Err(Refusal::NoTaps);
        let mut rest = self.terms.clone();
        let mut terms = Vec::new();
        for group in groups(draft, self) {
            match group.split(&draft.exprs, dim) {
                Ok(_) if !is_exact(BinaryOp::Add, self.ty) && !draft.stage(at).reassociate => {
                    result = result.map_err(|why: Refusal| why.max(Refusal::Order(self.ty)));
                }
                Ok(split) => {
                    result = Ok(());
                    group.taps.iter().for_each(|tap| _ = rest.remove(&tap.term));
                    terms.extend(split.emit(draft, at, self.ty));
                }
                Err(why) => result = result.map_err(|other| other.max(why)),
            }
        }
        result?;
        for (term, weight) in rest {
            terms.push((cast(draft, term, self.ty), weight));
        }
        Ok(weighted(draft, &terms, self.constant))
    }
}

/// The summands of a node, with a factor each; `None` if it is a term. Conversions to fewer bits preserve sums and
/// products.
fn parts(exprs: &Exprs, id: ExprId) -> Option<Vec<(ExprId, Value)>> {
    let node = &exprs[id];
    let NodeKind::Op(op) = node.kind else { return None };
    let (one, minus) = (Value::one(node.ty), number(node.ty, -1));
    match (op, &node.args[..]) {
        (Op::Binary(BinaryOp::Add), [a, b]) => Some(vec![(*a, one), (*b, one)]),
        (Op::Binary(BinaryOp::Sub), [a, b]) => Some(vec![(*a, one), (*b, minus)]),
        (Op::Unary(UnaryOp::Neg), [a]) => Some(vec![(*a, minus)]),
        (Op::Binary(BinaryOp::Mul), [a, b]) => {
            let right = known(exprs, *b).map(|factor| vec![(*a, factor)]);
            right.or_else(|| known(exprs, *a).map(|factor| vec![(*b, factor)]))
        }
        (Op::Binary(BinaryOp::Shl), [a, b]) => {
            known(exprs, *b).map(|amount| vec![(*a, binary(BinaryOp::Shl, one, amount))])
        }
        (Op::Cast(ty), [a]) => {
            let from = exprs[*a].ty;
            let narrows = ty.is_int() && from.is_int() && from.bytes() >= ty.bytes();
            narrows.then(|| vec![(*a, Value::one(from))])
        }
        _ => None,
    }
}

/// The value of an expression of constants.
fn known(exprs: &Exprs, id: ExprId) -> Option<Value> {
    let (mut left, mut nodes) = (vec![id], BTreeSet::new());
    while let Some(id) = left.pop() {
        if !matches!(exprs[id].kind, NodeKind::Op(_)) {
            return None;
        }
        if nodes.insert(id) {
            left.extend(&exprs[id].args);
        }
    }
    let mut values: BTreeMap<ExprId, Value> = BTreeMap::new();
    for id in nodes {
        let NodeKind::Op(op) = exprs[id].kind else { return None };
        let operands: Vec<Value> = exprs[id].args.iter().map(|operand| values[operand]).collect();
        values.insert(id, op.eval(&operands));
    }
    values.get(&id).copied()
}

/// `constant + Σ weight · term`. Negative weights become differences, after a first term with a positive weight if
/// there is one.
pub(super) fn weighted(draft: &mut Draft, terms: &[(ExprId, Value)], constant: Value) -> ExprId {
    let ty = constant.ty();
    let first = terms.iter().position(|(_, weight)| !is_negative(*weight)).unwrap_or_default();
    let rest = terms.iter().enumerate().filter(|(number, _)| *number != first).map(|(_, term)| term);
    let mut sum = None;
    for (term, weight) in terms.get(first).into_iter().chain(rest) {
        let magnitude = binary(BinaryOp::Sub, Value::zero(ty), *weight);
        let (op, weight) = match sum {
            Some(_) if is_negative(*weight) => (BinaryOp::Sub, magnitude),
            _ => (BinaryOp::Add, *weight),
        };
        let mut term = *term;
        if weight != Value::one(ty) {
            let weight = draft.constant(weight);
            term = draft.binary(BinaryOp::Mul, term, weight);
        }
        sum = Some(sum.map_or(term, |sum| draft.binary(op, sum, term)));
    }
    match sum {
        Some(sum) if constant == Value::zero(ty) => sum,
        Some(sum) => {
            let constant = draft.constant(constant);
            draft.binary(BinaryOp::Add, sum, constant)
        }
        None => draft.constant(constant),
    }
}

/// Whether a weight is shorter with a minus sign; the numbers of an unsigned type wrap.
fn is_negative(weight: Value) -> bool {
    let ty = weight.ty();
    match ty.is_float() {
        true => weight.as_f64() < 0.0,
        false => {
            signed(weight) < 0 && signed(weight) != signed(binary(BinaryOp::Sub, Value::zero(ty), weight))
        }
    }
}

/// The integer with the same bits, seen as signed.
pub(super) fn signed(value: Value) -> i64 {
    let unused = 64 - 8 * value.ty().bytes() as u32;
    ((value.bits() << unused) as i64) >> unused
}

/// A number as a value of a type; integers wrap.
pub(super) fn number(ty: Type, number: i64) -> Value {
    Value::rounded(ty, number as f64).unwrap_or_else(|| Value::from_bits(ty, number as u64))
}

pub(super) fn binary(op: BinaryOp, a: Value, b: Value) -> Value {
    Op::Binary(op).eval(&[a, b])
}

fn converted(value: Value, ty: Type) -> Value {
    Op::Cast(ty).eval(&[value])
}
