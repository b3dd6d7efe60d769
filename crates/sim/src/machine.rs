//! Runs [`Code`]: the threads of a block in lockstep, the blocks one after another.

use smallvec::SmallVec;
use warploom_interp::lanes::{self, Lanes};

use crate::code::{Apply, Code, Home, Instruction, Offset, Shuffle, Slot, THREAD_ROW};
use crate::counters::Traffic;
use crate::error::AccessKind;
use crate::mask::{Mask, WARP};
use crate::memory::{Common, Denied, Private};
use crate::world::{TooLong, World};

/// The accesses to an array in the running launch.
#[derive(Clone, Copy, Default)]
pub struct ArrayTraffic {
    pub loads: Traffic,
    pub stores: Traffic,
    pub atomics: Traffic,
}

/// Why a block stopped, and at which site.
pub struct Stop {
    pub site: usize,
    pub why: StopWhy,
}

/// Why a block stopped.
pub enum StopWhy {
    Denied {
        array: usize,
        kind: AccessKind,
        denied: Denied,
    },
    Divergent {
        active: u32,
        missing: u32,
    },
    /// A thread reads a lane of its warp that is not among the `active` ones.
    Lane {
        thread: u32,
        lane: i32,
        active: u32,
    },
    TooLong,
}

/// A kernel, with the state of the running block.
pub struct Machine {
    pub(crate) code: Code,
    pub(crate) registers: Registers,
    /// A stack of active threads, innermost condition last; the first entry is all threads.
    masks: Vec<Mask>,
    pub(crate) shared: Vec<Common>,
    pub(crate) private: Vec<Private>,
    /// How many threads ran each statement.
    pub(crate) counts: Vec<u64>,
    pub(crate) traffic: Vec<ArrayTraffic>,
    pub(crate) barriers: u64,
    /// How many warps ran each shuffle, in total.
    pub(crate) shuffles: u64,
}

/// The register values of a block.
pub struct Registers {
    pub scalars: Vec<u32>,
    pub rows: Vec<Vec<u32>>,
}

impl Registers {
    /// A register's values in a range of threads.
    pub fn lanes(&self, slot: Slot, range: std::ops::Range<usize>) -> Lanes<'_> {
        match slot {
            Slot::Scalar(scalar) => Lanes::Uniform(self.scalars[scalar]),
            Slot::Row(row) => Lanes::Varying(&self.rows[row][range]),
        }
    }

    fn apply(&self, apply: &Apply, range: std::ops::Range<usize>, result: &mut [u32]) {
        let args: SmallVec<[Lanes<'_>; 3]> =
            apply.args.iter().map(|slot| self.lanes(*slot, range.clone())).collect();
        lanes::apply(apply.op, apply.operand, apply.result, result, &args);
    }

    fn run(&mut self, apply: &Apply, mask: &Mask) {
        match apply.to {
            Slot::Scalar(scalar) => {
                let mut single = [0];
                self.apply(apply, 0..1, &mut single);
                self.scalars[scalar] = single[0];
            }
            Slot::Row(row) => {
                // Inactive threads in this range compute too, which has no visible effect.
                let mut result = std::mem::take(&mut self.rows[row]);
                self.apply(apply, mask.range(), &mut result[mask.range()]);
                self.rows[row] = result;
            }
        }
    }

    fn run_offset(&mut self, Offset { strides, to, terms }: &Offset, mask: &Mask) {
        let term = |slot: &Slot, thread: usize| match *slot {
            Slot::Scalar(scalar) => self.scalars[scalar] as i32,
            Slot::Row(row) => self.rows[row][thread] as i32,
        };
        let index = |thread: usize| {
            let offset = strides.offset(terms.iter().map(|slot| term(slot, thread)));
            offset.clamp(i32::MIN.into(), i32::MAX.into()) as u32
        };
        match *to {
            Slot::Scalar(scalar) => self.scalars[scalar] = index(0),
            Slot::Row(row) => {
                let indices: Vec<u32> = mask.range().map(index).collect();
                self.rows[row][mask.range()].copy_from_slice(&indices);
            }
        }
    }
}

impl Machine {
    pub fn new(code: Code) -> Machine {
        let threads = code.threads;
        let mut rows = vec![vec![0; threads]; code.rows];
        rows[THREAD_ROW] = (0..threads as u32).collect();
        let (mut shared, mut private) = (Vec::new(), Vec::new());
        for array in &code.arrays {
            match array.home {
                Home::Global(_) => {}
                Home::Shared(_) => shared.push(Common::new(array.elements)),
                Home::Thread(_) => private.push(Private::new(array.elements, threads)),
            }
        }
        Machine {
            registers: Registers { scalars: code.scalars.clone(), rows },
            masks: vec![Mask::full(threads); code.masks],
            shared,
            private,
            counts: vec![0; code.costs.len()],
            traffic: vec![ArrayTraffic::default(); code.arrays.len()],
            barriers: 0,
            shuffles: 0,
            code,
        }
    }

