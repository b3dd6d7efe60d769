//! Adapts schedules when stages are removed, renumbered, or need a new place.

use std::collections::BTreeSet;

use warploom_lang::ir::NodeKind;
use warploom_lang::{FuncId, InputId, Pipeline, Regions};
use warploom_schedule::{
    Item, LoopKind, Loops, Nest, NodeMut, ReductionTile, RootItem, Schedule, StageRef, ThreadTiles, Tile,
};

/// Maps the ids in a schedule to new ones; `None` for items that were removed.
pub(crate) trait Renaming {
    fn func(&self, func: FuncId) -> Option<FuncId>;
    fn input(&self, input: InputId) -> Option<InputId>;
    fn stage(&self, stage: StageRef) -> Option<StageRef>;
    fn dim(&self, stage: StageRef, dim: LoopKind) -> Option<LoopKind>;
}

/// Keeps all ids, but removes one item.
pub(crate) enum Without {
    Func(FuncId),
    Input(InputId),
}

impl Renaming for Without {
    fn func(&self, func: FuncId) -> Option<FuncId> {
        (!matches!(self, Without::Func(gone) if *gone == func)).then_some(func)
    }

    fn input(&self, input: InputId) -> Option<InputId> {
        (!matches!(self, Without::Input(gone) if *gone == input)).then_some(input)
    }

    fn stage(&self, stage: StageRef) -> Option<StageRef> {
        self.func(stage.func).map(|_| stage)
    }

    fn dim(&self, _: StageRef, dim: LoopKind) -> Option<LoopKind> {
        Some(dim)
    }
}

/// The schedule with mapped ids, without removed items. A kernel is removed with its own stage. A
/// loop is removed with its variable, and its body remains.
pub(crate) fn renamed(schedule: &Schedule, renaming: &dyn Renaming) -> Schedule {
    let inlined = schedule.inlined.iter().filter_map(|func| renaming.func(*func)).collect();
    let mut renamed = Schedule { inlined, ..schedule.clone() };
    renamed.edit(|node, _| match node {
        NodeMut::Around(Loops { loops, .. }) | NodeMut::Over(Loops { loops, .. }) => {
            loops.retain_mut(|tile| rename_loop(tile, renaming));
            true
        }
        NodeMut::Kernel(kernel) => {
            rename_tiles(&mut kernel.block, kernel.stage, renaming);
            set(&mut kernel.stage, |stage| renaming.stage(stage))
        }
        NodeMut::Nest(nest) => rename_nest(nest, renaming),
    });
    renamed
}

/// Replaces a value, if there is a new one, and returns whether there is.
fn set<T: Copy>(value: &mut T, new: impl FnOnce(T) -> Option<T>) -> bool {
    new(*value).map(|new| *value = new).is_some()
}

fn rename_loop(tile: &mut ReductionTile, renaming: &dyn Renaming) -> bool {
    let var = |var: usize| match renaming.dim(tile.stage, LoopKind::Reduction(var))? {
        LoopKind::Reduction(var) => Some(var),
        LoopKind::Pure(_) => None,
    };
    set(&mut tile.var, var) && set(&mut tile.stage, |stage| renaming.stage(stage))
}

fn rename_nest(nest: &mut Nest, renaming: &dyn Renaming) -> bool {
    if let (Some(stage), Some(ThreadTiles { threads, serial, .. })) =
        (nest.item.stage(), nest.mapping.tiles_mut())
    {
        rename_tiles(threads, stage, renaming);
        rename_tiles(serial, stage, renaming);
    }
    nest.registers.retain_mut(|func| set(func, |func| renaming.func(func)));
    set(&mut nest.item, |item| match item {
        Item::Stage(stage) => renaming.stage(stage).map(Item::Stage),
        Item::Input(input) => renaming.input(input).map(Item::Input),
    })
}

fn rename_tiles(tiles: &mut Vec<Tile>, stage: StageRef, renaming: &dyn Renaming) {
    tiles.retain_mut(|tile| set(&mut tile.dim, |dim| renaming.dim(stage, dim)));
}

/// Places every Func that has no place, in kernels of one block before the first kernel that needs
/// it.
pub(crate) fn complete(mut schedule: Schedule, pipeline: &Pipeline, regions: &Regions) -> Schedule {
    for func in pipeline.funcs().keys() {
        let defined = defined_stages(pipeline, func);
        let placed: BTreeSet<StageRef> = schedule.nests().filter_map(|nest| nest.item.stage()).collect();
        let in_registers = schedule.nests().any(|nest| nest.registers.contains(&func));
        let inlined = schedule.inlined.contains(&func) && !pipeline.outputs().contains(&func);
        let whole = inlined || in_registers || defined.iter().all(|stage| placed.contains(stage));
        if whole || !regions.funcs[func].needed {
            continue;
        }
        schedule = renamed(&schedule, &Without::Func(func));
        let readers = readers(pipeline, func);
        let reads = |item: &RootItem| item.nests().any(|nest| computes(nest, &readers));
        let position = schedule.root.iter().position(reads).unwrap_or(schedule.root.len());
        let kernels = defined.into_iter().map(RootItem::single);
        schedule.root.splice(position..position, kernels);
    }
    schedule
}

/// The stages of a Func that have a definition.
fn defined_stages(pipeline: &Pipeline, func: FuncId) -> Vec<StageRef> {
    let stages = pipeline.funcs()[func].stages.iter().enumerate();
    let defined = stages.filter(|(_, stage)| !stage.values.is_empty());
    defined.map(|(stage, _)| StageRef { func, stage }).collect()
}

/// Whether a nest computes a Func, or has it in registers.
fn computes(nest: &Nest, funcs: &BTreeSet<FuncId>) -> bool {
    let stage = nest.item.stage().map(|stage| stage.func);
    stage.iter().chain(&nest.registers).any(|func| funcs.contains(func))
}

/// The Funcs that depend on a Func, directly or indirectly.
fn readers(pipeline: &Pipeline, func: FuncId) -> BTreeSet<FuncId> {
    let exprs = pipeline.exprs();
    let mut found = BTreeSet::from([func]);
    // Producers precede their consumers.
    for (id, decl) in pipeline.funcs().iter() {
        let roots = decl.stages.iter().flat_map(|stage| stage.roots());
        let reads = exprs.reachable(roots).into_iter().any(|id| match exprs[id].kind {
            NodeKind::Call(called, _) => found.contains(&called),
            _ => false,
        });
        if reads {
            found.insert(id);
        }
    }
    found.remove(&func);
    found
}
