//! Which Params are fixed together with the sizes.

use crate::ids::{ExprId, IdVec, ParamId};
use crate::ir::NodeKind;
use crate::pipeline::Pipeline;

/// A Param is specialised if a reduction domain's bound, an index of an access or an index that is
/// written is computed from it: regions and allocations then depend on its value.
pub(crate) fn specialised_params(pipeline: &Pipeline) -> IdVec<ParamId, bool> {
    let exprs = &pipeline.exprs;
    let mut shapes: Vec<ExprId> = Vec::new();
    for stage in pipeline.funcs.values().flat_map(|func| &func.stages) {
        shapes.extend(stage.domain.iter().flat_map(|var| [var.min, var.extent]));
        shapes.extend(&stage.indices);
        for id in exprs.reachable(stage.roots()) {
            if matches!(exprs[id].kind, NodeKind::Load(_) | NodeKind::Call(..)) {
                shapes.extend(&exprs[id].args);
            }
        }
    }
    // A value that is loaded has its type's range whatever it was computed from, so the walk ends there.
    let mut specialised: IdVec<ParamId, bool> = pipeline.params.values().map(|_| false).collect();
    let mut seen = ahash::AHashSet::new();
    while let Some(id) = shapes.pop() {
        if !seen.insert(id) {
            continue;
        }
        match exprs[id].kind {
            NodeKind::Param(param) => specialised[param] = true,
            NodeKind::Load(_) | NodeKind::Call(..) => {}
            _ => shapes.extend(&exprs[id].args),
        }
    }
    specialised
}
