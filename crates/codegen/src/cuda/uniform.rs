//! Which values are uniform: the same in all threads of a block.

use warploom_lang::IdVec;

use crate::ir::{Binding, Kernel, KernelNode, Leaf, NodeId, NodeKind, VarId, every_stmt};

/// The uniform nodes of a kernel: those that depend only on constants, loop variables, block indices, sizes and Params.
/// Loads are not uniform, except from arrays that `is_constant` accepts.
pub(super) fn uniform(kernel: &Kernel, is_constant: impl Fn(&KernelNode) -> bool) -> IdVec<NodeId, bool> {
    let mut vars: IdVec<VarId, bool> = kernel.vars.values().map(|_| true).collect();
    loop {
        let mut nodes: IdVec<NodeId, bool> = IdVec::new();
        for node in kernel.exprs.nodes().values() {
            let own = match node.kind {
                NodeKind::Leaf(Leaf::Thread) => false,
                NodeKind::Leaf(Leaf::Var(var)) => vars[var],
                NodeKind::Load(_) => is_constant(node),
                NodeKind::Leaf(_) | NodeKind::Op(_) | NodeKind::Offset(_) => true,
            };
            nodes.push(own && node.args.iter().all(|arg| nodes[*arg]));
        }
        let varying = every_stmt(&kernel.body).filter_map(|stmt| {
            let (var, binding) = stmt.effects().binds?;
            let varies = match binding {
                Binding::Value(value) => !nodes[value],
                Binding::Exchanged => true,
                Binding::Iteration => false,
            };
            varies.then_some(var)
        });
        // The value of a variable may depend on other variables.
        let new: Vec<VarId> = varying.filter(|var| vars[*var]).collect();
        if new.is_empty() {
            return nodes;
        }
        new.into_iter().for_each(|var| vars[var] = false);
    }
}
