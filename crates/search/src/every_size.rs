//! Makes a schedule that is legal at the sizes of the search legal at all sizes.
//!
//! A reduction variable with a single value has no loop, so no decision names it. At sizes where it
//! has several values, its loop runs outside the loops that a thread's tiles name and inside the
//! loops over the block. That may not be the order of the definition.

use warploom_lang::Regions;
use warploom_schedule::{LoopKind, Loops, Nest, NodeMut, ReductionTile, Schedule, Size, StageRef, Tile};

/// The same schedule, which also names single-valued variables wherever they must run outside or
/// inside variables that are named.
pub(crate) fn spelled_out(schedule: &Schedule, regions: &Regions) -> Schedule {
    let mut spelled = schedule.clone();
    let single = Single { regions };
    let mut shared: Vec<(StageRef, LoopKind)> = Vec::new();
    spelled.edit(|node, outer| {
        match node {
            NodeMut::Around(Loops { loops, .. }) | NodeMut::Over(Loops { loops, .. }) => {
                single.loops(loops, outer);
            }
            NodeMut::Kernel(kernel) => {
                shared = kernel.block.iter().map(|tile| (kernel.stage, tile.dim)).collect();
            }
            NodeMut::Nest(nest) => single.nest(nest, outer, &shared),
        }
        true
    });
    spelled
}

struct Single<'a> {
    regions: &'a Regions,
}

impl Single<'_> {
    /// The single-valued reduction variables of a stage, the fastest first.
    fn variables(&self, stage: StageRef) -> Vec<usize> {
        let domain = &self.regions.funcs[stage.func].stages[stage.stage].domain;
        (0..domain.len()).filter(|var| domain[*var].extent == 1).collect()
    }

    /// Adds loops over slower variables outside those over faster ones.
    fn loops(&self, loops: &mut Vec<ReductionTile>, outer: &[ReductionTile]) {
        let mut stages: Vec<StageRef> = loops.iter().map(|tile| tile.stage).collect();
        stages.sort_unstable();
        stages.dedup();
        for stage in stages {
            for var in self.variables(stage) {
                let is_taken = |tile: &ReductionTile| tile.variable() == (stage, var);
                let faster = |tile: &ReductionTile| tile.stage == stage && tile.var < var;
                let taken = outer.iter().chain(&*loops).any(is_taken);
                if let Some(position) = loops.iter().position(faster).filter(|_| !taken) {
                    loops.insert(position, ReductionTile { stage, var, size: Size::Of(1) });
                }
            }
        }
    }

    /// Adds loops over faster variables inside those over slower ones.
    fn nest(&self, nest: &mut Nest, outer: &[ReductionTile], shared: &[(StageRef, LoopKind)]) {
        let (Some(stage), Some(tiles)) = (nest.item.stage(), nest.mapping.tiles_mut()) else { return };
        for var in self.variables(stage).into_iter().rev() {
            let dim = LoopKind::Reduction(var);
            let named = tiles.threads.iter().chain(&tiles.serial).any(|tile| tile.dim == dim);
            let looped = outer.iter().any(|tile| tile.variable() == (stage, var));
            let slower = |tile: &Tile| matches!(tile.dim, LoopKind::Reduction(other) if other > var);
            if let Some(position) = tiles.serial.iter().rposition(slower)
                && !(named || looped || shared.contains(&(stage, dim)))
            {
                tiles.serial.insert(position + 1, Tile { dim, size: Size::All });
            }
        }
    }
}
