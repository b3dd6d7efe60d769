//! One launch of a kernel: runs its blocks, counts, and reports errors.

use crate::code::Home;
use crate::counters::{ArrayCounters, KernelCounters, Memory, Operations};
use crate::error::{Access, AccessKind, Earlier, Fault, SimError};
use crate::machine::{ArrayTraffic, Machine, Stop, StopWhy};
use crate::memory::Why;
use crate::shadow::Mark;
use crate::world::{TooLong, World};

/// The arguments of a launch.
pub struct Launching<'a> {
    /// The bit patterns of the program's Params.
    pub params: &'a [u64],
    /// The iterations of the loops around the launch, the outermost first.
    pub iterations: &'a [u32],
    /// The numbers of the blocks, in execution order.
    pub order: &'a [u32],
    /// The only block to count; `None` counts all blocks.
    pub watched: Option<[u32; 3]>,
}

impl From<TooLong> for SimError {
    fn from(_: TooLong) -> SimError {
        SimError::TooLong
    }
}

impl Machine {
    /// Runs all blocks and returns their counters.
    pub fn launch(
        &mut self,
        given: &Launching<'_>,
        world: &mut World<'_>,
    ) -> Result<KernelCounters, SimError> {
        self.prepare(given)?;
        world.clock.start_launch()?;
        let mut starts = Vec::with_capacity(given.order.len());
        for &number in given.order {
            starts.push(world.clock.start_block()?);
            let block = self.block(number);
            if let Some(observer) = &mut world.observer {
                observer.block(block);
            }
            let counts = given.watched.is_none_or(|watched| watched == block);
            let before =
                (!counts).then(|| (self.counts.clone(), self.traffic.clone(), self.barriers, self.shuffles));
            self.run(block, world).map_err(|stop| self.error(stop, &starts, given.order))?;
            if let Some(before) = before {
                (self.counts, self.traffic, self.barriers, self.shuffles) = before;
            }
        }
        let blocks = if given.watched.is_some() { 1 } else { given.order.len() as u64 };
        Ok(self.counters(blocks))
    }

    /// The number of blocks per launch.
    pub fn blocks(&self) -> u32 {
        self.code.grid.iter().product()
    }

    /// The grid index of a block.
    fn block(&self, number: u32) -> [u32; 3] {
        let [width, height, _] = self.code.grid;
        [number % width, number / width % height, number / width / height]
    }

    fn prepare(&mut self, given: &Launching<'_>) -> Result<(), SimError> {
        for &(position, scalar) in &self.code.params {
            self.registers.scalars[scalar] = given.params[position];
        }
        for &(depth, scalar) in &self.code.iterations {
            let Some(iteration) = given.iterations.get(depth) else {
                let of = format!("kernel `{}`", self.code.name);
                let fault = Fault::Missing { what: "loop around the launch", number: depth };
                return Err(SimError::Malformed { of, statement: None, fault });
            };
            self.registers.scalars[scalar] = u64::from(*iteration);
        }
        self.counts.fill(0);
        self.traffic.fill(ArrayTraffic::default());
        (self.barriers, self.shuffles) = (0, 0);
        Ok(())
    }

    fn counters(&self, blocks: u64) -> KernelCounters {
        let (mut operations, mut lane_operations) = (Operations::default(), 0);
        for (cost, count) in self.code.costs.iter().zip(&self.counts) {
            operations += cost.operations.times(*count);
            lane_operations += cost.lane_operations * count;
        }
        let arrays = self.code.arrays.iter().zip(&self.traffic).map(|(array, traffic)| ArrayCounters {
            name: array.name.clone(),
            memory: match array.home {
                Home::Global(_) => Memory::Global,
                Home::Shared(_) => Memory::Shared,
                Home::Thread(_) => Memory::Thread,
            },
            loads: traffic.loads,
            stores: traffic.stores,
            atomics: traffic.atomics,
        });
        KernelCounters {
            kernel: self.code.name.clone(),
            launches: 1,
            blocks,
            threads: blocks * self.code.threads as u64,
            barriers: self.barriers,
            shuffles: self.shuffles,
            lane_operations,
            operations,
            arrays: arrays.collect(),
        }
    }

    /// Converts a stop to an error; `starts` are the first stamps of the blocks that have run so far.
    fn error(&self, stop: Stop, starts: &[u32], order: &[u32]) -> SimError {
        let at = |position: usize| self.block(order[position]);
        let (kernel, block) = (self.code.name.clone(), at(starts.len() - 1));
        let statement = self.code.sites[stop.site].clone();
        let (array, kind, denied) = match stop.why {
            StopWhy::Denied { array, kind, denied } => (&self.code.arrays[array], kind, denied),
            StopWhy::Divergent { active, missing } => {
                let (statement, threads) = (Box::new(statement), self.code.threads as u32);
                return SimError::DivergentBarrier { kernel, statement, block, active, threads, missing };
            }
            StopWhy::Lane { thread, lane, active } => {
                let statement = Box::new(statement);
                return SimError::InactiveLane { kernel, statement, block, thread, lane, active };
            }
            StopWhy::TooLong => return SimError::TooLong,
        };
        let access = Box::new(Access {
            kernel,
            statement,
            array: array.name.clone(),
            kind,
            element: i64::from(denied.element as i32),
            block,
            thread: u32::from(denied.thread),
        });
        let earlier = |kind, mark: Mark| {
            let position = starts.partition_point(|start| *start <= mark.stamp()).saturating_sub(1);
            Box::new(Earlier {
                kind,
                statement: mark.site().and_then(|site| self.code.sites.get(site).cloned()),
                block: at(position),
                thread: mark.other_than(denied.thread).map(u32::from),
            })
        };
        match denied.why {
            Why::Misaligned(width) => SimError::Misaligned { access, width },
            Why::OutOfBounds => SimError::OutOfBounds { access, elements: array.elements },
            Why::Uninitialised => SimError::Uninitialised { access },
            Why::Conflict(kind, mark) => SimError::Conflict { access, earlier: earlier(kind, mark) },
            Why::UnderWay(mark) => SimError::UnderWay { access, copy: earlier(AccessKind::Write, mark) },
        }
    }
}
