//! Compiles, loads, launches and times programs on a GPU.
//!
//! The unit of execution is a [`Program`](warploom_target::Program), which code generation produces. [`Driver`] and
//! [`Execute`] are the interfaces to devices; [`cuda`] implements them. This crate re-exports the items of the back end
//! in use, so that others need not name it. CUDA is found at run time, never at build time: every function here exists
//! on a machine without CUDA, and its error names the missing part and the searched locations (but re-exports of cudarc
//! in [`cuda`] panic instead).
//!
//! - [`compiler`] compiles source to machine code and reports registers and spills. It needs neither
//!   a GPU nor a driver.
//! - [`Gpu`] is a device with its memory: [`Gpu::devices`] lists the devices, [`Driver::load`] loads a
//!   program.
//! - [`Executable`] is a program with its buffers: upload, run, download, time.
//! - [`Kernels`] is a program without buffers: it is launched on the caller's stream and memory,
//!   without waiting. [`Launcher`] adds a [`Workspace`] for every launch in flight.
//!
//! ```no_run
//! use warploom_runtime::{Driver, Execute, Gpu, TimingOptions};
//! # fn program() -> warploom_target::Program { unimplemented!() }
//!
//! let gpu = Gpu::new(0)?;
//! let mut blur = gpu.load(&program())?;
//! blur.upload(0, &[0; 1024])?;
//! blur.run()?;
//! let pixels: Vec<u8> = blur.download(0, 0)?;
//! let timing = blur.time(&TimingOptions::default())?;
//! # Ok::<(), warploom_runtime::Error>(())
//! ```
//!
//! # On the caller's stream
//!
//! [`Kernels::launch`] enqueues a program on a stream of the caller, in order with everything else
//! the caller does with the same memory:
//!
//! ```no_run
//! use warploom_runtime::Gpu;
//! use warploom_runtime::cuda::{CudaContext, CudaSlice};
//! # fn program() -> warploom_target::Program { unimplemented!() }
//!
//! let stream = CudaContext::new(0)?.new_stream()?;
//! let image: CudaSlice<f32> = stream.clone_htod(&[0.5; 256])?;
//! let mut blurred: CudaSlice<f32> = stream.alloc_zeros(256)?;
//! let blur = Gpu::on(&stream)?.load_kernels(&program())?;
//! let mut workspace = blur.workspace()?;
//! blur.launch(&stream, &mut workspace, &[&(&image).into()], &mut [&mut (&mut blurred).into()], &[])?;
//! let pixels = stream.clone_dtoh(&blurred)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How kernels follow each other
//!
//! Kernels that wait for their predecessor themselves ([`Kernel::waits`](warploom_target::program::Kernel)) are
//! launched early: their blocks may be scheduled before the predecessor has ended. This needs a device with [early
//! launches](warploom_target::Features::early_launches); on others, launches are plain. Graphs preserve it. Early
//! launches stay within a run: the first kernel waits for all earlier work on the stream, and later work waits for the
//! last kernel. [`Launches`] turns them off.
//!
//! # When a kernel fails
//!
//! An out-of-bounds access or another fault in a kernel is an [`Error::Fault`]. CUDA then rejects
//! all further work from the process. Code that may fault, as in tuning, should therefore run in a
//! separate process.
//!
//! # Threads
//!
//! Everything may be used from many threads at once, except an [`Executable`], which belongs to one: timings are
//! meaningless while others use the device. Launches share only their arguments: `&mut` prevents two of them from using
//! one workspace at the same time, and the caller orders accesses to the same memory.
//!
//! # Guarantees of safe code
//!
//! A [`Program`](warploom_target::Program) is code, and a GPU runs it with the rights of the process, like a library
//! that is loaded. Code generation guarantees that kernels stay inside the buffers that their program declares; whoever
//! writes a program by hand guarantees the same. Everything else is checked here or by the compiler: sizes, alignment,
//! overlaps and contexts of memory, that borrowed memory outlives a launch, and that any bits are valid where a program
//! writes ([`bytemuck::AnyBitPattern`]). Nothing checks memory that is given by address, which is `unsafe`.
//!
//! Borrowed memory cannot become part of a graph: `CudaGraph::launch` of cudarc is safe, and the graph
//! holds no borrow. A stream whose capture another thread begins at the same moment is beyond this
//! check, so no thread may launch on a stream while another begins to capture it.
//!
//! This is the only crate of the workspace with `unsafe` code, which calls NVIDIA's libraries.

pub mod cuda;
pub mod driver;
mod error;
mod timing;

pub use cuda::nvrtc as compiler;
pub use cuda::testing;
pub use cuda::{
    DeviceBuffer, DeviceBytes, DeviceBytesMut, Elements, Executable, Gpu, KernelFacts, Kernels, Launcher,
    Launches, Stream, Workspace, device_count, driver_version, is_capturing,
};
pub use driver::{Compiled, Driver, Execute, POISON, Resources};
pub use error::{Attempt, Error};
pub use timing::{Mode, Sample, Timing, TimingOptions};
