//! The NVIDIA driver: its presence, its version and the devices it reports.

use std::ffi::c_int;

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{result, sys};
use warploom_target::Device;

use crate::cuda::device::{Attributes, describe};
use crate::cuda::failed::Doing;
use crate::error::{Attempt, Error};

/// The oldest driver with all functions used here, as the CUDA version it supports.
const NEEDED: (i32, i32) = (12, 8);

/// Checks that the driver is present and recent enough.
pub(crate) fn start() -> Result<(), Error> {
    // SAFETY: opening the driver's library runs its initialisers, which only set up its own data.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::NoDriver { tried: attempts() });
    }
    let version = version()?;
    if version < NEEDED {
        return Err(Error::OldDriver { version, needed: NEEDED });
    }
    result::init().doing("start")
}

/// The newest CUDA version that the driver supports. The library must be present.
fn version() -> Result<(i32, i32), Error> {
    let mut version: c_int = 0;
    // SAFETY: the pointer is to an integer that lives during the call; the function needs no prior
    // initialisation.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().doing("report its version")?;
    Ok((version / 1000, version % 1000 / 10))
}

/// The newest CUDA version that the driver supports, as major and minor.
///
/// # Errors
///
/// If there is no driver, or it is too old.
pub fn driver_version() -> Result<(i32, i32), Error> {
    start()?;
    version()
}

/// Why each name of the driver's library failed.
fn attempts() -> Vec<Attempt> {
    let names = if cfg!(windows) { ["nvcuda.dll", "cuda.dll"] } else { ["libcuda.so.1", "libcuda.so"] };
    let attempt = |name: &str| {
        // SAFETY: opening the driver's library runs its initialisers, which only set up its own data.
        let outcome = match unsafe { libloading::Library::new(name) } {
            Ok(_) => "found, but under a different name".to_string(),
            Err(error) => error.to_string(),
        };
        Attempt { place: name.to_string(), outcome }
    };
    names.into_iter().map(attempt).collect()
}

/// The number of devices that the driver shows.
///
/// # Errors
/// If there is no driver, or it cannot count them.
pub fn count() -> Result<usize, Error> {
    start()?;
    let count = result::device::get_count().doing("count its devices")?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// The description of a device, as the driver reports it.
pub(crate) fn query(ordinal: usize) -> Result<Device, Error> {
    let count = count()?;
    if ordinal >= count {
        return Err(Error::NoDevice { ordinal, count });
    }
    let device = result::device::get(ordinal as c_int).doing("find the device")?;
    let name = result::device::get_name(device).doing("name the device")?;
    // SAFETY: the device handle was just returned by the driver.
    let memory = unsafe { result::device::total_mem(device) }.doing("report the size of its memory")?;
    let get = |attribute: Attribute| {
        // SAFETY: the device handle was just returned by the driver.
        let value = unsafe { result::device::get_attribute(device, attribute) };
        value.doing("describe the device").map(|value| u32::try_from(value).unwrap_or_default())
    };
    Ok(describe(&Attributes {
        name,
        dram_bytes: memory as u64,
        compute: [
            get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ],
        sms: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        // Newer drivers may not report clocks.
        clock_khz: get(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE).unwrap_or_default(),
        memory_clock_khz: get(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unwrap_or_default(),
        memory_bus_bits: get(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH).unwrap_or_default(),
        warp: get(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
        threads_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        threads_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        blocks_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        block_dims: [
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        ],
        grid_dims: [
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ],
        registers_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        shared_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        shared_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        shared_opt_in: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_reserved: get(Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
        l2_bytes: u64::from(get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
    }))
}