    /// Runs one block.
    pub fn run(&mut self, block: [u32; 3], world: &mut World<'_>) -> Result<(), Stop> {
        for (scalar, index) in self.code.block.into_iter().zip(block) {
            self.registers.scalars[scalar] = index;
        }
        // Taken out during the run, so that the other fields can be borrowed mutably.
        let mut masks = std::mem::take(&mut self.masks);
        let instructions = std::mem::take(&mut self.code.instructions);
        let outcome = self.run_all(&instructions, &mut masks, world);
        (self.masks, self.code.instructions) = (masks, instructions);
        outcome
    }

    fn run_all(
        &mut self,
        instructions: &[Instruction],
        masks: &mut [Mask],
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let (mut at, mut depth) = (0, 0);
        while let Some(instruction) = instructions.get(at) {
            at += 1;
            let mask = &masks[depth];
            match *instruction {
                Instruction::Apply(ref apply) => self.registers.run(apply, mask),
                Instruction::Offset(ref offset) => self.registers.run_offset(offset, mask),
                Instruction::Shuffle(ref shuffle) => self.shuffle(shuffle, mask)?,
                Instruction::Count(cost) => self.counts[cost] += u64::from(mask.active()),
                Instruction::Load { from, to } => self.load(from, to, mask, world)?,
                Instruction::Store { to, value } => self.store(to, value, mask, world)?,
                Instruction::Atomic { op, to, value } => self.atomic(op, to, value, mask, world)?,
                Instruction::Loop { counter, count, end } => {
                    self.registers.scalars[counter] = 0;
                    if count == 0 {
                        at = end;
                    }
                }
                Instruction::Next { counter, count, body } => {
                    let iteration = &mut self.registers.scalars[counter];
                    *iteration += 1;
                    if *iteration < count {
                        at = body;
                    }
                }
                Instruction::Unless { condition, end } => {
                    if self.registers.scalars[condition] == 0 {
                        at = end;
                    }
                }
                Instruction::Narrow { condition, end } => {
                    let (outer, inner) = masks.split_at_mut(depth + 1);
                    inner[0].narrow(&outer[depth], &self.registers.rows[condition]);
                    if inner[0].active() == 0 {
                        at = end;
                    }
                    depth += 1;
                }
                Instruction::Otherwise { end } => {
                    let (outer, inner) = masks.split_at_mut(depth);
                    inner[0].turn(&outer[depth - 1]);
                    if inner[0].active() == 0 {
                        at = end;
                    }
                }
                Instruction::Jump { to } => at = to,
                Instruction::Widen => depth -= 1,
                Instruction::Barrier { site } => self.barrier(site, mask, world)?,
                Instruction::Watch(ref watch) => self.watch(watch, mask, world),
            }
        }
        Ok(())
    }

    fn shuffle(&mut self, &Shuffle { value, lane, to, site }: &Shuffle, mask: &Mask) -> Result<(), Stop> {
        let mut row = std::mem::take(&mut self.registers.rows[to]);
        let read = |slot: Slot, thread: usize| match self.registers.lanes(slot, thread..thread + 1) {
            Lanes::Uniform(value) => value,
            Lanes::Varying(values) => values[0],
        };
        for thread in mask.threads() {
            let (first, active) = (thread / WARP * WARP, mask.warps()[thread / WARP]);
            let from = read(lane, thread);
            if active.checked_shr(from).is_none_or(|bits| bits & 1 == 0) {
                let why = StopWhy::Lane { thread: thread as u32, lane: from as i32, active };
                return Err(Stop { site, why });
            }
            row[thread] = read(value, first + from as usize);
        }
        self.registers.rows[to] = row;
        self.shuffles += u64::from(mask.active_warps());
        Ok(())
    }

    fn barrier(&mut self, site: usize, mask: &Mask, world: &mut World<'_>) -> Result<(), Stop> {
        let active = mask.active();
        if active as usize != self.code.threads {
            let missing = mask.threads().zip(0..).find(|(thread, number)| thread != number);
            let missing = missing.map_or(active, |(_, number)| number as u32);
            return Err(Stop { site, why: StopWhy::Divergent { active, missing } });
        }
        self.barriers += 1;
        world.clock.tick().map_err(|TooLong| Stop { site, why: StopWhy::TooLong })
    }
}
