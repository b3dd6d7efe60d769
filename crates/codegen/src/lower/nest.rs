//! The loops of one nest inside a block.

use std::ops::Range;

use warploom_lang::affine::Interval;
use warploom_lang::dynamic::{Formula, FormulaRange};
use warploom_lang::op::BinaryOp;
use warploom_plan::{Axis, AxisKind, NestFootprint, Symbol};
use warploom_schedule::{LoopKind, Nest};

use crate::ir::{NodeId, Stmt, WARP};
use crate::lower::boxes::Box;
use crate::lower::error::LowerError;
use crate::lower::nesting::Nesting;
use crate::lower::stage::Subject;
use crate::lower::state::KernelLowering;
use crate::lower::value::Point;

/// The position of a nest's loops: for each loop the box it runs over and the offset in it.
#[derive(Clone)]
pub(crate) struct Position {
    pub points: Box,
    pub domain: Box,
    /// The offset along each dimension, from the start of the box.
    pub along: Vec<NodeId>,
    /// The offset along each reduction variable, from the start of the part that outer loops leave.
    reduced: Vec<NodeId>,
}

impl Position {
    pub fn offset(&mut self, dim: LoopKind) -> &mut NodeId {
        match dim {
            LoopKind::Pure(d) => &mut self.along[d],
            LoopKind::Reduction(r) => &mut self.reduced[r],
        }
    }

    /// The offset along a loop, and the last one in its box.
    pub fn offset_and_last(&self, dim: LoopKind) -> (NodeId, i64) {
        let (own, d, offset) = self.place(dim);
        (offset, own.extent[d] - 1)
    }

    /// The box of a loop, the loop's dimension there, and its offset.
    fn place(&self, dim: LoopKind) -> (&Box, usize, NodeId) {
        match dim {
            LoopKind::Pure(d) => (&self.points, d, self.along[d]),
            LoopKind::Reduction(r) => (&self.domain, r, self.reduced[r]),
        }
    }
}

/// A nest: the schedule's decisions, the resulting footprint, and the item that it computes.
pub(crate) struct Placed<'n> {
    pub nest: &'n Nest,
    pub footprint: &'n NestFootprint,
    pub subject: Subject,
}

/// A dimension of a flat loop whose extent depends on the sizes.
struct CountedLane {
    /// Its number among the dimensions.
    lane: usize,
    extent: Formula,
    /// The number of points of the loop.
    total: Formula,
    /// Whether the loop covers exactly the range that is computed.
    is_exact: bool,
}

