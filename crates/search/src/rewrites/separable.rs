//! Separable stencils: sums over boxes of neighbours as two passes, which have fewer products.

use std::collections::HashMap;

use warploom_lang::Pipeline;
use warploom_lang::ir::{FuncDecl, NodeKind};
use warploom_lang::rewrite::Rewrite;
use warploom_plan::Problem;

use crate::rewrites::List;

/// The fewest points of a box for which two passes have fewer products: 2 x 3.
const FEWEST: usize = 6;

/// A pipeline with more such sums is not rewritten: every rewrite copies the whole pipeline.
const MOST: usize = 64;

/// The problem with every separable sum in two passes, along the first possible dimension; `None` if there is none.
pub(super) fn separated(problem: &Problem) -> Option<Problem> {
    let pipeline = problem.pipeline();
    let large: Vec<&FuncDecl> =
        pipeline.funcs().values().filter(|func| may_sum_a_box(pipeline, func)).collect();
    if large.len() > MOST {
        return None;
    }
    let mut list = List { pipeline: pipeline.clone() };
    for FuncDecl { name, dims, .. } in large {
        // A separated box of three dimensions leaves a box of two.
        let mut left = dims.len();
        for dim in dims {
            let separate = Rewrite::Separate { func: name.clone(), dim: dim.clone() };
            if left > 1 && list.push(separate) {
                left -= 1;
            }
        }
    }
    let is_new = list.pipeline.rewrites().len() > pipeline.rewrites().len();
    is_new.then(|| problem.of_rewritten(&list.pipeline).ok())?
}

/// Whether a Func reads one source at enough points for two passes to pay; others are not tried.
fn may_sum_a_box(pipeline: &Pipeline, func: &FuncDecl) -> bool {
    let exprs = pipeline.exprs();
    let sums_over_domain = func.stages.iter().any(|stage| stage.domain.len() >= 2);
    let mut reads: HashMap<NodeKind, usize> = HashMap::new();
    let nodes = exprs.reachable(func.stages[0].values.iter().copied());
    for kind in nodes.into_iter().map(|id| exprs[id].kind) {
        if matches!(kind, NodeKind::Load(_) | NodeKind::Call(..)) {
            *reads.entry(kind).or_default() += 1;
        }
    }
    func.dims.len() >= 2 && (sums_over_domain || reads.values().any(|count| *count >= FEWEST))
}
