//! CUDA contexts that other code owns.

use std::ffi::c_int;
use std::sync::Arc;

use cudarc::driver::sys::{CUcontext, CUdevice};
use cudarc::driver::{CudaContext, result, sys};

use crate::cuda::failed::Doing;
use crate::error::Error;

/// The action in error messages.
const DOING: &str = "use the context that was given";

/// Wraps a context in cudarc's object without taking ownership: it is never destroyed here.
///
/// # Safety
///
/// The context must be valid and outlive the object and everything made with it.
pub(crate) unsafe fn borrow(context: CUcontext) -> Result<Arc<CudaContext>, Error> {
    // SAFETY: the caller promises that it is a valid context.
    unsafe { result::ctx::set_current(context) }.doing(DOING)?;
    let mut device: CUdevice = 0;
    // SAFETY: the pointer is to an integer that lives during the call.
    unsafe { sys::cuCtxGetDevice(&mut device) }.result().doing(DOING)?;
    let ordinal = ordinal_of(device)?;
    if is_active(device)? {
        // The primary context is reference-counted, so it can be retained and released once more.
        let primary = CudaContext::new(ordinal).doing(DOING)?;
        if primary.cu_ctx() == context {
            return Ok(primary);
        }
    }
    // SAFETY: the caller promises that it is a valid context, and it belongs to this device. It is
    // not destroyed here, see below.
    let borrowed = unsafe { CudaContext::from_raw_context(ordinal, device, context) }.doing(DOING)?;
    // cudarc destroys a context with the last reference to its object. Leaking one reference keeps
    // the object (a few bytes) forever, and leaves the context to its owner.
    std::mem::forget(Arc::clone(&borrowed));
    Ok(borrowed)
}

fn ordinal_of(device: CUdevice) -> Result<usize, Error> {
    let count = result::device::get_count().doing(DOING)?;
    let is_it = |ordinal: &c_int| result::device::get(*ordinal).is_ok_and(|found| found == device);
    let ordinal = (0..count).find(is_it).unwrap_or(device);
    Ok(usize::try_from(ordinal).unwrap_or_default())
}

/// Whether the device's primary context exists.
fn is_active(device: CUdevice) -> Result<bool, Error> {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: the device is one that the driver has given, and the pointers are to integers that live during the call.
    let state = unsafe { sys::cuDevicePrimaryCtxGetState(device, &mut flags, &mut active) };
    state.result().doing(DOING)?;
    Ok(active != 0)
}
