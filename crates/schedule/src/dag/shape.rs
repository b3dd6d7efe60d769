//! Classifies definitions by structure: copies, pointwise definitions and boundary conditions.

use ahash::AHashMap;
use warploom_lang::ExprId;
use warploom_lang::ir::{Exprs, FuncDecl, Node, NodeKind};
use warploom_lang::op::{BinaryOp, Op};

fn is_access(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Load(_) | NodeKind::Call(..))
}

/// Whether an access reads at exactly the variables of a Func with `dimensions` dimensions.
fn at_own_point(exprs: &Exprs, access: &Node, dimensions: usize) -> bool {
    access.args.len() == dimensions
        && access.args.iter().enumerate().all(|(d, arg)| exprs[*arg].kind == NodeKind::Var(d as u32))
}

/// Whether the only definition is a single access at the Func's own variables.
pub(crate) fn is_wrapper(exprs: &Exprs, func: &FuncDecl) -> bool {
    let [stage] = &func.stages[..] else { return false };
    let [value] = stage.values[..] else { return false };
    is_access(&exprs[value]) && at_own_point(exprs, &exprs[value], func.dims.len())
}

/// Whether there are no updates and every access is at the Func's own variables.
pub(crate) fn is_pointwise(exprs: &Exprs, func: &FuncDecl) -> bool {
    let [stage] = &func.stages[..] else { return false };
    let nodes = exprs.reachable(stage.roots()).into_iter().map(|id| &exprs[id]);
    nodes.filter(|node| is_access(node)).all(|access| at_own_point(exprs, access, func.dims.len()))
}

/// Whether the only definition is a single access whose indices are moved in-bounds, each on its own,
/// or selects between that access and values that read nothing.
pub(crate) fn is_boundary_condition(exprs: &Exprs, func: &FuncDecl) -> bool {
    let [stage] = &func.stages[..] else { return false };
    let [value] = stage.values[..] else { return false };
    let Some(access) = selected_access(exprs, value) else { return false };
    let indices = &exprs[access].args;
    indices.len() == func.dims.len()
        && indices.iter().enumerate().all(|(d, index)| uses_only(exprs, *index, d))
        && indices.iter().any(|index| bends(exprs, *index))
}

/// The only access of an expression, if the expression is that access or selects it.
fn selected_access(exprs: &Exprs, root: ExprId) -> Option<ExprId> {
    let nodes = exprs.reachable([root]);
    let mut accesses = nodes.iter().copied().filter(|id| is_access(&exprs[*id]));
    let access = accesses.next()?;
    if accesses.next().is_some() {
        return None;
    }
    // For each node: whether it reads anything, and whether its value is the access or reads nothing.
    let mut seen: AHashMap<ExprId, (bool, bool)> = AHashMap::new();
    for id in nodes {
        let node = &exprs[id];
        let of = |arg: usize| seen.get(&node.args[arg]).copied().unwrap_or_default();
        let reads = id == access || (0..node.args.len()).any(|arg| of(arg).0);
        let selects = node.kind == NodeKind::Op(Op::Select) && !of(0).0 && of(1).1 && of(2).1;
        seen.insert(id, (reads, id == access || !reads || selects));
    }
    seen.get(&root).is_some_and(|(_, gives)| *gives).then_some(access)
}

/// Whether an expression uses the variable of this dimension and no other variable.
fn uses_only(exprs: &Exprs, index: ExprId, dimension: usize) -> bool {
    let own = NodeKind::Var(dimension as u32);
    let nodes = exprs.reachable([index]);
    let mut variables = nodes
        .iter()
        .map(|id| exprs[*id].kind)
        .filter(|kind| matches!(kind, NodeKind::Var(_) | NodeKind::RVar(_)));
    variables.next() == Some(own) && variables.next().is_none()
}

/// Whether a remainder, minimum or maximum keeps an index in-bounds.
fn bends(exprs: &Exprs, index: ExprId) -> bool {
    let inward = |id: &ExprId| {
        matches!(exprs[*id].kind, NodeKind::Op(Op::Binary(BinaryOp::Min | BinaryOp::Max | BinaryOp::Mod)))
    };
    exprs.reachable([index]).iter().any(inward)
}
