//! Loads, stores, atomics and copies of a block.

use warploom_codegen::ir::AtomicOp;
use warploom_interp::lanes::Lanes;

use crate::code::{ArrayCode, Home, Slot, Touch};
use crate::counters::Traffic;
use crate::error::AccessKind;
use crate::machine::{Machine, Stop, StopWhy};
use crate::mask::Mask;
use crate::memory::{Common, Denied, Warp, for_each_warp};
use crate::shadow::Mark;
use crate::world::World;

impl Machine {
    pub(crate) fn load(
        &mut self,
        from: Touch,
        to: Slot,
        mask: &Mask,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let loaded = match (self.code.arrays[from.array].home, from.index, to) {
            (Home::Thread(number), index, to) if to.varies() => {
                self.load_private(number, from.array, index, to, mask, world.clock.block())
            }
            (_, Slot::Row(index), to) if to.varies() => self.load_row(from, index, to, mask, world),
            (_, Slot::Scalar(index), Slot::Scalar(to)) => self.load_same(from, index, to, mask, world),
            _ => unreachable!("a load gives a row if its index is one or the array is per thread"),
        };
        loaded.map_err(|denied| stop(from, AccessKind::Read, denied))
    }

    pub(crate) fn store(
        &mut self,
        to: Touch,
        value: Slot,
        mask: &Mask,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let stored = match self.code.arrays[to.array].home {
            Home::Thread(number) => self.store_private(number, to, value, mask, world.clock.block()),
            _ => self.write(to, value, mask, world, Writing::Store),
        };
        stored.map_err(|denied| stop(to, AccessKind::Write, denied))
    }

    pub(crate) fn atomic(
        &mut self,
        op: AtomicOp,
        to: Touch,
        value: Slot,
        mask: &Mask,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let done = self.write(to, value, mask, world, Writing::Atomic(op));
        done.map_err(|denied| stop(to, AccessKind::Atomic, denied))
    }

    /// Starts copies of values that were loaded. Buffers with copies are read-only, so the loaded values stay valid.
    pub(crate) fn copy(
        &mut self,
        to: Touch,
        value: Slot,
        mask: &Mask,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let started = self.write(to, value, mask, world, Writing::Copy);
        started.map_err(|denied| stop(to, AccessKind::Write, denied))
    }

    /// Loads from memory that threads share, one element per thread.
    fn load_row(
        &mut self,
        from: Touch,
        index: usize,
        to: Slot,
        mask: &Mask,
        world: &mut World<'_>,
    ) -> Result<(), Denied> {
        let array = &self.code.arrays[from.array];
        let (era, me) = (world.clock.era(array.home), Mark::new(world.clock.now(), from.site, 0));
        let memory = memory(array, &mut self.shared, world);
        let traffic = &mut self.traffic[from.array].loads;
        let mut result = self.registers.take(to);
        let loaded = for_each_warp(mask, &self.registers.rows[index], |warp| {
            warp.check(array.elements)?;
            count(traffic, array, warp);
            if array.written {
                memory.read(warp, &era, me)?;
            } else {
                memory.check_written(warp)?;
            }
            memory.gather(warp, result.row());
            Ok(())
        });
        self.registers.put(to, result);
        loaded
    }

    /// Loads one element in all active threads.
    fn load_same(
        &mut self,
        from: Touch,
        index: usize,
        to: usize,
        mask: &Mask,
        world: &mut World<'_>,
    ) -> Result<(), Denied> {
        let array = &self.code.arrays[from.array];
        let (era, me) = (world.clock.era(array.home), Mark::new(world.clock.now(), from.site, 0));
        let memory = memory(array, &mut self.shared, world);
        let element = self.registers.scalars[index] as u32;
        // Two threads are enough: more threads would leave the same marks.
        let threads = [mask.range().start as u16, mask.range().end as u16 - 1];
        let threads = if threads[0] == threads[1] { &threads[..1] } else { &threads[..] };
        let elements = [element; 2];
        let warp = Warp { elements: &elements[..threads.len()], threads };
        warp.check(array.elements)?;
        if array.written {
            memory.read(warp, &era, me)?;
        } else {
            memory.check_written(warp)?;
        }
        self.registers.scalars[to] = memory.bits.get(element as usize);
        let requests = u64::from(mask.active_warps());
        let (sectors, wavefronts) = match array.home {
            Home::Global(_) => (requests, 0),
            Home::Shared(_) | Home::Thread(_) => (0, requests),
        };
        let elements = u64::from(mask.active());
        let bytes = elements * array.ty.bytes() as u64;
        self.traffic[from.array].loads += Traffic { elements, bytes, requests, sectors, wavefronts };
        Ok(())
    }

