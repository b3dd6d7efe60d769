//! Facts that are the same for all random schedules of a pipeline.

use warploom_lang::{FuncId, IdVec};
use warploom_schedule::{Item, Nest, Schedule, Source, StageId, StageRef};

use crate::problem::Problem;
use crate::problem::dependence::Together;

/// When the values of a reduction variable may run in parallel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Freedom {
    /// For any values of the other variables.
    pub always: bool,
    /// If loops outside fix the outer variables, which are the later ones.
    pub under_outer: bool,
}

/// A problem, and the freedom of its reduction variables.
pub(crate) struct Facts<'a> {
    pub problem: &'a Problem,
    freedom: IdVec<StageId, Vec<Freedom>>,
}

impl<'a> Facts<'a> {
    pub fn new(problem: &'a Problem) -> Facts<'a> {
        let freedom = problem.dag().stages().values().map(|stage| {
            let at = StageRef { func: stage.func, stage: stage.number };
            freedoms(problem, at)
        });
        Facts { problem, freedom: freedom.collect() }
    }

    /// Whether every stage of a Func writes its own point or a fixed one, so that registers can hold
    /// the Func.
    pub fn fits_registers(&self, func: FuncId) -> bool {
        self.problem.func(func).moving_stage.is_none()
    }

    /// The extent of each reduction variable of a stage.
    pub fn domain(&self, stage: StageRef) -> Vec<i64> {
        let domain = &self.problem.regions().funcs[stage.func].stages[stage.stage].domain;
        domain.iter().map(|range| range.extent.max(1)).collect()
    }

    pub fn freedom(&self, stage: StageRef, var: usize) -> Freedom {
        self.freedom[self.problem.stage_id(stage)][var]
    }

    /// Whether a nest reads `what`, in its stage or in Funcs that are inlined or in registers there.
    pub fn reads(&self, schedule: &Schedule, nest: &Nest, what: Source) -> bool {
        let Item::Stage(stage) = nest.item else { return false };
        let dag = self.problem.dag();
        let mut stack = vec![self.problem.stage_id(stage)];
        let mut seen = vec![stage.func];
        while let Some(id) = stack.pop() {
            for edge in &dag.stages()[id].producers {
                let node = &dag.nodes()[dag.edges()[*edge].producer];
                if node.source == what {
                    return true;
                }
                let Source::Func(func) = node.source else { continue };
                let inside = schedule.inlined.contains(&func) || nest.registers.contains(&func);
                if inside && !seen.contains(&func) {
                    seen.push(func);
                    stack.extend(&node.stages);
                }
            }
        }
        false
    }
}

fn freedoms(problem: &Problem, stage: StageRef) -> Vec<Freedom> {
    let variables = problem.pipeline().funcs()[stage.func].stages[stage.stage].domain.len();
    let of = |var: usize| {
        let under: Vec<Together> =
            (0..variables).map(|other| if other > var { Together::Fixed } else { Together::Any }).collect();
        Freedom {
            always: problem.is_parallel(stage, var, &vec![Together::Any; variables]),
            under_outer: problem.is_parallel(stage, var, &under),
        }
    };
    (0..variables).map(of).collect()
}
