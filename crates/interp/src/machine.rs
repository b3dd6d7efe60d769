//! Runs a [`Program`] over rows of points.

use smallvec::SmallVec;
use warploom_lang::FuncId;

use crate::lanes::{self, Lanes, Row};
use crate::program::{Action, Instruction, Program, Slot};
use crate::samples::{Layout, Samples, SamplesMut};

/// The maximum number of points in a row register.
pub const LANES: usize = 512;

/// A readable array: one sample array per value, all with the same layout.
pub struct SourceArray<'a> {
    pub layout: Layout,
    pub values: Vec<Samples<'a>>,
}

/// The part of the current Func that one thread owns.
pub struct Own<'a, 'b> {
    pub id: FuncId,
    pub layout: &'a Layout,
    pub values: Vec<SamplesMut<'b>>,
    /// The offset of the part's first sample.
    pub base: i64,
}

/// Everything that a program can read except its own Func.
pub struct Sources<'a> {
    pub inputs: Vec<SourceArray<'a>>,
    pub tables: Vec<SourceArray<'a>>,
    /// `None` for Funcs that are not computed yet or already freed.
    pub funcs: Vec<Option<SourceArray<'a>>>,
}

/// The points of one run: a row of `lanes` points starting at `point`, at one point of the domain.
pub struct PointRow<'a> {
    pub point: &'a [i64],
    pub domain: &'a [i64],
    pub lanes: usize,
}

/// An out-of-bounds access: the inferred bounds were wrong.
#[derive(Debug)]
pub struct Outside;

/// A program with its registers.
pub struct Machine<'a> {
    program: &'a Program,
    scalars: Vec<u64>,
    rows: Vec<Vec<u32>>,
    wide: Vec<Vec<u64>>,
    offsets: Vec<i64>,
}

impl<'a> Machine<'a> {
    pub fn new(program: &'a Program) -> Machine<'a> {
        Machine {
            program,
            scalars: program.scalars.clone(),
            rows: vec![vec![0; LANES]; program.rows],
            wide: vec![vec![0; LANES]; program.wide_rows],
            offsets: vec![0; LANES],
        }
    }

    /// Evaluates the stage at `place` and stores the results.
    pub fn run(
        &mut self,
        place: &PointRow<'_>,
        sources: &Sources<'_>,
        own: &mut Own<'_, '_>,
    ) -> Result<(), Outside> {
        for instruction in &self.program.instructions {
            self.step(instruction, place, sources, own)?;
        }
        self.store(place.lanes, own)
    }

    fn lanes(&self, slot: Slot, lanes: usize) -> Lanes<'_> {
        match slot {
            Slot::Scalar(scalar) => Lanes::Uniform(self.scalars[scalar]),
            Slot::Row(row) => Lanes::Varying(&self.rows[row][..lanes]),
            Slot::Wide(row) => Lanes::Wide(&self.wide[row][..lanes]),
        }
    }

    fn step(
        &mut self,
        instruction: &Instruction,
        place: &PointRow<'_>,
        sources: &Sources<'_>,
        own: &Own<'_, '_>,
    ) -> Result<(), Outside> {
        let Instruction { action, to, .. } = instruction;
        match (action, *to) {
            (Action::Var(d), Slot::Scalar(scalar)) => {
                self.scalars[scalar] = u64::from(place.point[*d] as u32)
            }
            (Action::Var(d), Slot::Row(row)) => {
                let start = place.point[*d] as u32;
                for (lane, to) in self.rows[row][..place.lanes].iter_mut().enumerate() {
                    *to = start.wrapping_add(lane as u32);
                }
            }
            (Action::RVar(r), Slot::Scalar(scalar)) => {
                self.scalars[scalar] = u64::from(place.domain[*r] as u32);
            }
            (Action::Var(_) | Action::RVar(_), _) => {
                unreachable!("rows run along one pure variable of 32 bits")
            }
            (Action::Load(input), _) => {
                let source = &sources.inputs[warploom_lang::Id::index(*input)];
                self.load(instruction, source.values[0], &source.layout, 0, place.lanes)?;
            }
            (Action::Table(table), _) => {
                let source = &sources.tables[warploom_lang::Id::index(*table)];
                self.load(instruction, source.values[0], &source.layout, 0, place.lanes)?;
            }
            (Action::Call(func, value), _) if *func == own.id => {
                self.load(instruction, own.values[*value].view(), own.layout, own.base, place.lanes)?;
            }
            (Action::Call(func, value), _) => {
                let source = sources.funcs[warploom_lang::Id::index(*func)].as_ref().ok_or(Outside)?;
                self.load(instruction, source.values[*value], &source.layout, 0, place.lanes)?;
            }
            (Action::Perturbed(number), _) => {
                self.compute(instruction, place.lanes, |machine, row, lanes| {
                    machine.program.perturbed[*number].apply(row, &machine.arguments(instruction, lanes));
                })
            }
            (Action::Op(op), _) => self.compute(instruction, place.lanes, |machine, row, lanes| {
                let args = machine.arguments(instruction, lanes);
                lanes::apply(*op, instruction.operand, instruction.result, row, &args);
            }),
        }
        Ok(())
    }

    fn arguments(&self, instruction: &Instruction, lanes: usize) -> SmallVec<[Lanes<'_>; 3]> {
        instruction.args.iter().map(|slot| self.lanes(*slot, lanes)).collect()
    }

