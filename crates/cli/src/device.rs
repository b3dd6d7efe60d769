//! Finds the GPU to build kernels for, which need not be present.

use std::error::Error as _;

use warploom::lang::files;
use warploom::runtime::Gpu;
use warploom::target::Device;

use crate::error::Error;

/// The device of this name. `auto` is the first GPU of this machine, a name that ends in `.json` is
/// a file, and any other name is a preset.
pub(crate) fn find(name: &str) -> Result<Device, Error> {
    match name {
        "auto" => match Gpu::devices().map(|devices| devices.into_iter().next()) {
            Ok(Some(device)) => Ok(device),
            Ok(None) => Err(Error::NoDevice { why: "the driver reports none".to_owned() }),
            Err(error) => Err(Error::NoDevice { why: error.to_string() }),
        },
        file if file.ends_with(".json") => read(file),
        preset => Device::preset(preset).map_err(|error| Error::Device(error.to_string())),
    }
}

fn read(file: &str) -> Result<Device, Error> {
    let text = files::read_text(file)?;
    Device::from_json(&text).map_err(|error| {
        let detail = error.source().map_or(String::new(), |source| format!(" ({source})"));
        Error::DeviceFile { file: file.to_owned(), problem: format!("{error}{detail}") }
    })
}
