//! Memory that is dropped, or read, while it is an input or output.

use warploom_runtime::cuda::{CudaSlice, CudaStream};
use warploom_runtime::{DeviceBytes, DeviceBytesMut, Error, Launcher};

fn dropped(kernels: &Launcher, stream: &CudaStream, memory: CudaSlice<f32>) -> Result<(), Error> {
    let input = DeviceBytes::from(&memory);
    drop(memory);
    kernels.launch(stream, &[&input], &mut [], &[])
}

fn read(kernels: &Launcher, stream: &CudaStream, mut memory: CudaSlice<f32>) -> Result<(), Error> {
    let mut output = DeviceBytesMut::from(&mut memory);
    let length = memory.len();
    kernels.launch(stream, &[], &mut [&mut output], &[length as u32])
}

fn returned<'a>(stream: &CudaStream) -> Option<DeviceBytes<'a>> {
    let memory: CudaSlice<f32> = stream.context().default_stream().alloc_zeros(4).ok()?;
    Some(DeviceBytes::from(&memory))
}

fn main() {}
