//! The loops of one nest inside a block.

use warploom_lang::FuncId;
use warploom_lang::affine::Interval;
use warploom_lang::op::BinaryOp;
use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{
    Item, Mapping, Nest, NestFootprint, RegisterFootprint, StageRef, Symbol, ThreadLoop, ThreadTiles,
};

use crate::ir::{NodeId, Stmt};
use crate::lower::LowerError;
use crate::lower::boxes::Box;
use crate::lower::kernel::KernelLowering;
use crate::lower::nesting::Nesting;
use crate::lower::stage::Subject;

/// Where the loops of a nest are: for each loop the box it runs over, and how far it is.
#[derive(Clone)]
pub(crate) struct Position {
    pub points: Box,
    pub domain: Box,
    /// Along each dimension, from the start of the box.
    pub along: Vec<NodeId>,
    /// Along each reduction variable, from the start of what outer loops leave of it.
    reduced: Vec<NodeId>,
}

impl Position {
    fn offset(&mut self, dim: LoopKind) -> &mut NodeId {
        match dim {
            LoopKind::Pure(d) => &mut self.along[d],
            LoopKind::Reduction(r) => &mut self.reduced[r],
        }
    }

    /// The box that a loop runs in, its number there, and how far it is.
    fn place(&self, dim: LoopKind) -> (&Box, usize, NodeId) {
        match dim {
            LoopKind::Pure(d) => (&self.points, d, self.along[d]),
            LoopKind::Reduction(r) => (&self.domain, r, self.reduced[r]),
        }
    }

    fn extent(&self, dim: LoopKind) -> i64 {
        let (own, d, _) = self.place(dim);
        own.extent[d]
    }
}

/// A nest: the decisions of the schedule, how large they make it, and what it computes.
pub(crate) struct Plan<'n> {
    pub nest: &'n Nest,
    pub footprint: &'n NestFootprint,
    pub subject: Subject,
    /// How threads share it; a flat loop is one point at a time.
    pub tiles: &'n ThreadTiles,
    pub loops: &'n [ThreadLoop],
}

impl Plan<'_> {
    /// Threads along a loop, and points of each.
    pub fn share(&self, kind: LoopKind) -> (i64, i64) {
        let dim = self.loops.iter().find(|dim| dim.dim == kind);
        dim.map_or((1, 1), |dim| (dim.threads, dim.serial))
    }
}

