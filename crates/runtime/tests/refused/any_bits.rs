//! Outputs in memory of types for which not all bits are valid: a kernel writes any.

use warploom_runtime::DeviceBytesMut;
use warploom_runtime::cuda::{CudaSlice, CudaViewMut};

fn slice(flags: &mut CudaSlice<bool>) -> DeviceBytesMut<'_> {
    flags.into()
}

fn view(flags: CudaViewMut<'_, bool>) -> DeviceBytesMut<'_> {
    flags.into()
}

fn characters(text: &mut CudaSlice<char>) -> DeviceBytesMut<'_> {
    text.into()
}

fn main() {}
