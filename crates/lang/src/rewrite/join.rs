//! `join f, g`: two reductions over one domain as one Func with the values of both.

use crate::draft::Draft;
use crate::ids::{ExprId, FuncId};
use crate::ir::{FuncDecl, ReductionVar, Stage};
use crate::rewrite::RewriteError;

pub(super) fn join(draft: &mut Draft, one: FuncId, other: FuncId) -> Result<(), RewriteError> {
    check(draft, one, other)?;
    let (FuncDecl { name, dims, mut types, .. }, second) =
        (draft.funcs[one].clone(), draft.funcs[other].types.clone());
    let first_values = types.len();
    types.extend(second);
    let joint = draft.funcs.push(FuncDecl {
        name: format!("{name}.join"),
        dims,
        types,
        stages: Vec::new(),
        stored: None,
    });
    draft.redirect(one, one, joint, 0);
    draft.redirect(other, other, joint, first_values);
    let pairs = draft.funcs[one].stages.iter().zip(&draft.funcs[other].stages);
    let stages = pairs.map(|(a, b)| Stage {
        values: [a.values.as_slice(), &b.values].concat(),
        reassociate: a.reassociate && b.reassociate,
        ..a.clone()
    });
    draft.funcs[joint].stages = stages.collect();
    let dimensions = draft.funcs[joint].dims.len();
    let at: Vec<ExprId> = (0..dimensions).map(|d| draft.var(d)).collect();
    let mut values = draft.calls(joint, &at);
    let second = values.split_off(first_values);
    for (func, values) in [(one, values), (other, second)] {
        let place = draft.funcs[func].stages[0].place;
        draft.funcs[func].stages = vec![draft.pure_stage(dimensions, values, place)];
    }
    Ok(())
}

fn check(draft: &Draft, one: FuncId, other: FuncId) -> Result<(), RewriteError> {
    let (a, b) = (&draft.funcs[one], &draft.funcs[other]);
    let refused = |why| Err(RewriteError::NotJoinable { one: a.name.clone(), other: b.name.clone(), why });
    let depends = |on: FuncId, func: FuncId| draft.producers_first(vec![func]).contains(&on);
    if depends(one, other) || depends(other, one) {
        return refused("one of them depends on the other");
    }
    let ([start_a, update_a], [start_b, update_b]) = (a.stages.as_slice(), b.stages.as_slice()) else {
        return refused("each of them needs a start and exactly one update");
    };
    for (func, start) in [(a, start_a), (b, start_b)] {
        if start.values.is_empty() {
            return Err(RewriteError::Undefined { func: func.name.clone() });
        }
    }
    let bounds = |stage: &Stage| -> Vec<(ExprId, ExprId)> {
        stage.domain.iter().map(|ReductionVar { min, extent, .. }| (*min, *extent)).collect()
    };
    if update_a.indices != update_b.indices {
        return refused("their updates write at different points");
    }
    if bounds(update_a) != bounds(update_b) || update_a.predicate != update_b.predicate {
        return refused("their updates run over different domains");
    }
    Ok(())
}
