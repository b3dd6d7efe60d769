//! One kernel: its grid, what lives in its blocks, and its nests in order.

use ahash::AHashMap;
use smallvec::SmallVec;
use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::{FuncId, IdVec, Region, Type};
use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{
    self, BlockItem, FLAT_THREADS, Item, Mapping, Nest, Size, StageRef, Storage, Tile,
};

use crate::builder::{Bounds, Builder};
use crate::ir::{Array, ArrayId, BufferId, Kernel, Leaf, NodeId, Space, Stmt};
use crate::lower::barriers::with_barriers;
use crate::lower::boxes::{Box, Read, Reads};
use crate::lower::{Context, LowerError};

/// Where the values of something are kept, for accesses.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub array: ArrayId,
    pub lower: Vec<NodeId>,
    pub strides: Vec<i64>,
}

impl Stored {
    /// The element of a point.
    pub fn offset(&self, builder: &mut Builder, at: &[NodeId]) -> NodeId {
        let mut offset = builder.int(0);
        for (d, index) in at.iter().enumerate() {
            let along = builder.sub(*index, self.lower[d]);
            let along = builder.scale(along, self.strides[d]);
            offset = builder.add(offset, along);
        }
        offset
    }
}

/// An inlined value: the Func, which value, where.
type InlinedAt = (FuncId, usize, SmallVec<[NodeId; 4]>);

pub(crate) struct KernelLowering<'a> {
    pub context: &'a Context<'a>,
    pub builder: Builder,
    pub arrays: IdVec<ArrayId, Array>,
    pub inlined: AHashMap<InlinedAt, NodeId>,
    pub threads: u32,
    kernel: &'a schedule::Kernel,
    nests: Vec<&'a Nest>,
    globals: AHashMap<BufferId, Stored>,
    local: AHashMap<(Read, usize), Stored>,
    /// Along each split dimension, the block's index and how many blocks are full.
    split: Vec<(NodeId, i64)>,
    /// What a whole block needs of the Funcs that live in threads.
    pub block_boxes: AHashMap<FuncId, Box>,
}

impl<'a> KernelLowering<'a> {
    pub fn new(context: &'a Context<'a>, kernel: &'a schedule::Kernel) -> Result<Self, LowerError> {
        let mut nests = Vec::new();
        for item in &kernel.body {
            let what = match item {
                BlockItem::Nest(nest) => {
                    nests.push(nest);
                    not_lowered(context, nest)
                }
                BlockItem::Over(_) => Some("a loop over a block".to_string()),
            };
            if let Some(what) = what {
                return Err(LowerError::Unsupported { what });
            }
        }
        let threads = nests.iter().filter_map(|nest| nest_threads(nest)).max();
        let threads = threads.unwrap_or(FLAT_THREADS as u32);
        Ok(KernelLowering {
            context,
            builder: Builder::default(),
            arrays: IdVec::new(),
            inlined: AHashMap::new(),
            threads,
            kernel,
            nests,
            globals: AHashMap::new(),
            local: AHashMap::new(),
            split: Vec::new(),
            block_boxes: AHashMap::new(),
        })
    }

    pub fn lower(mut self) -> Result<Kernel, LowerError> {
        let (grid, own) = self.grid()?;
        let body = self.versions(&own)?;
        let kernel = Kernel {
            name: self.name(),
            grid,
            threads: self.threads,
            arrays: self.arrays,
            vars: self.builder.vars,
            exprs: self.builder.exprs,
            body,
        };
        check_limits(&kernel, self.context)?;
        Ok(kernel)
    }

    /// What a block runs: where some blocks are cut by the edge of the image, a version without guards for
    /// those that are not, so that loads can move freely there.
    fn versions(&mut self, own: &Box) -> Result<Vec<Stmt>, LowerError> {
        let partial: Vec<(NodeId, i64)> = std::mem::take(&mut self.split);
        let guarded = self.block(own)?;
        if partial.is_empty() || partial.iter().any(|(_, full)| *full == 0) {
            return Ok(guarded);
        }
        let mut conditions = Vec::new();
        for (index, full) in &partial {
            let full = self.builder.int(*full);
            conditions.push(self.builder.binary(BinaryOp::Lt, *index, full));
        }
        let is_full = self.builder.all(conditions);
        let is_cut = self.builder.op(Op::Unary(UnaryOp::Not), &[is_full]);
        for (index, full) in partial {
            self.builder.narrow(index, Bounds::new(0, full - 1));
        }
        self.inlined.clear();
        let unguarded = self.block(own)?;
        Ok(vec![
            Stmt::If { condition: is_full, body: unguarded },
            Stmt::If { condition: is_cut, body: guarded },
        ])
    }

    /// The nests of a block in order, with barriers between them.
    fn block(&mut self, own: &Box) -> Result<Vec<Stmt>, LowerError> {
        let boxes = self.boxes(own);
        let mut segments = Vec::new();
        for (nest, own) in self.nests.clone().into_iter().zip(boxes) {
            // What nobody reads need not be computed.
            let Some(own) = own else { continue };
            self.allocate(nest, &own)?;
            segments.push(self.nest(nest, &own)?);
        }
        Ok(with_barriers(segments, &self.builder.exprs, &self.arrays))
    }

