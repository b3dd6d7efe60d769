//! A program on a device, with its own memory: runs it, captures it as a graph and times it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUevent_flags;
use warploom_target::Program;
use warploom_target::program::{Buffer, Role};

use crate::capture::is_capturing;
use crate::error::{Doing, Error};
use crate::graph::Graph;
use crate::kernels::{KernelFacts, Kernels};
use crate::launch::Launches;
use crate::memory::{Allocation, DeviceBuffer};
use crate::nvrtc::Image;
use crate::params;
use crate::timing::{Mode, Sample, Timing, TimingOptions};
use crate::workspace::Workspace;

/// The byte that [`Executable::poison`] fills outputs and temporaries with. As a float, the pattern
/// is NaN.
pub const POISON: u8 = 0xff;

/// A second fill byte, to find results that equal the first one by accident.
const OTHER_POISON: u8 = 0xa5;

/// The memory of an input or output.
enum Slot {
    Own(Allocation),
    /// An input that other programs also read.
    Shared(DeviceBuffer),
}

impl Slot {
    fn get(&self) -> &Allocation {
        match self {
            Slot::Own(allocation) => allocation,
            Slot::Shared(buffer) => buffer.allocation(),
        }
    }
}

/// A loaded program with its buffers, on the stream of its GPU.
///
/// Inputs and params stay on the device until they are uploaded again. Before the first upload they
/// hold arbitrary bytes. Dropping it waits for pending runs.
pub struct Executable {
    /// Captured when first needed; dropped before what it refers to.
    graph: Option<Graph>,
    kernels: Kernels,
    workspace: Workspace,
    /// One entry per buffer of the program; `None` for temporaries, which are in the workspace.
    buffers: Vec<Option<Slot>>,
}

impl Executable {
    pub(crate) fn new(kernels: Kernels, inputs: &[DeviceBuffer]) -> Result<Executable, Error> {
        let buffers = kernels.program().buffers.iter().map(|buffer| slot(&kernels, buffer, inputs));
        let buffers = buffers.collect::<Result<_, Error>>()?;
        let workspace = kernels.workspace()?;
        Ok(Executable { graph: None, kernels, workspace, buffers })
    }

    /// The program, without its code.
    pub fn program(&self) -> &Program {
        self.kernels.program()
    }

    /// The compiled image, if loading compiled the program.
    pub fn image(&self) -> Option<&Image> {
        self.kernels.image()
    }

    /// Sets how kernels follow each other from now on.
    pub fn set_launches(&mut self, kind: Launches) {
        self.kernels.set_launches(kind);
        // The graph has the launches of before.
        self.graph = None;
    }

    /// The number of launches of a run that are early.
    pub fn early_launches(&self) -> usize {
        self.kernels.early_launches()
    }

    /// Sets an input to the bytes of its elements, in the order of the buffer. A shared input
    /// becomes the program's own.
    ///
    /// # Errors
    ///
    /// If there is no such input, the size is wrong, or the driver fails.
    pub fn upload(&mut self, input: usize, data: &[u8]) -> Result<(), Error> {
        let position = self.position(Role::Input(input))?;
        let name = &self.kernels.program().buffers[position].name;
        if let Some(Slot::Shared(buffer)) = &self.buffers[position] {
            self.buffers[position] = Some(Slot::Own(buffer.allocation().another(name)?));
            // The graph refers to the old input.
            self.graph = None;
        }
        match &mut self.buffers[position] {
            Some(Slot::Own(allocation)) => allocation.upload(name, data),
            Some(Slot::Shared(_)) | None => Ok(()),
        }
    }

    /// Sets the scalars, 32 bits each, narrower types extended, and waits. Graphs stay valid.
    ///
    /// # Errors
    ///
    /// If the number of scalars is wrong, or the driver fails.
    pub fn set_params(&mut self, params: &[u32]) -> Result<(), Error> {
        params::check_number(self.program().params, params)?;
        let stream = &self.kernels.memory().stream;
        self.workspace.set_params(stream, params)?;
        stream.synchronize().doing("set params")
    }

