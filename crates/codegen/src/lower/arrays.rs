//! What lives in a kernel's blocks and threads, and how accesses find it.

use warploom_lang::op::BinaryOp;
use warploom_lang::{FuncId, InputId, Type};
use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{Item, Nest, NestFootprint, StageRef, StagedFootprint, Storage};

use crate::builder::Builder;
use crate::ir::{Array, ArrayId, BufferId, NodeId, Space};
use crate::lower::LowerError;
use crate::lower::boxes::Box;
use crate::lower::kernel::KernelLowering;

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
    axes: Vec<Axis>,
}

/// One dimension of an array.
#[derive(Clone, Copy, Debug)]
struct Axis {
    /// The first index.
    lower: NodeId,
    /// Elements between neighbours.
    stride: i64,
    /// Threads along it and neighbouring points of each, where each thread holds only its own points.
    share: Option<(i64, i64)>,
}

impl Stored {
    /// The element of a point.
    pub fn offset(&self, builder: &mut Builder, at: &[NodeId]) -> NodeId {
        let mut offset = builder.int(0);
        for (axis, index) in self.axes.iter().zip(at) {
            let mut along = builder.sub(*index, axis.lower);
            if let Some((threads, serial)) = axis.share {
                along = own_part(builder, along, threads, serial);
            }
            let along = builder.scale(along, axis.stride);
            offset = builder.add(offset, along);
        }
        offset
    }
}

/// The number of a point among those of its thread: which round, and where in the thread's tile.
fn own_part(builder: &mut Builder, along: NodeId, threads: i64, serial: i64) -> NodeId {
    let (round, tile) = (builder.int(threads * serial), builder.int(serial));
    let round = builder.binary(BinaryOp::Div, along, round);
    let before = builder.scale(round, serial);
    let within = builder.binary(BinaryOp::Mod, along, tile);
    builder.add(before, within)
}

impl KernelLowering<'_> {
    /// Makes the arrays of a nest that lives in the block.
    pub fn allocate(&mut self, nest: &Nest, footprint: &NestFootprint) {
        let read = read_of(nest.item);
        let mut allocations = self.footprint.allocations.iter();
        let Some(allocation) = allocations.find(|allocation| read_of(allocation.item) == read) else {
            return;
        };
        let points = self.placed(&allocation.points);
        let space = match allocation.storage {
            Storage::Private => Space::Thread,
            Storage::Global | Storage::Shared => Space::Shared,
        };
        let share = |d: usize| {
            let mut loops = footprint.threads.iter().flatten();
            let dim = loops.find(|dim| dim.dim == LoopKind::Pure(d) && dim.threads > 1)?;
            (space == Space::Thread).then_some((dim.threads, dim.serial))
        };
        let shares: Vec<Option<(i64, i64)>> = (0..points.lower.len()).map(share).collect();
        self.add_arrays(read, &Box { extent: allocation.extents.clone(), ..points }, &shares, space);
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
            if space == Space::Shared {
                self.exchanged.insert(stored.array);
            }
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
        let mut stride = 1;
        let mut axes = Vec::new();
        for (d, (lower, extent)) in own.lower.iter().zip(&own.extent).enumerate() {
            axes.push(Axis { lower: *lower, stride, share: shares.get(d).copied().flatten() });
            stride *= extent;
        }
        let mut arrays = Vec::new();
        for (value, &ty) in types.iter().enumerate() {
            let name = if types.len() > 1 { format!("{name}.{value}") } else { name.to_string() };
            let array = match self.kept.get(&(key, value)) {
                Some(array) => *array,
                None => self.arrays.push(Array { name, ty, space, elements: stride as usize }),
            };
            self.kept.insert((key, value), array);
            arrays.push(Stored { array, axes: axes.clone() });
        }
        arrays
    }

    fn name_and_types(&self, read: Read) -> (String, Vec<Type>) {
        let pipeline = self.context.pipeline;
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
        let dims = decl.region.0.iter().zip(&decl.strides);
        let axis = |(range, stride): (&warploom_lang::Range, &i64)| Axis {
            lower: self.builder.int(range.min),
            stride: *stride,
            share: None,
        };
        let stored = Stored { array, axes: dims.map(axis).collect() };
        self.globals.insert(buffer, stored.clone());
        stored
    }
}
