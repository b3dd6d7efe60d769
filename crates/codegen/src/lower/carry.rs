//! Keeps the value that a scan wrote last in a register.
//!
//! A scan computes each value from the previous one. A thread that has just written the previous value need not load it
//! back, so the loads of a scan depend on no store and can be in flight together.

use warploom_lang::ExprId;
use warploom_lang::ir::NodeKind;
use warploom_schedule::{Item, LoopKind, StageRef};

use crate::ir::{NodeId, Stmt};
use crate::lower::error::LowerError;
use crate::lower::nest::{Placed, Position};
use crate::lower::nesting::Nesting;
use crate::lower::state::{KernelLowering, Read, Stored};
use crate::points::Key;

/// The registers with the value that a thread wrote last, one per value of the Func.
#[derive(Clone)]
pub(crate) struct Carried {
    stage: StageRef,
    registers: Vec<Stored>,
}

impl KernelLowering<'_> {
    /// Loads the value before the thread's line into registers, if the nest is a scan that can keep it there. Reads of
    /// the previous value then use the registers, until [`KernelLowering::drop_carried`].
    pub fn carry(&mut self, placed: &Placed<'_>, start: &Position) -> Result<Vec<Stmt>, LowerError> {
        let Item::Stage(stage) = placed.nest.item else { return Ok(Vec::new()) };
        if !placed.footprint.carries {
            return Ok(Vec::new());
        }
        let mut point = self.point_at(start);
        point.rvars = point.rvars.into_iter().map(|var| self.builder.offset(var, -1)).collect();
        let registers = self.tile_registers(stage, &[], &[]);
        let decl = &self.context.pipeline().funcs()[stage.func].stages[stage.stage];
        let at: Vec<NodeId> =
            decl.indices.iter().map(|index| self.value(*index, point.clone())).collect::<Result<_, _>>()?;
        let mut stmts = Vec::new();
        for (value, register) in registers.iter().enumerate() {
            if self.is_carried(stage, value) {
                let memory = self.stored(Read::Func(stage.func), value)?;
                let index = self.loaded(&memory, &at);
                let last = self.builder.load(memory.array, self.arrays[memory.array].ty, index);
                stmts.push(self.keep(register, last));
            }
        }
        self.carried = Some(Carried { stage, registers });
        Ok(self.where_it_runs(placed, stmts))
    }

    /// Guards statements so that they run only at sizes at which the loops of a nest have iterations.
    fn where_it_runs(&mut self, placed: &Placed<'_>, stmts: Vec<Stmt>) -> Vec<Stmt> {
        let mut nesting = Nesting::default();
        for r in 0..placed.footprint.domain.len() {
            let (first, last) = self.loop_ends(placed.nest.item, LoopKind::Reduction(r));
            nesting.require(self.builder.guard(first, last));
        }
        nesting.around(&mut self.builder, stmts)
    }

    /// Reads of the previous value use memory again.
    pub fn drop_carried(&mut self) {
        self.carried = None;
    }

    /// The register that holds the result of a read at a point.
    pub fn carried_read(&mut self, id: ExprId, at: &[NodeId]) -> Option<NodeId> {
        let Carried { stage, registers } = self.carried.as_ref()?;
        if !self.context.problem.previous_reads(*stage).contains(&id) {
            return None;
        }
        let node = &self.context.pipeline().exprs()[id];
        let NodeKind::Call(_, value) = node.kind else { return None };
        let register = registers[value as usize].clone();
        let index = register.index(&mut self.builder, &[]);
        self.touch(Key { array: register.array, index, value: None }, at, 0);
        Some(self.builder.load(register.array, node.ty, index))
    }

    /// Keeps a value of the point that is being stored for the next point.
    pub fn carried_store(&mut self, value: usize, stored: NodeId) -> Option<Stmt> {
        let Carried { stage, registers } = self.carried.as_ref()?;
        let (stage, register) = (*stage, registers[value].clone());
        self.is_carried(stage, value).then(|| self.keep(&register, stored))
    }

    fn is_carried(&self, stage: StageRef, value: usize) -> bool {
        let exprs = self.context.pipeline().exprs();
        let reads = self.context.problem.previous_reads(stage).iter();
        reads
            .into_iter()
            .any(|id| matches!(exprs[*id].kind, NodeKind::Call(_, read) if read as usize == value))
    }

    fn keep(&mut self, register: &Stored, value: NodeId) -> Stmt {
        Stmt::Store { array: register.array, index: register.index(&mut self.builder, &[]), value }
    }
}
