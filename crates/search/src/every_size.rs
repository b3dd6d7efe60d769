//! From a schedule that is legal at the sizes of a search to one that is legal at all sizes.
//!
//! A reduction variable of one value has no loop, so that no decision names it. Where it has several values it runs outside
//! of those that a thread's loops name, and inside of those over the block: that may not be the order of the definition.

use warploom_lang::Regions;
use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{
    BlockItem, Item, Loops, Mapping, Nest, ReductionTile, RootItem, Schedule, Size, StageRef, Tile,
};

/// The same schedule, in which variables of one value are named where others are that must run inside or outside of them.
pub(crate) fn spelled_out(schedule: &Schedule, regions: &Regions) -> Schedule {
    let mut spelled = schedule.clone();
    let single = Single { regions };
    spelled.root.iter_mut().for_each(|item| single.root_item(item, &[]));
    spelled
}

struct Single<'a> {
    regions: &'a Regions,
}

impl Single<'_> {
    /// The variables of a stage that have one value, the fastest first.
    fn variables(&self, stage: StageRef) -> Vec<usize> {
        let domain = &self.regions.funcs[stage.func].stages[stage.stage].domain;
        (0..domain.len()).filter(|var| domain[*var].extent == 1).collect()
    }

    fn root_item(&self, item: &mut RootItem, outer: &[ReductionTile]) {
        match item {
            RootItem::Kernel(kernel) => {
                let shared: Vec<(StageRef, LoopKind)> =
                    kernel.block.iter().map(|tile| (kernel.stage, tile.dim)).collect();
                kernel.body.iter_mut().for_each(|item| self.block_item(item, outer, &shared));
            }
            RootItem::Around(around) => {
                let inner = self.loops(around, outer);
                around.body.iter_mut().for_each(|item| self.root_item(item, &inner));
            }
        }
    }

    fn block_item(&self, item: &mut BlockItem, outer: &[ReductionTile], shared: &[(StageRef, LoopKind)]) {
        match item {
            BlockItem::Nest(nest) => self.nest(nest, outer, shared),
            BlockItem::Over(over) => {
                let inner = self.loops(over, outer);
                over.body.iter_mut().for_each(|item| self.block_item(item, &inner, shared));
            }
        }
    }

    /// Adds loops over slower variables outside of those over faster ones; gives all loops there then are.
    fn loops<T>(&self, loops: &mut Loops<T>, outer: &[ReductionTile]) -> Vec<ReductionTile> {
        let mut stages: Vec<StageRef> = loops.loops.iter().map(|tile| tile.stage).collect();
        stages.sort_unstable();
        stages.dedup();
        for stage in stages {
            for var in self.variables(stage) {
                let is_taken = |tile: &ReductionTile| (tile.stage, tile.var) == (stage, var);
                let faster = |tile: &ReductionTile| tile.stage == stage && tile.var < var;
                let taken = outer.iter().chain(&loops.loops).any(is_taken);
                if let Some(position) = loops.loops.iter().position(faster).filter(|_| !taken) {
                    loops.loops.insert(position, ReductionTile { stage, var, size: Size::Of(1) });
                }
            }
        }
        outer.iter().chain(&loops.loops).cloned().collect()
    }

    /// Adds loops over faster variables inside of those over slower ones.
    fn nest(&self, nest: &mut Nest, outer: &[ReductionTile], shared: &[(StageRef, LoopKind)]) {
        let (Item::Stage(stage), Mapping::Threads(tiles)) = (nest.item, &mut nest.mapping) else { return };
        for var in self.variables(stage).into_iter().rev() {
            let dim = LoopKind::Reduction(var);
            let named = tiles.threads.iter().chain(&tiles.serial).any(|tile| tile.dim == dim);
            let looped = outer.iter().any(|tile| (tile.stage, tile.var) == (stage, var));
            let slower = |tile: &Tile| matches!(tile.dim, LoopKind::Reduction(other) if other > var);
            if let Some(position) = tiles.serial.iter().rposition(slower)
                && !(named || looped || shared.contains(&(stage, dim)))
            {
                tiles.serial.insert(position + 1, Tile { dim, size: Size::All });
            }
        }
    }
}
