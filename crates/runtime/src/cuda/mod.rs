//! The driver of NVIDIA's GPUs, and its compiler.
//!
//! This module also re-exports the parts of cudarc that a caller with its own stream and memory needs, in the version
//! used here. It is the one place that names cudarc's types. Functions that take them, such as [`Gpu::on`] and
//! [`Kernels::launch`], take them from here; [`Stream`] and [`Elements`] stand for them where other crates pass them
//! on.
//!
//! Unlike the rest of this crate, they panic if there is no driver. [`Gpu::devices`] checks for one
//! without panicking.

mod borrowed;
mod caller;
mod capture;
mod device;
mod driver;
mod executable;
mod failed;
mod gpu;
mod graph;
mod kernels;
mod launch;
mod launcher;
mod load;
mod memory;
pub mod nvrtc;
mod params;
mod stream;
pub mod testing;
mod workspace;

pub use cudarc::driver::{
    CudaContext, CudaEvent, CudaGraph, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut,
    DriverError, sys,
};

pub use caller::{DeviceBytes, DeviceBytesMut, Elements};
pub use capture::is_capturing;
pub use driver::{count as device_count, driver_version};
pub use executable::Executable;
pub use gpu::Gpu;
pub use kernels::{KernelFacts, Kernels};
pub use launch::Launches;
pub use launcher::Launcher;
pub use memory::DeviceBuffer;
pub use stream::Stream;
pub use workspace::Workspace;
