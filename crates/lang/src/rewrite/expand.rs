//! `expand f.1`: a reduction over a few constant values as one expression. The order does not change.

use smallvec::SmallVec;

use crate::draft::{Draft, copied};
use crate::ids::{ExprId, FuncId, IdVec};
use crate::ir::{Exprs, FuncDecl, Node, NodeKind, Stage, StageRef};
use crate::op::Op;
use crate::region::Range;
use crate::rewrite::evaluate::points;
use crate::rewrite::fold::folded;
use crate::rewrite::{RewriteError, StageName};
use crate::types::Value;

/// The maximum number of steps of a reduction that is expanded.
const MAX_STEPS: i64 = 128;

/// The maximum number of nodes that an expansion may add.
const MAX_NODES: usize = 20_000;

pub(super) fn expand(draft: &mut Draft, at: StageRef) -> Result<(), RewriteError> {
    let name = StageName::of(draft, at);
    let refused = |why| RewriteError::NotExpandable { stage: name.clone(), why };
    let stage = draft.stage(at).clone();
    let start = draft.funcs[at.func].stages[0].values.clone();
    if at.stage != 1 {
        return Err(refused("it must be the first update; cut the Func before it"));
    }
    if start.is_empty() {
        return Err(RewriteError::Undefined { func: name.func.clone() });
    }
    if !(0..stage.indices.len()).all(|d| stage.is_pure(&draft.exprs, d)) {
        return Err(refused("it must write at the point of its pure variables"));
    }
    let domain = constant_domain(&draft.exprs, &stage)
        .ok_or_else(|| refused("its domain must be constant, with at most 128 values"))?;
    let limit = draft.exprs.len() + MAX_NODES;
    let mut values = start;
    for step in points(&domain) {
        values = after_step(draft, at.func, &stage, &step, values);
    }
    while let Some(unfolded) = unfolded(draft, at.func, &values) {
        values = unfolded;
        if draft.exprs.len() > limit {
            return Err(refused("the expression would have too many operations"));
        }
    }
    let pure = draft.pure_stage(stage.indices.len(), values, stage.place);
    draft.funcs[at.func].stages.splice(..=at.stage, [pure]);
    Ok(())
}

/// The ranges of a domain, if they are constants and not too large.
fn constant_domain(exprs: &Exprs, stage: &Stage) -> Option<Vec<Range>> {
    let int = |id: ExprId| exprs.constant(id).and_then(Value::as_int);
    let ranges = stage.domain.iter().map(|var| Some(Range::new(int(var.min)?, int(var.extent)?)));
    let ranges: Vec<Range> = ranges.collect::<Option<_>>()?;
    let steps = ranges.iter().fold(1, |steps: i64, range| steps.saturating_mul(range.extent));
    (steps <= MAX_STEPS).then_some(ranges)
}

/// The values of a Func after one step of its update.
fn after_step(
    draft: &mut Draft,
    func: FuncId,
    stage: &Stage,
    step: &[i64],
    before: Vec<ExprId>,
) -> Vec<ExprId> {
    let made = draft.rebuilt(stage.roots().collect(), &mut |exprs, _, node| match node.kind {
        NodeKind::RVar(number) => {
            exprs.constant_node(Value::from(i32::try_from(step[number as usize]).unwrap_or_default()))
        }
        NodeKind::Call(read, value) if read == func => before[value as usize],
        _ => folded(exprs, node),
    });
    let Some(predicate) = stage.predicate.map(|predicate| made[&predicate]) else {
        return stage.values.iter().map(|value| made[value]).collect();
    };
    let chosen = stage.values.iter().zip(before).map(|(value, before)| {
        let args = SmallVec::from_slice(&[predicate, made[value], before]);
        let ty = draft.exprs[before].ty;
        folded(&mut draft.exprs, Node { kind: NodeKind::Op(Op::Select), ty, args })
    });
    chosen.collect()
}

/// The expressions with the pure Funcs that they read at constant indices inlined; `None` if there are no such reads.
fn unfolded(draft: &mut Draft, own: FuncId, roots: &[ExprId]) -> Option<Vec<ExprId>> {
    let (funcs, old) = (draft.funcs.clone(), draft.exprs.clone());
    let mut changed = false;
    let made =
        draft.rebuilt(roots.to_vec(), &mut |exprs, _, node| match definition(&funcs, exprs, own, &node) {
            Some(root) => {
                changed = true;
                let made = copied(&old, exprs, vec![root], &mut |exprs, _, inner| match inner.kind {
                    NodeKind::Var(d) => node.args[d as usize],
                    _ => folded(exprs, inner),
                });
                made[&root]
            }
            None => folded(exprs, node),
        });
    changed.then(|| roots.iter().map(|root| made[root]).collect())
}

/// The definition of a pure Func that a node reads at a constant index along a dimension.
fn definition(funcs: &IdVec<FuncId, FuncDecl>, exprs: &Exprs, own: FuncId, node: &Node) -> Option<ExprId> {
    let NodeKind::Call(func, value) = node.kind else { return None };
    let at_constant = node.args.iter().any(|arg| exprs.constant(*arg).is_some());
    match funcs[func].stages.as_slice() {
        [only] if at_constant && func != own => only.values.get(value as usize).copied(),
        _ => None,
    }
}
