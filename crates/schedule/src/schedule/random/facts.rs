//! What does not change from one random schedule of a pipeline to the next.

use warploom_lang::ir::Stage;
use warploom_lang::{FuncId, IdVec, Pipeline, Regions};

use crate::dag::{Dag, LoopKind, Source};
use crate::ids::StageId;
use crate::schedule::dependence::{Dependence, Together};
use crate::schedule::geometry::Geometry;
use crate::schedule::tree::{Item, Nest, Schedule, StageRef};

/// When the values of a reduction variable may run side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::schedule) struct Freedom {
    /// Whatever the other variables do.
    pub always: bool,
    /// As long as those outside it, the later ones, are fixed by loops outside.
    pub under_outer: bool,
}

/// The graph of a pipeline, and what schedules of it may do.
pub(in crate::schedule) struct Facts<'a> {
    pub pipeline: &'a Pipeline,
    pub regions: &'a Regions,
    pub geometry: Geometry<'a>,
    pub dag: Dag,
    freedom: IdVec<StageId, Vec<Freedom>>,
}

impl<'a> Facts<'a> {
    pub fn new(pipeline: &'a Pipeline, regions: &'a Regions) -> Facts<'a> {
        let dag = Dag::new(pipeline);
        let freedom = dag.stages().values().map(|stage| {
            let at = StageRef { func: stage.func, stage: stage.number };
            freedoms(pipeline, regions, at)
        });
        let freedom = freedom.collect();
        Facts { pipeline, regions, geometry: Geometry::new(pipeline, regions), dag, freedom }
    }

    pub fn stage_id(&self, stage: StageRef) -> StageId {
        self.dag.nodes()[self.dag.func_node(stage.func)].stages[stage.stage]
    }

    /// The stages of a Func that compute something.
    pub fn stages(&self, func: FuncId) -> Vec<StageRef> {
        let stages = self.dag.nodes()[self.dag.func_node(func)].stages.iter();
        let defined = stages.map(|id| &self.dag.stages()[*id]).filter(|stage| stage.values > 0);
        defined.map(|stage| StageRef { func, stage: stage.number }).collect()
    }

    pub fn is_output(&self, func: FuncId) -> bool {
        self.pipeline.outputs().contains(&func)
    }

    /// Whether every stage of a Func writes its own point or a fixed one, so that registers can hold it.
    pub fn fits_registers(&self, func: FuncId) -> bool {
        let decl = &self.pipeline.funcs()[func];
        let exprs = self.pipeline.exprs();
        let known = |stage: &Stage, d: usize| stage.is_pure(exprs, d) || stage.is_fixed(exprs, d);
        decl.stages.iter().all(|stage| (0..stage.indices.len()).all(|d| known(stage, d)))
    }

    /// The values of each reduction variable of a stage.
    pub fn domain(&self, stage: StageRef) -> Vec<i64> {
        let domain = &self.regions.funcs[stage.func].stages[stage.stage].domain;
        domain.iter().map(|range| range.extent.max(1)).collect()
    }

    /// The loops of a stage or copy: pure dimensions, then reduction variables, the fastest first.
    pub fn loops(&self, item: Item) -> Vec<LoopKind> {
        match item {
            Item::Input(input) => (0..self.pipeline.inputs()[input].dimensions).map(LoopKind::Pure).collect(),
            Item::Stage(stage) => {
                let loops = &self.dag.stages()[self.stage_id(stage)].loops;
                let mut kinds: Vec<LoopKind> = loops.iter().map(|of| of.kind).collect();
                kinds.sort_unstable();
                kinds
            }
        }
    }

    /// How free a reduction variable of a stage is.
    pub fn freedom(&self, stage: StageRef, var: usize) -> Freedom {
        self.freedom[self.stage_id(stage)][var]
    }

    /// Whether a nest reads something, in its stage or in what is inlined or in registers there.
    pub fn reads(&self, schedule: &Schedule, nest: &Nest, what: Source) -> bool {
        let Item::Stage(stage) = nest.item else { return false };
        let mut stack = vec![self.stage_id(stage)];
        let mut seen = vec![stage.func];
        while let Some(id) = stack.pop() {
            for edge in &self.dag.stages()[id].producers {
                let node = &self.dag.nodes()[self.dag.edges()[*edge].producer];
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

fn freedoms(pipeline: &Pipeline, regions: &Regions, stage: StageRef) -> Vec<Freedom> {
    let variables = pipeline.funcs()[stage.func].stages[stage.stage].domain.len();
    if variables == 0 {
        return Vec::new();
    }
    Dependence::of(pipeline, regions, stage, |dependence| {
        let of = |var: usize| {
            let under: Vec<Together> = (0..variables)
                .map(|other| if other > var { Together::Fixed } else { Together::Any })
                .collect();
            Freedom {
                always: dependence.is_parallel(var, &vec![Together::Any; variables]),
                under_outer: dependence.is_parallel(var, &under),
            }
        };
        (0..variables).map(of).collect()
    })
}
