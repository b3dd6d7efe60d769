//! Adapts boxes, Params and schedule when the pipeline of a case changes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use warploom_lang::{FuncId, InputId, Pipeline, Realisation, Region, Regions, infer};
use warploom_schedule::{LoopKind, StageRef};

use crate::case::Case;
use crate::reduce::place::{Renaming, complete, renamed};

/// Information about a changed pipeline that its tables do not contain.
#[derive(Default)]
pub(crate) struct Carried {
    /// Boxes of new inputs.
    pub boxes: BTreeMap<String, Region>,
    /// The part that was removed from a Func.
    pub lost: Lost,
}

/// A part of a Func that was removed; the indices of later parts decrease by one.
#[derive(Clone, Copy, PartialEq, Default)]
pub(crate) enum Lost {
    /// Nothing was removed.
    #[default]
    Nothing,
    /// A stage was removed.
    Stage(StageRef),
    /// A reduction variable of a stage was removed.
    Var(StageRef, usize),
}

/// The case with a changed pipeline. Items with the same name keep their box, value and place. A Func that becomes an
/// output is requested over its previously needed region.
pub(crate) fn carry(case: &Case, regions: &Regions, pipeline: Pipeline, carried: &Carried) -> Option<Case> {
    let request = carried_request(case, regions, &pipeline, carried);
    let renaming = ByName { old: &case.pipeline, new: &pipeline, lost: carried.lost };
    let schedule = renamed(&case.schedule, &renaming);
    let regions = infer(&pipeline, &request).ok()?;
    let schedule = complete(schedule, &pipeline, &regions);
    Some(Case { pipeline, request, schedule, seed: case.seed })
}

fn carried_request(case: &Case, regions: &Regions, pipeline: &Pipeline, carried: &Carried) -> Realisation {
    let old = &case.pipeline;
    let mut request = Realisation::new(pipeline);
    for (id, input) in pipeline.inputs().iter() {
        let known = old.input_named(&input.name).and_then(|old| case.request.inputs[old].clone());
        request.inputs[id] = carried.boxes.get(&input.name).cloned().or(known);
    }
    for (id, param) in pipeline.params().iter() {
        request.params[id] = old.param_named(&param.name).and_then(|old| case.request.params[old]);
    }
    for (slot, output) in request.outputs.iter_mut().zip(pipeline.outputs()) {
        *slot = old.func_named(&pipeline.funcs()[*output].name).and_then(|func| {
            match old.outputs().iter().position(|output| *output == func) {
                Some(position) => case.request.outputs[position].clone(),
                None => Some(regions.funcs[func].region.clone()),
            }
        });
    }
    request
}

/// Maps ids of one pipeline to those of another by name.
struct ByName<'a> {
    old: &'a Pipeline,
    new: &'a Pipeline,
    lost: Lost,
}

impl Renaming for ByName<'_> {
    fn func(&self, func: FuncId) -> Option<FuncId> {
        self.new.func_named(&self.old.funcs()[func].name)
    }

    fn input(&self, input: InputId) -> Option<InputId> {
        self.new.input_named(&self.old.inputs()[input].name)
    }

    fn stage(&self, stage: StageRef) -> Option<StageRef> {
        let number = match self.lost {
            Lost::Stage(lost) if lost == stage => return None,
            Lost::Stage(lost) if lost.func == stage.func && lost.stage < stage.stage => stage.stage - 1,
            _ => stage.stage,
        };
        Some(StageRef { func: self.func(stage.func)?, stage: number })
    }

    fn dim(&self, stage: StageRef, dim: LoopKind) -> Option<LoopKind> {
        match (dim, self.lost) {
            (LoopKind::Pure(d), _) => {
                let StageRef { func, stage } = self.stage(stage)?;
                let decl = &self.new.funcs()[func].stages[stage];
                decl.is_pure(self.new.exprs(), d).then_some(dim)
            }
            (LoopKind::Reduction(var), Lost::Var(lost, gone)) if lost == stage => match var.cmp(&gone) {
                Ordering::Less => Some(dim),
                Ordering::Equal => None,
                Ordering::Greater => Some(LoopKind::Reduction(var - 1)),
            },
            _ => Some(dim),
        }
    }
}
