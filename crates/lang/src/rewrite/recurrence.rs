//! Recognises scans: updates that compute each value along a dimension from the one before it.

use std::collections::{BTreeMap, BTreeSet};

use crate::affine::Linear;
use crate::bounds::{Analysis, Environment, IntSpan, Span};
use crate::draft::Draft;
use crate::ids::{ExprId, FuncId, IdVec, InputId, ParamId};
use crate::ir::{Exprs, NodeKind, ParamDecl, Stage, StageRef};
use crate::op::{BinaryOp, Op, UnaryOp};
use crate::rewrite::operator::{is_associative, is_exact};
use crate::rewrite::{RewriteError, StageName};
use crate::types::{Type, Value};

const DOMAIN: &str = "it must run over one variable, without a filter";
const INDEX: &str = "it must write at r + t or t - r along one dimension, for its variable r and a `t` of constants and sizes, and at all points of the other dimensions";
const READS: &str = "it may read its own Func only at the index that it writes and at the one before";
const STEP: &str = "it must be f(r) = f(r - 1) op term, with one of + * & | ^ min max for op, or f(r) = a * f(r - 1) + term, with an `a` of constants and Params";

/// An update that computes each value along a dimension from the one before it.
pub(super) struct Scan {
    /// The dimension along which it runs.
    pub dimension: usize,
    /// Whether it runs towards larger indices.
    pub forward: bool,
    /// The expressions that read the values before.
    pub previous: BTreeSet<ExprId>,
    /// The recurrence of each value.
    pub recurrences: Vec<Recurrence>,
}

/// A recurrence: a value as a function of the previous one.
pub(super) enum Recurrence {
    /// `f(r) = f(r - 1) op term`
    Fold(BinaryOp),
    /// `f(r) = a * f(r - 1) + term`, with the given `a`.
    Linear(ExprId),
}

impl Scan {
    /// An update as a scan, if its chunks may be computed independently.
    pub fn of(draft: &mut Draft, at: StageRef) -> Result<Scan, RewriteError> {
        let stage = draft.stage(at).clone();
        let name = StageName::of(draft, at);
        let not = |form: &'static str| RewriteError::NotAScan { stage: name.clone(), form };
        if at.stage + 1 != draft.funcs[at.func].stages.len() {
            return Err(RewriteError::NotLast { stage: name });
        }
        if stage.domain.len() != 1 || stage.predicate.is_some() {
            return Err(not(DOMAIN));
        }
        let (dimension, index) = written_along(&draft.exprs, &stage).ok_or_else(|| not(INDEX))?;
        let forward = direction(&draft.exprs, &index).ok_or_else(|| not(INDEX))?;
        let distance = if forward { -1 } else { 1 };
        let previous = reads_before(&draft.exprs, at.func, &stage, dimension, &index, distance)
            .ok_or_else(|| not(READS))?;
        let mut recurrences = Vec::new();
        for value in 0..stage.values.len() {
            let recurrence =
                Recurrence::of(draft, &previous, value, stage.values[value]).ok_or_else(|| not(STEP))?;
            recurrence.check(draft, &stage, draft.funcs[at.func].types[value], &name)?;
            recurrences.push(recurrence);
        }
        Ok(Scan { dimension, forward, previous, recurrences })
    }
}

/// The only dimension that is not pure, and the index there.
fn written_along(exprs: &Exprs, stage: &Stage) -> Option<(usize, Linear)> {
    let mut others = (0..stage.indices.len()).filter(|d| !stage.is_pure(exprs, *d));
    let dimension = others.next().filter(|_| others.next().is_none())?;
    Some((dimension, linear(exprs, stage.indices[dimension])?))
}

/// Whether an index grows or falls with the variable of the domain; `None` if neither, or if it depends on
/// anything but the variable, constants, sizes and Params.
fn direction(exprs: &Exprs, index: &Linear) -> Option<bool> {
    let is_variable = |id: ExprId| matches!(exprs[id].kind, NodeKind::RVar(_));
    let (variables, rest): (Vec<_>, Vec<_>) = index.terms.iter().partition(|(atom, _)| is_variable(*atom));
    let varies = |kind: NodeKind| {
        matches!(kind, NodeKind::Var(_) | NodeKind::RVar(_) | NodeKind::Load(_) | NodeKind::Call(..))
    };
    let mut kinds = exprs.reachable(rest.iter().map(|(atom, _)| *atom)).into_iter().map(|id| exprs[id].kind);
    match variables.as_slice() {
        [(_, factor @ (1 | -1))] if !kinds.any(varies) => Some(*factor == 1),
        _ => None,
    }
}