    /// Reads the bytes of one value of an output.
    ///
    /// # Errors
    ///
    /// If there is no such output, or the driver or an earlier kernel fails.
    pub fn download(&self, output: usize, value: usize) -> Result<Vec<u8>, Error> {
        self.download_buffer(self.position(Role::Output { output, value })?)
    }

    /// Reads the bytes of any buffer, by its position in the program.
    ///
    /// # Errors
    ///
    /// If the driver or an earlier kernel fails.
    ///
    /// # Panics
    ///
    /// If the program has no such buffer.
    pub fn download_buffer(&self, position: usize) -> Result<Vec<u8>, Error> {
        let own = self.buffers[position].as_ref().map(Slot::get);
        own.or(self.workspace.temporary(position)).map_or_else(|| Ok(Vec::new()), Allocation::download)
    }

    /// Fills outputs and temporaries with [`POISON`], so that elements which a run does not write
    /// become visible.
    ///
    /// # Errors
    ///
    /// If the driver or an earlier kernel fails.
    pub fn poison(&mut self) -> Result<(), Error> {
        self.fill(POISON)
    }

    /// Runs twice, over memory filled with different bytes. Returns the bytes of each output, with
    /// several values one after the other.
    ///
    /// # Errors
    ///
    /// If the results differ, that is, depend on the previous contents of memory; if a launch is
    /// rejected or a kernel fails.
    pub fn run_over_poison(&mut self) -> Result<Vec<Vec<u8>>, Error> {
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

    fn fill(&mut self, byte: u8) -> Result<(), Error> {
        self.workspace.fill(byte)?;
        for (slot, buffer) in self.buffers.iter().zip(&self.kernels.program().buffers) {
            if let (Some(Slot::Own(allocation)), Role::Output { .. }) = (slot, buffer.role) {
                allocation.fill(byte)?;
            }
        }
        self.stream().synchronize().doing("fill memory")
    }

    /// Runs once and waits for completion.
    ///
    /// # Errors
    ///
    /// If a launch is rejected or a kernel fails.
    pub fn run(&mut self) -> Result<(), Error> {
        self.enqueue()?;
        self.stream().synchronize().doing("run the program")
    }

    /// Runs once and waits after every launch, so that an error names the kernel at fault.
    ///
    /// # Errors
    ///
    /// If a launch is rejected or a kernel fails.
    pub fn run_step_by_step(&mut self) -> Result<(), Error> {
        let params = self.workspace.params_address();
        self.kernels.loaded().step_by_step(self.stream(), &self.addresses(), params)
    }

    /// Runs once as a graph, which is captured on first use, and waits for completion.
    ///
    /// # Errors
    ///
    /// If the capture or a kernel fails.
    pub fn replay(&mut self) -> Result<(), Error> {
        self.enqueue_graph()?;
        self.stream().synchronize().doing("replay the graph")
    }

    /// Times the program in each mode.
    ///
    /// # Errors
    ///
    /// If a launch is rejected or a kernel fails.
    pub fn time(&mut self, options: &TimingOptions) -> Result<Timing, Error> {
        let samples = options.modes.iter().map(|&mode| self.time_mode(mode, options));
        Ok(Timing { samples: samples.collect::<Result<_, _>>()? })
    }

    /// The resource usage of each kernel, in the program's order.
    ///
    /// # Errors
    ///
    /// If a driver call fails.
    pub fn facts(&self) -> Result<Vec<KernelFacts>, Error> {
        self.kernels.facts()
    }

    fn position(&self, role: Role) -> Result<usize, Error> {
        self.program().buffer(role).ok_or(Error::NoBuffer { role })
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.kernels.memory().stream
    }

    fn addresses(&self) -> Vec<u64> {
        let mut addresses = self.workspace.addresses();
        for (address, slot) in addresses.iter_mut().zip(&self.buffers) {
            if let Some(slot) = slot {
                *address = slot.get().address();
            }
        }
        addresses
    }

    fn enqueue(&self) -> Result<(), Error> {
        self.enqueue_as(self.stream(), self.kernels.kind())
    }

    fn enqueue_as(&self, stream: &CudaStream, kind: Launches) -> Result<(), Error> {
        let params = self.workspace.params_address();
        self.kernels.loaded().enqueue(stream, &self.addresses(), params, kind)
    }

    /// The graph; `None` for a program without launches.
    fn captured(&mut self) -> Result<Option<&Graph>, Error> {
        if self.graph.is_none() {
            self.graph = self.capture()?;
        }
        Ok(self.graph.as_ref())
    }

    fn enqueue_graph(&mut self) -> Result<(), Error> {
        let stream = self.stream().clone();
        self.captured()?.map_or(Ok(()), |graph| graph.launch(&stream))
    }

    /// A graph with early launches, or without them if the driver refuses it.
    fn capture(&self) -> Result<Option<Graph>, Error> {
        match self.capture_as(self.kernels.kind()) {
            Err(_) if self.early_launches() > 0 => self.capture_as(Launches::Plain),
            captured => captured,
        }
    }

    fn capture_as(&self, kind: Launches) -> Result<Option<Graph>, Error> {
        let graph = Graph::capture(self.stream().context(), |stream| self.enqueue_as(stream, kind))?;
        graph.iter().try_for_each(|graph| graph.upload(self.stream()))?;
        Ok(graph)
    }

    fn enqueue_mode(&mut self, mode: Mode) -> Result<(), Error> {
        match mode {
            Mode::Stream => self.enqueue(),
            Mode::Graph => self.enqueue_graph(),
        }
    }

    fn time_mode(&mut self, mode: Mode, options: &TimingOptions) -> Result<Sample, Error> {
        if mode == Mode::Graph {
            self.captured()?;
            self.stream().synchronize().doing("prepare the graph")?;
        }
        let start = Instant::now();
        let mut call = self.batch(mode, 1)?;
        if call >= options.patience() {
            // The first call may have waited for the driver, so try once more. Two calls are enough
            // for a program this slow.
            let again = self.batch(mode, 1)?;
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
            call = self.batch(mode, 1)?;
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
            let time = self.batch(mode, calls)?;
            measured += time;
            batches.push(time.as_secs_f64() * 1e6 / f64::from(calls));
        }
        Ok(Sample::new(mode, batches, calls))
    }

    /// The time of some calls, by the device's clock.
    fn batch(&mut self, mode: Mode, calls: u32) -> Result<Duration, Error> {
        let doing = "time the program";
        let event = || self.stream().context().new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).doing(doing);
        let (before, after) = (event()?, event()?);
        before.record(self.stream()).doing(doing)?;
        for _ in 0..calls {
            self.enqueue_mode(mode)?;
        }
        after.record(self.stream()).doing(doing)?;
        let milliseconds = before.elapsed_ms(&after).doing(doing)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds).max(0.0) / 1e3))
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // Every call waits, so work is pending only after a failure. The caller's capture must not be
        // disturbed for that.
        if is_capturing(self.stream()).is_ok_and(|capturing| !capturing) {
            let _ = self.stream().synchronize();
        }
    }
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Executable").field(&self.kernels).finish()
    }
}

/// The memory for an input or output of a program: the given buffer for an input, otherwise a new
/// allocation.
fn slot(kernels: &Kernels, buffer: &Buffer, inputs: &[DeviceBuffer]) -> Result<Option<Slot>, Error> {
    let given = match buffer.role {
        Role::Input(input) => inputs.get(input),
        Role::Output { .. } => None,
        Role::Temporary => return Ok(None),
    };
    match given {
        None => Ok(Some(Slot::Own(kernels.memory().allocate(&buffer.name, buffer.bytes())?))),
        Some(given) if given.allocation().context() != kernels.memory().stream.context() => {
            let (what, program) = (buffer.name.clone(), kernels.program().name.clone());
            Err(Error::OtherGpu { what, program })
        }
        Some(given) if given.bytes() == buffer.bytes() => Ok(Some(Slot::Shared(given.clone()))),
        Some(given) => {
            let (what, expected) = (buffer.name.clone(), buffer.bytes());
            Err(Error::WrongSize { what, expected, given: given.bytes() })
        }
    }
}
