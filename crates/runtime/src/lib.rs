//! Compiles, loads, launches and times programs on a GPU.
//!
//! The unit of execution is a [`Program`](warploom_target::Program), which code generation
//! produces. CUDA is found at run time, never at build time: every function here exists on a
//! machine without CUDA, and its error says what is missing and which locations were searched
//! ([`cuda`], which re-exports another project, panics instead).
//!
//! - [`nvrtc`] compiles CUDA C++ to machine code and reports registers and spills. It needs neither
//!   a GPU nor a driver.
//! - [`Gpu`] is a device with its memory: [`Gpu::devices`] lists the devices, [`Gpu::load`] loads a
//!   program.
//! - [`Executable`] is a program with its buffers: upload, run, download, time.
//! - [`Kernels`] is a program without buffers: it is launched on the caller's memory, without
//!   waiting.
//!
//! ```no_run
//! use warploom_runtime::{Gpu, TimingOptions};
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
//! [`Gpu::on`] takes a stream of the caller, and [`Kernels::launch`] enqueues a program there, in
//! order with everything else the caller does with the same memory:
//!
//! ```no_run
//! use warploom_runtime::Gpu;
//! use warploom_runtime::cuda::{CudaContext, CudaSlice};
//! # fn program() -> warploom_target::Program { unimplemented!() }
//!
//! let stream = CudaContext::new(0)?.new_stream()?;
//! let image: CudaSlice<f32> = stream.clone_htod(&[0.5; 256])?;
//! let mut blurred: CudaSlice<f32> = stream.alloc_zeros(256)?;
//! let mut blur = Gpu::on(&stream)?.load_kernels(&program())?;
//! blur.launch(&[&(&image).into()], &mut [&mut (&mut blurred).into()], &[])?;
//! let pixels = stream.clone_dtoh(&blurred)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When a kernel fails
//!
//! An out-of-bounds access or another fault in a kernel is an [`Error::Fault`]. CUDA then rejects
//! all further work from the process. Code that may fault, as in tuning, should therefore run in a
//! separate process.
//!
//! # Threads
//!
//! [`nvrtc`] may be called from many threads at once. A [`Gpu`] and its programs belong to one
//! thread: timings are meaningless while others use the device.
//!
//! This is the only crate of the workspace with `unsafe` code, which calls NVIDIA's libraries.

mod borrowed;
mod caller;
mod device;
mod driver;
mod error;
mod executable;
mod gpu;
mod kernels;
mod load;
mod memory;
pub mod nvrtc;
mod params;
pub mod testing;
mod timing;

/// The parts of cudarc that a caller with its own stream and memory needs, in the version used
/// here.
///
/// Unlike the rest of this crate, they panic if there is no driver. [`Gpu::devices`] checks for one
/// without panicking.
pub mod cuda {
    pub use cudarc::driver::{
        CudaContext, CudaEvent, CudaGraph, CudaSlice, CudaStream, CudaView, CudaViewMut, DriverError, sys,
    };
}

pub use caller::{DeviceBytes, DeviceBytesMut};
pub use driver::driver_version;
pub use error::{Attempt, Error};
pub use executable::{Executable, POISON};
pub use gpu::Gpu;
pub use kernels::{KernelFacts, Kernels};
pub use memory::DeviceBuffer;
pub use timing::{Mode, Sample, Timing, TimingOptions};
