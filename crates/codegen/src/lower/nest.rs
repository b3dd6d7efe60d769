//! The loops of one stage inside a block.

use warploom_lang::op::BinaryOp;
use warploom_lang::{FuncId, Region, Type};
use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{
    Item, MAX_REGISTER_BYTES, Mapping, Nest, Size, StageRef, ThreadTiles, Tile,
};

use crate::builder::Bounds;
use crate::ir::{Leaf, NodeId, Space, Stmt, VarId};
use crate::lower::LowerError;
use crate::lower::boxes::{Box, Read, Reads};
use crate::lower::kernel::{KernelLowering, read_of, thread_count};
use crate::lower::value::Point;

/// A statement that holds others.
pub(crate) enum Frame {
    Let(VarId, NodeId),
    For { var: VarId, count: i64, unrolled: bool },
    If(NodeId),
}

/// Puts `body` inside frames, the first outermost.
fn framed(frames: Vec<Frame>, mut body: Vec<Stmt>) -> Vec<Stmt> {
    for frame in frames.into_iter().rev() {
        match frame {
            Frame::Let(var, value) => body.insert(0, Stmt::Let(var, value)),
            Frame::For { var, count, unrolled } => {
                body = vec![Stmt::For { var, count: count as u32, unrolled, body }];
            }
            Frame::If(condition) => body = vec![Stmt::If { condition, body }],
        }
    }
    body
}

/// What a nest computes: where its loops run and how they are called.
struct Subject {
    item: Item,
    /// Names of the dimensions.
    names: Vec<String>,
    /// Dimensions that have a loop.
    looped: Vec<usize>,
    /// The points that may be computed.
    region: Region,
}