    /// Writes to memory that threads share.
    fn write(
        &mut self,
        to: Touch,
        value: Slot,
        mask: &Mask,
        world: &mut World<'_>,
        how: Writing,
    ) -> Result<(), Denied> {
        let array = &self.code.arrays[to.array];
        let (era, me) = (world.clock.era(array.home), Mark::new(world.clock.now(), to.site, 0));
        let memory = memory(array, &mut self.shared, world);
        let traffic = &mut self.traffic[to.array];
        let traffic = match how {
            Writing::Atomic(_) => &mut traffic.atomics,
            Writing::Store | Writing::Copy => &mut traffic.stores,
        };
        let started = &mut self.copies.started;
        let same;
        let indices = match to.index {
            Slot::Row(row) => self.registers.rows[row].as_slice(),
            Slot::Scalar(scalar) => {
                same = vec![self.registers.scalars[scalar] as u32; self.code.threads];
                &same
            }
            Slot::Wide(_) => unreachable!("indices have 32 bits"),
        };
        let values = self.registers.lanes(value, 0..self.code.threads);
        for_each_warp(mask, indices, |warp| {
            warp.check(array.elements)?;
            count(traffic, array, warp);
            match how {
                Writing::Atomic(op) => memory.atomic(warp, &era, me, (op, array.ty), values),
                Writing::Store => memory.store(warp, &era, me, values),
                Writing::Copy => {
                    memory.store(warp, &era, me, values)?;
                    memory.depart(warp);
                    started.extend(warp.elements.iter().map(|element| (to.array, *element)));
                    Ok(())
                }
            }
        })
    }

    fn load_private(
        &mut self,
        number: usize,
        array: usize,
        index: Slot,
        to: Slot,
        mask: &Mask,
        block: u32,
    ) -> Result<(), Denied> {
        let memory = &self.private[number];
        let mut result = self.registers.take(to);
        let loaded = match self.registers.lanes(index, 0..self.code.threads) {
            Lanes::Uniform(element) => memory.load_same(mask, block, element as u32, result.row()),
            indices => memory.load(mask, block, |thread| indices.get(thread) as u32, result.row()),
        };
        self.registers.put(to, result);
        count_private(&mut self.traffic[array].loads, &self.code.arrays[array], mask);
        loaded
    }

    fn store_private(
        &mut self,
        number: usize,
        to: Touch,
        value: Slot,
        mask: &Mask,
        block: u32,
    ) -> Result<(), Denied> {
        let memory = &mut self.private[number];
        let threads = self.code.threads;
        let index = self.registers.lanes(to.index, 0..threads);
        let value = self.registers.lanes(value, 0..threads);
        count_private(&mut self.traffic[to.array].stores, &self.code.arrays[to.array], mask);
        match index {
            Lanes::Uniform(element) if mask.active() as usize == threads => {
                memory.store_all(block, element as u32, value)
            }
            index => memory.store(mask, block, |thread| index.get(thread) as u32, value),
        }
    }
}

/// How memory is written.
#[derive(Clone, Copy)]
enum Writing {
    Store,
    Atomic(AtomicOp),
    Copy,
}

pub(crate) fn stop(at: Touch, kind: AccessKind, denied: Denied) -> Stop {
    Stop { site: at.site, why: StopWhy::Denied { array: at.array, kind, denied } }
}

/// The memory of an array that threads share.
pub(crate) fn memory<'m>(
    array: &ArrayCode,
    shared: &'m mut [Common],
    world: &'m mut World<'_>,
) -> &'m mut Common {
    match array.home {
        Home::Global(buffer) => &mut world.global[buffer],
        Home::Shared(number) | Home::Thread(number) => &mut shared[number],
    }
}

pub(crate) fn count(traffic: &mut Traffic, array: &ArrayCode, warp: Warp<'_>) {
    let elements = warp.elements.len() as u64;
    traffic.elements += elements;
    traffic.bytes += elements * array.ty.bytes() as u64;
    traffic.requests += 1;
    match array.home {
        Home::Global(_) => traffic.sectors += u64::from(array.geometry.sectors(warp.elements)),
        Home::Shared(_) => traffic.wavefronts += u64::from(array.geometry.wavefronts(warp.elements)),
        Home::Thread(_) => {}
    }
}

fn count_private(traffic: &mut Traffic, array: &ArrayCode, mask: &Mask) {
    let elements = u64::from(mask.active());
    let (bytes, requests) = (elements * array.ty.bytes() as u64, u64::from(mask.active_warps()));
    *traffic += Traffic { elements, bytes, requests, ..Traffic::default() };
}
