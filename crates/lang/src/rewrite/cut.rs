//! `cut f at k`: the stages before k as a Func of their own. The order of operations does not change.

use crate::draft::Draft;
use crate::ids::FuncId;
use crate::ir::{FuncDecl, NodeKind, Stage};
use crate::rewrite::RewriteError;

pub(super) fn cut(draft: &mut Draft, func: FuncId, at: usize) -> Result<(), RewriteError> {
    let FuncDecl { name, dims, stages, .. } = &draft.funcs[func];
    let (dimensions, place) = (dims.len(), stages[0].place);
    if at == 0 || at > stages.len() {
        return Err(RewriteError::NoCut { func: name.clone(), at, stages: stages.len() });
    }
    let copy = first_stages(draft, func, at, "cut")?;
    let indices: Vec<_> = (0..dimensions).map(|d| draft.var(d)).collect();
    let values = draft.calls(copy, &indices);
    let start = Stage::pure(indices, values, place);
    draft.funcs[func].stages.splice(..at, [start]);
    Ok(())
}

/// Adds a Func with the first `count` stages of another one, readable at all points.
pub(super) fn first_stages(
    draft: &mut Draft,
    func: FuncId,
    count: usize,
    suffix: &str,
) -> Result<FuncId, RewriteError> {
    let FuncDecl { name, dims, types, stages, .. } = draft.funcs[func].clone();
    let stages = stages[..count].to_vec();
    if !is_defined(draft, &stages) {
        return Err(RewriteError::Undefined { func: name });
    }
    let copy =
        draft.funcs.push(FuncDecl { name: format!("{name}.{suffix}"), dims, types, stages, stored: None });
    draft.redirect(copy, func, copy, 0);
    Ok(copy)
}

/// Whether some stages can be assumed to define every needed point of their Func: they have an initial value, or an
/// update sweeps over the points.
///
/// A sweep covers a box that depends on the sizes, so no more can be known here. At given sizes,
/// [`warnings`](crate::warnings) reports the points of the rewritten pipeline that are read but never written, as it
/// does for pipelines that were written that way. The reference evaluator gives 0 at such a point before and after the
/// rewrite.
fn is_defined(draft: &Draft, stages: &[Stage]) -> bool {
    let exprs = &draft.exprs;
    let sweeps = |stage: &Stage, d: usize| {
        let kinds = exprs.reachable([stage.indices[d]]).into_iter().map(|id| exprs[id].kind);
        let kinds: Vec<NodeKind> = kinds.collect();
        let loads =
            |kind: &NodeKind| matches!(kind, NodeKind::Load(_) | NodeKind::Table(_) | NodeKind::Call(..));
        let loaded = kinds.iter().any(loads);
        !loaded && kinds.iter().any(|kind| matches!(kind, NodeKind::RVar(_)))
    };
    let covers = |stage: &Stage| {
        let mut dimensions = 0..stage.indices.len();
        stage.predicate.is_none() && dimensions.all(|d| stage.is_pure(exprs, d) || sweeps(stage, d))
    };
    !stages[0].values.is_empty() || stages[1..].iter().any(covers)
}
