//! One piece of memory as an input and an output, or as two outputs.

use warploom_runtime::cuda::{CudaSlice, CudaStream};
use warploom_runtime::{DeviceBytes, DeviceBytesMut, Error, Launcher};

fn in_place(kernels: &Launcher, stream: &CudaStream, memory: &mut CudaSlice<f32>) -> Result<(), Error> {
    let input = DeviceBytes::from(&*memory);
    let mut output = DeviceBytesMut::from(memory);
    kernels.launch(stream, &[&input], &mut [&mut output], &[])
}

fn twice(kernels: &Launcher, stream: &CudaStream, memory: &mut CudaSlice<f32>) -> Result<(), Error> {
    let mut first = DeviceBytesMut::from(&mut *memory);
    let mut second = DeviceBytesMut::from(memory);
    kernels.launch(stream, &[], &mut [&mut first, &mut second], &[])
}

fn main() {}
