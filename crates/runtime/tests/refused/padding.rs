//! Inputs in memory with bytes that nobody has written.

use warploom_runtime::DeviceBytes;
use warploom_runtime::cuda::{CudaSlice, CudaView};

#[derive(Clone, Copy)]
#[repr(C)]
struct Padded {
    small: u8,
    large: u32,
}

fn slice(pixels: &CudaSlice<Padded>) -> DeviceBytes<'_> {
    pixels.into()
}

fn view(pixels: CudaView<'_, Padded>) -> DeviceBytes<'_> {
    pixels.into()
}

fn main() {}