impl KernelLowering<'_> {
    /// The statements that compute one nest over its box.
    pub fn nest(&mut self, nest: &Nest, footprint: &NestFootprint) -> Result<Vec<Stmt>, LowerError> {
        // Elsewhere the same point may be read from another place.
        self.inlined.clear();
        let one_point = ThreadTiles::default();
        let (tiles, loops) = match (&nest.mapping, &footprint.threads) {
            (Mapping::Threads(tiles), Some(loops)) => (tiles, loops.as_slice()),
            _ => (&one_point, [].as_slice()),
        };
        let plan = Plan { nest, footprint, subject: self.subject(nest.item), tiles, loops };
        let start = self.builder.int(0);
        let mut position = Position {
            points: self.placed(&footprint.points),
            domain: self.placed_dims(&footprint.domain),
            along: vec![start; footprint.points.dims.len()],
            reduced: vec![start; footprint.domain.len()],
        };
        let mut outer = Nesting::default();
        match nest.mapping {
            Mapping::Flat => self.flat(&mut outer, &plan.subject, &mut position),
            Mapping::Threads(_) => self.rounds(&mut outer, &plan, &mut position),
        }
        outer.enter(&mut self.builder);
        let body = self.tile(&plan, &position)?;
        Ok(outer.around(&mut self.builder, body))
    }

    /// One loop over all points, which the threads take in turns.
    fn flat(&mut self, outer: &mut Nesting, subject: &Subject, position: &mut Position) {
        let extents = subject.looped.iter().map(|d| position.points.extent[*d]);
        let total = extents.fold(1, i64::saturating_mul);
        let threads = i64::from(self.threads());
        let rounds = tiles_of(total, threads);
        let last = i64::from(self.builder.fitted(rounds.saturating_mul(threads) - 1));
        let round = outer.repeat(&mut self.builder, "round".into(), rounds, false);
        let thread = self.thread();
        let start = self.builder.scale(round, threads);
        let index = self.builder.add(start, thread);
        let index = outer.bind(&mut self.builder, "i".into(), index, Interval::new(0, last));
        let end = self.builder.int(total - 1);
        outer.require(self.builder.binary(BinaryOp::Le, index, end));
        outer.enter(&mut self.builder);
        let mut below = 1_i64;
        for &d in &subject.looped {
            let extent = position.points.extent[d];
            let divisor = self.builder.int(below);
            let mut along = self.builder.binary(BinaryOp::Div, index, divisor);
            // The index is inside the box here, so that nothing is left above the last dimension.
            if below.saturating_mul(extent) < total {
                let extent = self.builder.int(extent);
                along = self.builder.binary(BinaryOp::Mod, along, extent);
            }
            let (name, range) = (subject.names[d].clone(), Interval::new(0, extent - 1));
            position.along[d] = match extent {
                1 => self.builder.int(0),
                _ => outer.bind(&mut self.builder, name, along, range),
            };
            self.symbols.insert(Symbol::Thread(LoopKind::Pure(d)), position.along[d]);
            self.guard(outer, subject, position, LoopKind::Pure(d));
            below = below.saturating_mul(extent);
        }
    }

    /// What one thread does at the tile that starts at a position.
    fn tile(&mut self, plan: &Plan<'_>, start: &Position) -> Result<Vec<Stmt>, LowerError> {
        let mut body = self.registers(&plan.nest.registers, plan.footprint)?;
        let accumulator = self.accumulator(plan, start)?;
        if let Some(accumulator) = &accumulator {
            body.extend(self.begin(accumulator, plan, start));
        }
        let (mut inner, mut position) = (Nesting::default(), start.clone());
        self.reductions(&mut inner, plan, &mut position);
        self.serial(&mut inner, plan, &mut position, |_| true);
        body.extend(self.point(inner, &plan.subject, &position)?);
        if let Some(accumulator) = &accumulator {
            body.extend(self.finish(accumulator, plan, start));
        }
        Ok(body)
    }

    /// The serial loops of a thread's tile, those of some kinds.
    pub fn serial(
        &mut self,
        inner: &mut Nesting,
        plan: &Plan<'_>,
        position: &mut Position,
        kinds: impl Fn(LoopKind) -> bool,
    ) {
        for kind in plan.tiles.serial.iter().map(|tile| tile.dim).filter(|kind| kinds(*kind)) {
            let (_, serial) = plan.share(kind);
            if serial > 1 {
                let name = format!("{}_serial", plan.subject.name(kind));
                let step = inner.repeat(&mut self.builder, name, serial, plan.tiles.unroll);
                let offset = position.offset(kind);
                *offset = self.builder.add(*offset, step);
                self.guard(inner, &plan.subject, position, kind);
            }
        }
    }

    /// The tile of this thread: where it starts along each loop that threads share and along each dimension,
    /// in rounds where the threads don't cover the box at once.
    fn rounds(&mut self, outer: &mut Nesting, plan: &Plan<'_>, position: &mut Position) {
        let Plan { subject, loops, .. } = plan;
        // Threads beyond those of the stage do nothing.
        let used: i64 = loops.iter().map(|dim| dim.threads).product();
        let (thread, end) = (self.thread(), self.builder.int(used));
        outer.require(self.builder.binary(BinaryOp::Lt, thread, end));
        outer.enter(&mut self.builder);
        let mut below = 1;
        for dim in loops.iter().filter(|dim| dim.threads > 1) {
            let (divisor, extent) = (self.builder.int(below), self.builder.int(dim.threads));
            let along = self.builder.binary(BinaryOp::Div, thread, divisor);
            let along = self.builder.binary(BinaryOp::Mod, along, extent);
            let (name, range) =
                (format!("{}_thread", subject.name(dim.dim)), Interval::new(0, dim.threads - 1));
            *position.offset(dim.dim) = outer.bind(&mut self.builder, name, along, range);
            below *= dim.threads;
        }
        let pure = subject.looped.iter().rev().map(|d| LoopKind::Pure(*d));
        let shared = loops.iter().filter(|dim| dim.threads > 1).map(|dim| dim.dim);
        let reductions = shared.filter(|kind| matches!(kind, LoopKind::Reduction(_)));
        for kind in reductions.chain(pure) {
            let (threads, serial) = plan.share(kind);
            let rounds = tiles_of(position.extent(kind), threads * serial);
            // Where the last thread's tile ends, outside the box perhaps.
            self.builder.fitted(rounds.saturating_mul(threads * serial) - 1);
            let name = format!("{}_round", subject.name(kind));
            let round = outer.repeat(&mut self.builder, name, rounds, false);
            let before = self.builder.scale(round, threads);
            let offset = position.offset(kind);
            let tile = self.builder.add(before, *offset);
            self.symbols.insert(Symbol::Thread(kind), tile);
            *offset = self.builder.scale(tile, serial);
            match serial {
                1 => self.guard(outer, subject, position, kind),
                // A thread whose tile is outside has nothing to do, and nothing of its own to read.
                _ => self.guard_box(outer, position, kind),
            }
        }
    }

    /// The loops over what is left of reduction variables that threads don't share: the first one is the
    /// fastest, so its loop is the innermost.
    fn reductions(&mut self, inner: &mut Nesting, plan: &Plan<'_>, position: &mut Position) {
        let subject = &plan.subject;
        for r in (0..subject.variables.len()).rev() {
            let kind = LoopKind::Reduction(r);
            let (threads, serial) = plan.share(kind);
            if threads > 1 {
                continue;
            }
            let parts = tiles_of(position.extent(kind), serial);
            self.builder.fitted(parts.saturating_mul(serial) - 1);
            let part = inner.repeat(&mut self.builder, subject.variables[r].clone(), parts, false);
            position.reduced[r] = self.builder.scale(part, serial);
            if serial == 1 {
                self.guard(inner, subject, position, kind);
            }
        }
    }

    /// A loop may be at a point only inside its box, so as not to reach into the next one's, and inside all
    /// that is ever computed.
    fn guard(&mut self, nesting: &mut Nesting, subject: &Subject, position: &Position, kind: LoopKind) {
        self.guard_box(nesting, position, kind);
        let (own, d, offset) = position.place(kind);
        let at = self.builder.add(own.lower[d], offset);
        let (first, last) = match kind {
            LoopKind::Pure(d) => (Some(subject.region[d].min), subject.region[d].last()),
            LoopKind::Reduction(r) => (None, subject.last[r]),
        };
        if let Some(first) = first {
            let first = self.builder.int(first);
            nesting.require(self.builder.binary(BinaryOp::Le, first, at));
        }
        if let Some(upper) = own.upper[d] {
            nesting.require(self.builder.binary(BinaryOp::Le, at, upper));
        }
        let last = self.builder.int(last);
        nesting.require(self.builder.binary(BinaryOp::Le, at, last));
    }

    /// A loop may be only inside its box.
    fn guard_box(&mut self, nesting: &mut Nesting, position: &Position, kind: LoopKind) {
        let (own, d, offset) = position.place(kind);
        let end = self.builder.int(own.extent[d]);
        nesting.require(self.builder.binary(BinaryOp::Lt, offset, end));
    }

    /// Computes the point that the loops are at.
    fn point(
        &mut self,
        inner: Nesting,
        subject: &Subject,
        position: &Position,
    ) -> Result<Vec<Stmt>, LowerError> {
        let vars = self.shifted(&position.points.lower, &position.along);
        let rvars = self.shifted(&position.domain.lower, &position.reduced);
        self.stores(inner, subject.item, vars, rvars)
    }

    pub fn shifted(&mut self, lower: &[NodeId], along: &[NodeId]) -> Vec<NodeId> {
        lower.iter().zip(along).map(|(lower, along)| self.builder.add(*lower, *along)).collect()
    }

    /// The Funcs a thread computes for its own tile.
    fn registers(&mut self, funcs: &[FuncId], footprint: &NestFootprint) -> Result<Vec<Stmt>, LowerError> {
        let mut body = Vec::new();
        for &func in funcs {
            let Some(footprint) = footprint.registers.get(&func) else { continue };
            self.allocate_registers(func, &footprint.thread);
            for stage in 0..footprint.thread.stages.len() {
                let stage = StageRef { func, stage };
                if !self.context.is_idle(stage) {
                    body.extend(self.register_stage(stage, footprint)?);
                }
            }
        }
        Ok(body)
    }

    /// A stage of a Func in registers, its reduction loops outside its points.
    fn register_stage(
        &mut self,
        stage: StageRef,
        footprint: &RegisterFootprint,
    ) -> Result<Vec<Stmt>, LowerError> {
        let subject = self.subject(Item::Stage(stage));
        let domain = &self.context.regions.funcs[stage.func].stages[stage.stage].domain;
        let mut nesting = Nesting::default();
        let mut rvars = vec![self.builder.int(0); domain.len()];
        for (r, range) in domain.iter().enumerate().rev() {
            let name = subject.variables[r].clone();
            let step = nesting.repeat(&mut self.builder, name, range.extent, false);
            rvars[r] = self.builder.offset(step, range.min);
        }
        let own = self.placed(&footprint.thread.stages[stage.stage]);
        let mut vars = own.lower.clone();
        for &d in subject.looped.iter().rev() {
            let name = format!("{}_register", subject.names[d]);
            let step = nesting.repeat(&mut self.builder, name, own.extent[d], true);
            vars[d] = self.builder.add(own.lower[d], step);
        }
        // A thread's tile may reach beyond what the block has of other Funcs.
        let block = self.placed(&footprint.block.stages[stage.stage]);
        for &d in &subject.looped {
            let range = subject.region[d];
            let end = self.builder.offset(block.lower[d], block.extent[d] - 1);
            let (first, last) = (self.builder.int(range.min), self.builder.int(range.last()));
            for first in [block.lower[d], first] {
                nesting.require(self.builder.binary(BinaryOp::Le, first, vars[d]));
            }
            for last in [Some(end), block.upper[d], own.upper[d], Some(last)].into_iter().flatten() {
                nesting.require(self.builder.binary(BinaryOp::Le, vars[d], last));
            }
        }
        self.stores(nesting, subject.item, vars, rvars)
    }
}

/// How many tiles of `size` cover `extent`.
fn tiles_of(extent: i64, size: i64) -> i64 {
    extent / size + i64::from(extent % size != 0)
}