    /// The kernel's name: that of its stage.
    pub fn name(&self) -> String {
        let StageRef { func, stage } = self.kernel.stage;
        warploom_lang::ir::stage_name(&self.context.pipeline.funcs()[func], stage)
    }

    /// The points of the kernel's own stage.
    fn own_region(&self) -> &'a Region {
        let StageRef { func, stage } = self.kernel.stage;
        &self.context.regions.funcs[func].stages[stage].needed
    }

    /// The grid, and the box of the kernel's own stage in one block.
    fn grid(&mut self) -> Result<([u32; 3], Box), LowerError> {
        let region = self.own_region();
        let tile = |d: usize| {
            let size = self.kernel.block.iter().find(|tile| tile.dim == LoopKind::Pure(d)).map(|t| t.size);
            match size {
                Some(Size::Of(size)) => i64::from(size).min(region[d].extent),
                _ => region[d].extent,
            }
        };
        if self.kernel.block.iter().any(|tile| matches!(tile.dim, LoopKind::Reduction(_))) {
            let what = "a reduction variable spread over blocks".to_string();
            return Err(LowerError::Unsupported { what });
        }
        let tiles: Vec<i64> = (0..region.dimensions()).map(tile).collect();
        let counts: Vec<i64> =
            tiles.iter().enumerate().map(|(d, tile)| (region[d].extent + tile - 1) / tile).collect();
        let (grid, indices) = self.block_indices(&counts, &tiles, region);
        let mut lower = Vec::new();
        for (d, index) in indices.into_iter().enumerate() {
            let start = self.builder.scale(index, tiles[d]);
            lower.push(self.builder.offset(start, region[d].min));
        }
        Ok((grid, Box { lower, extent: tiles }))
    }

    /// A grid of `counts` blocks, and each block's index along every dimension.
    fn block_indices(&mut self, counts: &[i64], tiles: &[i64], region: &Region) -> ([u32; 3], Vec<NodeId>) {
        let split: Vec<usize> = (0..counts.len()).filter(|d| counts[*d] > 1).collect();
        let direct = split.len() <= 3 && split.iter().skip(1).all(|d| counts[*d] <= 65_535);
        if direct {
            let mut grid = [1; 3];
            let mut indices: Vec<NodeId> = counts.iter().map(|_| self.builder.int(0)).collect();
            for (axis, &d) in split.iter().enumerate() {
                grid[axis] = counts[d] as u32;
                indices[d] = self.block_leaf(axis, counts[d]);
                let full = region[d].extent / tiles[d];
                if full < counts[d] {
                    self.split.push((indices[d], full));
                }
            }
            return (grid, indices);
        }
        let total: i64 = counts.iter().product();
        let mut rest = self.block_leaf(0, total);
        let mut indices = Vec::new();
        for count in counts {
            let count = self.builder.int(*count);
            indices.push(self.builder.binary(BinaryOp::Mod, rest, count));
            rest = self.builder.binary(BinaryOp::Div, rest, count);
        }
        ([total as u32, 1, 1], indices)
    }

    fn block_leaf(&mut self, axis: usize, count: i64) -> NodeId {
        self.builder.leaf(Leaf::Block(axis as u8), Type::I32, Some(Bounds::new(0, count - 1)))
    }

    /// The thread's index in its block.
    pub fn thread(&mut self) -> NodeId {
        let last = i64::from(self.threads) - 1;
        self.builder.leaf(Leaf::Thread, Type::I32, Some(Bounds::new(0, last)))
    }

    /// The box of every nest at block level, consumers before producers; `None` for what nobody reads.
    fn boxes(&mut self, own: &Box) -> Vec<Option<Box>> {
        let mut reads = Reads::default();
        let mut boxes = Vec::new();
        for nest in self.nests.clone().into_iter().rev() {
            let at_block = match nest.item {
                Item::Stage(stage) if stage == self.kernel.stage => Some(own.clone()),
                item => {
                    let (read, root) = (read_of(item), self.root_region(read_of(item)).clone());
                    reads.union(&mut self.builder, read, &root)
                }
            };
            if let (Item::Stage(stage), Some(own)) = (nest.item, &at_block) {
                reads.add(self.context, &mut self.builder, stage, own);
                for &func in nest.registers.iter().rev() {
                    let root = self.root_region(Read::Func(func)).clone();
                    if let Some(inner) = reads.union(&mut self.builder, Read::Func(func), &root) {
                        reads.add(self.context, &mut self.builder, StageRef { func, stage: 0 }, &inner);
                        self.block_boxes.insert(func, inner);
                    }
                }
            }
            boxes.push(at_block);
        }
        boxes.reverse();
        boxes
    }

    /// Everything that is ever computed of a Func, or the whole of an input.
    pub fn root_region(&self, read: Read) -> &'a Region {
        match read {
            Read::Func(func) => &self.context.regions.funcs[func].region,
            Read::Input(input) => &self.context.regions.inputs[input],
        }
    }

    /// Makes the arrays of a nest that lives in the block.
    fn allocate(&mut self, nest: &Nest, own: &Box) -> Result<(), LowerError> {
        if nest.storage == Storage::Global {
            return Ok(());
        }
        let limit = self.context.device.shared.per_block_opt_in as u64;
        self.add_local(read_of(nest.item), own, Space::Shared, limit)
    }

    /// Makes one array a value over a box, and makes accesses find it.
    pub fn add_local(&mut self, read: Read, own: &Box, space: Space, limit: u64) -> Result<(), LowerError> {
        let pipeline = self.context.pipeline;
        let (name, types): (String, Vec<Type>) = match read {
            Read::Func(func) => (pipeline.funcs()[func].name.clone(), pipeline.funcs()[func].types.clone()),
            Read::Input(input) => {
                (format!("{}.stage", pipeline.inputs()[input].name), vec![pipeline.inputs()[input].ty])
            }
        };
        let elements = own.points();
        let bytes = elements.saturating_mul(types.iter().map(|ty| ty.bytes() as u64).sum());
        if bytes > limit {
            return Err(LowerError::TooLarge { func: name, kernel: self.name(), bytes, limit });
        }
        for (value, &ty) in types.iter().enumerate() {
            let name = if types.len() > 1 { format!("{name}.{value}") } else { name.clone() };
            let known = self.local.get(&(read, value)).map(|stored| stored.array);
            let fits = |array: &ArrayId| self.arrays[*array].elements >= elements as usize;
            // The versions of a block share their arrays.
            let array = match known.filter(fits) {
                Some(array) => array,
                None => self.arrays.push(Array { name, ty, space, elements: elements as usize }),
            };
            let stored = Stored { array, lower: own.lower.clone(), strides: own.strides() };
            self.local.insert((read, value), stored);
        }
        Ok(())
    }

    /// Where a value can be read in this kernel.
    pub fn stored(&mut self, read: Read, value: usize) -> Option<Stored> {
        if let Some(stored) = self.local.get(&(read, value)) {
            return Some(stored.clone());
        }
        let buffer = match read {
            Read::Func(func) => *self.context.func_buffers[func].get(value)?,
            Read::Input(input) => self.context.input_buffers[input],
        };
        Some(self.global(buffer))
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
        let lower = decl.region.0.iter().map(|range| self.builder.int(range.min)).collect();
        let stored = Stored { array, lower, strides: decl.strides.clone() };
        self.globals.insert(buffer, stored.clone());
        stored
    }
}

