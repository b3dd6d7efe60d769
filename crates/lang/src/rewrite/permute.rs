//! `permute f.1 ry, rx`: the variables of a domain in another order.

use crate::draft::Draft;
use crate::ids::ExprId;
use crate::ir::{ReductionVar, Stage, StageRef};
use crate::rewrite::operator::Reduction;
use crate::rewrite::split::with_rvars;
use crate::rewrite::{RewriteError, StageName};

pub(super) fn permute(draft: &mut Draft, at: StageRef, vars: &[String]) -> Result<(), RewriteError> {
    let stage = draft.stage(at).clone();
    let number = |var: &ReductionVar| vars.iter().position(|name| *name == var.name);
    let numbers: Option<Vec<usize>> = stage.domain.iter().map(number).collect();
    let Some(numbers) = numbers.filter(|numbers| numbers.len() == vars.len()) else {
        let vars = stage.domain.into_iter().map(|var| var.name).collect();
        return Err(RewriteError::NotAPermutation { stage: StageName::of(draft, at), vars });
    };
    Reduction::in_any_order(draft, at)?;
    let rvars: Vec<ExprId> = numbers.iter().map(|number| draft.rvar(*number)).collect();
    let mut domain: Vec<(&usize, ReductionVar)> = numbers.iter().zip(stage.domain.clone()).collect();
    domain.sort_by_key(|(number, _)| **number);
    let domain = domain.into_iter().map(|(_, var)| var).collect();
    let stage = with_rvars(draft, &stage, &rvars);
    *draft.stage_mut(at) = Stage { domain, ..stage };
    Ok(())
}
