//! Accumulators: a stage that adds to its own points again and again does so in registers, and touches the
//! memory that holds them once before and once after.

use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{
    Item, MAX_REGISTER_BYTES, Nest, StageRef, Storage, ThreadLoop, ThreadTiles,
};

use crate::ir::Stmt;
use crate::lower::LowerError;
use crate::lower::arrays::{Read, Stored};
use crate::lower::boxes::Box;
use crate::lower::kernel::KernelLowering;
use crate::lower::nest::Position;
use crate::lower::nesting::Nesting;
use crate::lower::stage::Subject;

/// The registers of a thread's tile, and the memory they stand for.
pub(crate) struct Accumulator {
    stage: StageRef,
    memory: Vec<Stored>,
    registers: Vec<Stored>,
}

impl KernelLowering<'_> {
    /// Registers for the tile that starts at `position`, if the stage of a nest accumulates there. From here
    /// on they are what accesses of the Func find.
    pub fn accumulator(
        &mut self,
        nest: &Nest,
        subject: &Subject,
        position: &Position,
        tiles: &ThreadTiles,
        loops: &[ThreadLoop],
    ) -> Result<Option<Accumulator>, LowerError> {
        let Item::Stage(stage) = nest.item else { return Ok(None) };
        let decl = &self.context.pipeline.funcs()[stage.func];
        let serial = |d: usize| {
            let dim = loops.iter().find(|dim| dim.dim == LoopKind::Pure(d));
            dim.map_or(1, |dim| dim.serial)
        };
        let extent: Vec<i64> = (0..decl.dims.len()).map(serial).collect();
        let points: i64 = extent.iter().product();
        let own_points = stage.stage > 0 && subject.looped.len() == decl.dims.len();
        let in_registers = points == 1 || tiles.unroll;
        let small = points as u64 * decl.bytes_per_point() as u64 <= MAX_REGISTER_BYTES;
        let again = position.domain.extent.iter().any(|extent| *extent > 1)
            && loops.iter().all(|dim| matches!(dim.dim, LoopKind::Pure(_)) || dim.threads == 1);
        if !(own_points && in_registers && small && again && nest.storage != Storage::Private) {
            return Ok(None);
        }
        let values = decl.types.len();
        let lower = self.shifted(&position.points.lower, &position.along);
        let upper = vec![None; lower.len()];
        let tile = Box { lower, extent, upper };
        let memory: Result<Vec<Stored>, LowerError> =
            (0..values).map(|value| self.stored(Read::Func(stage.func), value)).collect();
        let registers = self.tile_registers(stage, &tile);
        for (value, stored) in registers.iter().enumerate() {
            self.local.insert((Read::Func(stage.func), value), stored.clone());
        }
        Ok(Some(Accumulator { stage, memory: memory?, registers }))
    }

    /// Fills the registers from memory.
    pub fn begin(
        &mut self,
        accumulator: &Accumulator,
        subject: &Subject,
        position: &Position,
        tiles: &ThreadTiles,
        loops: &[ThreadLoop],
    ) -> Vec<Stmt> {
        self.copy_tile(&accumulator.memory, &accumulator.registers, subject, position, tiles, loops)
    }

    /// Writes the registers back. From here on accesses of the Func find the memory again.
    pub fn finish(
        &mut self,
        accumulator: &Accumulator,
        subject: &Subject,
        position: &Position,
        tiles: &ThreadTiles,
        loops: &[ThreadLoop],
    ) -> Vec<Stmt> {
        for (value, stored) in accumulator.memory.iter().enumerate() {
            self.local.insert((Read::Func(accumulator.stage.func), value), stored.clone());
        }
        self.copy_tile(&accumulator.registers, &accumulator.memory, subject, position, tiles, loops)
    }

    fn copy_tile(
        &mut self,
        from: &[Stored],
        to: &[Stored],
        subject: &Subject,
        start: &Position,
        tiles: &ThreadTiles,
        loops: &[ThreadLoop],
    ) -> Vec<Stmt> {
        let (mut nesting, mut position) = (Nesting::default(), start.clone());
        let pure = |kind: LoopKind| matches!(kind, LoopKind::Pure(_));
        self.serial(&mut nesting, subject, &mut position, tiles, loops, pure);
        let at = self.shifted(&position.points.lower, &position.along);
        let mut stmts = Vec::new();
        for (from, to) in from.iter().zip(to) {
            let index = from.offset(&mut self.builder, &at);
            let ty = self.arrays[from.array].ty;
            let value = self.builder.load(from.array, ty, index);
            let index = to.offset(&mut self.builder, &at);
            stmts.push(Stmt::Store { array: to.array, index, value });
        }
        nesting.around(&mut self.builder, stmts)
    }
}
