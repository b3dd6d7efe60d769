//! `gather f.1`: a scatter as a reduction at each point. The order of the domain does not change.

use crate::draft::Draft;
use crate::ids::ExprId;
use crate::ir::{NodeKind, Stage, StageRef};
use crate::op::BinaryOp;
use crate::rewrite::index::replace_rvars;
use crate::rewrite::{RewriteError, StageName};

pub(super) fn gather(draft: &mut Draft, at: StageRef) -> Result<(), RewriteError> {
    let stage = draft.stage(at).clone();
    let mut indices = stage.indices.clone();
    let mut here = None;
    let mut known = Vec::new();
    // Without a loop, a point that the update does not write would have to read its old value.
    let is_defined = !draft.funcs[at.func].stages[0].values.is_empty();
    for (d, index) in indices.iter_mut().enumerate() {
        if !stage.is_pure(&draft.exprs, d) && !stage.is_fixed(&draft.exprs, d) {
            let var = draft.var(d);
            let condition = match draft.exprs[*index].kind {
                // The point itself determines the value of the variable that writes it.
                NodeKind::RVar(number)
                    if is_defined && !known.iter().any(|(other, _)| *other == number as usize) =>
                {
                    known.push((number as usize, var));
                    inside(draft, &stage, number as usize, var)
                }
                _ => draft.binary(BinaryOp::Eq, *index, var),
            };
            here = draft.both(here, Some(condition));
            *index = var;
        }
    }
    if here.is_none() {
        return Err(RewriteError::NoScatter { stage: StageName::of(draft, at) });
    }
    let mut reads_elsewhere = false;
    let moved = draft.rebuilt_stage(&stage, &mut |exprs, _, mut node| {
        if matches!(node.kind, NodeKind::Call(func, _) if func == at.func) {
            reads_elsewhere |= node.args[..] != stage.indices[..];
            node.args = indices.iter().copied().collect();
        }
        exprs.intern(node)
    });
    if reads_elsewhere {
        return Err(RewriteError::ReadsElsewhere { stage: StageName::of(draft, at) });
    }
    let predicate = draft.both(here, moved.predicate);
    let gathered = without(draft, Stage { indices, predicate, ..moved }, &known);
    *draft.stage_mut(at) = gathered;
    pure_update(draft, at);
    Ok(())
}

/// Whether a variable of the domain takes a value.
fn inside(draft: &mut Draft, stage: &Stage, number: usize, value: ExprId) -> ExprId {
    let var = &stage.domain[number];
    let end = draft.binary(BinaryOp::Add, var.min, var.extent);
    let (low, high) = (draft.binary(BinaryOp::Le, var.min, value), draft.binary(BinaryOp::Lt, value, end));
    draft.binary(BinaryOp::And, low, high)
}

/// A stage without the domain variables whose values are known. Bounds ignore predicates, so a value is clamped to the
/// variable's range.
fn without(draft: &mut Draft, stage: Stage, known: &[(usize, ExprId)]) -> Stage {
    let mut kept = Vec::new();
    let mut new = Vec::new();
    for (number, var) in stage.domain.iter().enumerate() {
        new.push(match known.iter().find(|(known, _)| *known == number) {
            Some((_, value)) => {
                let one = draft.int(1);
                let end = draft.binary(BinaryOp::Add, var.min, var.extent);
                let last = draft.binary(BinaryOp::Sub, end, one);
                let low = draft.binary(BinaryOp::Min, *value, last);
                draft.binary(BinaryOp::Max, low, var.min)
            }
            None => {
                kept.push(var.clone());
                draft.rvar(kept.len() - 1)
            }
        });
    }
    let roots: Vec<ExprId> = stage.values.iter().chain(&stage.predicate).copied().collect();
    let mut made = replace_rvars(draft, &roots, &new);
    let predicate = stage.predicate.and_then(|_| made.pop());
    Stage { values: made, predicate, domain: kept, ..stage }
}

/// Turns the predicate of an update without a domain into a `select`, if it has a value to fall back to; the first such
/// update is then merged into the pure definition.
fn pure_update(draft: &mut Draft, at: StageRef) {
    let (stage, start) = (draft.stage(at).clone(), draft.funcs[at.func].stages[0].values.clone());
    let Some(predicate) = stage.predicate.filter(|_| stage.domain.is_empty() && !start.is_empty()) else {
        return;
    };
    let before = draft.calls(at.func, &stage.indices);
    let pairs: Vec<(ExprId, ExprId)> = stage.values.iter().copied().zip(before).collect();
    let values = pairs.into_iter().map(|(value, before)| draft.select(predicate, value, before)).collect();
    *draft.stage_mut(at) = Stage { values, predicate: None, reassociate: false, ..stage };
    let dimensions = draft.funcs[at.func].dims.len();
    let is_pure = (0..dimensions).all(|d| draft.stage(at).is_pure(&draft.exprs, d));
    if at.stage != 1 || !is_pure {
        return;
    }
    draft.rebuild(at, &mut |exprs, _, node| match node.kind {
        NodeKind::Call(func, value) if func == at.func => start[value as usize],
        _ => exprs.intern(node),
    });
    draft.funcs[at.func].stages.remove(0);
}
