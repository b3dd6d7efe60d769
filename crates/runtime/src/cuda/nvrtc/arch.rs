//! Selects the architecture to compile for.

use std::fmt;

use serde::{Deserialize, Serialize};
use warploom_target::{ComputeCapability, Device};

use crate::error::Error;

/// An architecture, and whether to produce machine code or PTX for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Arch {
    /// Machine code: 90 stands for `sm_90`.
    Machine(u32),
    /// PTX, which a driver translates for its device: 90 stands for `compute_90`.
    Virtual(u32),
}

impl Arch {
    /// The best target that the installed NVRTC supports for a device: its own machine code,
    /// otherwise machine code of an older device of the same generation, otherwise PTX of an older
    /// generation.
    ///
    /// # Errors
    ///
    /// If NVRTC is not found or no longer supports a device this old.
    pub fn for_device(device: &Device) -> Result<Arch, Error> {
        let supported = super::supported()?;
        let number = number(device.compute);
        choose(number, &supported).ok_or(Error::OldDevice {
            nvrtc: super::version()?,
            oldest: supported.iter().copied().min().unwrap_or_default(),
            device: number,
        })
    }

    /// The architecture number: 90 for `sm_90`.
    pub fn number(self) -> u32 {
        match self {
            Arch::Machine(number) | Arch::Virtual(number) => number,
        }
    }

    /// A warning for users if this is not the device's own machine code.
    pub fn warning(self, device: &Device) -> Option<String> {
        (self != Arch::Machine(number(device.compute))).then(|| {
            format!(
                "the installed NVRTC does not support {}; code is compiled for {self} and may be slower than \
                 possible",
                device.arch()
            )
        })
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arch::Machine(number) => write!(f, "sm_{number}"),
            Arch::Virtual(number) => write!(f, "compute_{number}"),
        }
    }
}

fn number(compute: ComputeCapability) -> u32 {
    compute.major * 10 + compute.minor
}

fn choose(device: u32, supported: &[u32]) -> Option<Arch> {
    let best = supported.iter().copied().filter(|&number| number <= device).max()?;
    Some(if best / 10 == device / 10 { Arch::Machine(best) } else { Arch::Virtual(best) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_older_architecture_is_taken() {
        let supported = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];
        assert_eq!(choose(90, &supported), Some(Arch::Machine(90)));
        assert_eq!(choose(86, &supported), Some(Arch::Machine(86)));
        assert_eq!(choose(101, &supported), Some(Arch::Machine(100)));
        assert_eq!(choose(130, &supported), Some(Arch::Virtual(121)));
        assert_eq!(choose(70, &supported), None);
        assert_eq!(choose(90, &[]), None);
    }

    #[test]
    fn only_another_architecture_is_warned_of() {
        let device = Device::preset("h200").unwrap();
        assert_eq!(Arch::Machine(90).warning(&device), None);
        let warning = Arch::Virtual(80).warning(&device).unwrap();
        assert!(warning.contains("sm_90") && warning.contains("compute_80"), "{warning}");
    }
}
