//! Funcs in registers that the lanes of a warp share.
//!
//! Every lane computes its part and executes the shuffles, even if it has no point of the nest itself. So no code here
//! is under a guard that diverges within a warp, except single statements that would read memory out of bounds.

use ahash::AHashMap;
use warploom_lang::affine::Interval;
use warploom_lang::op::BinaryOp;
use warploom_lang::{FuncId, Value};
use warploom_plan::{RegisterFootprint, Symbol};
use warploom_schedule::{Item, LoopKind};

use crate::ir::{Access, ArrayId, Leaf, NodeId, NodeKind, Space, Stmt, WARP, every_stmt};
use crate::lower::error::LowerError;
use crate::lower::nest::{Placed, Position};
use crate::lower::nesting::Nesting;
use crate::lower::registers::Part;
use crate::lower::stage::Subject;
use crate::lower::state::{KernelLowering, Read};
use crate::lower::value::Point;

impl KernelLowering<'_> {
    /// A point of a stage in registers that lanes share. Points that nobody needs are computed without guards where
    /// that is harmless, and are zero elsewhere, since other lanes may read them.
    pub fn stage_in_lanes(
        &mut self,
        nesting: Nesting,
        subject: &Subject,
        Point { vars, rvars }: Point,
        guards: Vec<NodeId>,
    ) -> Result<Vec<Stmt>, LowerError> {
        let at = vars.clone();
        let stores = self.stores(Nesting::default(), subject, vars, rvars)?;
        let guard = self.builder.all(guards);
        if self.builder.known(guard).is_some_and(|value| value.bits() != 0) || self.is_harmless(&stores) {
            let stores = self.keep_loads(&nesting, stores);
            return Ok(nesting.around(&mut self.builder, stores));
        }
        let mut body = self.zeros(subject.item, &at)?;
        let mut guarded = Nesting::default();
        guarded.require(guard);
        body.extend(guarded.around(&mut self.builder, stores));
        Ok(nesting.around(&mut self.builder, body))
    }

    /// A thread's own points under the guard of its lane. If no other thread reads them, out-of-range lanes recompute
    /// the last point into dead registers instead of branching, so that the warp does not diverge: the CUDA compiler
    /// moves no load across a branch.
    pub fn around_points(
        &mut self,
        points: Nesting,
        placed: &Placed<'_>,
        start: &Position,
        own: Vec<Stmt>,
    ) -> Vec<Stmt> {
        match self.last_points(&points, placed, start, &own) {
            Some(stmts) => stmts,
            None => points.around(&mut self.builder, own),
        }
    }

    /// A thread's own points, with the last point for out-of-range lanes; `None` if they cannot be computed there.
    fn last_points(
        &mut self,
        points: &Nesting,
        placed: &Placed<'_>,
        start: &Position,
        own: &[Stmt],
    ) -> Option<Vec<Stmt>> {
        let lane = placed.footprint.all_lanes?;
        let (offset, last) = start.offset_and_last(lane);
        let end = self.builder.int(last);
        let is_in_box = self.builder.binary(BinaryOp::Le, offset, end);
        if points.only_condition() != Some(is_in_box) || !self.stays_in_registers(own) {
            return None;
        }
        let [(tile, step)] = self.builder.linear(offset).terms[..] else { return None };
        let loads = self.loads_from_memory(own);
        if !self.builder.exprs.reachable(loads.iter().copied()).contains(&tile) {
            return Some(own.to_vec());
        }
        let (mut around, range) = (Nesting::default(), Interval::new(0, last / step));
        let last = self.builder.int(range.max);
        let nearest = self.builder.binary(BinaryOp::Min, tile, last);
        let name = format!("{}_point", placed.subject.name(lane));
        let nearest = around.bind(&mut self.builder, name, nearest, range);
        let (mut moved, mut values) = (AHashMap::from([(tile, nearest)]), AHashMap::new());
        for load in loads {
            let new = self.replaced_value(load, &mut moved);
            values.insert(load, new);
        }
        let own = self.all_replaced(own, &mut values);
        Some(around.around(&mut self.builder, own))
    }

    /// The loads of statements from shared and global memory.
    fn loads_from_memory(&self, stmts: &[Stmt]) -> Vec<NodeId> {
        let exprs = &self.builder.exprs;
        let nodes = exprs.reachable(every_stmt(stmts).flat_map(Stmt::operands)).into_iter();
        let is_memory = |array: ArrayId| self.arrays[array].space != Space::Thread;
        nodes.filter(|id| matches!(exprs[*id].kind, NodeKind::Load(array) if is_memory(array))).collect()
    }

    /// Whether statements may run at points that nobody needs: they access only registers, in bounds.
    fn is_harmless(&self, stmts: &[Stmt]) -> bool {
        let is_register = |access: &Access| self.arrays[access.array].space == Space::Thread;
        self.accesses(stmts).iter().all(is_register) && self.stays_in_registers(stmts)
    }

    /// Whether all accesses to registers are in bounds at any point.
    fn stays_in_registers(&self, stmts: &[Stmt]) -> bool {
        self.accesses(stmts).into_iter().all(|Access { array, index, width, .. }| {
            let (decl, bounds) = (&self.arrays[array], self.builder.bounds(index));
            let end = bounds.max + i64::from(width);
            decl.space != Space::Thread || (bounds.min >= 0 && end <= decl.elements as i64)
        })
    }

    /// All accesses of statements, by loads and otherwise.
    fn accesses(&self, stmts: &[Stmt]) -> Vec<Access> {
        let exprs = &self.builder.exprs;
        let effects = every_stmt(stmts).map(Stmt::effects);
        let moves = effects.flat_map(|effects| effects.writes.into_iter().chain(effects.reads));
        let nodes = exprs.reachable(every_stmt(stmts).flat_map(Stmt::operands)).into_iter();
        let loads = nodes.filter_map(|id| match exprs[id].kind {
            NodeKind::Load(array) => Some(Access::load(array, exprs[id].args[0])),
            NodeKind::Leaf(_) | NodeKind::Op(_) | NodeKind::Offset(_) => None,
        });
        moves.chain(loads).collect()
    }

    /// Sets a point of a Func in registers to zero before its first stage.
    fn zeros(&mut self, item: Item, at: &[NodeId]) -> Result<Vec<Stmt>, LowerError> {
        let Some(stage) = item.stage().filter(|stage| stage.stage == 0) else { return Ok(Vec::new()) };
        let mut body = Vec::new();
        for value in 0..self.context.pipeline().funcs()[stage.func].types.len() {
            let stored = self.stored(Read::Func(stage.func), value)?;
            let zero = self.builder.constant(Value::zero(self.arrays[stored.array].ty));
            body.push(self.written(&stored, at, zero, 0));
        }
        Ok(body)
    }

    /// Gets the points of a Func that a lane does not compute itself from the lanes after it.
    pub fn exchange(
        &mut self,
        func: FuncId,
        footprint: &RegisterFootprint,
        lanes: Option<LoopKind>,
        part: &Part,
    ) -> Result<Vec<Stmt>, LowerError> {
        let (Some(spread), Some(lane)) = (footprint.spread, lanes) else { return Ok(Vec::new()) };
        let own = self.placed(&footprint.thread.points);
        let (mut nesting, mut at) = (Nesting::default(), own.lower.clone());
        let names = self.context.pipeline().funcs()[func].dims.clone();
        for d in (0..at.len()).rev().filter(|d| *d != spread.dim) {
            at[d] = self.part_loop(&mut nesting, format!("{}_lane", names[d]), &own, d, part);
        }
        let mut body = Vec::new();
        for point in spread.step..own.extent[spread.dim] {
            let place = |offset: i64, lowering: &mut Self| {
                let mut at = at.clone();
                at[spread.dim] = lowering.builder.offset(at[spread.dim], offset);
                at
            };
            let (from, to) = (place(point % spread.step, self), place(point, self));
            let source = self.lane_after(lane, point / spread.step);
            for value in 0..self.context.pipeline().funcs()[func].types.len() {
                body.extend(self.shuffled(func, value, (&from, &to), source)?);
            }
        }
        Ok(nesting.around(&mut self.builder, body))
    }

    /// Sets a point of a Func to the value that another lane has at another point.
    fn shuffled(
        &mut self,
        func: FuncId,
        value: usize,
        (from, to): (&[NodeId], &[NodeId]),
        lane: NodeId,
    ) -> Result<[Stmt; 2], LowerError> {
        let stored = self.stored(Read::Func(func), value)?;
        let ty = self.arrays[stored.array].ty;
        let index = self.loaded(&stored, from);
        let held = self.builder.load(stored.array, ty, index);
        let var = self.builder.var(format!("{}_lane", self.context.pipeline().funcs()[func].name));
        let taken = self.builder.leaf(Leaf::Var(var), ty, None);
        Ok([Stmt::Shuffle { var, value: held, lane }, self.written(&stored, to, taken, 0)])
    }

    /// The lane at a distance after a thread's own. The values that the last lanes read are not needed.
    fn lane_after(&mut self, lane: LoopKind, distance: i64) -> NodeId {
        let own = self.symbols.get(&Symbol::Thread(lane)).copied();
        let own = own.unwrap_or_else(|| self.builder.int(0));
        let (after, last) = (self.builder.offset(own, distance), self.builder.int(i64::from(WARP) - 1));
        self.builder.binary(BinaryOp::Min, after, last)
    }
}
