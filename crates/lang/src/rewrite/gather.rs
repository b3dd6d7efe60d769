//! `gather f.1`: a scatter as a reduction at each point. The order of the domain stays as it is.

use crate::draft::Draft;
use crate::ir::{NodeKind, Stage, StageRef};
use crate::op::BinaryOp;
use crate::rewrite::{RewriteError, StageName};

pub(super) fn gather(draft: &mut Draft, at: StageRef) -> Result<(), RewriteError> {
    let stage = draft.stage(at).clone();
    let mut indices = stage.indices.clone();
    let mut here = None;
    for (d, index) in indices.iter_mut().enumerate() {
        if !stage.is_pure(&draft.exprs, d) && !stage.is_fixed(&draft.exprs, d) {
            let var = draft.var(d);
            let equal = draft.binary(BinaryOp::Eq, *index, var);
            here = draft.both(here, Some(equal));
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
    *draft.stage_mut(at) = Stage { indices, predicate, ..moved };
    Ok(())
}
