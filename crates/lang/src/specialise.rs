//! Finds the Params that are fixed together with the sizes.

use ahash::AHashSet;

use crate::ids::{ExprId, IdVec, ParamId};
use crate::ir::{Exprs, NodeKind};
use crate::op::{BinaryOp, Op};
use crate::pipeline::Pipeline;

/// A Param is specialised if the bounds of a reduction domain or of an index depend on its value.
/// Regions and allocations then depend on it too.
///
/// The walk follows an index into the Funcs it is loaded from. At a `min` or `max` (a clamp) it follows only the
/// operands that are limits: expressions of constants, sizes, variables and Params. The clamped operand then does not
/// matter.
pub(crate) fn specialised_params(pipeline: &Pipeline) -> IdVec<ParamId, bool> {
    let exprs = &pipeline.exprs;
    let mut shapes: Vec<ExprId> = Vec::new();
    for stage in pipeline.funcs.values().flat_map(|func| &func.stages) {
        shapes.extend(stage.domain.iter().flat_map(|var| [var.min, var.extent]));
        shapes.extend(&stage.indices);
        for id in exprs.reachable(stage.roots()) {
            if matches!(exprs[id].kind, NodeKind::Load(_) | NodeKind::Table(_) | NodeKind::Call(..)) {
                shapes.extend(&exprs[id].args);
            }
        }
    }
    let loading = nodes_that_load(exprs);
    let mut specialised: IdVec<ParamId, bool> = pipeline.params.values().map(|_| false).collect();
    let mut seen = AHashSet::new();
    while let Some(id) = shapes.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = &exprs[id];
        match node.kind {
            NodeKind::Param(param) => specialised[param] = true,
            NodeKind::Load(_) => {}
            NodeKind::Call(func, value) => {
                let stages = &pipeline.funcs[func].stages;
                shapes.extend(stages.iter().filter_map(|stage| stage.values.get(value as usize)));
            }
            NodeKind::Op(Op::Binary(BinaryOp::Min | BinaryOp::Max))
                if node.args.iter().any(|arg| !loading[*arg]) =>
            {
                shapes.extend(node.args.iter().filter(|arg| {
                    !loading[**arg]
                        || matches!(
                            exprs[**arg].kind,
                            NodeKind::Op(Op::Binary(BinaryOp::Min | BinaryOp::Max))
                        )
                }));
            }
            _ => shapes.extend(&node.args),
        }
    }
    specialised
}

/// For each node, whether it contains a load or a call.
fn nodes_that_load(exprs: &Exprs) -> IdVec<ExprId, bool> {
    let mut loading: IdVec<ExprId, bool> = IdVec::new();
    for node in exprs.nodes().values() {
        let loads = matches!(node.kind, NodeKind::Load(_) | NodeKind::Call(..));
        let below = node.args.iter().any(|arg| loading[*arg]);
        loading.push(loads || below);
    }
    loading
}
