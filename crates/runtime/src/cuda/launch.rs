//! One launch, early or plain.
//!
//! The blocks of a kernel that is launched early may be scheduled while the previous kernel still runs, which hides the
//! latency of the launch (programmatic dependent launch). The kernel itself waits for the other's results, so only
//! kernels whose code does so are launched early, and never the first of a run, which follows foreign work.

use std::env::{self, VarError};
use std::ffi::c_void;

use cudarc::driver::sys::{
    self, CUfunction_attribute, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUlaunchConfig,
};
use cudarc::driver::{CudaFunction, CudaStream, DriverError, result};
use warploom_target::program::Kernel;

use crate::cuda::failed::Doing;
use crate::error::Error;

/// The oldest virtual architecture with the instructions of early launches: major and minor
/// version, in decimal.
const FIRST_ARCHITECTURE: i32 = 90;

/// How the kernels of a program follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Launches {
    /// A kernel's blocks may be scheduled before the previous kernel has ended, if its code waits by itself and the
    /// device supports it. Other kernels are launched plainly.
    Early,
    /// A kernel starts when the one before it has ended.
    Plain,
}

impl Launches {
    /// The environment variable that holds the kind of launches for programs loaded from then on:
    /// `early` (the default) or `plain`.
    pub const VARIABLE: &'static str = "WARPLOOM_LAUNCH";

    pub(crate) fn from_environment() -> Result<Launches, Error> {
        match env::var(Launches::VARIABLE) {
            Ok(value) => Launches::parse(&value),
            Err(VarError::NotPresent) => Ok(Launches::Early),
            Err(VarError::NotUnicode(value)) => {
                Err(Error::Launches { value: value.to_string_lossy().into() })
            }
        }
    }

    fn parse(value: &str) -> Result<Launches, Error> {
        match value {
            "early" | "" => Ok(Launches::Early),
            "plain" => Ok(Launches::Plain),
            other => Err(Error::Launches { value: other.to_string() }),
        }
    }
}

/// Whether a loaded kernel waits for the previous one. Its text does so only for some architectures. The architecture
/// that it was compiled for counts, not the device: a new device also runs code for old ones.
pub(crate) fn waits(function: &CudaFunction, kernel: &Kernel) -> Result<bool, Error> {
    if !kernel.waits {
        return Ok(false);
    }
    let version = function.get_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION);
    Ok(version.doing("describe a kernel")? >= FIRST_ARCHITECTURE)
}

/// Launches a kernel.
///
/// # Safety
///
/// The arguments must be pointers to those of the kernel, in order, and what the kernel does with
/// them must be valid until it has ended. If it is `early`, the kernel must wait for the one before
/// it on the stream.
pub(crate) unsafe fn launch(
    stream: &CudaStream,
    function: &CudaFunction,
    kernel: &Kernel,
    arguments: &mut [*mut c_void],
    early: bool,
) -> Result<(), DriverError> {
    stream.context().bind_to_thread()?;
    let (grid, block, shared) = (kernel.grid.into(), (kernel.threads, 1, 1), kernel.dynamic_shared_bytes);
    let (function, stream) = (function.cu_function(), stream.cu_stream());
    if !early {
        // SAFETY: the caller promises this for the arguments; function and stream are valid.
        return unsafe { result::launch_kernel(function, grid, block, shared, stream, arguments) };
    }
    let mut attribute = CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
    };
    let config = CUlaunchConfig {
        gridDimX: kernel.grid[0],
        gridDimY: kernel.grid[1],
        gridDimZ: kernel.grid[2],
        blockDimX: kernel.threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared,
        hStream: stream,
        attrs: &mut attribute,
        numAttrs: 1,
    };
    // SAFETY: as above; the configuration and its attribute live during the call.
    unsafe { sys::cuLaunchKernelEx(&config, function, arguments.as_mut_ptr(), std::ptr::null_mut()) }.result()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_has_two_values() {
        assert_eq!(Launches::parse("early").unwrap(), Launches::Early);
        assert_eq!(Launches::parse("plain").unwrap(), Launches::Plain);
        assert_eq!(
            Launches::parse("fast").unwrap_err().to_string(),
            "WARPLOOM_LAUNCH is `fast`, but it can only be `early` or `plain`"
        );
    }
}
