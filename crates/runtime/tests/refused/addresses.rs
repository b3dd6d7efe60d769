//! Memory by address, which nothing checks.

use warploom_runtime::{DeviceBytes, DeviceBytesMut};

fn read(address: u64) -> DeviceBytes<'static> {
    DeviceBytes::at(address, 4096)
}

fn written(address: u64) -> DeviceBytesMut<'static> {
    DeviceBytesMut::at(address, 4096)
}

fn main() {}
