//! Loop rules: tiles are loops of their stages, and reductions keep any order that matters.

use smallvec::SmallVec;
use warploom_schedule::{Item, LoopKind, Path, Size, StageRef, ThreadTiles, Tile};

use crate::ids::LoopId;
use crate::legality::Checker;
use crate::legality::rule::{Rule, Side};
use crate::plan::{KernelPlan, LoopIds, NestPlan};
use crate::problem::dependence::Together;

impl Checker<'_> {
    pub(super) fn loops(&mut self) {
        for id in self.plan.loops.keys() {
            self.serial_loop(id);
        }
        for kernel in self.plan.kernels.values() {
            let stage = kernel.kernel.stage;
            self.tiles(&kernel.path, Item::Stage(stage), &kernel.kernel.block);
            if !self.has_atomics(kernel) {
                let together = self.together(stage, &kernel.around);
                self.shared_out(&kernel.path, stage, &kernel.kernel.block, &together, Side::Blocks);
            }
        }
        for nest in self.plan.nests.values() {
            self.nest_loops(nest);
        }
    }

    /// Whether the blocks of a kernel update their own stage by atomics, which may meet at a point.
    fn has_atomics(&self, kernel: &KernelPlan) -> bool {
        let own = |nest: &NestPlan| nest.stage() == Some(kernel.kernel.stage);
        let nests = self.plan.nests.slice(kernel.nests.clone()).iter();
        nests.rev().any(|nest| own(nest) && nest.nest.numbers.atomic)
    }

    fn variable(&self, item: Item, kind: LoopKind) -> String {
        self.names.of_loop(item, kind)
    }

    fn has_loop(&self, item: Item, kind: LoopKind) -> bool {
        self.problem.has_loop(item, kind)
    }

    /// Checks a loop around kernels or over a block.
    fn serial_loop(&mut self, id: LoopId) {
        let info = &self.plan.loops[id];
        let (tile, path) = (info.tile, &info.path);
        let item = Item::Stage(tile.stage);
        let names = self.names;
        let variable = || names.of_loop(item, LoopKind::Reduction(tile.var));
        if tile.size == Size::Of(0) {
            self.report(path, Rule::ZeroSize { variable: variable() });
        }
        if !self.has_loop(item, LoopKind::Reduction(tile.var)) {
            let rule = Rule::NoLoop { item: self.stage_name(tile.stage), variable: variable() };
            return self.report(path, rule);
        }
        let mut inside = self.plan.nests.values().filter(|nest| nest.loops.contains(&id));
        if !inside.any(|nest| nest.stage() == Some(tile.stage)) {
            let (stage, variable) = (self.stage_name(tile.stage), variable());
            self.report(path, Rule::IdleLoop { stage, variable });
        }
    }

    /// Checks the tiles of one list: each is a loop of the stage and appears once.
    fn tiles(&mut self, path: &Path, item: Item, tiles: &[Tile]) {
        let names = self.names;
        for (i, tile) in tiles.iter().enumerate() {
            let names = || (names.of_item(item), names.of_loop(item, tile.dim));
            if tile.size == Size::Of(0) {
                self.report(path, Rule::ZeroSize { variable: names().1 });
            }
            if !self.has_loop(item, tile.dim) {
                let (item, variable) = names();
                self.report(path, Rule::NoLoop { item, variable });
            } else if tiles[..i].iter().any(|earlier| earlier.dim == tile.dim) {
                let (item, variable) = names();
                self.report(path, Rule::SplitTwice { item, variable });
            }
        }
    }

    fn nest_loops(&mut self, nest: &NestPlan) {
        let item = nest.nest.item;
        if let Some(tiles) = nest.nest.mapping.tiles() {
            self.tiles(&nest.path, item, &tiles.threads);
            self.tiles(&nest.path, item, &tiles.serial);
        }
        let Some(stage) = nest.stage() else { return };
        self.divided_once(nest, stage);
        if nest.nest.numbers.atomic {
            return;
        }
        if let Some(tiles) = nest.nest.mapping.tiles() {
            let together = self.together(stage, &nest.loops);
            self.shared_out(&nest.path, stage, &tiles.threads, &together, Side::Threads);
        }
        self.reduction_order(nest, stage);
    }

    /// Checks that a reduction variable is divided by at most one loop around the nest or by the block.
    fn divided_once(&mut self, nest: &NestPlan, stage: StageRef) {
        let mut taken: SmallVec<[usize; 4]> = SmallVec::new();
        if self.plan.is_own(nest) {
            let block = self.plan.kernels[nest.kernel].kernel.block.iter();
            taken.extend(block.filter_map(|tile| match tile.dim {
                LoopKind::Reduction(var) => Some(var),
                LoopKind::Pure(_) => None,
            }));
        }
        for number in self.plan.own_loops(nest) {
            let info = &self.plan.loops[number];
            if taken.contains(&info.tile.var) {
                let variable = self.variable(nest.nest.item, LoopKind::Reduction(info.tile.var));
                let rule = Rule::SplitTwice { item: self.stage_name(stage), variable };
                self.report(&info.path, rule);
            }
            taken.push(info.tile.var);
        }
    }

    /// Which values of a stage's reduction variables run together inside some loops.
    fn together(&self, stage: StageRef, loops: &[LoopId]) -> SmallVec<[Together; 4]> {
        let of = |var: usize| {
            let tile = loops.iter().map(|number| self.plan.loops[*number].tile);
            let tile = tile.into_iter().find(|tile| (tile.stage, tile.var) == (stage, var));
            match tile.map(|tile| tile.size) {
                Some(Size::Of(0 | 1)) => Together::Fixed,
                Some(Size::Of(size)) => Together::Within(i64::from(size)),
                Some(Size::All) | None => Together::Any,
            }
        };
        (0..self.names.stage_decl(stage).domain.len()).map(of).collect()
    }

    /// Checks that reduction variables that run in parallel have independent values.
    fn shared_out(
        &mut self,
        path: &Path,
        stage: StageRef,
        tiles: &[Tile],
        together: &[Together],
        side: Side,
    ) {
        for var in split_reductions(tiles, side) {
            let (item, kind) = (Item::Stage(stage), LoopKind::Reduction(var));
            if self.has_loop(item, kind) && !self.problem.is_parallel(stage, var, together) {
                let variable = self.variable(item, kind);
                self.report(path, Rule::Dependent { stage: self.stage_name(stage), variable, side });
            }
        }
    }

    /// Checks that reduction loops run in the order of their definition, or in an equivalent order.
    fn reduction_order(&mut self, nest: &NestPlan, stage: StageRef) {
        let variables = self.names.stage_decl(stage).domain.len();
        if variables < 2 {
            return;
        }
        let order = self.loop_order(nest, stage);
        for (i, &(outer, side_by_side)) in order.iter().enumerate() {
            // A variable that runs in parallel is independent of anything that runs inside it.
            let inner = order[i + 1..].iter().map(|(inner, _)| *inner).filter(|_| !side_by_side);
            for inner in inner.filter(|inner| outer < *inner) {
                // The exchange is legal if the values of `inner` are independent for fixed values of
                // the variables that the definition has outside it.
                let fixed = |var: usize| if var > inner { Together::Fixed } else { Together::Any };
                let together: SmallVec<[Together; 4]> = (0..variables).map(fixed).collect();
                if !self.problem.is_parallel(stage, inner, &together) {
                    let name = |var: usize| self.variable(nest.nest.item, LoopKind::Reduction(var));
                    let rule = Rule::Reordered {
                        stage: self.stage_name(stage),
                        outer: name(outer),
                        inner: name(inner),
                    };
                    self.report(&nest.path, rule);
                }
            }
        }
    }

    /// The reduction variables of a stage in loop order, outermost first, and whether each runs in
    /// parallel there. Loops with a single value are omitted; a divided variable appears once per loop.
    fn loop_order(&self, nest: &NestPlan, stage: StageRef) -> Vec<(usize, bool)> {
        let one_point = ThreadTiles::default();
        let tiles = nest.nest.mapping.tiles().unwrap_or(&one_point);
        let kernel = &self.plan.kernels[nest.kernel];
        let block: &[Tile] = if self.plan.is_own(nest) { &kernel.kernel.block } else { &[] };
        let mut left: Vec<i64> = (0..self.names.stage_decl(stage).domain.len())
            .map(|var| self.problem.domain(stage, var).extent.max(1))
            .collect();
        let mut order = Vec::new();
        let (around, over): (LoopIds, LoopIds) =
            self.plan.own_loops(nest).into_iter().partition(|number| kernel.around.contains(number));
        self.serial_order(&around, &mut left, &mut order);
        order.extend(split_reductions(block, Side::Blocks).map(|var| (var, true)));
        self.serial_order(&over, &mut left, &mut order);
        order.extend(split_reductions(&tiles.threads, Side::Threads).map(|var| (var, true)));
        let serial = |var: usize| tiles.serial.iter().find(|tile| reduction(tile) == Some(var));
        let mut inside: Vec<usize> = Vec::new();
        for (var, left) in left.iter().enumerate().rev() {
            if serial(var).map_or(1, |tile| tile.size.of(*left)) < *left {
                inside.push(var);
            }
        }
        let several = |var: &usize, tile: &Tile| left.get(*var).is_some_and(|left| tile.size.of(*left) > 1);
        let named = tiles.serial.iter().filter_map(|tile| reduction(tile).filter(|var| several(var, tile)));
        inside.extend(named);
        // A variable that runs in parallel is independent, so it does not matter when the rest of it
        // runs.
        inside.retain(|var| !order.contains(&(*var, true)));
        order.extend(inside.into_iter().map(|var| (var, false)));
        order
    }

    /// Appends loops around kernels or over a block, and updates the extent `left` of their variables.
    fn serial_order(&self, loops: &[LoopId], left: &mut [i64], order: &mut Vec<(usize, bool)>) {
        for number in loops {
            let tile = self.plan.loops[*number].tile;
            let Some(left) = left.get_mut(tile.var) else { continue };
            let size = tile.size.of(*left);
            if size < *left {
                order.push((tile.var, false));
            }
            *left = size;
        }
    }
}

fn reduction(tile: &Tile) -> Option<usize> {
    match tile.dim {
        LoopKind::Reduction(var) => Some(var),
        LoopKind::Pure(_) => None,
    }
}

/// The reduction variables that several blocks or threads share by their tiles.
fn split_reductions(tiles: &[Tile], side: Side) -> impl Iterator<Item = usize> {
    let alone = match side {
        Side::Blocks => Size::All,
        Side::Threads => Size::Of(1),
    };
    tiles.iter().filter(move |tile| tile.size != alone).filter_map(reduction)
}
