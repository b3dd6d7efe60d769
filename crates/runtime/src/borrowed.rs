//! A context that something else owns.

use std::ffi::c_int;
use std::sync::Arc;

use cudarc::driver::sys::{CUcontext, CUdevice};
use cudarc::driver::{CudaContext, result, sys};

use crate::error::{Doing, Error};

/// Doing what failed, for messages.
const DOING: &str = "use the context that was given";

/// The same context as cudarc's object, which never destroys it.
///
/// # Safety
///
/// It must be a context that lives as long as the object or anything made with it.
pub(crate) unsafe fn borrow(context: CUcontext) -> Result<Arc<CudaContext>, Error> {
    // SAFETY: the caller says that it is a context.
    unsafe { result::ctx::set_current(context) }.doing(DOING)?;
    let mut device: CUdevice = 0;
    // SAFETY: the pointer is to an integer that lives during the call.
    unsafe { sys::cuCtxGetDevice(&mut device) }.result().doing(DOING)?;
    let ordinal = ordinal_of(device)?;
    if is_active(device)? {
        // The primary context is counted, so that it may be opened once more and closed like any other.
        let primary = CudaContext::new(ordinal).doing(DOING)?;
        if primary.cu_ctx() == context {
            return Ok(primary);
        }
    }
    // SAFETY: the caller says that it is a context, and it is this device's. It is not destroyed here, see below.
    let borrowed = unsafe { CudaContext::from_raw_context(ordinal, device, context) }.doing(DOING)?;
    // cudarc destroys a context with the last reference to its object. One too many keeps the object, a few bytes, for
    // ever, and the context as long as its owner likes.
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