    /// Computes the result of an instruction: `run` fills the row it is given, with this many lanes.
    fn compute(&mut self, instruction: &Instruction, lanes: usize, run: impl FnOnce(&Self, Row<'_>, usize)) {
        // The result register never aliases an operand register.
        match instruction.to {
            Slot::Scalar(scalar) if instruction.result.is_wide() => {
                let mut single = [0];
                run(self, Row::Wide(&mut single), 1);
                self.scalars[scalar] = single[0];
            }
            Slot::Scalar(scalar) => {
                let mut single = [0];
                run(self, Row::Narrow(&mut single), 1);
                self.scalars[scalar] = single[0].into();
            }
            Slot::Row(row) => {
                let mut result = std::mem::take(&mut self.rows[row]);
                run(self, Row::Narrow(&mut result[..lanes]), lanes);
                self.rows[row] = result;
            }
            Slot::Wide(row) => {
                let mut result = std::mem::take(&mut self.wide[row]);
                run(self, Row::Wide(&mut result[..lanes]), lanes);
                self.wide[row] = result;
            }
        }
    }

    fn load(
        &mut self,
        instruction: &Instruction,
        samples: Samples<'_>,
        layout: &Layout,
        base: i64,
        lanes: usize,
    ) -> Result<(), Outside> {
        let start = self.uniform_offset(&instruction.args, layout)? - base;
        if let Slot::Scalar(scalar) = instruction.to {
            self.scalars[scalar] = samples.get(start as usize);
            return Ok(());
        }
        match self.strided(instruction, layout, lanes)? {
            Some((first, step)) => self.compute(instruction, lanes, |_, row, _| {
                samples.load_row(start + first, step, row);
            }),
            None => {
                self.varying_offsets(&instruction.args, layout, start, lanes)?;
                self.compute(instruction, lanes, |machine, row, lanes| {
                    samples.gather(&machine.offsets[..lanes], row);
                });
            }
        }
        Ok(())
    }

    /// The part of an offset contributed by indices that are constant along the row.
    fn uniform_offset(&self, indices: &[Slot], layout: &Layout) -> Result<i64, Outside> {
        let mut offset = 0;
        for (d, slot) in indices.iter().enumerate() {
            if let Slot::Scalar(scalar) = slot {
                offset += layout.along(d, i64::from(self.scalars[*scalar] as i32)).ok_or(Outside)?;
            }
        }
        Ok(offset)
    }

    /// The start offset and stride of a row whose indices all move by constant steps.
    fn strided(
        &self,
        instruction: &Instruction,
        layout: &Layout,
        lanes: usize,
    ) -> Result<Option<(i64, i64)>, Outside> {
        let (mut start, mut stride) = (0, 0);
        for (d, (slot, step)) in instruction.args.iter().zip(&instruction.steps).enumerate() {
            let Slot::Row(row) = slot else { continue };
            let Some(step) = step else { return Ok(None) };
            let first = i64::from(self.rows[*row][0] as i32);
            start += layout.along(d, first).ok_or(Outside)?;
            layout.along(d, first + step * (lanes as i64 - 1)).ok_or(Outside)?;
            // This wraps only for a row of a single point, where the stride is unused.
            stride = step.wrapping_mul(layout.strides[d]).wrapping_add(stride);
        }
        Ok(Some((start, stride)))
    }

    /// Computes the offset of every lane into `self.offsets`.
    fn varying_offsets(
        &mut self,
        indices: &[Slot],
        layout: &Layout,
        start: i64,
        lanes: usize,
    ) -> Result<(), Outside> {
        let offsets = &mut self.offsets[..lanes];
        offsets.fill(start);
        let mut outside = false;
        for (d, slot) in indices.iter().enumerate() {
            let Slot::Row(row) = slot else { continue };
            let (min, extent, stride) = (layout.mins[d], layout.extents[d] as u64, layout.strides[d]);
            for (offset, index) in offsets.iter_mut().zip(&self.rows[*row]) {
                let from_min = i64::from(*index as i32) - min;
                outside |= from_min as u64 >= extent;
                *offset += from_min * stride;
            }
        }
        if outside { Err(Outside) } else { Ok(()) }
    }

    fn store(&mut self, lanes: usize, own: &mut Own<'_, '_>) -> Result<(), Outside> {
        let program = self.program;
        let mask = program.predicate;
        if let Some(Slot::Scalar(scalar)) = mask
            && self.scalars[scalar] == 0
        {
            return Ok(());
        }
        let start = self.uniform_offset(&program.indices, own.layout)? - own.base;
        self.varying_offsets(&program.indices, own.layout, start, lanes)?;
        let offsets = &self.offsets[..lanes];
        let neighbours = offsets.windows(2).all(|pair| pair[1] == pair[0] + 1);
        for (value, samples) in program.values.iter().zip(&mut own.values) {
            match (mask, self.lanes(*value, lanes)) {
                (Some(Slot::Row(mask)), values) => {
                    let mask = &self.rows[mask];
                    samples.scatter(offsets, values, |lane| mask[lane] != 0);
                }
                (_, Lanes::Uniform(bits)) if neighbours => {
                    samples.fill_row(offsets[0] as usize, lanes, bits);
                }
                (_, values) if neighbours => samples.store_row(offsets[0] as usize, values),
                (_, values) => samples.scatter(offsets, values, |_| true),
            }
        }
        Ok(())
    }
}
