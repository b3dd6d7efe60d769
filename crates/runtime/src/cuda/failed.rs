//! Converts failed driver calls to errors.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use crate::error::Error;

/// The error for a failed driver call.
pub(crate) fn failed(doing: impl Into<String>, error: DriverError) -> Error {
    let text = |text: Result<&std::ffi::CStr, DriverError>| {
        text.map_or_else(|_| format!("error {}", error.0 as u32), |text| text.to_string_lossy().into_owned())
    };
    let (name, message) = (text(error.error_name()), text(error.error_string()));
    let doing = doing.into();
    if is_fault(error.0) {
        Error::Fault { doing, name, message }
    } else {
        Error::Driver { doing, name, message }
    }
}

/// Whether an error code means that a kernel corrupted the context.
fn is_fault(code: CUresult) -> bool {
    use CUresult::*;
    matches!(
        code,
        CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_ECC_UNCORRECTABLE
    )
}

/// Adds the attempted action to a driver error.
pub(crate) trait Doing<T> {
    /// The value, or an error that names the attempted action.
    fn doing(self, what: &str) -> Result<T, Error>;
}

impl<T> Doing<T> for Result<T, DriverError> {
    fn doing(self, what: &str) -> Result<T, Error> {
        self.map_err(|error| failed(what, error))
    }
}
