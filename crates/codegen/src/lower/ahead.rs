//! Software pipelining: the iterations of a loop start the asynchronous copies that later iterations read.
//!
//! With `n` slices in shared memory, the prologue starts slices 0 to `n - 2`. Iteration `i` waits for slice `i`, passes
//! a barrier, starts slice `i + n - 1` in the place of slice `i - 1`, and computes. Each iteration commits one group,
//! which is empty at the end of the loop, so that the number of groups in flight is constant.

use warploom_lang::Type;
use warploom_lang::affine::Interval;
use warploom_lang::op::BinaryOp;
use warploom_plan::{LoopId, NestId, NestPlan, Sequence, Symbol};
use warploom_schedule::{Item, LoopKind};

use crate::ir::{Leaf, NodeId, NodeKind, PlanPart, Space, Stmt, every_stmt};
use crate::lower::error::LowerError;
use crate::lower::nesting::Nesting;
use crate::lower::state::KernelLowering;

/// The slices of nested loops that form one pipeline.
struct Slices {
    /// The loops, outermost first.
    loops: Vec<LoopId>,
    /// The nests that copy a slice.
    nests: Vec<NestId>,
    /// The number of slices that exist at once (pipeline stages).
    buffers: i64,
    /// The number of slices; the maximum, if there is a limit.
    count: i64,
    /// The scalar with the number of slices, if it follows from the sizes of a launch.
    limit: Option<u32>,
}