impl KernelLowering<'_> {
    /// The statements that compute one nest over its box.
    pub fn nest(&mut self, nest: &Nest, own: &Box) -> Result<Vec<Stmt>, LowerError> {
        let subject = self.subject(nest.item);
        match &nest.mapping {
            Mapping::Flat => self.flat(&subject, own),
            Mapping::Threads(tiles) => self.threads(&subject, own, tiles, &nest.registers),
        }
    }

    fn subject(&self, item: Item) -> Subject {
        let pipeline = self.context.pipeline;
        match item {
            Item::Stage(StageRef { func, stage }) => {
                let decl = &pipeline.funcs()[func];
                let pure = |d: &usize| decl.stages[stage].is_pure(pipeline.exprs(), *d);
                Subject {
                    item,
                    names: decl.dims.clone(),
                    looped: (0..decl.dims.len()).filter(pure).collect(),
                    region: self.context.regions.funcs[func].stages[stage].needed.clone(),
                }
            }
            Item::Input(input) => {
                let dimensions = pipeline.inputs()[input].dimensions;
                Subject {
                    item,
                    names: (0..dimensions).map(|d| format!("d{d}")).collect(),
                    looped: (0..dimensions).collect(),
                    region: self.root_region(Read::Input(input)).clone(),
                }
            }
        }
    }

    /// A variable with a value, for the rest of the list.
    fn bind(&mut self, frames: &mut Vec<Frame>, name: String, value: NodeId, bounds: Bounds) -> NodeId {
        if self.builder.known(value).is_some() {
            return value;
        }
        let var = self.builder.var(name);
        frames.push(Frame::Let(var, value));
        self.builder.leaf(Leaf::Var(var), Type::I32, Some(bounds))
    }

    /// A loop; none if it runs once.
    fn repeat(&mut self, frames: &mut Vec<Frame>, name: String, count: i64, unrolled: bool) -> NodeId {
        if count == 1 {
            return self.builder.int(0);
        }
        let var = self.builder.var(name);
        frames.push(Frame::For { var, count, unrolled });
        self.builder.leaf(Leaf::Var(var), Type::I32, Some(Bounds::new(0, count - 1)))
    }

    /// One loop over all points, which the threads take in turns.
    fn flat(&mut self, subject: &Subject, own: &Box) -> Result<Vec<Stmt>, LowerError> {
        let total: i64 = subject.looped.iter().map(|d| own.extent[*d]).product();
        let threads = i64::from(self.threads);
        let rounds = (total + threads - 1) / threads;
        let mut frames = Vec::new();
        let round = self.repeat(&mut frames, "round".into(), rounds, false);
        let thread = self.thread();
        let start = self.builder.scale(round, threads);
        let index = self.builder.add(start, thread);
        let index = self.bind(&mut frames, "i".into(), index, Bounds::new(0, rounds * threads - 1));
        let end = self.builder.int(total);
        let inside = self.builder.binary(BinaryOp::Lt, index, end);
        self.guard(&mut frames, inside);
        let mut vars = own.lower.clone();
        let mut below = 1;
        for (position, &d) in subject.looped.iter().enumerate() {
            let extent = own.extent[d];
            let divisor = self.builder.int(below);
            let mut along = self.builder.binary(BinaryOp::Div, index, divisor);
            if position + 1 < subject.looped.len() {
                let extent = self.builder.int(extent);
                along = self.builder.binary(BinaryOp::Mod, along, extent);
            }
            let name = subject.names[d].clone();
            let along = self.bind(&mut frames, name, along, Bounds::new(0, extent - 1));
            vars[d] = self.builder.add(own.lower[d], along);
            below *= extent;
        }
        let body = self.compute(subject, vars, Vec::new())?;
        Ok(framed(frames, body))
    }

    /// A loop only entered where `condition` holds.
    fn guard(&mut self, frames: &mut Vec<Frame>, condition: NodeId) {
        if self.builder.known(condition).is_none_or(|value| value.bits() == 0) {
            frames.push(Frame::If(condition));
        }
    }

    /// Thread loops with serial loops inside.
    fn threads(
        &mut self,
        subject: &Subject,
        own: &Box,
        tiles: &ThreadTiles,
        registers: &[FuncId],
    ) -> Result<Vec<Stmt>, LowerError> {
        let mut frames = Vec::new();
        let count = |d: usize| {
            let along = |tile: &&Tile| tile.dim == LoopKind::Pure(d);
            tiles.threads.iter().find(along).map_or(1, |tile| i64::from(thread_count(tile)))
        };
        let serial = |d: usize| match tiles.serial.iter().find(|tile| tile.dim == LoopKind::Pure(d)) {
            Some(Tile { size: Size::Of(size), .. }) => i64::from(*size),
            Some(Tile { size: Size::All, .. }) => (own.extent[d] + count(d) - 1) / count(d),
            None => 1,
        };
        self.thread_guard(&mut frames, tiles);
        // Thread coordinates, the fastest first.
        let mut coordinates = vec![self.builder.int(0); subject.names.len()];
        let mut below = 1;
        let thread = self.thread();
        for tile in &tiles.threads {
            let LoopKind::Pure(d) = tile.dim else { continue };
            let (divisor, extent) = (self.builder.int(below), self.builder.int(count(d)));
            let along = self.builder.binary(BinaryOp::Div, thread, divisor);
            let along = self.builder.binary(BinaryOp::Mod, along, extent);
            let name = format!("{}_thread", subject.names[d]);
            coordinates[d] = self.bind(&mut frames, name, along, Bounds::new(0, count(d) - 1));
            below *= count(d);
        }
        // The tile of this thread: rounds where the threads don't cover the box at once.
        let mut tile = own.clone();
        for &d in subject.looped.iter().rev() {
            let (threads, size) = (count(d), serial(d));
            let rounds = (own.extent[d] + threads * size - 1) / (threads * size);
            let round = self.repeat(&mut frames, format!("{}_round", subject.names[d]), rounds, false);
            let start = self.builder.scale(round, threads);
            let start = self.builder.add(start, coordinates[d]);
            let start = self.builder.scale(start, size);
            tile.lower[d] = self.builder.add(own.lower[d], start);
            tile.extent[d] = size;
        }
        let mut body = self.registers(subject.item, &tile, registers)?;
        body.extend(self.serial(subject, own, &tile, tiles)?);
        Ok(framed(frames, body))
    }

    /// Threads beyond those of the stage do nothing.
    fn thread_guard(&mut self, frames: &mut Vec<Frame>, tiles: &ThreadTiles) {
        let used: u32 = tiles.threads.iter().map(thread_count).product();
        let (thread, used) = (self.thread(), self.builder.int(i64::from(used)));
        let inside = self.builder.binary(BinaryOp::Lt, thread, used);
        self.guard(frames, inside);
    }

    /// The serial loops of one thread over its tile.
    fn serial(
        &mut self,
        subject: &Subject,
        own: &Box,
        tile: &Box,
        tiles: &ThreadTiles,
    ) -> Result<Vec<Stmt>, LowerError> {
        let mut frames = Vec::new();
        let mut vars = tile.lower.clone();
        for serial in &tiles.serial {
            let LoopKind::Pure(d) = serial.dim else { continue };
            let step = self.repeat(
                &mut frames,
                format!("{}_serial", subject.names[d]),
                tile.extent[d],
                tiles.unroll,
            );
            vars[d] = self.builder.add(tile.lower[d], step);
        }
        // A tile that does not divide the box must not reach into the next block's.
        let within = self.within(own, &vars);
        let body = self.compute(subject, vars, within)?;
        Ok(framed(frames, body))
    }

    /// Conditions for a point to lie before the end of a box.
    fn within(&mut self, own: &Box, vars: &[NodeId]) -> Vec<NodeId> {
        let mut conditions = Vec::new();
        for (d, var) in vars.iter().enumerate() {
            let end = self.builder.offset(own.lower[d], own.extent[d]);
            conditions.push(self.builder.binary(BinaryOp::Lt, *var, end));
        }
        conditions
    }

    /// The Funcs a thread computes for its own tile.
    fn registers(&mut self, item: Item, tile: &Box, funcs: &[FuncId]) -> Result<Vec<Stmt>, LowerError> {
        let Item::Stage(stage) = item else { return Ok(Vec::new()) };
        let mut reads = Reads::default();
        reads.add(self.context, &mut self.builder, stage, tile);
        let mut boxes = Vec::new();
        for &func in funcs.iter().rev() {
            let root = self.root_region(Read::Func(func)).clone();
            let Some(own) = reads.union(&mut self.builder, Read::Func(func), &root) else { continue };
            reads.add(self.context, &mut self.builder, StageRef { func, stage: 0 }, &own);
            boxes.push((func, own));
        }
        let mut body = Vec::new();
        for (func, own) in boxes.into_iter().rev() {
            self.add_local(Read::Func(func), &own, Space::Thread, MAX_REGISTER_BYTES)?;
            let subject = self.subject(Item::Stage(StageRef { func, stage: 0 }));
            let mut frames = Vec::new();
            let mut vars = own.lower.clone();
            for &d in subject.looped.iter().rev() {
                let step =
                    self.repeat(&mut frames, format!("{}_register", subject.names[d]), own.extent[d], true);
                vars[d] = self.builder.add(own.lower[d], step);
            }
            // A thread's tile may reach beyond what the block has of other Funcs.
            let within = match self.block_boxes.get(&func).cloned() {
                Some(block) => self.within(&block, &vars),
                None => Vec::new(),
            };
            let point = self.compute(&subject, vars, within)?;
            body.extend(framed(frames, point));
        }
        Ok(body)
    }

    /// Computes one point over the whole of the stage's domain, if it lies in the region and the
    /// conditions hold.
    fn compute(
        &mut self,
        subject: &Subject,
        vars: Vec<NodeId>,
        mut conditions: Vec<NodeId>,
    ) -> Result<Vec<Stmt>, LowerError> {
        let mut frames = Vec::new();
        for &d in &subject.looped {
            let range = subject.region[d];
            let (first, last) = (self.builder.int(range.min), self.builder.int(range.last()));
            conditions.push(self.builder.binary(BinaryOp::Le, first, vars[d]));
            conditions.push(self.builder.binary(BinaryOp::Le, vars[d], last));
        }
        let inside = self.builder.all(conditions);
        self.guard(&mut frames, inside);
        let stores = match subject.item {
            Item::Stage(stage) => self.stage_stores(stage, vars, &mut frames)?,
            Item::Input(input) => {
                let global = self.global(self.context.input_buffers[input]);
                let index = global.offset(&mut self.builder, &vars);
                let ty = self.context.pipeline.inputs()[input].ty;
                let value = self.builder.load(global.array, ty, index);
                vec![self.store(read_of(subject.item), 0, &vars, value)?]
            }
        };
        Ok(framed(frames, stores))
    }

    fn stage_stores(
        &mut self,
        stage: StageRef,
        vars: Vec<NodeId>,
        frames: &mut Vec<Frame>,
    ) -> Result<Vec<Stmt>, LowerError> {
        let pipeline = self.context.pipeline;
        let decl = &pipeline.funcs()[stage.func].stages[stage.stage];
        let domain = &self.context.regions.funcs[stage.func].stages[stage.stage].domain;
        // The first reduction variable is the fastest, so its loop is the innermost.
        let mut rvars = vec![self.builder.int(0); domain.len()];
        for (r, range) in domain.iter().enumerate().rev() {
            let step = self.repeat(frames, decl.domain[r].name.clone(), range.extent, false);
            rvars[r] = self.builder.offset(step, range.min);
        }
        let point = Point { vars, rvars, consumer: stage.func };
        if let Some(predicate) = decl.predicate {
            let condition = self.value(predicate, &point)?;
            self.guard(frames, condition);
        }
        let at: Vec<NodeId> =
            decl.indices.iter().map(|index| self.value(*index, &point)).collect::<Result<_, _>>()?;
        let values: Vec<NodeId> =
            decl.values.iter().map(|value| self.value(*value, &point)).collect::<Result<_, _>>()?;
        // A tuple reads all old values before it writes any.
        let mut stores = Vec::new();
        let several = values.len() > 1;
        for (number, value) in values.into_iter().enumerate() {
            let value = if several { self.bind_value(&mut stores, number, value) } else { value };
            let store = self.store(Read::Func(stage.func), number, &at, value)?;
            stores.push(store);
        }
        stores.sort_by_key(|stmt| !matches!(stmt, Stmt::Let(..)));
        Ok(stores)
    }

    fn bind_value(&mut self, stores: &mut Vec<Stmt>, number: usize, value: NodeId) -> NodeId {
        let var = self.builder.var(format!("value{number}"));
        stores.push(Stmt::Let(var, value));
        let ty = self.builder.ty(value);
        self.builder.leaf(Leaf::Var(var), ty, None)
    }

    fn store(&mut self, read: Read, value: usize, at: &[NodeId], bits: NodeId) -> Result<Stmt, LowerError> {
        let stored = self.stored(read, value).ok_or_else(|| LowerError::Unsupported {
            what: format!("a store of the kernel `{}`", self.name()),
        })?;
        let index = stored.offset(&mut self.builder, at);
        Ok(Stmt::Store { array: stored.array, index, value: bits })
    }
}
