//! Programs on a GPU: compiling, loading, launching, timing.
//!
//! What runs is a [`Program`](warploom_target::Program), which code generation makes. CUDA is found when the
//! program runs, never when it is built: every function here exists on a machine without CUDA, and says in its
//! error what is missing and where it was looked for ([`cuda`], another project's, panics).
//!
//! - [`nvrtc`] compiles CUDA C++ to machine code and tells registers and spills. It needs neither GPU nor
//!   driver.
//! - [`Gpu`] is a device and its memory: [`Gpu::devices`] lists what there is, [`Gpu::load`] makes a program
//!   ready.
//! - [`Executable`] is a program with its buffers: upload, run, download, time.
//! - [`Kernels`] is a program without them: it is launched on memory of the caller, without waiting.
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
//! [`Gpu::on`] takes a stream of the caller, and [`Kernels::launch`] enqueues a program there, between whatever else the
//! caller does with the same memory:
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
//! An access outside of a kernel's memory, or another fault, is an [`Error::Fault`]. CUDA then refuses
//! everything else from the process: whoever runs code that may fault, as tuning does, runs it in a process of
//! its own.
//!
//! # Threads
//!
//! [`nvrtc`] may be called from many threads at once. A [`Gpu`] and its programs belong to one thread: timing
//! means nothing while others use the device.
//!
//! This is the one crate of the workspace with `unsafe` code: calls of NVIDIA's libraries.

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

/// What a caller with a stream and memory of its own needs, in the version that is used here.
///
/// Unlike everything else in this crate, these panic where there is no driver; [`Gpu::devices`] asks for one without.
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
