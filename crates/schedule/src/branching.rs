//! An estimate of the number of values that are live while a definition is evaluated.

use ahash::AHashMap;
use warploom_lang::ir::{Exprs, Node, NodeKind, Stage};
use warploom_lang::op::Op;
use warploom_lang::{ExprId, FuncId};

/// The Strahler number of a stage's definition: roughly the number of registers its evaluation needs.
///
/// A leaf needs 1. Of two operands, the one that needs more is evaluated first; one more register is needed only if
/// both need the same number. A shared expression is evaluated first, on its own, and counts as a leaf at each use.
/// `inlined` returns the number of a Func that is inlined into its calls; any other call needs the registers of its
/// indices.
pub fn branching(exprs: &Exprs, stage: &Stage, inlined: impl Fn(FuncId) -> Option<u32>) -> u32 {
    let nodes = exprs.reachable(stage.roots());
    let mut uses: AHashMap<ExprId, u32> = AHashMap::new();
    for id in nodes.iter().flat_map(|id| &exprs[*id].args).copied().chain(stage.roots()) {
        *uses.entry(id).or_default() += 1;
    }
    let mut scores: AHashMap<ExprId, u32> = AHashMap::new();
    let mut shared: Vec<u32> = Vec::new();
    for id in nodes {
        let node = &exprs[id];
        let score = score(node, |arg| scores.get(&node.args[arg]).copied().unwrap_or(1), &inlined);
        let reused = !node.args.is_empty() && uses.get(&id).is_some_and(|uses| *uses > 1);
        if reused {
            shared.push(score);
        }
        scores.insert(id, if reused { 1 } else { score });
    }
    let of = |ids: &[ExprId]| ids.iter().filter_map(|id| scores.get(id)).fold(0, |all, one| join(all, *one));
    let predicate = stage.predicate.as_slice();
    let body = of(&stage.values).max(of(&stage.indices)).max(of(predicate));
    shared.into_iter().rev().fold(body, join)
}

/// The registers for two parts, where the result of one is held while the other is evaluated.
fn join(a: u32, b: u32) -> u32 {
    if a == b { a.saturating_add(1) } else { a.max(b) }
}

fn score(node: &Node, arg: impl Fn(usize) -> u32, inlined: impl Fn(FuncId) -> Option<u32>) -> u32 {
    let all = || (0..node.args.len()).map(&arg).fold(0, join).max(1);
    match node.kind {
        NodeKind::Op(Op::Select) => join(arg(0), arg(1)).max(join(arg(0), arg(2))),
        NodeKind::Call(func, _) => inlined(func).map_or_else(all, |score| score.max(1)),
        _ => all(),
    }
}
