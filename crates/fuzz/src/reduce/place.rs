//! Adapts schedules when stages are removed, renumbered, or need a new place.

use std::collections::BTreeSet;

use warploom_lang::ir::NodeKind;
use warploom_lang::{FuncId, InputId, Pipeline, Regions};
use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{
    BlockItem, Item, Kernel, Loops, Mapping, Nest, ReductionTile, RootItem, Schedule, StageRef, Storage,
    ThreadTiles, Tile,
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
    Schedule {
        inlined: schedule.inlined.iter().filter_map(|func| renaming.func(*func)).collect(),
        root: schedule.root.iter().flat_map(|item| root_item(item, renaming)).collect(),
    }
}

fn root_item(item: &RootItem, renaming: &dyn Renaming) -> Vec<RootItem> {
    match item {
        RootItem::Kernel(old) => kernel(old, renaming).map(RootItem::Kernel).into_iter().collect(),
        RootItem::Around(around) => {
            let body = around.body.iter().flat_map(|item| root_item(item, renaming)).collect();
            loops(&around.loops, body, RootItem::Around, renaming)
        }
    }
}

fn kernel(old: &Kernel, renaming: &dyn Renaming) -> Option<Kernel> {
    Some(Kernel {
        stage: renaming.stage(old.stage)?,
        block: tiles(Item::Stage(old.stage), &old.block, renaming),
        body: old.body.iter().flat_map(|item| block_item(item, renaming)).collect(),
    })
}

fn block_item(item: &BlockItem, renaming: &dyn Renaming) -> Vec<BlockItem> {
    match item {
        BlockItem::Nest(old) => nest(old, renaming).map(BlockItem::Nest).into_iter().collect(),
        BlockItem::Over(over) => {
            let body = over.body.iter().flat_map(|item| block_item(item, renaming)).collect();
            loops(&over.loops, body, BlockItem::Over, renaming)
        }
    }
}

fn loops<T>(old: &[ReductionTile], body: Vec<T>, wrap: fn(Loops<T>) -> T, renaming: &dyn Renaming) -> Vec<T> {
    let kept = old.iter().filter_map(|tile| {
        let stage = renaming.stage(tile.stage)?;
        match renaming.dim(tile.stage, LoopKind::Reduction(tile.var))? {
            LoopKind::Reduction(var) => Some(ReductionTile { stage, var, size: tile.size }),
            LoopKind::Pure(_) => None,
        }
    });
    let loops: Vec<ReductionTile> = kept.collect();
    if loops.is_empty() || body.is_empty() { body } else { vec![wrap(Loops { loops, body })] }
}

fn nest(old: &Nest, renaming: &dyn Renaming) -> Option<Nest> {
    let item = match old.item {
        Item::Stage(stage) => Item::Stage(renaming.stage(stage)?),
        Item::Input(input) => Item::Input(renaming.input(input)?),
    };
    let mapping = match &old.mapping {
        Mapping::Flat => Mapping::Flat,
        Mapping::Threads(threads) => Mapping::Threads(ThreadTiles {
            threads: tiles(old.item, &threads.threads, renaming),
            serial: tiles(old.item, &threads.serial, renaming),
            unroll: threads.unroll,
        }),
    };
    let registers = old.registers.iter().filter_map(|func| renaming.func(*func)).collect();
    Some(Nest { item, mapping, storage: old.storage, registers })
}

fn tiles(item: Item, old: &[Tile], renaming: &dyn Renaming) -> Vec<Tile> {
    let kept = old.iter().filter_map(|tile| {
        let dim = match item {
            Item::Stage(stage) => renaming.dim(stage, tile.dim)?,
            Item::Input(_) => tile.dim,
        };
        Some(Tile { dim, size: tile.size })
    });
    kept.collect()
}

/// Places every Func that has no place, in kernels of one block before the first kernel that needs
/// it.
pub(crate) fn complete(mut schedule: Schedule, pipeline: &Pipeline, regions: &Regions) -> Schedule {
    for func in pipeline.funcs().keys() {
        let defined = defined_stages(pipeline, func);
        let placed = placed_stages(&schedule, func);
        let inlined = schedule.inlined.contains(&func) && !pipeline.outputs().contains(&func);
        let whole =
            inlined || in_registers(&schedule, func) || defined.iter().all(|stage| placed.contains(stage));
        if whole || !regions.funcs[func].needed {
            continue;
        }
        schedule = renamed(&schedule, &Without::Func(func));
        let readers = readers(pipeline, func);
        let reads = |item: &RootItem| stages_in(item).iter().any(|stage| readers.contains(&stage.func));
        let position = schedule.root.iter().position(reads).unwrap_or(schedule.root.len());
        let kernels = defined.into_iter().map(simple_kernel);
        schedule.root.splice(position..position, kernels);
    }
    schedule
}

/// A kernel of one block whose threads share all points.
fn simple_kernel(stage: StageRef) -> RootItem {
    let nest = Nest {
        item: Item::Stage(stage),
        mapping: Mapping::Flat,
        storage: Storage::Global,
        registers: Vec::new(),
    };
    RootItem::Kernel(Kernel { stage, block: Vec::new(), body: vec![BlockItem::Nest(nest)] })
}

/// The stages of a Func that have a definition.
fn defined_stages(pipeline: &Pipeline, func: FuncId) -> Vec<StageRef> {
    let stages = pipeline.funcs()[func].stages.iter().enumerate();
    let defined = stages.filter(|(_, stage)| !stage.values.is_empty());
    defined.map(|(stage, _)| StageRef { func, stage }).collect()
}

fn placed_stages(schedule: &Schedule, func: FuncId) -> BTreeSet<StageRef> {
    schedule.root.iter().flat_map(stages_in).filter(|stage| stage.func == func).collect()
}

fn in_registers(schedule: &Schedule, func: FuncId) -> bool {
    schedule.root.iter().flat_map(nests_in).any(|nest| nest.registers.contains(&func))
}

/// The stages computed in a root item, including those in registers.
fn stages_in(item: &RootItem) -> Vec<StageRef> {
    let of = |nest: &Nest| match nest.item {
        Item::Stage(stage) => Some(stage),
        Item::Input(_) => None,
    };
    let nests = nests_in(item);
    let registers = nests.iter().flat_map(|nest| &nest.registers);
    let registers = registers.map(|func| StageRef { func: *func, stage: 0 });
    nests.iter().filter_map(|nest| of(nest)).chain(registers).collect()
}

fn nests_in(item: &RootItem) -> Vec<&Nest> {
    fn in_body(body: &[BlockItem]) -> Vec<&Nest> {
        let nests = body.iter().flat_map(|item| match item {
            BlockItem::Nest(nest) => vec![nest],
            BlockItem::Over(over) => in_body(&over.body),
        });
        nests.collect()
    }
    match item {
        RootItem::Kernel(kernel) => in_body(&kernel.body),
        RootItem::Around(around) => around.body.iter().flat_map(nests_in).collect(),
    }
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