impl KernelLowering<'_> {
    /// The slice of a nest's array at the position that is being lowered; `None` if there is only one.
    pub fn slice(&mut self, nest: &NestPlan, slices: i64) -> Option<NodeId> {
        let first = *self.context.plan.ahead_of(nest).first()?;
        let number = self.slices.get(&first).copied()?;
        let slices = self.builder.int(slices);
        Some(self.builder.binary(BinaryOp::Mod, number, slices))
    }

    /// Lowers pipelined loops, starting with this one.
    pub fn over_slices(
        &mut self,
        id: LoopId,
        nests: Vec<NestId>,
        body: Sequence<'_, NestId>,
    ) -> Result<Vec<Stmt>, LowerError> {
        let plan = self.context.plan;
        let loops = plan.ahead_of(&plan.nests[nests[0]]).to_vec();
        let (buffers, count) = (plan.loops[id].slices, plan.slice_count(nests[0]));
        let limit = self.loop_limit(id).filter(|_| loops.len() == 1);
        let slices = Slices { loops, nests, buffers, count, limit };
        let mut stmts: Vec<Stmt> = self.barrier(self.barriers.of_loop(id).before).into_iter().collect();
        stmts.extend(self.first_slices(id, &slices)?);
        let name = if slices.loops.len() == 1 { self.loop_name(id) } else { "slice".to_owned() };
        let var = self.builder.var(name);
        let number = self.builder.leaf(Leaf::Var(var), Type::I32, Some(Interval::new(0, count - 1)));
        self.builder.limit(number, limit);
        let older = u32::try_from(buffers - 2).unwrap_or(0);
        self.note(PlanPart::Over(id), 2);
        let mut inner = vec![Stmt::Wait(older)];
        inner.extend(self.barrier(true));
        inner.extend(self.next_slice(id, &slices, number)?);
        let mut digits = Nesting::default();
        let lets = self.at_slice(&mut digits, &slices, number);
        self.note(PlanPart::Over(id), lets);
        let items = self.items(plan.slice_body(id, body))?;
        inner.extend(digits.around(&mut self.builder, items));
        let times = self.builder.count(count);
        stmts.push(Stmt::For { var, count: times, limit, unrolled: false, body: inner });
        Ok(stmts)
    }

    /// The prologue: starts the slices that the first iterations read.
    fn first_slices(&mut self, id: LoopId, slices: &Slices) -> Result<Vec<Stmt>, LowerError> {
        let mut around = Nesting::default();
        let number = around.repeat(&mut self.builder, "first".into(), slices.buffers - 1, false);
        self.note(PlanPart::Over(id), usize::from(slices.buffers > 2));
        let mut body = match slices.limit {
            None => self.copies(id, slices, Nesting::default(), number)?,
            Some(_) => self.existing(id, slices, number, Interval::new(0, slices.buffers - 2))?,
        };
        body.push(Stmt::Commit);
        self.note(PlanPart::Over(id), 1);
        Ok(around.around(&mut self.builder, body))
    }

    /// Starts the next slice in the place of the one that was read last.
    fn next_slice(&mut self, id: LoopId, slices: &Slices, number: NodeId) -> Result<Vec<Stmt>, LowerError> {
        let next = self.builder.offset(number, slices.buffers - 1);
        let mut stmts =
            self.existing(id, slices, next, Interval::new(slices.buffers - 1, slices.count - 1))?;
        stmts.push(Stmt::Commit);
        self.note(PlanPart::Over(id), 1);
        Ok(stmts)
    }

    /// Starts a slice if it exists; its number is then within `bounds`.
    fn existing(
        &mut self,
        id: LoopId,
        slices: &Slices,
        number: NodeId,
        bounds: Interval,
    ) -> Result<Vec<Stmt>, LowerError> {
        let mut nesting = Nesting::default();
        let end = match slices.limit {
            None => self.builder.int(slices.count),
            Some(position) => {
                let scalar = &self.scalars.0[position as usize];
                let range = Interval::new(scalar.min, scalar.max);
                self.builder.leaf(Leaf::Size(position), Type::I32, Some(range))
            }
        };
        let exists = self.builder.binary(BinaryOp::Lt, number, end);
        self.note(PlanPart::Over(id), usize::from(self.builder.known(exists).is_none()));
        nesting.require(exists);
        nesting.enter(&mut self.builder);
        self.note(PlanPart::Over(id), usize::from(self.builder.known(number).is_none()));
        let number = nesting.bind(&mut self.builder, "next".into(), number, bounds);
        self.builder.limit(number, slices.limit);
        self.copies(id, slices, nesting, number)
    }

    /// The copies of one slice.
    fn copies(
        &mut self,
        id: LoopId,
        slices: &Slices,
        mut nesting: Nesting,
        number: NodeId,
    ) -> Result<Vec<Stmt>, LowerError> {
        let lets = self.at_slice(&mut nesting, slices, number);
        self.note(PlanPart::Over(id), lets);
        // The nests inside the loop find the copies at their own place.
        let outside = self.local.clone();
        let mut stmts = Vec::new();
        for &id in &slices.nests {
            let plan = &self.context.plan.nests[id];
            let Some(footprint) = &plan.footprint else { continue };
            self.allocate(plan);
            let mut copies = self.elements(&plan.nest, footprint)?;
            self.make_asynchronous(&mut copies);
            let copies = if plan.nest.numbers.vector { self.vectors(copies) } else { copies };
            self.note(PlanPart::Nest(id), every_stmt(&copies).count());
            stmts.extend(copies);
        }
        self.local = outside;
        Ok(nesting.around(&mut self.builder, stmts))
    }

    /// Turns the stores of values loaded from buffers into asynchronous copies.
    fn make_asynchronous(&self, stmts: &mut [Stmt]) {
        for stmt in stmts {
            stmt.lists_mut().into_iter().flatten().for_each(|list| self.make_asynchronous(list));
            if let Stmt::Store { array, index, value } = *stmt
                && let NodeKind::Load(from) = self.builder.exprs[value].kind
                && matches!(self.arrays[from].space, Space::Global(_))
            {
                *stmt = Stmt::Copy { array, index, value };
            }
        }
    }

    /// Sets the loop variables to a slice. Returns how many variables this binds.
    fn at_slice(&mut self, nesting: &mut Nesting, slices: &Slices, number: NodeId) -> usize {
        let Slices { loops, .. } = slices;
        self.slices.insert(loops[0], number);
        if let [only] = loops[..] {
            self.symbols.insert(Symbol::Loop(only), number);
            return 0;
        }
        let (mut rest, mut lets) = (number, 0);
        for (position, &id) in loops.iter().enumerate().rev() {
            let count = self.context.plan.loops[id].count;
            let divisor = self.builder.int(count);
            let digit = if position == 0 { rest } else { self.builder.binary(BinaryOp::Mod, rest, divisor) };
            rest = self.builder.binary(BinaryOp::Div, rest, divisor);
            lets += usize::from(self.builder.known(digit).is_none());
            let name = self.loop_name(id);
            let digit = nesting.bind(&mut self.builder, name, digit, Interval::new(0, count - 1));
            self.symbols.insert(Symbol::Loop(id), digit);
        }
        lets
    }

    /// The name of the variable of a loop over the block.
    pub fn loop_name(&self, id: LoopId) -> String {
        let tile = self.context.plan.loops[id].tile;
        let stage = &self.context.pipeline().funcs()[tile.stage.func].stages[tile.stage.stage];
        format!("{}_over", stage.domain[tile.var].name)
    }

    /// The scalar with the trip count of a loop over the block, if it depends on the sizes of a launch.
    pub fn loop_limit(&mut self, id: LoopId) -> Option<u32> {
        let tile = self.context.plan.loops[id].tile;
        let range = self.context.loop_range(Item::Stage(tile.stage), LoopKind::Reduction(tile.var));
        let whole = self.context.problem.domain(tile.stage, tile.var);
        self.counted(&range, whole.min, tile.size.of(whole.extent))
    }
}
