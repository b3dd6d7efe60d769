//! `factor f.1.r inner n` and `factor f.1.r outer n`: partial results as a new dimension.

use std::num::NonZeroU32;

use crate::draft::Draft;
use crate::ids::{ExprId, FuncId};
use crate::ir::{FuncDecl, NodeKind, ReductionVar, Stage, StageRef};
use crate::op::BinaryOp;
use crate::rewrite::index::{Position, replace_rvars};
use crate::rewrite::operator::{Reduction, identity};
use crate::rewrite::{RewriteError, Side};

pub(super) fn factor(
    draft: &mut Draft,
    at: StageRef,
    var: usize,
    side: Side,
    by: NonZeroU32,
) -> Result<(), RewriteError> {
    let reduction = Reduction::in_any_order(draft, at)?;
    if draft.funcs[at.func].stages[0].values.is_empty() {
        return Err(RewriteError::Undefined { func: draft.funcs[at.func].name.clone() });
    }
    let factoring = Factoring { at, var, side, by, reduction };
    let part = factoring.start(draft);
    let count = factoring.add_update(draft, part);
    factoring.reduce_parts(draft, part, count);
    Ok(())
}

struct Factoring {
    at: StageRef,
    var: usize,
    side: Side,
    by: NonZeroU32,
    reduction: Reduction,
}

impl Factoring {
    /// The dimension of the partial results: the fastest for [`Side::Inner`], whose lanes read
    /// neighbouring values, otherwise the slowest.
    fn dimension(&self, draft: &Draft) -> usize {
        match self.side {
            Side::Inner => 0,
            Side::Outer => draft.funcs[self.at.func].dims.len(),
        }
    }

    /// Adds the Func of the partial results with its initial values.
    fn start(&self, draft: &mut Draft) -> FuncId {
        let FuncDecl { name, mut dims, types, .. } = draft.funcs[self.at.func].clone();
        let suffix = if self.side == Side::Inner { "i" } else { "o" };
        let var = &draft.stage(self.at).domain[self.var].name;
        dims.insert(self.dimension(draft), format!("{var}{suffix}"));
        let ops = self.reduction.ops.iter().zip(&types);
        let values = ops.map(|(op, ty)| draft.constant(identity(*op, *ty))).collect();
        let stages = vec![draft.pure_stage(dims.len(), values, draft.stage(self.at).place)];
        let name = draft.free_name(format!("{name}.part"));
        draft.funcs.push(FuncDecl { name, dims, types, stages, stored: None })
    }

    /// Adds the update of the partial results, and returns their number.
    fn add_update(&self, draft: &mut Draft, part: FuncId) -> ExprId {
        let (stage, dimension) = (draft.stage(self.at).clone(), self.dimension(draft));
        let ReductionVar { min, extent, .. } = stage.domain[self.var];
        let (number, rest) = (draft.var(dimension), draft.rvar(self.var));
        let (low, high) = if self.side == Side::Inner { (number, rest) } else { (rest, number) };
        let position = Position::new(draft, low, high, self.by, extent);
        let value = draft.binary(BinaryOp::Add, min, position.index);
        let rvars = (0..stage.domain.len()).map(|r| if r == self.var { value } else { draft.rvar(r) });
        let rvars: Vec<ExprId> = rvars.collect();
        let moved = |draft: &mut Draft, ids: &[ExprId]| -> Vec<ExprId> {
            let ids = make_room(draft, ids, dimension);
            replace_rvars(draft, &ids, &rvars)
        };
        let mut indices = moved(draft, &stage.indices);
        indices.insert(dimension, number);
        let terms = moved(draft, &self.reduction.terms);
        let predicate = stage.predicate.map(|predicate| moved(draft, &[predicate])[0]);
        let predicate = draft.both(position.exists, predicate);
        let (groups, by) = (draft.groups(extent, self.by), draft.int(self.by.get() as i32));
        let (count, rest) = if self.side == Side::Inner { (by, groups) } else { (groups, by) };
        let mut domain = stage.domain.clone();
        (domain[self.var].min, domain[self.var].extent) = (draft.int(0), rest);
        let values = self.reduction.combined(draft, part, &indices, &terms);
        let stage = Stage { indices, values, domain, predicate, ..stage };
        draft.funcs[part].stages.push(stage);
        count
    }

    /// Lets the original update reduce the partial results, at every point that it may write.
    fn reduce_parts(&self, draft: &mut Draft, part: FuncId, count: ExprId) {
        let (stage, dimension) = (draft.stage(self.at).clone(), self.dimension(draft));
        let index = |(d, index): (usize, &ExprId)| match stage.is_fixed(&draft.exprs, d) {
            true => *index,
            false => draft.var(d),
        };
        let indices: Vec<ExprId> = stage.indices.iter().enumerate().map(index).collect();
        let mut part_indices = indices.clone();
        part_indices.insert(dimension, draft.rvar(0));
        let parts = draft.calls(part, &part_indices);
        let values = self.reduction.combined(draft, self.at.func, &indices, &parts);
        let name = draft.funcs[part].dims[dimension].clone();
        let domain = vec![ReductionVar { name, min: draft.int(0), extent: count }];
        *draft.stage_mut(self.at) = Stage { indices, values, domain, predicate: None, ..stage };
    }
}

/// Makes room for a new dimension: variables from `dimension` on move up by one.
pub(super) fn make_room(draft: &mut Draft, roots: &[ExprId], dimension: usize) -> Vec<ExprId> {
    let made = draft.rebuilt(roots.to_vec(), &mut |exprs, _, mut node| {
        if let NodeKind::Var(d) = &mut node.kind {
            *d += u32::from(*d as usize >= dimension);
        }
        exprs.intern(node)
    });
    roots.iter().map(|root| made[root]).collect()
}
