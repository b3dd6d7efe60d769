//! A device that is ready to run programs.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};
use warploom_target::{Device, Program};

use crate::driver;
use crate::error::{Doing, Error};
use crate::executable::Executable;
use crate::memory::{DeviceBuffer, Memory};
use crate::nvrtc::Arch;

/// One GPU, its memory and the stream on which everything runs.
pub struct Gpu {
    context: Arc<CudaContext>,
    memory: Memory,
    device: Device,
    ordinal: usize,
}

impl Gpu {
    /// All GPUs that the driver reports, in its order. Touches no GPU.
    ///
    /// # Errors
    ///
    /// If there is no driver, or it is too old.
    pub fn devices() -> Result<Vec<Device>, Error> {
        (0..driver::count()?).map(driver::query).collect()
    }

    /// Makes a GPU ready.
    ///
    /// # Errors
    ///
    /// If there is no driver, it is too old, or has no device of that number.
    pub fn new(ordinal: usize) -> Result<Gpu, Error> {
        let device = driver::query(ordinal)?;
        let context = CudaContext::new(ordinal).doing("open the device")?;
        // SAFETY: all work on memory of this context is in the order of one stream, so that no events between
        // streams are needed; they would not survive the capture of a graph.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().doing("make a stream")?;
        Ok(Gpu { context, memory: Memory::new(stream), device, ordinal })
    }

    /// What the GPU can do.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Its number among the driver's devices.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// The architecture to compile for.
    ///
    /// # Errors
    ///
    /// If NVRTC is not found, or is too new for the GPU.
    pub fn arch(&self) -> Result<Arch, Error> {
        Arch::for_device(&self.device)
    }

    /// Makes a program ready to run: compiles it if it is source, loads it and allocates its buffers.
    ///
    /// # Errors
    ///
    /// If the program cannot be compiled or loaded, or needs more than the GPU has.
    pub fn load(&self, program: &Program) -> Result<Executable, Error> {
        Executable::new(self, program, &[])
    }

    /// The same for a program that reads inputs which are on the device already: `inputs[n]` is its input number `n`.
    /// Inputs beyond those given are the program's own, to be [uploaded](Executable::upload).
    ///
    /// # Errors
    ///
    /// As [`Gpu::load`], and if an input has another size.
    pub fn load_with(&self, program: &Program, inputs: &[DeviceBuffer]) -> Result<Executable, Error> {
        Executable::new(self, program, inputs)
    }

    /// Copies bytes to the device, for programs to share. `what` names them in messages.
    ///
    /// # Errors
    ///
    /// If they do not fit on the device, or the driver or an earlier kernel fails.
    pub fn upload(&self, what: &str, data: &[u8]) -> Result<DeviceBuffer, Error> {
        self.memory.upload(what, data)
    }

    /// Free and total memory, bytes. What [`Gpu::kept_bytes`] counts is not free to the driver, but to
    /// programs loaded next.
    ///
    /// # Errors
    ///
    /// If the driver does not answer.
    pub fn memory_info(&self) -> Result<(usize, usize), Error> {
        self.context.mem_get_info().doing("tell the free memory")
    }

    /// Bytes of memory kept for programs loaded next.
    pub fn kept_bytes(&self) -> usize {
        self.memory.kept_bytes()
    }

    /// Gives memory that no program uses back to the driver.
    ///
    /// # Errors
    ///
    /// If a kernel failed before.
    pub fn trim(&self) -> Result<(), Error> {
        self.memory.trim()
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        &self.memory.stream
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("ordinal", &self.ordinal).field("device", &self.device.name).finish()
    }
}
