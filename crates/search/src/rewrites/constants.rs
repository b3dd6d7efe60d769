//! Constant tables for Funcs of constants, and expansion of their readers.

use std::collections::BTreeSet;

use warploom_lang::ir::{FuncDecl, NodeKind, Stage};
use warploom_lang::rewrite::{Rewrite, StageName, VarName};
use warploom_lang::{FuncId, Pipeline};
use warploom_plan::Problem;

use crate::rewrites::List;

/// A pipeline with more Funcs of constants than this computes with them rather than looking them up, and each rewrite
/// takes a pass over all Funcs.
const MOST_TABLES: usize = 32;

/// The problem with its Funcs of constants as tables, and the same with the reductions that read tables expanded; empty
/// if there are no such Funcs.
pub(super) fn folded(problem: &Problem) -> Vec<Problem> {
    let tabulated = tabulated(problem.pipeline());
    if tabulated.rewrites().len() == problem.pipeline().rewrites().len() {
        return Vec::new();
    }
    let expanded = expanded(sliced(tabulated.clone()));
    [tabulated, expanded].iter().filter_map(|pipeline| problem.of_rewritten(pipeline).ok()).collect()
}

/// The pipeline after all rewrites that are possible.
fn after(pipeline: Pipeline, rewrites: Vec<Rewrite>) -> Pipeline {
    let mut list = List { pipeline };
    for rewrite in rewrites {
        list.push(rewrite);
    }
    list.pipeline
}

/// Producers come first, so that each Func finds the tables that it reads.
fn tabulated(pipeline: &Pipeline) -> Pipeline {
    let found = Some(of_constants(pipeline)).filter(|found| found.len() <= MOST_TABLES);
    let names = found.into_iter().flatten().map(|func| pipeline.funcs()[func].name.clone());
    after(pipeline.clone(), names.map(|func| Rewrite::Tabulate { func }).collect())
}

/// The Funcs that depend on no input and no Param, in one pass over all.
fn of_constants(pipeline: &Pipeline) -> BTreeSet<FuncId> {
    let mut found = BTreeSet::new();
    for (id, func) in pipeline.funcs().iter() {
        let nodes = pipeline.exprs().reachable(func.stages.iter().flat_map(Stage::all_roots));
        let is_constant = |kind: NodeKind| match kind {
            NodeKind::Call(read, _) => read == id || found.contains(&read),
            NodeKind::Load(_) | NodeKind::Param(_) | NodeKind::InputMin(..) | NodeKind::InputExtent(..) => {
                false
            }
            _ => true,
        };
        if nodes.into_iter().all(|node| is_constant(pipeline.exprs()[node].kind)) {
            found.insert(id);
        }
    }
    found
}

/// Unrolls updates that run from slice to slice into one Func per slice; pure ones where possible.
fn sliced(pipeline: Pipeline) -> Pipeline {
    let last = |func: &FuncDecl| {
        let number = func.stages.len() - 1;
        let var = func.stages[number].domain.last()?.name.clone();
        Some(Rewrite::Unroll {
            var: VarName { stage: StageName { func: func.name.clone(), stage: number }, var },
        })
    };
    let unrolled = pipeline.funcs().values().filter_map(last).collect();
    let before: BTreeSet<String> = pipeline.funcs().values().map(|func| func.name.clone()).collect();
    let pipeline = after(pipeline, unrolled);
    let new = pipeline.funcs().values().filter(|func| !before.contains(&func.name) && func.stages.len() == 2);
    let gathered = new.map(|func| Rewrite::Gather { stage: StageName { func: func.name.clone(), stage: 1 } });
    let gathered = gathered.collect();
    after(pipeline, gathered)
}

/// Expands the reductions that read tables, also through pure Funcs.
fn expanded(pipeline: Pipeline) -> Pipeline {
    let mut reading: BTreeSet<FuncId> = BTreeSet::new();
    for (id, func) in pipeline.funcs().iter() {
        let nodes = pipeline.exprs().reachable(func.stages.iter().flat_map(Stage::all_roots));
        let reads = |kind: NodeKind| match kind {
            NodeKind::Table(_) => true,
            NodeKind::Call(read, _) => reading.contains(&read) && pipeline.funcs()[read].stages.len() == 1,
            _ => false,
        };
        if nodes.into_iter().any(|node| reads(pipeline.exprs()[node].kind)) {
            reading.insert(id);
        }
    }
    let names = reading.iter().map(|func| pipeline.funcs()[*func].name.clone());
    let rewrites = names.map(|func| Rewrite::Expand { stage: StageName { func, stage: 1 } }).collect();
    after(pipeline, rewrites)
}
