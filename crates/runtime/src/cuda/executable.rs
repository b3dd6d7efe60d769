//! A program on a GPU, with its own memory: runs it, captures it as a graph and times it.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUevent_flags;
use warploom_target::Program;
use warploom_target::program::{Buffer, Role};

use crate::cuda::capture::is_capturing;
use crate::cuda::failed::Doing;
use crate::cuda::graph::Graph;
use crate::cuda::kernels::{KernelFacts, Kernels};
use crate::cuda::launch::Launches;
use crate::cuda::memory::{Allocation, DeviceBuffer};
use crate::cuda::nvrtc::Image;
use crate::cuda::params;
use crate::cuda::workspace::Workspace;
use crate::driver::Execute;
use crate::error::Error;
use crate::timing::Mode;

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
/// Dropping it waits for pending runs.
pub struct Executable {
    /// Captured on first use; dropped before the objects that it refers to.
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

    /// The compiled image, if loading compiled the program.
    pub fn image(&self) -> Option<&Image> {
        self.kernels.image()
    }

    /// Sets how kernels follow each other from now on.
    pub fn set_launches(&mut self, kind: Launches) {
        self.kernels.set_launches(kind);
        // The graph contains the previous launches.
        self.graph = None;
    }

    /// The number of launches of a run that are early.
    pub fn early_launches(&self) -> usize {
        self.kernels.early_launches()
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

    /// The resource usage of each kernel, in the program's order.
    ///
    /// # Errors
    ///
    /// If a driver call fails.
    pub fn facts(&self) -> Result<Vec<KernelFacts>, Error> {
        self.kernels.facts()
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
}

impl Execute for Executable {
    fn program(&self) -> &Program {
        self.kernels.program()
    }

    fn upload(&mut self, input: usize, data: &[u8]) -> Result<(), Error> {
        let role = Role::Input(input);
        let position = self.program().buffer(role).ok_or(Error::NoBuffer { role })?;
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

    fn set_params(&mut self, params: &[u32]) -> Result<(), Error> {
        params::check_number(self.program().params, params)?;
        let stream = &self.kernels.memory().stream;
        self.workspace.set_params(stream, params)?;
        stream.synchronize().doing("set params")
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

    fn run(&mut self) -> Result<(), Error> {
        self.enqueue()?;
        self.stream().synchronize().doing("run the program")
    }

    fn download_buffer(&self, position: usize) -> Result<Vec<u8>, Error> {
        let own = self.buffers[position].as_ref().map(Slot::get);
        own.or(self.workspace.temporary(position)).map_or_else(|| Ok(Vec::new()), Allocation::download)
    }

    fn prepare(&mut self, mode: Mode) -> Result<(), Error> {
        if mode == Mode::Graph {
            self.captured()?;
            self.stream().synchronize().doing("prepare the graph")?;
        }
        Ok(())
    }

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
        // Every call waits, so work is pending only after a failure. Waiting for it must not disturb the caller's
        // capture.
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
