//! A device that is ready to run programs.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};
use warploom_target::{Device, Program};

use crate::borrowed::borrow;
use crate::driver;
use crate::error::{Doing, Error};
use crate::executable::Executable;
use crate::kernels::Kernels;
use crate::memory::{DeviceBuffer, Memory};
use crate::nvrtc::Arch;

/// One GPU and the stream on which everything runs.
///
/// The stream is the object's own, or [the caller's](Gpu::on). Either way all that programs do is in the order of that one
/// stream, the memory that they keep included, and no setting of its context is changed. In particular, cudarc's event
/// tracking stays as it is: to turn it off would be right for one stream, but contexts may be shared with code that uses
/// several and relies on it.
pub struct Gpu {
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
        driver::query(ordinal)?;
        let context = CudaContext::new(ordinal).doing("open the device")?;
        Gpu::on(&context.new_stream().doing("make a stream")?)
    }

    /// The GPU of a stream of the caller, on which everything then runs, in the caller's context.
    ///
    /// ```no_run
    /// use warploom_runtime::Gpu;
    /// use warploom_runtime::cuda::CudaContext;
    ///
    /// let stream = CudaContext::new(0)?.new_stream()?;
    /// let gpu = Gpu::on(&stream)?;
    /// assert_eq!(gpu.stream(), &stream);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The default stream will do, but it cannot be captured: [`Executable::replay`] and timing as a graph are then errors.
    ///
    /// # Errors
    ///
    /// If the driver is too old, or does not answer.
    pub fn on(stream: &Arc<CudaStream>) -> Result<Gpu, Error> {
        let ordinal = stream.context().ordinal();
        let device = driver::query(ordinal)?;
        Ok(Gpu { memory: Memory::new(stream.clone()), device, ordinal })
    }

    /// The same for a `CUcontext` and a `CUstream` of other bindings of CUDA. Neither is ever destroyed here.
    ///
    /// The context becomes the current one of every thread that calls something here, and stays it. Memory that these
    /// bindings own is given [by its address](crate::DeviceBytes::at), and has no events: the order among several streams
    /// is the caller's to keep. For a context that is not its device's primary one, each call keeps a few bytes for ever.
    ///
    /// # Safety
    ///
    /// The context must live, and the stream must be one of that context and live, as long as the GPU and everything that
    /// was made with it.
    ///
    /// # Errors
    ///
    /// If there is no driver, it is too old, or it refuses the context.
    pub unsafe fn from_raw(context: *mut c_void, stream: *mut c_void) -> Result<Gpu, Error> {
        driver::start()?;
        // SAFETY: the caller says that the context lives as long as all that is made with it.
        let context = unsafe { borrow(context.cast()) }?;
        // SAFETY: the caller says that the stream is one of the context and lives as long; all work is enqueued in its order.
        let stream = unsafe { context.wrap_borrowed_stream(stream.cast()) };
        Gpu::on(&stream)
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
        self.load_with(program, &[])
    }

    /// The same without memory for inputs and outputs, which come with every [launch](Kernels::launch).
    ///
    /// # Errors
    ///
    /// As [`Gpu::load`].
    pub fn load_kernels(&self, program: &Program) -> Result<Kernels, Error> {
        Kernels::new(self, program)
    }

    /// The same for a program that reads inputs which are on the device already: `inputs[n]` is its input number `n`.
    /// Inputs beyond those given are the program's own, to be [uploaded](Executable::upload).
    ///
    /// # Errors
    ///
    /// As [`Gpu::load`], and if an input has another size.
    pub fn load_with(&self, program: &Program, inputs: &[DeviceBuffer]) -> Result<Executable, Error> {
        Executable::new(Kernels::new(self, program)?, inputs)
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
        self.stream().context().mem_get_info().doing("tell the free memory")
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

    /// The stream on which everything runs. Memory that is allocated on it can be given to programs.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.memory.stream
    }

    /// Whether the stream is being captured into a graph. Nothing can be loaded then.
    ///
    /// # Errors
    ///
    /// If the driver does not answer.
    pub fn is_capturing(&self) -> Result<bool, Error> {
        self.memory.is_capturing()
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
