//! The interface of the simulator.

use std::collections::BTreeMap;

use warploom_codegen::ir::{BufferDecl, Kernel, KernelId, Launch, Program, Role};
use warploom_codegen::points::Points;
use warploom_interp::buffer::{Buffer, Element};
use warploom_lang::{Id, IdVec, InputId, ParamId, Scalar, Value, dispatch};
use warploom_target::Device;

use crate::compile::compile;
use crate::counters::Counters;
use crate::error::{Fault, SimError};
use crate::launch::Launching;
use crate::machine::Machine;
use crate::memory::{Common, Words};
use crate::observe::Observer;
use crate::order::shuffled;
use crate::shadow::MAX_THREADS;
use crate::world::{Clock, World};

/// Runs a program as a device would, one block after another, and checks every access.
///
/// See the [crate's page](crate) for the checks and counters.
#[derive(Clone, Debug)]
pub struct Simulation<'a> {
    program: &'a Program,
    device: &'a Device,
    inputs: BTreeMap<InputKey<'a>, &'a Buffer>,
    params: BTreeMap<ParamId, Value>,
    watched: BTreeMap<KernelId, [u32; 3]>,
    seed: u64,
}

/// Identifies an input by its name or its number in the pipeline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum InputKey<'a> {
    /// The name of the input.
    Name(&'a str),
    /// The number of the input in the pipeline.
    Id(InputId),
}

impl<'a> From<&'a str> for InputKey<'a> {
    fn from(name: &'a str) -> InputKey<'a> {
        InputKey::Name(name)
    }
}

impl<'a> From<&'a String> for InputKey<'a> {
    fn from(name: &'a String) -> InputKey<'a> {
        InputKey::Name(name)
    }
}

impl From<InputId> for InputKey<'_> {
    fn from(id: InputId) -> Self {
        InputKey::Id(id)
    }
}

/// The results of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The outputs in the pipeline's order: one buffer per value, in the program's storage order.
    pub outputs: Vec<Buffer>,
    /// The simulated hardware counters of all launches.
    pub counters: Counters,
}

impl<'a> Simulation<'a> {
    /// A simulation without inputs and Params, with seed 0.
    pub fn new(program: &'a Program, device: &'a Device) -> Simulation<'a> {
        Simulation {
            program,
            device,
            inputs: BTreeMap::new(),
            params: BTreeMap::new(),
            watched: BTreeMap::new(),
            seed: 0,
        }
    }

    /// Sets an input, by its name or number. An input that the program does not read is ignored.
    #[must_use]
    pub fn input(mut self, input: impl Into<InputKey<'a>>, buffer: &'a Buffer) -> Simulation<'a> {
        self.inputs.insert(input.into(), buffer);
        self
    }

    /// Sets the value of a Param. A Param that the program does not read is ignored.
    #[must_use]
    pub fn param(mut self, param: ParamId, value: impl Into<Value>) -> Simulation<'a> {
        self.params.insert(param, value.into());
        self
    }

    /// Counts only one block of a kernel, in every launch. All blocks still run and are checked.
    #[must_use]
    pub fn watch(mut self, kernel: KernelId, block: [u32; 3]) -> Simulation<'a> {
        self.watched.insert(kernel, block);
        self
    }

    /// Sets the seed of the order in which blocks run.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Simulation<'a> {
        self.seed = seed;
        self
    }

    /// Runs the program.
    ///
    /// # Errors
    ///
    /// If an input or Param is missing, if the program is malformed or does not fit the device, or if a
    /// kernel makes an invalid access. Returns the first error in the order of this run.
    pub fn run(&self) -> Result<Outcome, SimError> {
        self.run_with(None, None)
    }

    /// Like [`run`](Self::run), and reports every access with a known point to an observer. Blocks run in the order of
    /// their indices.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    pub fn observe(&self, points: &Points, observer: &mut dyn Observer) -> Result<Outcome, SimError> {
        self.run_with(Some(points), Some(observer))
    }

    fn run_with(
        &self,
        points: Option<&Points>,
        observer: Option<&mut dyn Observer>,
    ) -> Result<Outcome, SimError> {
        let Program { kernels, launches, .. } = self.program;
        check_launches(launches, kernels.len())?;
        self.program.buffers.values().try_for_each(check_strides)?;
        kernels.values().try_for_each(|kernel| check_limits(kernel, self.device))?;
        let machine = |(id, kernel): (KernelId, &Kernel)| {
            let points = points.and_then(|points| points.kernels.get(id));
            compile(self.program, kernel, self.device, points).map(Machine::new)
        };
        let mut run = ProgramRun {
            machines: kernels.iter().map(machine).collect::<Result<_, _>>()?,
            world: World { global: self.memory()?, clock: Clock::new(), observer },
            params: self.param_bits()?,
            iterations: Vec::new(),
            watched: &self.watched,
            seed: self.seed,
            counters: Counters::default(),
        };
        run.steps(launches)?;
        Ok(Outcome { outputs: outputs(self.program, &run.world)?, counters: run.counters })
    }

    fn param_bits(&self) -> Result<Vec<u64>, SimError> {
        let bits = self.program.params.iter().map(|&(id, expected)| {
            let param = id.index();
            let value = self.params.get(&id).ok_or(SimError::MissingParam { param })?;
            let found = value.ty();
            if found == expected {
                Ok(value.bits())
            } else {
                Err(SimError::ParamType { param, expected, found })
            }
        });
        bits.collect()
    }

    /// The contents of global memory before the first launch.
    fn memory(&self) -> Result<IdVec<warploom_codegen::ir::BufferId, Common>, SimError> {
        let memory = self.program.buffers.values().map(|decl| {
            let elements = decl.elements();
            if i32::try_from(elements).is_err() {
                return Err(SimError::TooLarge { buffer: decl.name.clone(), elements });
            }
            match decl.role {
                Role::Input(id) => self.given(decl, id),
                Role::Table(id) => {
                    let values = self.program.tables.get(id).map_or(&[][..], |table| table.values());
                    let mut bits = Words::zeros(decl.ty, values.len());
                    values.iter().enumerate().for_each(|(at, value)| bits.set(at, value.bits()));
                    Ok(Common::given(bits))
                }
                Role::Output { .. } | Role::Temporary => Ok(Common::new(decl.ty, elements)),
            }
        });
        memory.collect()
    }

    fn given(&self, decl: &BufferDecl, id: InputId) -> Result<Common, SimError> {
        let input = || decl.name.clone();
        let named = || self.inputs.get(&InputKey::Name(&decl.name));
        let given = self.inputs.get(&InputKey::Id(id)).or_else(named);
        let buffer = *given.ok_or_else(|| SimError::MissingInput { input: input() })?;
        if buffer.ty() != decl.ty {
            return Err(SimError::InputType { input: input(), expected: decl.ty, found: buffer.ty() });
        }
        if *buffer.region() != decl.region {
            let (expected, found) = (decl.region.clone(), buffer.region().clone());
            return Err(SimError::InputRegion { input: input(), expected, found });
        }
        let mut bits = Words::zeros(decl.ty, decl.elements());
        dispatch!(decl.ty, T => {
            let samples = buffer.as_slice::<T>().unwrap_or_default();
            for (to, from) in Offsets::new(decl).zip(buffer.offsets()) {
                bits.set(to, samples[from].to_word());
            }
        });
        match buffer.len() == bits.len() {
            true => Ok(Common::given(bits)),
            false => Ok(Common::partly(bits, Offsets::new(decl))),
        }
    }
}

