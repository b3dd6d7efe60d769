//! Detection of the GPU of this machine.

use warploom_runtime::Gpu;
use warploom_target::{Device, UnknownDevice};

/// Finds the device to compile for.
pub trait Detect: Sized {
    /// The first GPU of this machine, or the preset if there is no GPU.
    ///
    /// ```
    /// use warploom::prelude::*;
    /// let device = Device::detect_or("h200")?;
    /// assert!(device.sms > 0);
    /// assert!(Device::detect_or("abacus").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no preset of that name, even if a GPU was found.
    fn detect_or(preset: &str) -> Result<Self, UnknownDevice>;
}

impl Detect for Device {
    fn detect_or(preset: &str) -> Result<Device, UnknownDevice> {
        let preset = Device::preset(preset)?;
        Ok(Gpu::devices().ok().and_then(|devices| devices.into_iter().next()).unwrap_or(preset))
    }
}

/// The device that another file names, a preset or a GPU of this machine: by fingerprint first, which may be empty, then by
/// name.
pub fn known_device(name: &str, fingerprint: &str) -> Option<Device> {
    let mut devices = Device::presets();
    devices.extend(Gpu::devices().unwrap_or_default());
    let same = devices.iter().find(|device| device.fingerprint() == fingerprint);
    let named = || devices.iter().find(|device| device.name == name);
    same.or_else(named).cloned().or_else(|| Device::preset(name).ok())
}
