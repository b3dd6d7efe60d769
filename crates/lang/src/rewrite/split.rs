//! `split f.1.r by n`: a reduction variable as two. The order of the domain does not change.

use std::num::NonZeroU32;

use crate::draft::Draft;
use crate::ids::ExprId;
use crate::ir::{ReductionVar, Stage, StageRef};
use crate::op::BinaryOp;
use crate::rewrite::index::{Position, replace_rvars};

pub(super) fn split(draft: &mut Draft, at: StageRef, var: usize, by: NonZeroU32) {
    let stage = draft.stage(at).clone();
    let ReductionVar { name, min, extent } = stage.domain[var].clone();
    let new: Vec<ExprId> = (0..stage.domain.len()).map(|r| draft.rvar(r + usize::from(r > var))).collect();
    let outer = draft.rvar(var + 1);
    let position = Position::new(draft, new[var], outer, by, extent);
    let value = draft.binary(BinaryOp::Add, min, position.index);
    let new: Vec<ExprId> = new.iter().enumerate().map(|(r, id)| if r == var { value } else { *id }).collect();
    let mut stage = with_rvars(draft, &stage, &new);
    stage.predicate = draft.both(position.exists, stage.predicate);
    let (zero, count) = (draft.int(0), draft.int(by.get() as i32));
    let groups = draft.groups(extent, by);
    stage.domain[var] = ReductionVar { name: format!("{name}i"), min: zero, extent: count };
    stage.domain.insert(var + 1, ReductionVar { name: format!("{name}o"), min: zero, extent: groups });
    *draft.stage_mut(at) = stage;
}

/// The stage with its reduction variables replaced in indices, values and predicate. The domain stays.
pub(super) fn with_rvars(draft: &mut Draft, stage: &Stage, new: &[ExprId]) -> Stage {
    let mut all = |ids: &[ExprId]| replace_rvars(draft, ids, new);
    let (indices, values) = (all(&stage.indices), all(&stage.values));
    let predicate = stage.predicate.map(|predicate| all(&[predicate])[0]);
    Stage { indices, values, predicate, ..stage.clone() }
}