/// A program while it runs.
struct ProgramRun<'a, 'o> {
    machines: IdVec<KernelId, Machine>,
    world: World<'o>,
    params: Vec<u64>,
    iterations: Vec<u32>,
    watched: &'a BTreeMap<KernelId, [u32; 3]>,
    seed: u64,
    counters: Counters,
}

impl ProgramRun<'_, '_> {
    fn steps(&mut self, launches: &[Launch]) -> Result<(), SimError> {
        for launch in launches {
            match launch {
                Launch::Kernel(kernel) => self.launch(*kernel)?,
                Launch::Loop { count, body, .. } => {
                    for iteration in 0..*count {
                        self.iterations.push(iteration);
                        self.steps(body)?;
                        self.iterations.pop();
                    }
                }
            }
        }
        Ok(())
    }

    fn launch(&mut self, kernel: KernelId) -> Result<(), SimError> {
        let machine = &mut self.machines[kernel];
        let order = match &mut self.world.observer {
            Some(observer) => {
                observer.launch(kernel, &self.iterations);
                (0..machine.blocks()).collect()
            }
            None => shuffled(self.seed, self.counters.launches.len() as u64, machine.blocks()),
        };
        let watched = self.watched.get(&kernel).copied();
        let given = Launching { params: &self.params, iterations: &self.iterations, order: &order, watched };
        let counters = machine.launch(&given, &mut self.world)?;
        self.counters.launches.push((kernel.index(), counters));
        Ok(())
    }
}

fn check_launches(launches: &[Launch], kernels: usize) -> Result<(), SimError> {
    for launch in launches {
        match launch {
            Launch::Kernel(kernel) if kernel.index() >= kernels => {
                let fault = Fault::Missing { what: "kernel", number: kernel.index() };
                return Err(SimError::Malformed { of: "launches".to_string(), statement: None, fault });
            }
            Launch::Kernel(_) => {}
            Launch::Loop { body, .. } => check_launches(body, kernels)?,
        }
    }
    Ok(())
}

