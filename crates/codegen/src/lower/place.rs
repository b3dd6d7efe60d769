//! Where every Func lives.

use warploom_lang::{FuncId, IdVec, Pipeline};
use warploom_plan::Plan;

/// Where a Func is computed and stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Not in the schedule.
    Nowhere,
    /// Recomputed at every use.
    Inlined,
    /// In a buffer in global memory.
    Root,
    /// In shared or private memory of a kernel's blocks.
    Block,
    /// In each thread's registers.
    Thread,
}

pub(crate) struct Places(IdVec<FuncId, Place>);

impl Places {
    pub fn new(pipeline: &Pipeline, plan: &Plan) -> Places {
        let mut places: IdVec<FuncId, Place> = pipeline.funcs().values().map(|_| Place::Nowhere).collect();
        plan.inlined.iter().for_each(|func| places[func] = Place::Inlined);
        for nest in plan.nests.values() {
            if let Some(stage) = nest.stage() {
                places[stage.func] = if plan.is_own(nest) { Place::Root } else { Place::Block };
            }
            nest.nest.registers.iter().for_each(|func| places[*func] = Place::Thread);
        }
        Places(places)
    }

    pub fn of(&self, func: FuncId) -> Place {
        self.0[func]
    }

    pub fn is_root(&self, func: FuncId) -> bool {
        self.0[func] == Place::Root
    }
}
