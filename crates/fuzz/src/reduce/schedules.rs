//! Edits that simplify schedules: fewer Funcs with their own place, fewer loops and tiles, smaller
//! sizes.

use warploom_lang::{FuncId, InputId, Pipeline, Regions};
use warploom_schedule::schedule::{
    BlockItem, Item, Kernel, Loops, Mapping, Nest, RootItem, Schedule, Size, StageRef, ThreadTiles, Tile,
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
    let mut knobs = Knobs { turned: usize::MAX, seen: 0 };
    knobs.root(&mut schedule.root.clone());
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
                Knobs { turned: number, seen: 0 }.root(&mut changed.root);
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
    /// Counts a simplification, and returns whether to apply it.
    fn turn(&mut self) -> bool {
        self.seen += 1;
        self.seen - 1 == self.turned
    }

    fn root(&mut self, items: &mut Vec<RootItem>) {
        let mut position = 0;
        while position < items.len() {
            match &mut items[position] {
                RootItem::Kernel(kernel) => self.kernel(kernel),
                RootItem::Around(around) => {
                    if let Some(body) = self.loops(around) {
                        items.splice(position..=position, body);
                        return;
                    }
                    self.root(&mut around.body);
                }
            }
            position += 1;
        }
    }

    fn kernel(&mut self, kernel: &mut Kernel) {
        self.tiles(&mut kernel.block);
        self.body(kernel.stage, &mut kernel.body);
    }

    fn body(&mut self, own: StageRef, items: &mut Vec<BlockItem>) {
        let mut position = 0;
        while position < items.len() {
            match &mut items[position] {
                BlockItem::Nest(nest) => self.nest(own, nest),
                BlockItem::Over(over) => {
                    if let Some(body) = self.loops(over) {
                        items.splice(position..=position, body);
                        return;
                    }
                    self.body(own, &mut over.body);
                }
            }
            position += 1;
        }
    }

    /// The body of the loops, if the loops are to be removed.
    fn loops<T>(&mut self, loops: &mut Loops<T>) -> Option<Vec<T>> {
        if self.turn() {
            return Some(std::mem::take(&mut loops.body));
        }
        for position in 0..loops.loops.len() {
            self.size(&mut loops.loops[position].size);
        }
        if loops.loops.len() > 1
            && let Some(gone) = (0..loops.loops.len()).find(|_| self.turn())
        {
            loops.loops.remove(gone);
        }
        None
    }

    fn nest(&mut self, own: StageRef, nest: &mut Nest) {
        if nest.item != Item::Stage(own) && nest.mapping != Mapping::Flat && self.turn() {
            nest.mapping = Mapping::Flat;
        }
        if let Mapping::Threads(ThreadTiles { threads, serial, unroll }) = &mut nest.mapping {
            if *unroll && self.turn() {
                *unroll = false;
            }
            self.tiles(serial);
            self.tiles(threads);
        }
        if nest.item == Item::Stage(own) && nest.mapping != Mapping::Flat && self.turn() {
            nest.mapping = Mapping::Flat;
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
