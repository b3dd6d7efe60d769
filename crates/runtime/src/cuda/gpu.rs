//! A device that is ready to run programs.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};
use warploom_target::{Device, Program};

use crate::cuda::borrowed::borrow;
use crate::cuda::capture;
use crate::cuda::driver;
use crate::cuda::executable::Executable;
use crate::cuda::failed::Doing;
use crate::cuda::kernels::Kernels;
use crate::cuda::memory::{DeviceBuffer, StreamMemory};
use crate::cuda::nvrtc::{self, Arch};
use crate::driver::{Compiled, Driver};
use crate::error::Error;

/// One GPU with its memory pool, and the stream of all work that is not [launched](Kernels::launch) on another one.
///
/// The stream is either private or [the caller's](Gpu::on). No setting of its context is changed. In
/// particular, cudarc's event tracking stays as it is: the context may be shared with code that
/// uses several streams and relies on it.
pub struct Gpu {
    memory: StreamMemory,
    device: Device,
    ordinal: usize,
}

impl Gpu {
    /// All GPUs that the driver reports, in its order. Does not create a context on any of them.
    ///
    /// # Errors
    ///
    /// If there is no driver, or it is too old.
    pub fn devices() -> Result<Vec<Device>, Error> {
        (0..driver::count()?).map(driver::query).collect()
    }

    /// Opens a GPU with a stream of its own.
    ///
    /// # Errors
    ///
    /// If there is no driver, the driver is too old, or the device number does not exist.
    pub fn new(ordinal: usize) -> Result<Gpu, Error> {
        driver::query(ordinal)?;
        let context = CudaContext::new(ordinal).doing("open the device")?;
        Gpu::on(&context.new_stream().doing("create a stream")?)
    }

    /// The GPU of a caller's stream. Everything then runs in the caller's context, and on that stream
    /// unless a launch names another.
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
    /// The default stream works too, but launches on it cannot become part of a graph of the caller.
    ///
    /// # Errors
    ///
    /// If the driver is too old or a driver call fails.
    pub fn on(stream: &Arc<CudaStream>) -> Result<Gpu, Error> {
        let ordinal = stream.context().ordinal();
        let device = driver::query(ordinal)?;
        Ok(Gpu { memory: StreamMemory::new(stream.clone()), device, ordinal })
    }

    /// The same for a `CUcontext` and a `CUstream` from other CUDA bindings. Neither is ever
    /// destroyed here.
    ///
    /// The context becomes and stays current on every thread that calls into this crate. Memory
    /// owned by the other bindings is passed [by address](crate::DeviceBytes::at) and has no
    /// events, so the caller must order accesses from several streams. For a context that is not
    /// its device's primary one, each call leaks a few bytes.
    ///
    /// # Safety
    ///
    /// The context must be valid, and the stream must belong to that context. Both must outlive the
    /// GPU and everything made with it.
    ///
    /// # Errors
    ///
    /// If there is no driver, the driver is too old, or it rejects the context.
    pub unsafe fn from_raw(context: *mut c_void, stream: *mut c_void) -> Result<Gpu, Error> {
        driver::start()?;
        // SAFETY: the caller promises that the context outlives everything made with it.
        let context = unsafe { borrow(context.cast()) }?;
        // SAFETY: the caller promises that the stream belongs to the context and lives as long; all
        // work is ordered on it.
        let stream = unsafe { context.wrap_borrowed_stream(stream.cast()) };
        Gpu::on(&stream)
    }

    /// The limits and rates of the GPU.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The device number in the driver's order.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// The best architecture to compile for.
    ///
    /// # Errors
    ///
    /// If NVRTC is not found or no longer supports the GPU.
    pub fn arch(&self) -> Result<Arch, Error> {
        Arch::for_device(&self.device)
    }

    /// Loads a program without memory, to be [launched](Kernels::launch) on the caller's.
    ///
    /// # Errors
    ///
    /// If the program cannot be compiled or loaded, or exceeds the GPU's limits.
    pub fn load_kernels(&self, program: &Program) -> Result<Kernels, Error> {
        Kernels::new(self, program)
    }

    /// Free and total memory in bytes. The memory that [`Gpu::kept_bytes`] counts is not free for
    /// the driver, but is reused by programs loaded later.
    ///
    /// # Errors
    ///
    /// If the driver call fails.
    pub fn memory_info(&self) -> Result<(usize, usize), Error> {
        self.stream().context().mem_get_info().doing("report the free memory")
    }

    /// The pooled memory that programs loaded later can reuse, in bytes.
    pub fn kept_bytes(&self) -> usize {
        self.memory.kept_bytes()
    }

    /// Returns unused pooled memory to the driver.
    ///
    /// # Errors
    ///
    /// If an earlier kernel failed.
    pub fn trim(&self) -> Result<(), Error> {
        self.memory.trim()
    }

    /// The stream that the GPU was opened with. Memory allocated on it can be passed to programs.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.memory.stream
    }

    /// Whether the stream is being captured into a graph. Nothing can be loaded meanwhile.
    ///
    /// # Errors
    ///
    /// If the driver call fails.
    pub fn is_capturing(&self) -> Result<bool, Error> {
        capture::is_capturing(self.stream())
    }

    pub(crate) fn memory(&self) -> &StreamMemory {
        &self.memory
    }
}

impl Driver for Gpu {
    type Buffer = DeviceBuffer;
    type Executable = Executable;

    fn compile(program: &Program, device: &Device) -> Result<Compiled, Error> {
        let (program, image) = nvrtc::compile_program(program, Arch::for_device(device)?)?;
        let (kernels, time) = image.map(|image| (image.kernels, image.time)).unwrap_or_default();
        Ok(Compiled { program, kernels, time })
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn upload(&self, what: &str, data: &[u8]) -> Result<DeviceBuffer, Error> {
        self.memory.upload(what, data)
    }

    fn trim_beyond(&self, bytes: usize) -> Result<(), Error> {
        if self.kept_bytes() > bytes { self.trim() } else { Ok(()) }
    }

    fn load_with(&self, program: &Program, inputs: &[DeviceBuffer]) -> Result<Executable, Error> {
        Executable::new(Kernels::new(self, program)?, inputs)
    }
}

/// The GPU of a caller's stream; see [`Gpu::on`].
impl TryFrom<&Arc<CudaStream>> for Gpu {
    type Error = Error;

    fn try_from(stream: &Arc<CudaStream>) -> Result<Gpu, Error> {
        Gpu::on(stream)
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("ordinal", &self.ordinal).field("device", &self.device.name).finish()
    }
}
