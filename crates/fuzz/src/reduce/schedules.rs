//! Edits that simplify schedules: fewer Funcs with their own place, fewer loops and tiles, smaller
//! sizes.

use warploom_lang::{FuncId, InputId, Pipeline, Regions};
use warploom_schedule::{
    KernelNumbers, Loops, Nest, NestNumbers, NodeMut, ReductionTile, Schedule, Size, StageRef, ThreadTiles,
    Tile,
};

use crate::reduce::place::{Without, complete, renamed};

/// An edit of a schedule.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum ScheduleEdit {
    /// Puts every Func into its own kernel.
    Plain,
    /// Inlines a Func.
    Inline(FuncId),
    /// Moves a Func to its own kernel.
    ToRoot(FuncId),
    /// Reads an input directly, without staging it.
    Unstage(InputId),
    /// Applies the simplification with this index, in tree order.
    Turn(usize),
}

/// All edits of a schedule, the most effective first.
pub(crate) fn schedule_edits(pipeline: &Pipeline, schedule: &Schedule) -> Vec<ScheduleEdit> {
    let mut edits = vec![ScheduleEdit::Plain];
    let funcs = || pipeline.funcs().keys();
    let inlinable = |func: &FuncId| {
        let stages = &pipeline.funcs()[*func].stages;
        stages.len() == 1 && !stages[0].values.is_empty() && !pipeline.outputs().contains(func)
    };
    edits.extend(funcs().filter(inlinable).map(ScheduleEdit::Inline));
    edits.extend(funcs().map(ScheduleEdit::ToRoot));
    edits.extend(pipeline.inputs().keys().map(ScheduleEdit::Unstage));
    let knobs = Knobs::walk(&mut schedule.clone(), usize::MAX);
    edits.extend((0..knobs.seen).map(ScheduleEdit::Turn));
    edits
}

impl ScheduleEdit {
    /// The schedule with this edit applied.
    pub fn apply(self, schedule: &Schedule, pipeline: &Pipeline, regions: &Regions) -> Schedule {
        match self {
            ScheduleEdit::Plain => complete(Schedule::default(), pipeline, regions),
            ScheduleEdit::Inline(func) => {
                let mut without = renamed(schedule, &Without::Func(func));
                without.inlined.insert(func);
                complete(without, pipeline, regions)
            }
            ScheduleEdit::ToRoot(func) => {
                complete(renamed(schedule, &Without::Func(func)), pipeline, regions)
            }
            ScheduleEdit::Unstage(input) => renamed(schedule, &Without::Input(input)),
            ScheduleEdit::Turn(number) => {
                let mut changed = schedule.clone();
                Knobs::walk(&mut changed, number);
                changed
            }
        }
    }
}

/// Walks over all possible simplifications of a tree and applies one of them.
struct Knobs {
    turned: usize,
    seen: usize,
}

impl Knobs {
    /// Walks over a schedule and applies the simplification with this index.
    fn walk(schedule: &mut Schedule, turned: usize) -> Knobs {
        let mut knobs = Knobs { turned, seen: 0 };
        let mut own = None;
        schedule.edit(|node, _| {
            match node {
                NodeMut::Around(Loops { loops, .. }) | NodeMut::Over(Loops { loops, .. }) => {
                    return knobs.loops(loops);
                }
                NodeMut::Kernel(kernel) => {
                    own = Some(kernel.stage);
                    knobs.tiles(&mut kernel.block);
                    if kernel.numbers != KernelNumbers::default() && knobs.turn() {
                        kernel.numbers = KernelNumbers::default();
                    }
                }
                NodeMut::Nest(nest) => knobs.nest(own, nest),
            }
            true
        });
        knobs
    }

    /// Counts a simplification, and returns whether to apply it.
    fn turn(&mut self) -> bool {
        self.seen += 1;
        self.seen - 1 == self.turned
    }

    /// Whether the loops stay.
    fn loops(&mut self, loops: &mut Vec<ReductionTile>) -> bool {
        if self.turn() {
            return false;
        }
        for tile in &mut *loops {
            self.size(&mut tile.size);
        }
        if loops.len() > 1
            && let Some(gone) = (0..loops.len()).find(|_| self.turn())
        {
            loops.remove(gone);
        }
        true
    }

    fn nest(&mut self, own: Option<StageRef>, nest: &mut Nest) {
        let is_own = nest.item.stage() == own;
        if nest.numbers != NestNumbers::default() && self.turn() {
            nest.numbers = NestNumbers::default();
        }
        if !is_own {
            self.flatten(nest);
        }
        if let Some(ThreadTiles { threads, serial, unroll }) = nest.mapping.tiles_mut() {
            if *unroll && self.turn() {
                *unroll = false;
            }
            self.tiles(serial);
            self.tiles(threads);
        }
        if is_own {
            self.flatten(nest);
        }
    }

    fn flatten(&mut self, nest: &mut Nest) {
        if !nest.mapping.is_flat() && self.turn() {
            nest.mapping = None.into();
        }
    }

    fn tiles(&mut self, tiles: &mut Vec<Tile>) {
        if let Some(gone) = (0..tiles.len()).find(|_| self.turn()) {
            tiles.remove(gone);
        }
        for tile in tiles {
            self.size(&mut tile.size);
        }
    }

    fn size(&mut self, size: &mut Size) {
        if let Size::Of(number @ 2..) = *size {
            if self.turn() {
                *size = Size::Of(1);
            } else if self.turn() {
                *size = Size::Of(number / 2);
            }
        }
    }
}