/// The expressions that read the Func itself at `distance` from the index that the stage writes; `None` if there are
/// others that do not read at the index itself.
fn reads_before(
    exprs: &Exprs,
    func: FuncId,
    stage: &Stage,
    dimension: usize,
    index: &Linear,
    distance: i64,
) -> Option<BTreeSet<ExprId>> {
    let mut previous = BTreeSet::new();
    for id in exprs.reachable(stage.values.iter().copied()) {
        let node = &exprs[id];
        if !matches!(node.kind, NodeKind::Call(called, _) if called == func) {
            continue;
        }
        let away = linear(exprs, node.args[dimension])?.add_scaled(index, -1)?;
        match away.is_constant().then_some(away.constant)? {
            0 => {}
            away if away == distance => drop(previous.insert(id)),
            _ => return None,
        }
    }
    Some(previous)
}

/// An index as a linear combination, or `None` if its numbers overflow.
pub(super) fn linear(exprs: &Exprs, root: ExprId) -> Option<Linear> {
    let mut known: BTreeMap<ExprId, Linear> = BTreeMap::new();
    for id in exprs.reachable([root]) {
        let node = &exprs[id];
        let arg = |number: usize| &known[&node.args[number]];
        let constant = |number: usize| arg(number).is_constant().then_some(arg(number).constant);
        let form = match node.kind {
            NodeKind::Op(Op::Const(value)) => Linear::constant(value.as_int().unwrap_or_default()),
            NodeKind::Op(Op::Unary(UnaryOp::Neg)) => arg(0).scale(-1)?,
            NodeKind::Op(Op::Binary(BinaryOp::Add)) => arg(0).add_scaled(arg(1), 1)?,
            NodeKind::Op(Op::Binary(BinaryOp::Sub)) => arg(0).add_scaled(arg(1), -1)?,
            NodeKind::Op(Op::Binary(BinaryOp::Mul)) => match (constant(0), constant(1)) {
                (_, Some(factor)) => arg(0).scale(factor)?,
                (Some(factor), _) => arg(1).scale(factor)?,
                _ => Linear::atom(id),
            },
            _ => Linear::atom(id),
        };
        known.insert(id, form);
    }
    known.remove(&root)
}

impl Recurrence {
    fn of(draft: &mut Draft, previous: &BTreeSet<ExprId>, value: usize, root: ExprId) -> Option<Recurrence> {
        let node = draft.exprs[root].clone();
        let is_previous = |id: &ExprId| {
            previous.contains(id)
                && matches!(draft.exprs[*id].kind, NodeKind::Call(_, read) if read as usize == value)
        };
        if let NodeKind::Op(Op::Binary(op)) = node.kind
            && is_associative(op, node.ty)
            && let Some(old) = node.args.iter().position(is_previous)
            && draft.exprs.reachable([node.args[1 - old]]).iter().all(|id| !previous.contains(id))
        {
            return Some(Recurrence::Fold(op));
        }
        coefficient(draft, previous, value, root).map(Recurrence::Linear)
    }

