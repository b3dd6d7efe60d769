//! Descriptions of GPUs, as data.
//!
//! A [`Device`] holds every limit and rate that the rest of Warploom needs to know about a GPU. The
//! search prunes with it, the cost model predicts from it, and the code generator obeys it. The
//! rest of the compiler contains no hardware numbers. Compiling for a GPU therefore needs no GPU,
//! and supporting a new GPU means a new set of numbers:
//!
//! ```
//! use warploom_target::Device;
//!
//! let device = Device::preset("h200")?;
//! assert_eq!(device.sms, 132);
//! assert_eq!(device.arch(), "sm_90");
//!
//! // 256 threads, 64 registers a thread, 20 KB of shared memory a block.
//! let occupancy = device.occupancy(256, 64, 20 * 1024);
//! assert_eq!(occupancy.blocks_per_sm, 4);
//!
//! // A device saves and loads as JSON, so that one can be described by hand.
//! let copy = Device::from_json(&device.to_json()?)?;
//! assert_eq!(copy.fingerprint(), device.fingerprint());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Program`] is device code together with everything needed to launch it. Code generation
//! produces it; a runtime executes it.

mod device;
mod features;
mod fingerprint;
mod occupancy;
mod presets;
pub mod program;

pub use device::{
    ComputeCapability, Device, DeviceError, LaunchCost, MemorySystem, Rates, Registers, SharedMemory,
    Threads, VECTOR_BYTES, WARP,
};
pub use features::{Features, MatrixTiles};
pub use occupancy::{Occupancy, OccupancyLimit};
pub use presets::UnknownDevice;
pub use program::{Program, ProgramError};
