//! Runs [`Code`]: the threads of a block in lockstep, the blocks one after another.

use std::collections::VecDeque;

use smallvec::SmallVec;
use warploom_interp::lanes::{self, Lanes, Row};

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

/// The asynchronous copies of the running block, each an array and an element. All threads commit and wait together.
#[derive(Default)]
pub struct Copies {
    /// The copies since the last commit.
    pub started: Vec<(usize, u32)>,
    /// The groups in flight, oldest first.
    groups: VecDeque<Vec<(usize, u32)>>,
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
    pub(crate) copies: Copies,
    /// How many threads ran each statement.
    pub(crate) counts: Vec<u64>,
    pub(crate) traffic: Vec<ArrayTraffic>,
    pub(crate) barriers: u64,
    /// How many warps ran each shuffle, in total.
    pub(crate) shuffles: u64,
}

/// The register values of a block.
pub struct Registers {
    pub scalars: Vec<u64>,
    pub rows: Vec<Vec<u32>>,
    pub wide: Vec<Vec<u64>>,
}

/// A row that was taken out of its register.
pub enum Taken {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Taken {
    pub fn row(&mut self) -> Row<'_> {
        match self {
            Taken::Narrow(row) => Row::Narrow(row),
            Taken::Wide(row) => Row::Wide(row),
        }
    }
}

