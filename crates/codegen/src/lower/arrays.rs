//! What lives in a kernel's blocks and threads, and how accesses find it.

use warploom_lang::{FuncId, InputId, Type};
use warploom_schedule::schedule::{Item, Nest, StageRef, StagedFootprint, Storage};

use crate::builder::Builder;
use crate::ir::{Array, ArrayId, BufferId, NodeId, Space};
use crate::lower::LowerError;
use crate::lower::boxes::Box;
use crate::lower::kernel::KernelLowering;
use crate::lower::layout::{Axis, Layout};

/// What is read: a Func or an input.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Read {
    Func(FuncId),
    Input(InputId),
}

/// What reads of an item look like.
pub(crate) fn read_of(item: Item) -> Read {
    match item {
        Item::Stage(stage) => Read::Func(stage.func),
        Item::Input(input) => Read::Input(input),
    }
}

/// What an array of a kernel is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kept {
    /// All of something that lives in the block or thread.
    Whole(Read),
    /// The points that a thread is at, of a stage.
    Tile(StageRef),
}

/// Where the values of something are kept, for accesses.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub array: ArrayId,
    layout: Layout,
}

impl Stored {
    /// The index of a point's element.
    pub fn index(&self, builder: &mut Builder, at: &[NodeId]) -> NodeId {
        self.layout.index(builder, at)
    }
}

impl KernelLowering<'_> {
    /// Makes the arrays of a nest that lives in the block.
    pub fn allocate(&mut self, nest: &Nest) {
        let read = read_of(nest.item);
        let mut allocations = self.plan.allocations.iter();
        let Some(allocation) = allocations.find(|allocation| read_of(allocation.item) == read) else {
            return;
        };
        let points = self.placed(&allocation.points);
        let space = match allocation.storage {
            Storage::Private => Space::Thread,
            Storage::Global | Storage::Shared => Space::Shared,
        };
        let own = Box { extent: allocation.extents.clone(), ..points };
        self.add_arrays(read, &own, &allocation.shares, space);
    }

    /// Makes the arrays of a Func in registers.
    pub fn allocate_registers(&mut self, func: FuncId, footprint: &StagedFootprint) {
        let own = self.placed(&footprint.points);
        self.add_arrays(Read::Func(func), &own, &[], Space::Thread);
    }

    /// Registers for a tile of a stage's points.
    pub fn tile_registers(&mut self, stage: StageRef, tile: &Box) -> Vec<Stored> {
        let (name, types) = self.name_and_types(Read::Func(stage.func));
        let key = Kept::Tile(stage);
        self.dense_arrays(key, &format!("{name}.tile"), &types, tile, &[], Space::Thread)
    }

    /// Makes one array a value, and makes accesses find it.
    fn add_arrays(&mut self, read: Read, own: &Box, shares: &[Option<(i64, i64)>], space: Space) {
        let (name, types) = self.name_and_types(read);
        let arrays = self.dense_arrays(Kept::Whole(read), &name, &types, own, shares, space);
        for (value, stored) in arrays.into_iter().enumerate() {
            self.local.insert((read, value), stored);
        }
    }

    /// One dense array a value over a box. The stages of a Func, and the versions of a block, share them.
    fn dense_arrays(
        &mut self,
        key: Kept,
        name: &str,
        types: &[Type],
        own: &Box,
        shares: &[Option<(i64, i64)>],
        space: Space,
    ) -> Vec<Stored> {
        let mut stride = 1_i64;
        let mut axes = Vec::new();
        for (d, (&lower, &extent)) in own.lower.iter().zip(&own.extent).enumerate() {
            axes.push(Axis { lower, extent, stride, share: shares.get(d).copied().flatten() });
            stride = stride.saturating_mul(extent);
        }
        let elements = self.builder.count(stride) as usize;
        let layout = Layout::new(axes, self.context.narrow_elements);
        let mut arrays = Vec::new();
        for (value, &ty) in types.iter().enumerate() {
            let name = if types.len() > 1 { format!("{name}.{value}") } else { name.to_string() };
            let array = match self.kept.get(&(key, value)) {
                Some(array) => *array,
                None => self.arrays.push(Array { name, ty, space, elements }),
            };
            self.kept.insert((key, value), array);
            arrays.push(Stored { array, layout: layout.clone() });
        }
        arrays
    }

    fn name_and_types(&self, read: Read) -> (String, Vec<Type>) {
        let pipeline = self.context.pipeline();
        match read {
            Read::Func(func) => (pipeline.funcs()[func].name.clone(), pipeline.funcs()[func].types.clone()),
            Read::Input(input) => {
                let input = &pipeline.inputs()[input];
                (format!("{}.stage", input.name), vec![input.ty])
            }
        }
    }

    /// Where a value can be read in this kernel.
    pub fn stored(&mut self, read: Read, value: usize) -> Result<Stored, LowerError> {
        if let Some(stored) = self.local.get(&(read, value)) {
            return Ok(stored.clone());
        }
        let buffer = match read {
            Read::Func(func) => self.context.func_buffers[func].get(value).copied(),
            Read::Input(input) => Some(self.context.input_buffers[input]),
        };
        let unplaced = || LowerError::Unplaced { func: self.name_and_types(read).0, kernel: self.name() };
        Ok(self.global(buffer.ok_or_else(unplaced)?))
    }

    /// Where a buffer's values can be read in this kernel.
    pub fn global(&mut self, buffer: BufferId) -> Stored {
        if let Some(stored) = self.globals.get(&buffer) {
            return stored.clone();
        }
        let decl = &self.context.buffers[buffer];
        let space = Space::Global(buffer);
        let array = Array { name: decl.name.clone(), ty: decl.ty, space, elements: decl.elements() };
        let array = self.arrays.push(array);
        let layout = Layout::of_buffer(&mut self.builder, decl, self.context.narrow_elements);
        let stored = Stored { array, layout };
        self.globals.insert(buffer, stored.clone());
        stored
    }
}
