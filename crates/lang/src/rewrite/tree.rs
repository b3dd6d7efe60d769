//! `tree f.1`: a reduction over a constant number of values as a tree of pure Funcs.

use std::num::NonZeroU32;

use crate::draft::Draft;
use crate::ids::{ExprId, FuncId};
use crate::ir::{FuncDecl, Stage, StageRef};
use crate::op::BinaryOp;
use crate::rewrite::factor::make_room;
use crate::rewrite::index::{Position, replace_rvars};
use crate::rewrite::operator::{Reduction, identity};
use crate::rewrite::{RewriteError, StageName};
use crate::types::Value;

pub(super) fn tree(draft: &mut Draft, at: StageRef) -> Result<(), RewriteError> {
    let reduction = Reduction::in_any_order(draft, at)?;
    let mut count = count(draft, at)?;
    let tree = Tree { at, stage: draft.stage(at).clone(), reduction };
    let mut levels = Vec::new();
    while let Some(pairs) = NonZeroU32::new(count / 2) {
        let half = pairs.saturating_add(count % 2);
        levels.push(tree.add_level(draft, &levels, count, half));
        count = half.get();
    }
    if let Some(last) = levels.last() {
        tree.add_root(draft, *last);
    }
    Ok(())
}

/// The number of values of the only reduction variable of an update that can become a tree.
fn count(draft: &Draft, at: StageRef) -> Result<u32, RewriteError> {
    let (stage, exprs) = (draft.stage(at), &draft.exprs);
    let name = || StageName::of(draft, at);
    if (0..stage.indices.len()).any(|d| !stage.is_pure(exprs, d) && !stage.is_fixed(exprs, d)) {
        return Err(RewriteError::Scatters { stage: name() });
    }
    let start = &draft.funcs[at.func].stages[0];
    if start.values.is_empty() && stage.predicate.is_some() {
        return Err(RewriteError::Undefined { func: draft.funcs[at.func].name.clone() });
    }
    let count = match stage.domain.as_slice() {
        [only] => exprs.constant(only.extent).and_then(Value::as_int),
        _ => None,
    };
    let count = count.and_then(|count| u32::try_from(count).ok()).filter(|count| *count >= 2);
    count.ok_or_else(|| RewriteError::NoTree { stage: name() })
}

struct Tree {
    at: StageRef,
    /// The update before the rewrite.
    stage: Stage,
    reduction: Reduction,
}

impl Tree {
    /// Adds the Func that combines the first half of `count` values with the rest: the values of the last
    /// level, or the terms of the update.
    fn add_level(&self, draft: &mut Draft, levels: &[FuncId], count: u32, half: NonZeroU32) -> FuncId {
        let FuncDecl { name, mut dims, types, .. } = draft.funcs[self.at.func].clone();
        dims.insert(0, self.stage.domain[0].name.clone());
        let (first, one, count) = (draft.var(0), draft.int(1), draft.int(count as i32));
        let second = Position::new(draft, first, one, half, count);
        let left = self.operands(draft, levels, first, None);
        let right = self.operands(draft, levels, second.index, second.exists);
        let pairs = self.reduction.ops.iter().zip(left.into_iter().zip(right));
        let values = pairs.map(|(op, (a, b))| draft.binary(*op, a, b)).collect();
        let stages = vec![draft.pure_stage(dims.len(), values, self.stage.place)];
        draft.funcs.push(FuncDecl {
            name: format!("{name}.tree{}", levels.len() + 1),
            dims,
            types,
            stages,
            stored: None,
        })
    }

    /// The values at a position of the last level, or neutral values if the position does not exist or the update does
    /// not run.
    fn operands(
        &self,
        draft: &mut Draft,
        levels: &[FuncId],
        position: ExprId,
        exists: Option<ExprId>,
    ) -> Vec<ExprId> {
        let (condition, values) = match levels.last() {
            Some(last) => {
                let rest = (0..self.stage.indices.len()).map(|d| draft.var(d + 1));
                let indices: Vec<ExprId> = std::iter::once(position).chain(rest).collect();
                (exists, draft.calls(*last, &indices))
            }
            None => {
                let value = draft.binary(BinaryOp::Add, self.stage.domain[0].min, position);
                let moved = |draft: &mut Draft, ids: &[ExprId]| -> Vec<ExprId> {
                    let ids = make_room(draft, ids, 0);
                    replace_rvars(draft, &ids, &[value])
                };
                let predicate = self.stage.predicate.map(|predicate| moved(draft, &[predicate])[0]);
                (draft.both(exists, predicate), moved(draft, &self.reduction.terms))
            }
        };
        let Some(condition) = condition else { return values };
        let or_nothing = |(value, op): (ExprId, &BinaryOp)| {
            let nothing = draft.constant(identity(*op, draft.exprs[value].ty));
            draft.select(condition, value, nothing)
        };
        values.into_iter().zip(&self.reduction.ops).map(or_nothing).collect()
    }

    /// Lets the original update read the only value of the last level. If only the initial values are left, the Func
    /// becomes pure.
    fn add_root(&self, draft: &mut Draft, last: FuncId) {
        let stage = self.stage.clone();
        let indices: Vec<ExprId> = std::iter::once(draft.int(0)).chain(stage.indices.clone()).collect();
        let terms = draft.calls(last, &indices);
        let pure = (0..stage.indices.len()).all(|d| stage.is_pure(&draft.exprs, d));
        if let ([start, _], true) = (draft.funcs[self.at.func].stages.as_slice(), pure)
            && !start.values.is_empty()
        {
            let mut start = start.clone();
            let values = self.reduction.ops.iter().zip(start.values.iter().zip(&terms));
            start.values = values.map(|(op, (first, rest))| draft.binary(*op, *first, *rest)).collect();
            draft.funcs[self.at.func].stages = vec![start];
            return;
        }
        let values = self.reduction.combined(draft, self.at.func, &stage.indices, &terms);
        let domain = Vec::new();
        *draft.stage_mut(self.at) = Stage { values, domain, predicate: None, reassociate: false, ..stage };
    }
}