impl Registers {
    /// A register's values in a range of threads.
    pub fn lanes(&self, slot: Slot, range: std::ops::Range<usize>) -> Lanes<'_> {
        match slot {
            Slot::Scalar(scalar) => Lanes::Uniform(self.scalars[scalar]),
            Slot::Row(row) => Lanes::Varying(&self.rows[row][range]),
            Slot::Wide(row) => Lanes::Wide(&self.wide[row][range]),
        }
    }

    /// Takes a row out of its register, so that others can be read while it is written.
    pub fn take(&mut self, slot: Slot) -> Taken {
        match slot {
            Slot::Row(row) => Taken::Narrow(std::mem::take(&mut self.rows[row])),
            Slot::Wide(row) => Taken::Wide(std::mem::take(&mut self.wide[row])),
            Slot::Scalar(_) => unreachable!("a scalar is no row"),
        }
    }

    /// Puts a row back.
    pub fn put(&mut self, slot: Slot, taken: Taken) {
        match (slot, taken) {
            (Slot::Row(row), Taken::Narrow(taken)) => self.rows[row] = taken,
            (Slot::Wide(row), Taken::Wide(taken)) => self.wide[row] = taken,
            _ => unreachable!("a row goes back where it came from"),
        }
    }

    fn apply(&self, apply: &Apply, range: std::ops::Range<usize>, result: Row<'_>) {
        let args: SmallVec<[Lanes<'_>; 3]> =
            apply.args.iter().map(|slot| self.lanes(*slot, range.clone())).collect();
        lanes::apply(apply.op, apply.operand, apply.result, result, &args);
    }

    fn run(&mut self, apply: &Apply, mask: &Mask) {
        match apply.to {
            Slot::Scalar(scalar) if apply.result.is_wide() => {
                let mut single = [0];
                self.apply(apply, 0..1, Row::Wide(&mut single));
                self.scalars[scalar] = single[0];
            }
            Slot::Scalar(scalar) => {
                let mut single = [0];
                self.apply(apply, 0..1, Row::Narrow(&mut single));
                self.scalars[scalar] = single[0].into();
            }
            // Inactive threads in this range compute too, which has no visible effect.
            Slot::Row(row) => {
                let mut result = std::mem::take(&mut self.rows[row]);
                self.apply(apply, mask.range(), Row::Narrow(&mut result[mask.range()]));
                self.rows[row] = result;
            }
            Slot::Wide(row) => {
                let mut result = std::mem::take(&mut self.wide[row]);
                self.apply(apply, mask.range(), Row::Wide(&mut result[mask.range()]));
                self.wide[row] = result;
            }
        }
    }

    fn run_offset(&mut self, Offset { strides, to, terms }: &Offset, mask: &Mask) {
        let term = |slot: &Slot, thread: usize| match *slot {
            Slot::Scalar(scalar) => self.scalars[scalar] as i32,
            Slot::Row(row) => self.rows[row][thread] as i32,
            Slot::Wide(_) => unreachable!("indices have 32 bits"),
        };
        let index = |thread: usize| {
            let offset = strides.offset(terms.iter().map(|slot| term(slot, thread)));
            offset.clamp(i32::MIN.into(), i32::MAX.into()) as u32
        };
        match *to {
            Slot::Scalar(scalar) => self.scalars[scalar] = index(0).into(),
            Slot::Row(row) => {
                let indices: Vec<u32> = mask.range().map(index).collect();
                self.rows[row][mask.range()].copy_from_slice(&indices);
            }
            Slot::Wide(_) => unreachable!("indices have 32 bits"),
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
                Home::Shared(_) => shared.push(Common::new(array.ty, array.elements)),
                Home::Thread(_) => private.push(Private::new(array.ty, array.elements, threads)),
            }
        }
        Machine {
            registers: Registers {
                scalars: code.scalars.clone(),
                rows,
                wide: vec![vec![0; threads]; code.wide_rows],
            },
            masks: vec![Mask::full(threads); code.masks],
            shared,
            private,
            copies: Copies::default(),
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
            self.registers.scalars[scalar] = index.into();
        }
        self.copies = Copies::default();
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
                Instruction::Copy { to, value } => self.copy(to, value, mask, world)?,
                Instruction::Vector(ref vector) => self.vector(vector, mask, world)?,
                Instruction::Commit { site } => {
                    self.all_arrive(site, mask)?;
                    let group = std::mem::take(&mut self.copies.started);
                    self.copies.groups.push_back(group);
                }
                Instruction::Wait { groups, site } => self.wait(groups, site, mask, world)?,
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
                    if *iteration < u64::from(count) {
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
        let mut taken = self.registers.take(to);
        let read = |slot: Slot, thread: usize| self.registers.lanes(slot, thread..thread + 1).get(0);
        for thread in mask.threads() {
            let (first, active) = (thread / WARP * WARP, mask.warps()[thread / WARP]);
            let from = read(lane, thread) as u32;
            if active.checked_shr(from).is_none_or(|bits| bits & 1 == 0) {
                let why = StopWhy::Lane { thread: thread as u32, lane: from as i32, active };
                return Err(Stop { site, why });
            }
            let found = read(value, first + from as usize);
            match &mut taken {
                Taken::Narrow(row) => row[thread] = found as u32,
                Taken::Wide(row) => row[thread] = found,
            }
        }
        self.registers.put(to, taken);
        self.shuffles += u64::from(mask.active_warps());
        Ok(())
    }

    fn barrier(&mut self, site: usize, mask: &Mask, world: &mut World<'_>) -> Result<(), Stop> {
        self.all_arrive(site, mask)?;
        self.barriers += 1;
        world.clock.tick().map_err(|TooLong| Stop { site, why: StopWhy::TooLong })
    }

    /// Waits for all groups but the latest ones.
    fn wait(&mut self, groups: u32, site: usize, mask: &Mask, world: &mut World<'_>) -> Result<(), Stop> {
        self.all_arrive(site, mask)?;
        let ended = self.copies.groups.len().saturating_sub(groups as usize);
        for (array, element) in self.copies.groups.drain(..ended).flatten() {
            if let Home::Shared(number) = self.code.arrays[array].home {
                self.shared[number].arrive(element, world.clock.now());
            }
        }
        Ok(())
    }

    /// Checks that all threads of the block have arrived.
    fn all_arrive(&self, site: usize, mask: &Mask) -> Result<(), Stop> {
        let active = mask.active();
        if active as usize != self.code.threads {
            let missing = mask.threads().zip(0..).find(|(thread, number)| thread != number);
            let missing = missing.map_or(active, |(_, number)| number as u32);
            return Err(Stop { site, why: StopWhy::Divergent { active, missing } });
        }
        Ok(())
    }
}
