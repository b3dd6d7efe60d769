//! Accumulators: a stage that repeatedly updates the same points keeps them in registers. It reads
//! them from memory once before the updates and writes them back once after.

use warploom_schedule::{Item, LoopKind, StageRef};

use crate::ir::Stmt;
use crate::lower::error::LowerError;
use crate::lower::nest::{Placed, Position};
use crate::lower::nesting::Nesting;
use crate::lower::state::{KernelLowering, Read, Stored};

/// The registers of a thread's tile, and the memory that they cache.
pub(crate) struct Accumulator {
    stage: StageRef,
    memory: Vec<Stored>,
    registers: Vec<Stored>,
}

impl KernelLowering<'_> {
    /// Allocates registers for the tile at a position, if the stage of the nest accumulates there.
    /// From now on, accesses to the Func use the registers.
    pub fn accumulator(
        &mut self,
        placed: &Placed<'_>,
        start: &Position,
    ) -> Result<Option<Accumulator>, LowerError> {
        let Item::Stage(stage) = placed.nest.item else { return Ok(None) };
        if !placed.footprint.accumulates {
            return Ok(None);
        }
        let decl = &self.context.pipeline().funcs()[stage.func];
        let extents: Vec<i64> =
            (0..decl.dims.len()).map(|d| placed.footprint.share(LoopKind::Pure(d)).1).collect();
        let lower = self.shifted(&start.points.lower, &start.along);
        let values = 0..decl.types.len();
        let memory: Result<Vec<Stored>, LowerError> =
            values.map(|value| self.stored(Read::Func(stage.func), value)).collect();
        let registers = self.tile_registers(stage, &lower, &extents);
        let accumulator = Accumulator { stage, memory: memory?, registers };
        self.redirect(stage, &accumulator.registers);
        Ok(Some(accumulator))
    }

    /// Loads the registers from memory.
    pub fn begin(&mut self, accumulator: &Accumulator, placed: &Placed<'_>, start: &Position) -> Vec<Stmt> {
        self.copy_tile(&accumulator.memory, &accumulator.registers, placed, start)
    }

    /// Writes the registers back to memory. From now on, accesses to the Func use memory again.
    pub fn finish(&mut self, accumulator: &Accumulator, placed: &Placed<'_>, start: &Position) -> Vec<Stmt> {
        self.redirect(accumulator.stage, &accumulator.memory);
        self.copy_tile(&accumulator.registers, &accumulator.memory, placed, start)
    }

    /// Redirects accesses to a Func to other arrays.
    fn redirect(&mut self, stage: StageRef, to: &[Stored]) {
        for (value, stored) in to.iter().enumerate() {
            self.local.insert((Read::Func(stage.func), value), stored.clone());
        }
    }

    fn copy_tile(
        &mut self,
        from: &[Stored],
        to: &[Stored],
        placed: &Placed<'_>,
        start: &Position,
    ) -> Vec<Stmt> {
        let (mut nesting, mut position) = (Nesting::default(), start.clone());
        let pure = |kind: LoopKind| matches!(kind, LoopKind::Pure(_));
        self.serial(&mut nesting, placed, &mut position, pure);
        let at = self.shifted(&position.points.lower, &position.along);
        let stage = placed.nest.item.stage().map_or(0, |stage| stage.stage);
        let mut stmts = Vec::new();
        for (from, to) in from.iter().zip(to) {
            let index = self.loaded(from, &at);
            let ty = self.arrays[from.array].ty;
            let value = self.builder.load(from.array, ty, index);
            stmts.push(self.written(to, &at, value, stage));
        }
        nesting.around(&mut self.builder, stmts)
    }
}
