//! The interface between programs and the devices that run them.
//!
//! A [`Driver`] is an open device: it compiles the text of a printer, allocates memory, and loads programs. A loaded
//! program is an [`Execute`], which is launched and timed. [`Gpu`](crate::Gpu) and [`Executable`](crate::Executable)
//! are those of the back end in use.
//!
//! Launches on the caller's own stream and memory ([`Kernels`](crate::Kernels)) are not part of this interface: streams
//! differ from driver to driver, and so do the permissible costs of such a launch.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use warploom_target::program::{Buffer, Role};
use warploom_target::{Device, Program};

use crate::error::Error;
use crate::timing::{Mode, Sample, Timing, TimingOptions};

/// The byte that [`Execute::poison`] fills outputs and temporaries with. As a float, the pattern
/// is NaN.
pub const POISON: u8 = 0xff;

/// A second fill byte, to find results that equal the first one by accident.
const OTHER_POISON: u8 = 0xa5;

/// A program with compiled code, and the compiler's report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Compiled {
    /// The program, with the compiled code in place of source text.
    pub program: Program,
    /// Resource usage per kernel, keyed by entry name; known only for machine code.
    pub kernels: BTreeMap<String, Resources>,
    /// Compile time. For a cached result it is the time of the original compilation.
    pub time: Duration,
}

/// The resource usage of a kernel, as the compiler reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// The number of registers per thread.
    pub registers: u32,
    /// Spill stores per thread, in bytes.
    pub spill_stores: u32,
    /// Spill loads per thread, in bytes.
    pub spill_loads: u32,
    /// Local memory per thread, in bytes: spills, and arrays with non-constant indices.
    pub local_bytes: u32,
    /// Shared memory per block that the code declares statically, in bytes.
    pub shared_bytes: u32,
}

/// A device that is ready to run programs.
pub trait Driver {
    /// Memory of the device that any number of programs may read.
    type Buffer: Clone;
    /// A loaded program.
    type Executable: Execute;

    /// Compiles a single-source program for a device, which need not be present. Other code is unchanged.
    ///
    /// # Errors
    ///
    /// If there is no compiler for the device, or it rejects the code.
    fn compile(program: &Program, device: &Device) -> Result<Compiled, Error>;

    /// The limits, rates and features of the device.
    fn device(&self) -> &Device;

    /// Copies bytes to the device. `what` names them in messages.
    ///
    /// # Errors
    ///
    /// If they do not fit on the device, or the driver or an earlier kernel fails.
    fn upload(&self, what: &str, data: &[u8]) -> Result<Self::Buffer, Error>;

    /// Returns unused memory to the system, if more bytes than these are kept for programs loaded later.
    ///
    /// # Errors
    ///
    /// If an earlier kernel failed.
    fn trim_beyond(&self, _bytes: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Loads a program whose first inputs are already on the device: `inputs[n]` is its input
    /// number `n`. The remaining inputs belong to the program and must be
    /// [uploaded](Execute::upload).
    ///
    /// # Errors
    ///
    /// If the program cannot be compiled or loaded, exceeds the device's limits, or an input does not fit it.
    fn load_with(&self, program: &Program, inputs: &[Self::Buffer]) -> Result<Self::Executable, Error>;

    /// Loads a program: compiles it if it is source, and allocates its buffers.
    ///
    /// # Errors
    ///
    /// As [`Driver::load_with`].
    fn load(&self, program: &Program) -> Result<Self::Executable, Error> {
        self.load_with(program, &[])
    }
}

/// A program on a device, with its own memory.
///
/// Inputs and params stay on the device until they are uploaded again. Before the first upload they
/// hold arbitrary bytes.
pub trait Execute {
    /// The program, without its code.
    fn program(&self) -> &Program;

    /// Sets an input to the bytes of its elements, in the order of the buffer. A shared input
    /// becomes the program's own.
    ///
    /// # Errors
    ///
    /// If there is no such input, the size is wrong, or the driver fails.
    fn upload(&mut self, input: usize, data: &[u8]) -> Result<(), Error>;

    /// Sets the scalars, 32 bits each, narrower types extended, and waits. Graphs stay valid.
    ///
    /// # Errors
    ///
    /// If the number of scalars is wrong, or the driver fails.
    fn set_params(&mut self, params: &[u32]) -> Result<(), Error>;

    /// Fills outputs and temporaries with a byte.
    ///
    /// # Errors
    ///
    /// If the driver or an earlier kernel fails.
    fn fill(&mut self, byte: u8) -> Result<(), Error>;

    /// Runs once and waits for completion.
    ///
    /// # Errors
    ///
    /// If a launch is rejected or a kernel fails.
    fn run(&mut self) -> Result<(), Error>;

