//! Moves of adjacent elements between buffers and per-thread arrays.

use warploom_interp::lanes::Lanes;

use crate::access::{memory, stop};
use crate::code::{Home, Slot, Vector};
use crate::counters::Traffic;
use crate::error::AccessKind;
use crate::machine::{Machine, Stop, Taken};
use crate::mask::Mask;
use crate::memory::{Denied, Warp, Why, for_each_warp};
use crate::shadow::Mark;
use crate::world::World;

impl Machine {
    /// One access of the buffer per thread, which moves all elements.
    pub(crate) fn vector(&mut self, vector: &Vector, mask: &Mask, world: &mut World<'_>) -> Result<(), Stop> {
        let (buffer, registers) = (vector.buffer, vector.registers);
        let (of_buffer, of_registers) = match vector.stores {
            true => (AccessKind::Write, AccessKind::Read),
            false => (AccessKind::Read, AccessKind::Write),
        };
        let first = self.first_elements(buffer.index);
        self.count_vector(vector, mask, &first).map_err(|denied| stop(buffer, of_buffer, denied))?;
        for offset in 0..vector.width {
            let elements: Vec<u32> = first.iter().map(|first| first.wrapping_add(offset)).collect();
            let mut row = match self.code.arrays[buffer.array].ty.is_wide() {
                true => Taken::Wide(vec![0; self.code.threads]),
                false => Taken::Narrow(vec![0; self.code.threads]),
            };
            if vector.stores {
                let read = self.read_registers(vector, offset, mask, &mut row, world.clock.block());
                read.map_err(|denied| stop(registers, of_registers, denied))?;
            }
            let moved = self.move_elements(vector, &elements, mask, &mut row, world);
            moved.map_err(|denied| stop(buffer, of_buffer, denied))?;
            if !vector.stores {
                let written = self.write_registers(vector, offset, mask, &row, world.clock.block());
                written.map_err(|denied| stop(registers, of_registers, denied))?;
            }
        }
        Ok(())
    }

    /// The value of an index in each thread.
    fn first_elements(&self, index: Slot) -> Vec<u32> {
        let lanes = self.registers.lanes(index, 0..self.code.threads);
        (0..self.code.threads).map(|thread| lanes.get(thread) as u32).collect()
    }

    /// Checks where the vectors of each warp are, and counts one request for all elements of a warp. An aligned vector lies in one
    /// sector.
    fn count_vector(&mut self, vector: &Vector, mask: &Mask, first: &[u32]) -> Result<(), Denied> {
        let array = &self.code.arrays[vector.buffer.array];
        let traffic = &mut self.traffic[vector.buffer.array];
        let traffic = if vector.stores { &mut traffic.stores } else { &mut traffic.loads };
        for_each_warp(mask, first, |warp| {
            let Warp { elements, threads } = warp;
            let mut starts = elements.iter().copied().zip(threads.iter().copied());
            let last = vector.width as usize - 1;
            warp.check(array.elements.saturating_sub(last))?;
            if let Some((element, thread)) = starts.find(|(element, _)| element % vector.width != 0) {
                return Err(Denied { thread, element, why: Why::Misaligned(vector.width) });
            }
            let elements = elements.len() as u64 * u64::from(vector.width);
            *traffic += Traffic {
                elements,
                bytes: elements * array.ty.bytes() as u64,
                requests: 1,
                sectors: array.geometry.sectors(warp.elements).into(),
                wavefronts: 0,
            };
            Ok(())
        })
    }

    /// Moves one element of each thread between the buffer and a row.
    fn move_elements(
        &mut self,
        vector: &Vector,
        elements: &[u32],
        mask: &Mask,
        row: &mut Taken,
        world: &mut World<'_>,
    ) -> Result<(), Denied> {
        let array = &self.code.arrays[vector.buffer.array];
        let (era, me) = (world.clock.era(array.home), Mark::new(world.clock.now(), vector.buffer.site, 0));
        let memory = memory(array, &mut self.shared, world);
        for_each_warp(mask, elements, |warp| {
            if vector.stores {
                return memory.store(warp, &era, me, lanes(row));
            }
            if array.written {
                memory.read(warp, &era, me)?;
            } else {
                memory.check_written(warp)?;
            }
            memory.gather(warp, row.row());
            Ok(())
        })
    }

    fn read_registers(
        &mut self,
        vector: &Vector,
        offset: u32,
        mask: &Mask,
        row: &mut Taken,
        block: u32,
    ) -> Result<(), Denied> {
        let Home::Thread(number) = self.code.arrays[vector.registers.array].home else {
            unreachable!("one array of a vector is per thread")
        };
        let first = self.registers.lanes(vector.registers.index, 0..self.code.threads);
        self.private[number].load(mask, block, |thread| first.get(thread) as u32 + offset, row.row())
    }

    fn write_registers(
        &mut self,
        vector: &Vector,
        offset: u32,
        mask: &Mask,
        row: &Taken,
        block: u32,
    ) -> Result<(), Denied> {
        let Home::Thread(number) = self.code.arrays[vector.registers.array].home else {
            unreachable!("one array of a vector is per thread")
        };
        let first = self.registers.lanes(vector.registers.index, 0..self.code.threads);
        self.private[number].store(mask, block, |thread| first.get(thread) as u32 + offset, lanes(row))
    }
}

fn lanes(row: &Taken) -> Lanes<'_> {
    match row {
        Taken::Narrow(row) => Lanes::Varying(row),
        Taken::Wide(row) => Lanes::Wide(row),
    }
}
