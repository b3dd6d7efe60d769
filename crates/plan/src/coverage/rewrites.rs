//! Counts the rewrites of schedules that are put to the test.

use std::num::NonZeroU32;

use warploom_lang::ir::Stage;
use warploom_lang::rewrite::{Rewrite, VarName};
use warploom_schedule::Schedule;

use crate::coverage::Coverage;
use crate::plan::Plan;
use crate::problem::Problem;

impl Coverage {
    /// Counts the rewrites of a schedule, which `plan` resolves. A rewrite that divides values counts if there are
    /// several groups and the last one is cut; any rewrite counts if a kernel with several blocks computes what it
    /// made.
    pub(super) fn add_rewrites(&mut self, problem: &Problem, schedule: &Schedule, plan: &Plan) {
        for (done, rewrite) in schedule.rewrites.iter().enumerate() {
            let Ok(before) = problem.rewritten(&schedule.rewrites[..done]) else { continue };
            let divides = division(rewrite).is_none_or(|(var, by)| is_ragged(&before, var, by));
            if divides && has_several_blocks(rewrite, &before, problem, schedule, plan) {
                let position = Rewrite::WORDS.iter().position(|word| *word == rewrite.word());
                position.into_iter().for_each(|position| self.rewrites[position] += 1);
            }
        }
    }
}

/// The variable whose values a rewrite divides into groups, and their size.
fn division(rewrite: &Rewrite) -> Option<(&VarName, NonZeroU32)> {
    match rewrite {
        Rewrite::Split { var, by } | Rewrite::Factor { var, by, .. } | Rewrite::Chunk { var, by } => {
            Some((var, *by))
        }
        _ => None,
    }
}

fn is_ragged(problem: &Problem, var: &VarName, by: NonZeroU32) -> bool {
    let Ok((stage, var)) = var.find(problem.pipeline()) else { return false };
    let (extent, by) = (problem.domain(stage, var).extent, i64::from(by.get()));
    extent > by && extent % by != 0
}

/// Whether a kernel with several blocks computes a Func that a rewrite changed or made, or one that reads a new table.
fn has_several_blocks(
    rewrite: &Rewrite,
    before: &Problem,
    problem: &Problem,
    schedule: &Schedule,
    plan: &Plan,
) -> bool {
    let Ok(after) = rewrite.apply(before.pipeline()) else { return false };
    let Ok(whole) = problem.rewritten(&schedule.rewrites) else { return false };
    let name = |func| whole.pipeline().funcs()[func].name.as_str();
    let is_tabulated = matches!(rewrite, Rewrite::Tabulate { .. });
    let reads = |name: &str| {
        let pipeline = before.pipeline();
        let (Some(reader), Some(func)) = (pipeline.func_named(name), pipeline.func_named(rewrite.func()))
        else {
            return false;
        };
        pipeline.exprs().reads(func, pipeline.funcs()[reader].stages.iter().flat_map(Stage::all_roots))
    };
    let changed = |name: &str| {
        let old = before.pipeline().func_named(name).map(|id| before.pipeline().funcs()[id].stages.len());
        let new = after.func_named(name).map(|id| after.funcs()[id].stages.len());
        new.is_some() && old != new || name == rewrite.func() || is_tabulated && reads(name)
    };
    plan.kernels.iter().any(|(id, kernel)| {
        let blocks = kernel.blocks.iter().fold(1, |product: i64, blocks| product.saturating_mul(*blocks));
        let mut stages = plan.nests_of(id).iter().filter_map(|nest| nest.stage());
        blocks > 1 && stages.any(|stage| changed(name(stage.func)))
    })
}
