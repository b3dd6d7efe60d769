//! Helpers for tests that need NVRTC or a GPU.
//!
//! Such a test asks first and returns early if the answer is no. The skip is reported on standard
//! error with a running number, bypassing the output capture of passing tests. With
//! `WARPLOOM_REQUIRE_NVRTC=1` or `WARPLOOM_REQUIRE_GPU=1` in the environment, a missing NVRTC or
//! GPU fails the test instead.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::Pod;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr};

use crate::cuda::caller::{DeviceBytes, DeviceBytesMut};
use crate::cuda::failed::Doing;
use crate::cuda::gpu::Gpu;
use crate::cuda::nvrtc;
use crate::error::Error;

/// Whether NVRTC is available.
///
/// `.ci/run` finds the tests that need it by their names, which therefore contain `nvrtc`.
///
/// # Panics
///
/// If it is missing and `WARPLOOM_REQUIRE_NVRTC` is 1, or if the name of the test does not contain `nvrtc`.
pub fn has_nvrtc(test: &str) -> bool {
    assert!(test.contains("nvrtc"), "the name of {test}, which needs NVRTC, does not contain `nvrtc`");
    present(test, "WARPLOOM_REQUIRE_NVRTC", nvrtc::version()).is_some()
}

/// The first GPU; `None` if there is no GPU or no NVRTC.
///
/// # Panics
///
/// If either is missing and `WARPLOOM_REQUIRE_GPU` is 1.
pub fn gpu(test: &str) -> Option<Gpu> {
    let both = Gpu::new(0).and_then(|gpu| nvrtc::version().map(|_| gpu));
    present(test, "WARPLOOM_REQUIRE_GPU", both)
}

/// Device memory that is never freed, so that graphs may use it for ever.
#[derive(Debug)]
pub struct Leaked<T> {
    stream: Arc<CudaStream>,
    slice: std::mem::ManuallyDrop<CudaSlice<T>>,
    address: u64,
}

impl<T: Pod + DeviceRepr> Leaked<T> {
    /// Copies values to the device, for kernels on this stream, and waits.
    ///
    /// # Errors
    ///
    /// If the device lacks memory.
    pub fn new(stream: &Arc<CudaStream>, values: &[T]) -> Result<Leaked<T>, Error> {
        let doing = "copy data to the device";
        let slice = std::mem::ManuallyDrop::new(stream.clone_htod(values).doing(doing)?);
        stream.synchronize().doing(doing)?;
        let address = slice.device_ptr(stream).0;
        Ok(Leaked { stream: stream.clone(), slice, address })
    }

    /// As an input of kernels on the stream.
    pub fn input(&self) -> DeviceBytes<'static> {
        // SAFETY: it is never freed, and what this object writes is ordered on the same stream.
        unsafe { DeviceBytes::at(self.address, self.slice.num_bytes()) }
    }

    /// As an output of kernels on the stream.
    pub fn output(&self) -> DeviceBytesMut<'static> {
        // SAFETY: as above, and any bits are valid.
        unsafe { DeviceBytesMut::at(self.address, self.slice.num_bytes()) }
    }

    /// Replaces the values, in the order of the stream.
    ///
    /// # Errors
    ///
    /// If the driver fails.
    pub fn write(&mut self, values: &[T]) -> Result<(), Error> {
        self.stream.memcpy_htod(values, &mut *self.slice).doing("copy data to the device")
    }

    /// The values after everything that was enqueued on the stream.
    ///
    /// # Errors
    ///
    /// If the driver or an earlier kernel fails.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        self.stream.clone_dtoh(&*self.slice).doing("copy data from the device")
    }
}

fn present<T>(test: &str, variable: &str, found: Result<T, Error>) -> Option<T> {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    let error = match found {
        Ok(found) => return Some(found),
        Err(error) => error,
    };
    let required = std::env::var(variable).is_ok_and(|value| value == "1");
    assert!(!required, "{variable} is 1, but: {error}");
    let number = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let reason = error.to_string();
    let first = reason.split([';', '\n']).next().unwrap_or_default();
    let line = format!("\nSKIPPED ({number}) {test}: {first}\n");
    // Write in one piece, since other tests write too. A failure to report is ignored.
    let _ = std::io::stderr().write_all(line.as_bytes());
    None
}