impl KernelLowering<'_> {
    /// The statements that compute one nest over its box.
    pub fn nest(&mut self, nest: &Nest, footprint: &NestFootprint) -> Result<Vec<Stmt>, LowerError> {
        let stmts = self.elements(nest, footprint)?;
        let stmts = if nest.numbers.vector { self.vectors(stmts) } else { stmts };
        Ok(self.start_registers(nest.item, &stmts).into_iter().chain(stmts).collect())
    }

    /// The same without vectors.
    pub fn elements(&mut self, nest: &Nest, footprint: &NestFootprint) -> Result<Vec<Stmt>, LowerError> {
        self.begin_shuffles(footprint);
        let mut subject = self.subject(nest.item);
        subject.atomic = nest.numbers.atomic;
        let placed = Placed { nest, footprint, subject };
        match footprint.thread_count() {
            None => self.flat(&placed),
            Some(used) => self.shared_out(&placed, used),
        }
    }

    /// The first position of a nest's loops.
    fn start(&mut self, placed: &Placed<'_>) -> Position {
        // In another nest, the same point may be read from other memory.
        self.inlined.clear();
        self.digits.clear();
        let footprint = placed.footprint;
        let start = self.builder.int(0);
        Position {
            points: self.placed(&footprint.points),
            domain: self.placed_dims(&footprint.domain),
            along: vec![start; footprint.points.dims.len()],
            reduced: vec![start; footprint.domain.len()],
        }
    }

    /// A nest whose loops are distributed over threads.
    fn shared_out(&mut self, placed: &Placed<'_>, used: u64) -> Result<Vec<Stmt>, LowerError> {
        let mut position = self.start(placed);
        let (mut lanes, mut outer) = (Nesting::default(), Nesting::default());
        // Threads beyond those of the stage are idle, but execute shuffles.
        let guarded = if placed.footprint.shuffled.is_empty() { &mut lanes } else { &mut outer };
        match placed.footprint.lanes {
            None => self.guard_threads(guarded, used),
            Some(_) => self.guard_warps(guarded, used),
        }
        self.lanes(&mut lanes, placed, &mut position);
        self.rounds(&mut outer, placed, &mut position);
        outer.enter(&mut self.builder);
        let body = self.tile(placed, &position)?;
        let mut stmts = self.take_shuffles();
        stmts.extend(outer.around(&mut self.builder, body));
        Ok(lanes.around(&mut self.builder, stmts))
    }

    /// One loop over all points in strides of the block's threads. All rounds but the last are full: they need no
    /// guard, and their loads overlap.
    fn flat(&mut self, placed: &Placed<'_>) -> Result<Vec<Stmt>, LowerError> {
        let lanes: Vec<Axis> = placed.footprint.axes_of(AxisKind::Lane).collect();
        let total = lanes.iter().map(|axis| axis.count).fold(1, i64::saturating_mul);
        let counted = self.counted_lane(placed, &lanes);
        let threads = i64::from(self.threads());
        let (full, all) = (total / threads, total / threads + i64::from(total % threads != 0));
        // Where sizes are given at launch, there may be fewer points than the box has.
        let range = |axis: &Axis| self.context.loop_range(placed.subject.item, axis.dim);
        let is_fixed = |range: FormulaRange| range.first.is_constant() && range.last.is_constant();
        let full = if lanes.iter().all(|axis| is_fixed(range(axis))) { full } else { 0 };
        let mut stmts = Vec::new();
        for part in [0..full, full..all].into_iter().filter(|part| !part.is_empty()) {
            let mut position = self.start(placed);
            let mut outer = Nesting::default();
            let index = self.flat_index(&mut outer, part, total, counted.as_ref());
            self.digits(&mut outer, placed, &mut position, (&lanes, index, counted.as_ref()));
            outer.enter(&mut self.builder);
            let body = self.tile(placed, &position)?;
            stmts.extend(outer.around(&mut self.builder, body));
        }
        Ok(stmts)
    }

    /// The coordinates of a point of a flat loop, given its index.
    fn digits(
        &mut self,
        outer: &mut Nesting,
        placed: &Placed<'_>,
        position: &mut Position,
        (lanes, index, counted): (&[Axis], NodeId, Option<&CountedLane>),
    ) {
        let subject = &placed.subject;
        let total = lanes.iter().map(|axis| axis.count).fold(1, i64::saturating_mul);
        let mut below = self.builder.int(1);
        let mut points = 1_i64;
        for (number, &Axis { dim, count, .. }) in lanes.iter().enumerate() {
            let counted = counted.filter(|counted| counted.lane == number);
            let extent = match counted {
                Some(counted) => self.scalars.whole(self.context, &mut self.builder, &counted.extent),
                None => self.builder.int(count),
            };
            let mut along = self.builder.binary(BinaryOp::Div, index, below);
            // The index is in bounds here, so the last dimension needs no remainder.
            if points.saturating_mul(count) < total {
                along = self.builder.binary(BinaryOp::Mod, along, extent);
            }
            // The last round of a loop starts near its end.
            let first = self.builder.bounds(along).min.clamp(0, count - 1);
            let (name, range) = (subject.name(dim).to_owned(), Interval::new(first, count - 1));
            let along = match count {
                1 => self.builder.int(0),
                _ => outer.bind(&mut self.builder, name, along, range),
            };
            *position.offset(dim) = along;
            self.symbols.insert(Symbol::Thread(dim), along);
            if counted.is_none_or(|counted| !counted.is_exact) {
                self.guard(outer, subject, position, dim);
            }
            below = self.builder.binary(BinaryOp::Mul, below, extent);
            points = points.saturating_mul(count);
        }
    }

    /// A thread's index in some rounds of a flat loop, guarded to lie below the number of points.
    fn flat_index(
        &mut self,
        outer: &mut Nesting,
        rounds: Range<i64>,
        total: i64,
        counted: Option<&CountedLane>,
    ) -> NodeId {
        let threads = i64::from(self.threads());
        let last = i64::from(self.builder.fitted(rounds.end.saturating_mul(threads) - 1));
        let limit = counted.and_then(|counted| {
            let points = FormulaRange { first: Formula::constant(1), last: counted.total.clone() };
            self.counted(&points, 1, threads)
        });
        let count = rounds.end - rounds.start;
        let round = outer.repeat_up_to(&mut self.builder, "round".into(), count, limit, false);
        let first = rounds.start.saturating_mul(threads);
        let (thread, start) = (self.thread(), self.builder.scale(round, threads));
        let index = self.builder.add(start, thread);
        let index = self.builder.offset(index, first);
        let end = match counted {
            Some(counted) => self.formula(&counted.total),
            None => self.builder.int(total),
        };
        let end = self.builder.offset(end, -1);
        if counted.is_some() {
            outer.require(self.builder.guard(index, end));
        }
        let index = outer.bind(&mut self.builder, "i".into(), index, Interval::new(first, last));
        if counted.is_none() {
            outer.require(self.builder.binary(BinaryOp::Le, index, end));
        }
        outer.enter(&mut self.builder);
        index
    }

    /// The first dimension of a flat loop over a whole range that depends on the sizes.
    fn counted_lane(&mut self, placed: &Placed<'_>, lanes: &[Axis]) -> Option<CountedLane> {
        let item = placed.subject.item;
        let whole = |axis: &Axis| (axis.count > 1).then(|| self.whole_range(placed, axis.dim))?;
        let (lane, first) = lanes.iter().enumerate().find_map(|(lane, axis)| Some((lane, whole(axis)?)))?;
        let Axis { dim, count, .. } = lanes[lane];
        let range = self.context.loop_range(item, dim);
        let extent = self.context.steps(&range, first, 1, 1)?;
        let extent = self.context.formulas.borrow_mut().min(&extent, &Formula::constant(count))?;
        let others = lanes.iter().enumerate().filter(|(other, _)| *other != lane);
        let others = others.map(|(_, axis)| axis.count).fold(1, i64::saturating_mul);
        let total = extent.scale(others)?;
        // No guard is needed where the range starts at the box and is never empty.
        let points = range.last.add_scaled(&range.first, -1)?;
        let is_exact = range.first == Formula::constant(first) && self.context.range(&points).min >= 0;
        Some(CountedLane { lane, extent, total, is_exact })
    }

    /// The first value of a loop that covers its whole range at every position of the nest, if that range depends on
    /// the sizes.
    fn whole_range(&self, placed: &Placed<'_>, dim: LoopKind) -> Option<i64> {
        let reach = match dim {
            LoopKind::Pure(d) => &placed.footprint.points.dims[d],
            LoopKind::Reduction(r) => &placed.footprint.domain[r],
        };
        let whole =
            reach.terms.is_empty() && !self.context.loop_range(placed.subject.item, dim).last.is_constant();
        whole.then_some(reach.min)
    }

    /// The scalar with the trip count of a loop over its whole range, if it depends on the sizes.
    fn step_limit(&mut self, placed: &Placed<'_>, dim: LoopKind, step: i64) -> Option<u32> {
        let first = self.whole_range(placed, dim)?;
        let range = self.context.loop_range(placed.subject.item, dim);
        self.counted(&range, first, step)
    }

    /// The work of one thread on the tile at a position.
    fn tile(&mut self, placed: &Placed<'_>, start: &Position) -> Result<Vec<Stmt>, LowerError> {
        if let Some(rows) = placed.footprint.slides {
            return self.rows(placed, start, rows);
        }
        let mut body = self.registers(placed, None)?;
        let points = self.points_of_lane(placed, start);
        let own = self.own_points(placed, start)?;
        body.extend(self.around_points(points, placed, start, own));
        Ok(body)
    }

    /// A thread's own points, after the code that lanes without points execute too.
    pub fn points_of_lane(&mut self, placed: &Placed<'_>, start: &Position) -> Nesting {
        let mut points = Nesting::default();
        if let Some(lane) = placed.footprint.lanes.or(placed.footprint.all_lanes) {
            self.guard_tile(&mut points, placed, start, lane);
        }
        points.enter(&mut self.builder);
        points
    }

    /// A thread's own points of the tile at a position.
    fn own_points(&mut self, placed: &Placed<'_>, start: &Position) -> Result<Vec<Stmt>, LowerError> {
        let mut body = Vec::new();
        let accumulator = self.accumulator(placed, start)?;
        if let Some(accumulator) = &accumulator {
            body.extend(self.begin(accumulator, placed, start));
        }
        body.extend(self.carry(placed, start)?);
        let (mut inner, mut position) = (Nesting::default(), start.clone());
        self.reductions(&mut inner, placed, &mut position);
        self.serial(&mut inner, placed, &mut position, |_| true);
        body.extend(self.point(inner, &placed.subject, &position)?);
        self.drop_carried();
        if let Some(accumulator) = &accumulator {
            body.extend(self.finish(accumulator, placed, start));
        }
        Ok(body)
    }

    /// The loops over a thread's points, restricted to some kinds.
    pub fn serial(
        &mut self,
        inner: &mut Nesting,
        placed: &Placed<'_>,
        position: &mut Position,
        kinds: impl Fn(LoopKind) -> bool,
    ) {
        let is_inside = |axis: &Axis| axis.kind == AxisKind::Serial || axis.is_interleaved();
        let axes = placed.footprint.axes.iter().copied().filter(is_inside);
        for axis in axes.filter(|axis| axis.count > 1 && kinds(axis.dim)) {
            let Axis { dim, count, step, unrolled, .. } = axis;
            let word = if axis.is_interleaved() { "round" } else { "serial" };
            let name = format!("{}_{word}", placed.subject.name(dim));
            let number = inner.repeat(&mut self.builder, name, count, unrolled);
            let along = self.builder.scale(number, step);
            let offset = position.offset(dim);
            *offset = self.builder.add(*offset, along);
            // Interleaved groups are guarded point by point.
            if !axis.is_interleaved() || placed.footprint.share(dim).1 == 1 {
                self.guard(inner, &placed.subject, position, dim);
            }
        }
    }

    fn guard_threads(&mut self, nesting: &mut Nesting, used: u64) {
        let used = i64::try_from(used).unwrap_or(i64::MAX);
        let (thread, end) = (self.thread(), self.builder.int(used));
        nesting.require(self.builder.binary(BinaryOp::Lt, thread, end));
        nesting.enter(&mut self.builder);
    }

    /// The same at the granularity of warps, so that no warp diverges.
    fn guard_warps(&mut self, nesting: &mut Nesting, used: u64) {
        let (thread, warp) = (self.thread(), self.builder.int(WARP.into()));
        let used = self.builder.int(i64::try_from(used / u64::from(WARP)).unwrap_or(i64::MAX));
        let own = self.builder.binary(BinaryOp::Div, thread, warp);
        nesting.require(self.builder.binary(BinaryOp::Lt, own, used));
        nesting.enter(&mut self.builder);
    }

    /// The digits of this thread's index along the thread dimensions.
    fn lanes(&mut self, lanes: &mut Nesting, placed: &Placed<'_>, position: &mut Position) {
        let Placed { footprint, subject, .. } = placed;
        let (thread, mut below) = (self.thread(), 1);
        for Axis { dim, count, .. } in footprint.axes_of(AxisKind::Lane) {
            let (divisor, extent) = (self.builder.int(below), self.builder.int(count));
            let along = self.builder.binary(BinaryOp::Div, thread, divisor);
            let along = self.builder.binary(BinaryOp::Mod, along, extent);
            let (name, range) = (format!("{}_thread", subject.name(dim)), Interval::new(0, count - 1));
            let value = along;
            let along = lanes.bind(&mut self.builder, name, value, range);
            self.digits.insert(along, value);
            *position.offset(dim) = along;
            self.add_lane(along, below);
            below *= count;
        }
    }

    /// The start of this thread's tile along each loop that threads share, and each dimension. Threads that do not
    /// cover the box at once make several rounds.
    fn rounds(&mut self, outer: &mut Nesting, placed: &Placed<'_>, position: &mut Position) {
        let Placed { footprint, subject, .. } = placed;
        for axis in footprint.axes_of(AxisKind::Round) {
            let Axis { dim, count: rounds, step, .. } = axis;
            let (threads, serial) = footprint.share(dim);
            // The end of the last thread's tile, which may be out of bounds.
            self.builder.fitted(rounds.saturating_mul(step) - 1);
            // The start in the first round; the other rounds are among the loops over the thread's points.
            if axis.is_interleaved() {
                let offset = position.offset(dim);
                *offset = self.builder.scale(*offset, serial);
                continue;
            }
            let name = format!("{}_round", subject.name(dim));
            let limit = self.step_limit(placed, dim, step);
            let round = outer.repeat_up_to(&mut self.builder, name, rounds, limit, false);
            let before = self.builder.scale(round, threads);
            let offset = position.offset(dim);
            let tile = self.builder.add(before, *offset);
            self.symbols.insert(Symbol::Thread(dim), tile);
            *offset = self.builder.scale(tile, serial);
            // All lanes compute shared registers.
            if footprint.lanes != Some(dim) && footprint.all_lanes != Some(dim) {
                self.guard_tile(outer, placed, position, dim);
            }
        }
    }

    /// Keeps a thread's tile inside the box along a dimension.
    pub fn guard_tile(
        &mut self,
        nesting: &mut Nesting,
        placed: &Placed<'_>,
        position: &Position,
        dim: LoopKind,
    ) {
        match placed.footprint.share(dim).1 {
            1 => self.guard(nesting, &placed.subject, position, dim),
            // A thread whose tile is out of bounds has no work, and no own values to read.
            _ => self.guard_box(nesting, position, dim),
        }
    }

    /// The loops over the remaining parts of reduction variables that threads do not share.
    pub fn reductions(&mut self, inner: &mut Nesting, placed: &Placed<'_>, position: &mut Position) {
        let Placed { footprint, subject, .. } = placed;
        for Axis { dim, count: parts, step: serial, .. } in footprint.axes_of(AxisKind::Reduce) {
            self.builder.fitted(parts.saturating_mul(serial) - 1);
            let limit = self.step_limit(placed, dim, serial);
            let part =
                inner.repeat_up_to(&mut self.builder, subject.name(dim).to_owned(), parts, limit, false);
            *position.offset(dim) = self.builder.scale(part, serial);
            // A loop that ends with its range needs no guard.
            let exact = limit.is_some() && parts > 1 && self.starts_at_constant(subject, dim);
            if serial == 1 && !exact {
                self.guard(inner, subject, position, dim);
            }
        }
    }

    /// Keeps a loop inside its box, so that it does not overlap the next box, and inside the region of its stage.
    pub fn guard(&mut self, nesting: &mut Nesting, subject: &Subject, position: &Position, kind: LoopKind) {
        self.guard_box(nesting, position, kind);
        let (own, d, offset) = position.place(kind);
        let (at, upper) = (self.builder.add(own.lower[d], offset), own.upper[d]);
        let (first, last) = self.box_ends(subject.item, kind, own.range[d]);
        if matches!(kind, LoopKind::Pure(_)) || !self.starts_at_constant(subject, kind) {
            nesting.require(self.builder.guard(first, at));
        }
        if let Some(upper) = upper {
            nesting.require(self.builder.guard(at, upper));
        }
        nesting.require(self.builder.guard(at, last));
    }

    /// Whether a loop starts at the same value at all sizes.
    fn starts_at_constant(&self, subject: &Subject, kind: LoopKind) -> bool {
        self.context.loop_range(subject.item, kind).first.is_constant()
    }

    /// Keeps a loop inside its box.
    fn guard_box(&mut self, nesting: &mut Nesting, position: &Position, kind: LoopKind) {
        let (offset, last) = position.offset_and_last(kind);
        let last = self.builder.int(last);
        nesting.require(self.builder.guard(offset, last));
    }

    /// Computes the point at the loops' current position.
    pub fn point(
        &mut self,
        inner: Nesting,
        subject: &Subject,
        position: &Position,
    ) -> Result<Vec<Stmt>, LowerError> {
        let Point { vars, rvars } = self.point_at(position);
        self.stores(inner, subject, vars, rvars)
    }

    pub fn point_at(&mut self, position: &Position) -> Point {
        let vars = self.shifted(&position.points.lower, &position.along);
        let rvars = self.shifted(&position.domain.lower, &position.reduced);
        Point { vars, rvars }
    }

    pub fn shifted(&mut self, lower: &[NodeId], along: &[NodeId]) -> Vec<NodeId> {
        lower.iter().zip(along).map(|(lower, along)| self.builder.add(*lower, *along)).collect()
    }
}