fn check_limits(kernel: &Kernel, device: &Device) -> Result<(), SimError> {
    let name = || kernel.name.clone();
    let threads = kernel.threads;
    if threads == 0 || kernel.grid.contains(&0) {
        return Err(SimError::EmptyLaunch { kernel: name() });
    }
    let limit = device.threads.per_block.min(device.threads.block_dims[0]).min(MAX_THREADS);
    if threads > limit {
        return Err(SimError::TooManyThreads { kernel: name(), threads, limit });
    }
    let mut before = 1_u32;
    for (dimension, (blocks, limit)) in kernel.grid.into_iter().zip(device.threads.grid_dims).enumerate() {
        // All blocks of a launch are also numbered consecutively.
        let limit = limit.min(u32::MAX / before);
        if blocks > limit {
            return Err(SimError::TooManyBlocks { kernel: name(), dimension, blocks, limit });
        }
        before *= blocks;
    }
    let (bytes, limit) = (kernel.shared_bytes(), device.shared.per_block_opt_in as usize);
    if bytes > limit {
        return Err(SimError::TooMuchShared { kernel: name(), bytes, limit });
    }
    Ok(())
}

/// Returns an error unless the strides keep points apart, in any order of dimensions, and one dimension is contiguous.
fn check_strides(decl: &BufferDecl) -> Result<(), SimError> {
    let extents = decl.region.extents();
    let (mut stride, mut first) = (1, true);
    let apart = decl.storage_order().into_iter().all(|d| {
        let own = decl.strides.get(d).copied().unwrap_or_default();
        let fits = extents[d] <= 1 || if first { own == 1 } else { own >= stride };
        first = false;
        stride = own.max(stride) * extents[d].max(1);
        fits
    });
    if (apart && decl.strides.len() == extents.len()) || decl.region.is_empty() {
        return Ok(());
    }
    let fault = Fault::Strides { strides: decl.strides.clone(), region: decl.region.clone() };
    Err(SimError::Malformed { of: format!("buffer `{}`", decl.name), statement: None, fault })
}

/// The outputs in the pipeline's order.
fn outputs(program: &Program, world: &World<'_>) -> Result<Vec<Buffer>, SimError> {
    let mut outputs = BTreeMap::new();
    for (id, decl) in program.buffers.iter() {
        let Role::Output { output, value } = decl.role else { continue };
        let memory = &world.global[id];
        check_written(decl, memory)?;
        let mut buffer = Buffer::zeros_in_order(decl.ty, decl.region.clone(), &decl.storage_order())?;
        let offsets = buffer.offsets();
        dispatch!(decl.ty, T => {
            let samples = <T as Element>::slice_mut(buffer.data_mut()).unwrap_or_default();
            for (from, to) in Offsets::new(decl).zip(offsets) {
                samples[to] = <T as Scalar>::from_word(memory.bits.get(from));
            }
        });
        outputs.insert((output, value), buffer);
    }
    Ok(outputs.into_values().collect())
}

/// Returns an error unless a kernel has written all points of an output, and nothing between its rows.
fn check_written(decl: &BufferDecl, memory: &Common) -> Result<(), SimError> {
    let points = decl.region.points().unwrap_or(0) as usize;
    if memory.unwritten() == 0 && decl.elements() == points {
        return Ok(());
    }
    let unwritten: Vec<usize> = Offsets::new(decl).filter(|element| !memory.is_written(*element)).collect();
    if let Some(&element) = unwritten.first() {
        let (output, unwritten) = (decl.name.clone(), unwritten.len());
        return Err(SimError::UnwrittenOutput { output, element, point: point(decl, element), unwritten });
    }
    match decl.elements() - memory.unwritten() == points {
        true => Ok(()),
        false => Err(SimError::WrittenBetweenRows { output: decl.name.clone() }),
    }
}

/// The coordinates of an element of a dense buffer.
fn point(decl: &BufferDecl, element: usize) -> Vec<i64> {
    let along = decl.region.0.iter().zip(&decl.strides);
    let from_min = |(range, stride): (&warploom_lang::Range, &i64)| match range.extent {
        0 | 1 => range.min,
        extent => range.min + element as i64 / stride % extent,
    };
    along.map(from_min).collect()
}

/// Iterates over the elements of a buffer's points, with the first dimension fastest.
struct Offsets<'a> {
    decl: &'a BufferDecl,
    position: Vec<i64>,
    next: i64,
    left: usize,
}

impl<'a> Offsets<'a> {
    fn new(decl: &'a BufferDecl) -> Offsets<'a> {
        Offsets {
            decl,
            position: vec![0; decl.region.dimensions()],
            next: 0,
            left: decl.region.points().unwrap_or(0) as usize,
        }
    }
}

impl Iterator for Offsets<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let offset = self.next as usize;
        for ((at, range), stride) in self.position.iter_mut().zip(&self.decl.region.0).zip(&self.decl.strides)
        {
            // Dimensions with extent 1 can have any stride.
            let stride = if range.extent <= 1 { 0 } else { *stride };
            *at += 1;
            self.next += stride;
            if *at < range.extent {
                break;
            }
            *at = 0;
            self.next -= stride * range.extent;
        }
        Some(offset)
    }
}