    /// Refuses a step whose result depends on the order, unless the author allows another order and errors do not grow.
    fn check(&self, draft: &Draft, stage: &Stage, ty: Type, name: &StageName) -> Result<(), RewriteError> {
        let (exact, op) = match self {
            Recurrence::Fold(op) => (is_exact(*op, ty), op.name()),
            Recurrence::Linear(_) => (!ty.is_float(), "a * f + term"),
        };
        match self {
            _ if exact => Ok(()),
            _ if !stage.reassociate => Err(RewriteError::OrderMatters { stage: name.clone(), op, ty }),
            Recurrence::Linear(a) if !is_at_most_one(draft, *a) => {
                Err(RewriteError::MayGrow { stage: name.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// The `a` of an expression that equals `a * previous + term` for real numbers.
fn coefficient(draft: &mut Draft, previous: &BTreeSet<ExprId>, value: usize, root: ExprId) -> Option<ExprId> {
    let ty = draft.exprs[root].ty;
    let (zero, one) = (draft.constant(Value::zero(ty)), draft.constant(Value::from_int(ty, 1)?));
    let mut known: BTreeMap<ExprId, Option<ExprId>> = BTreeMap::new();
    for id in draft.exprs.reachable([root]) {
        let node = draft.exprs[id].clone();
        let args: Vec<Option<ExprId>> = node.args.iter().map(|arg| known[arg]).collect();
        let found = match (node.kind, args.as_slice()) {
            (NodeKind::Call(_, read), _) if previous.contains(&id) => {
                (read as usize == value).then_some(Some(one))?
            }
            (_, args) if args.iter().all(Option::is_none) => None,
            (NodeKind::Op(Op::Unary(UnaryOp::Neg)), [Some(a)]) => {
                Some(computed(draft, BinaryOp::Sub, zero, *a))
            }
            (NodeKind::Op(Op::Binary(op @ (BinaryOp::Add | BinaryOp::Sub))), [a, b]) => match (a, b) {
                (Some(a), None) => Some(*a),
                (None, Some(b)) if op == BinaryOp::Add => Some(*b),
                (a, b) => Some(computed(draft, op, a.unwrap_or(zero), b.unwrap_or(zero))),
            },
            (NodeKind::Op(Op::Binary(BinaryOp::Mul)), [Some(a), None]) => {
                Some(multiple(draft, *a, node.args[1], one)?)
            }
            (NodeKind::Op(Op::Binary(BinaryOp::Mul)), [None, Some(a)]) => {
                Some(multiple(draft, *a, node.args[0], one)?)
            }
            _ => return None,
        };
        known.insert(id, found);
    }
    known[&root]
}

/// The product of a coefficient and a factor made of constants and Params.
fn multiple(draft: &mut Draft, a: ExprId, factor: ExprId, one: ExprId) -> Option<ExprId> {
    let mut parts = draft.exprs.reachable([factor]).into_iter().map(|id| draft.exprs[id].kind);
    let same_everywhere = parts.all(|kind| matches!(kind, NodeKind::Op(_) | NodeKind::Param(_)));
    let product =
        |draft: &mut Draft| if a == one { factor } else { computed(draft, BinaryOp::Mul, a, factor) };
    same_everywhere.then(|| product(draft))
}

/// `a` to the power `count`, by repeated squaring.
pub(super) fn power(draft: &mut Draft, a: ExprId, count: u32) -> ExprId {
    let (mut result, mut square) = (None, a);
    for bit in 0..u32::BITS - count.leading_zeros() {
        if bit > 0 {
            square = computed(draft, BinaryOp::Mul, square, square);
        }
        if count >> bit & 1 == 1 {
            result = Some(result.map_or(square, |result| computed(draft, BinaryOp::Mul, result, square)));
        }
    }
    result.unwrap_or(a)
}

/// The result of an operator, as a constant if both operands are constants.
fn computed(draft: &mut Draft, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
    match (draft.exprs.constant(a), draft.exprs.constant(b)) {
        (Some(a), Some(b)) => draft.constant(Op::Binary(op).eval(&[a, b])),
        _ => draft.binary(op, a, b),
    }
}

/// Whether the magnitude of a float is at most 1 for all values that its Params may have.
fn is_at_most_one(draft: &Draft, a: ExprId) -> bool {
    match Analysis::new(&draft.exprs, &AnyParams(&draft.params), [a]).span(a) {
        Span::Float(span) => span.min >= -1.0 && span.max <= 1.0 && !span.nan,
        Span::Int(_) => false,
    }
}

/// Params anywhere in their declared ranges. Coefficients have no other leaves.
struct AnyParams<'a>(&'a IdVec<ParamId, ParamDecl>);

impl Environment for AnyParams<'_> {
    fn var(&self, _: usize) -> IntSpan {
        IntSpan::of_type(Type::I32)
    }
    fn rvar(&self, _: usize) -> IntSpan {
        IntSpan::of_type(Type::I32)
    }
    fn param(&self, param: ParamId) -> Span {
        Span::declared(&self.0[param])
    }
    fn input_min(&self, _: InputId, _: usize) -> IntSpan {
        IntSpan::of_type(Type::I32)
    }
    fn input_extent(&self, _: InputId, _: usize) -> IntSpan {
        IntSpan::of_type(Type::I32)
    }
}
