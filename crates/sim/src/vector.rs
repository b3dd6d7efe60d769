//! Vector loads and stores, and asynchronous copies by vectors.

use warploom_interp::lanes::Lanes;

use crate::access::{count, memory, stop};
use crate::code::{Home, Moves, Slot, Touch, Vector};
use crate::error::AccessKind;
use crate::machine::{Machine, Stop, Taken};
use crate::mask::Mask;
use crate::memory::{Denied, Warp, Why, for_each_warp};
use crate::shadow::Mark;
use crate::world::World;

impl Machine {
    /// One access of shared or global memory per thread and side, for all elements of the vector.
    pub(crate) fn vector(&mut self, vector: &Vector, mask: &Mask, world: &mut World<'_>) -> Result<(), Stop> {
        let Vector { to, from, width, moves } = *vector;
        let (read, written) = (self.first_elements(from.index), self.first_elements(to.index));
        if moves != Moves::Stores {
            let counted = self.count_vector(from, AccessKind::Read, width, mask, &read);
            counted.map_err(|denied| stop(from, AccessKind::Read, denied))?;
        }
        if moves != Moves::Loads {
            let counted = self.count_vector(to, AccessKind::Write, width, mask, &written);
            counted.map_err(|denied| stop(to, AccessKind::Write, denied))?;
        }
        for offset in 0..width {
            let elements =
                |first: &[u32]| first.iter().map(|first| first.wrapping_add(offset)).collect::<Vec<u32>>();
            let mut row = match self.code.arrays[to.array].ty.is_wide() {
                true => Taken::Wide(vec![0; self.code.threads]),
                false => Taken::Narrow(vec![0; self.code.threads]),
            };
            let loaded = match moves {
                Moves::Stores => self.read_registers(from, offset, mask, &mut row, world.clock.block()),
                Moves::Loads | Moves::Copies => {
                    self.read_elements(from, &elements(&read), mask, &mut row, world)
                }
            };
            loaded.map_err(|denied| stop(from, AccessKind::Read, denied))?;
            let stored = match moves {
                Moves::Loads => self.write_registers(to, offset, mask, &row, world.clock.block()),
                Moves::Stores | Moves::Copies => {
                    self.write_elements(vector, &elements(&written), mask, &row, world)
                }
            };
            stored.map_err(|denied| stop(to, AccessKind::Write, denied))?;
        }
        Ok(())
    }

    /// The value of an index in each thread.
    fn first_elements(&self, index: Slot) -> Vec<u32> {
        let lanes = self.registers.lanes(index, 0..self.code.threads);
        (0..self.code.threads).map(|thread| lanes.get(thread) as u32).collect()
    }

    /// Checks the elements of each warp's vectors, and counts one request for all elements of a warp. An aligned vector
    /// lies in one sector, and in adjacent banks.
    fn count_vector(
        &mut self,
        at: Touch,
        kind: AccessKind,
        width: u32,
        mask: &Mask,
        first: &[u32],
    ) -> Result<(), Denied> {
        let array = &self.code.arrays[at.array];
        let traffic = &mut self.traffic[at.array];
        let traffic = if kind == AccessKind::Read { &mut traffic.loads } else { &mut traffic.stores };
        for_each_warp(mask, first, |warp| {
            let Warp { elements, threads } = warp;
            let mut starts = elements.iter().copied().zip(threads.iter().copied());
            warp.check(array.elements.saturating_sub(width as usize - 1))?;
            if let Some((element, thread)) = starts.find(|(element, _)| element % width != 0) {
                return Err(Denied { thread, element, why: Why::Misaligned(width) });
            }
            count(traffic, array, warp);
            let others = elements.len() as u64 * u64::from(width - 1);
            traffic.elements += others;
            traffic.bytes += others * array.ty.bytes() as u64;
            Ok(())
        })
    }

    /// Reads one element of each thread from a buffer.
    fn read_elements(
        &mut self,
        from: Touch,
        elements: &[u32],
        mask: &Mask,
        row: &mut Taken,
        world: &mut World<'_>,
    ) -> Result<(), Denied> {
        let array = &self.code.arrays[from.array];
        let (era, me) = (world.clock.era(array.home), Mark::new(world.clock.now(), from.site, 0));
        let memory = memory(array, &mut self.shared, world);
        for_each_warp(mask, elements, |warp| {
            if array.written {
                memory.read(warp, &era, me)?;
            } else {
                memory.check_written(warp)?;
            }
            memory.gather(warp, row.row());
            Ok(())
        })
    }

    /// Writes one element of each thread to a buffer, or starts to write it to a shared array.
    fn write_elements(
        &mut self,
        vector: &Vector,
        elements: &[u32],
        mask: &Mask,
        row: &Taken,
        world: &mut World<'_>,
    ) -> Result<(), Denied> {
        let to = vector.to;
        let array = &self.code.arrays[to.array];
        let (era, me) = (world.clock.era(array.home), Mark::new(world.clock.now(), to.site, 0));
        let memory = memory(array, &mut self.shared, world);
        let started = &mut self.copies.started;
        for_each_warp(mask, elements, |warp| {
            memory.store(warp, &era, me, lanes(row))?;
            if vector.moves == Moves::Copies {
                memory.depart(warp);
                started.extend(warp.elements.iter().map(|element| (to.array, *element)));
            }
            Ok(())
        })
    }

    fn read_registers(
        &mut self,
        from: Touch,
        offset: u32,
        mask: &Mask,
        row: &mut Taken,
        block: u32,
    ) -> Result<(), Denied> {
        let Home::Thread(number) = self.code.arrays[from.array].home else {
            unreachable!("a vector that is stored comes from an array of the thread")
        };
        let first = self.registers.lanes(from.index, 0..self.code.threads);
        self.private[number].load(mask, block, |thread| first.get(thread) as u32 + offset, row.row())
    }

    fn write_registers(
        &mut self,
        to: Touch,
        offset: u32,
        mask: &Mask,
        row: &Taken,
        block: u32,
    ) -> Result<(), Denied> {
        let Home::Thread(number) = self.code.arrays[to.array].home else {
            unreachable!("a vector that is loaded goes to an array of the thread")
        };
        let first = self.registers.lanes(to.index, 0..self.code.threads);
        self.private[number].store(mask, block, |thread| first.get(thread) as u32 + offset, lanes(row))
    }
}

fn lanes(row: &Taken) -> Lanes<'_> {
    match row {
        Taken::Narrow(row) => Lanes::Varying(row),
        Taken::Wide(row) => Lanes::Wide(row),
    }
}
