//! Where every Func lives.

use warploom_lang::{FuncId, IdVec, Pipeline};
use warploom_schedule::schedule::{BlockItem, Item, RootItem, Schedule, Storage};

/// Where a Func is computed and kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Nowhere: it is not in the schedule.
    Nowhere,
    /// Wherever it is used.
    Inlined,
    /// In a buffer of its own.
    Root,
    /// In shared or private memory of a kernel's blocks.
    Block,
    /// In each thread's registers.
    Thread,
}

/// The places of all Funcs.
pub(crate) struct Places(IdVec<FuncId, Place>);

impl Places {
    pub fn new(pipeline: &Pipeline, schedule: &Schedule) -> Places {
        let mut places = Places(pipeline.funcs().values().map(|_| Place::Nowhere).collect());
        for &func in &schedule.inlined {
            places.0[func] = Place::Inlined;
        }
        for item in &schedule.root {
            places.add_root(item);
        }
        places
    }

    pub fn of(&self, func: FuncId) -> Place {
        self.0[func]
    }

    pub fn is_root(&self, func: FuncId) -> bool {
        self.0[func] == Place::Root
    }

    fn add_root(&mut self, item: &RootItem) {
        match item {
            RootItem::Around(around) => around.body.iter().for_each(|item| self.add_root(item)),
            RootItem::Kernel(kernel) => {
                self.0[kernel.stage.func] = Place::Root;
                kernel.body.iter().for_each(|item| self.add_block(item));
            }
        }
    }

    fn add_block(&mut self, item: &BlockItem) {
        match item {
            BlockItem::Over(over) => over.body.iter().for_each(|item| self.add_block(item)),
            BlockItem::Nest(nest) => {
                if let Item::Stage(stage) = nest.item
                    && nest.storage != Storage::Global
                {
                    self.0[stage.func] = Place::Block;
                }
                for &func in &nest.registers {
                    self.0[func] = Place::Thread;
                }
            }
        }
    }
}