    /// Reads the bytes of any buffer, by its position in the program.
    ///
    /// # Errors
    ///
    /// If the driver or an earlier kernel fails.
    ///
    /// # Panics
    ///
    /// If the program has no such buffer.
    fn download_buffer(&self, position: usize) -> Result<Vec<u8>, Error>;

    /// Prepares calls in a mode, so that the first one does not take longer.
    ///
    /// # Errors
    ///
    /// If the driver fails.
    fn prepare(&mut self, mode: Mode) -> Result<(), Error>;

    /// The time of some calls, one after the other, by the device's clock.
    ///
    /// # Errors
    ///
    /// If a launch is rejected or a kernel fails.
    fn batch(&mut self, mode: Mode, calls: u32) -> Result<Duration, Error>;

    /// Reads the bytes of one value of an output.
    ///
    /// # Errors
    ///
    /// If there is no such output, or the driver or an earlier kernel fails.
    fn download(&self, output: usize, value: usize) -> Result<Vec<u8>, Error> {
        let role = Role::Output { output, value };
        self.download_buffer(self.program().buffer(role).ok_or(Error::NoBuffer { role })?)
    }

    /// Fills outputs and temporaries with [`POISON`], so that elements which a run does not write
    /// become visible.
    ///
    /// # Errors
    ///
    /// If the driver or an earlier kernel fails.
    fn poison(&mut self) -> Result<(), Error> {
        self.fill(POISON)
    }

    /// Runs twice, over memory filled with different bytes. Returns the bytes of each output, with
    /// several values one after the other.
    ///
    /// # Errors
    ///
    /// If the results differ, that is, depend on the previous contents of memory; if a launch is
    /// rejected or a kernel fails.
    fn run_over_poison(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        let outputs =
            self.program().buffers.iter().enumerate().filter_map(|(position, buffer)| match buffer.role {
                Role::Output { output, value } => Some(((output, value), position)),
                _ => None,
            });
        let mut outputs: Vec<((usize, usize), usize)> = outputs.collect();
        outputs.sort_unstable();
        let mut run = |byte| {
            self.fill(byte)?;
            self.run()?;
            outputs
                .iter()
                .map(|(_, position)| self.download_buffer(*position))
                .collect::<Result<Vec<_>, Error>>()
        };
        let (found, again) = (run(POISON)?, run(OTHER_POISON)?);
        for ((_, position), (bytes, others)) in outputs.iter().zip(found.iter().zip(&again)) {
            if let Some(byte) = bytes.iter().zip(others).position(|(byte, other)| byte != other) {
                let Buffer { name, element_bytes, .. } = &self.program().buffers[*position];
                return Err(Error::Unwritten { what: name.clone(), element: byte / element_bytes });
            }
        }
        Ok(found)
    }

    /// Times the program in each mode.
    ///
    /// # Errors
    ///
    /// If a launch is rejected or a kernel fails.
    fn time(&mut self, options: &TimingOptions) -> Result<Timing, Error> {
        let samples = options.modes.iter().map(|&mode| time_mode(self, mode, options));
        Ok(Timing { samples: samples.collect::<Result<_, _>>()? })
    }
}

fn time_mode<E: Execute + ?Sized>(
    executable: &mut E,
    mode: Mode,
    options: &TimingOptions,
) -> Result<Sample, Error> {
    executable.prepare(mode)?;
    let start = Instant::now();
    let mut call = executable.batch(mode, 1)?;
    if call >= options.patience() {
        // The first call may have waited for the driver, so try once more. Two calls are enough
        // for a program this slow.
        let again = executable.batch(mode, 1)?;
        if again >= options.patience() {
            let calls = [call, again].map(|call| call.as_secs_f64() * 1e6);
            return Ok(Sample::new(mode, calls.to_vec(), 1));
        }
        call = again;
    }
    for _ in 1..options.warm_ups {
        if start.elapsed() + call >= options.limit {
            break;
        }
        call = executable.batch(mode, 1)?;
    }
    let calls = options.calls(call);
    let start = Instant::now();
    let mut measured = Duration::ZERO;
    let mut batches = Vec::new();
    let more = |batches: &[f64], measured: Duration| {
        let time_is_left = measured < options.total && start.elapsed() < options.limit;
        batches.len() < options.batches && time_is_left && !options.has_lost(batches)
    };
    while batches.is_empty() || more(&batches, measured) {
        let time = executable.batch(mode, calls)?;
        measured += time;
        batches.push(time.as_secs_f64() * 1e6 / f64::from(calls));
    }
    Ok(Sample::new(mode, batches, calls))
}