/// What reads of an item look like.
pub(crate) fn read_of(item: Item) -> Read {
    match item {
        Item::Stage(stage) => Read::Func(stage.func),
        Item::Input(input) => Read::Input(input),
    }
}

/// A decision of a nest that is legal but not lowered yet.
fn not_lowered(context: &Context<'_>, nest: &Nest) -> Option<String> {
    let funcs = context.pipeline.funcs();
    let has_updates = |func: FuncId| funcs[func].stages.len() > 1;
    if nest.storage == Storage::Private {
        return Some("private storage".into());
    }
    if let Item::Stage(stage) = nest.item
        && nest.storage == Storage::Shared
        && has_updates(stage.func)
    {
        return Some(format!("`{}` in shared memory, which has updates,", funcs[stage.func].name));
    }
    if let Some(&func) = nest.registers.iter().find(|func| has_updates(**func)) {
        return Some(format!("`{}` in registers, which has updates,", funcs[func].name));
    }
    let Mapping::Threads(tiles) = &nest.mapping else { return None };
    let plain = |tile: &Tile| matches!((tile.dim, tile.size), (LoopKind::Pure(_), Size::Of(_)));
    let odd = tiles.threads.iter().any(|tile| !plain(tile));
    odd.then(|| "a thread loop over a reduction variable or over `all`".into())
}

/// Threads that a nest's own loops need; `None` for flat loops, which take any number.
fn nest_threads(nest: &Nest) -> Option<u32> {
    match &nest.mapping {
        Mapping::Flat => None,
        Mapping::Threads(tiles) => Some(tiles.threads.iter().map(thread_count).product()),
    }
}

/// Threads along a dimension.
pub(crate) fn thread_count(tile: &Tile) -> u32 {
    match tile.size {
        Size::Of(size) => size,
        Size::All => 1,
    }
}

fn check_limits(kernel: &Kernel, context: &Context<'_>) -> Result<(), LowerError> {
    let device = context.device;
    let checks = [
        ("threads in a block", u64::from(kernel.threads), u64::from(device.threads.per_block)),
        ("bytes of shared memory", kernel.shared_bytes() as u64, device.shared.per_block_opt_in as u64),
    ];
    for (what, needed, limit) in checks {
        if needed > limit {
            return Err(LowerError::Limit { kernel: kernel.name.clone(), what, needed, limit });
        }
    }
    Ok(())
}
