//! Streams that are being captured, and the resources that captured graphs keep alive.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{
    self, CUgraph, CUstreamCaptureMode, CUstreamCaptureStatus, CUuserObject_flags, CUuserObjectRetain_flags,
};

use crate::cuda::failed::{Doing, failed};
use crate::cuda::stream::Stream;
use crate::error::Error;

/// Whether a stream is being captured into a graph.
///
/// # Errors
///
/// If the driver call fails.
pub fn is_capturing<'s>(stream: impl Into<Stream<'s>>) -> Result<bool, Error> {
    Ok(Capture::of(stream.into().0)?.is_some())
}

/// A capture in progress.
pub(crate) struct Capture {
    /// Distinguishes it from all other captures of the process.
    pub(crate) id: u64,
    graph: CUgraph,
}

/// A resource that a graph keeps alive.
pub(crate) type Kept = Arc<dyn Send + Sync>;

impl Capture {
    /// The capture that a stream takes part in.
    pub(crate) fn of(stream: &CudaStream) -> Result<Option<Capture>, Error> {
        let doing = "report whether the stream is captured";
        stream.context().bind_to_thread().doing(doing)?;
        let none = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut status, mut id, mut graph) = (none, 0, null_mut());
        // SAFETY: the stream is valid, and the pointers are to variables that live during the call
        // or null, where the value is not wanted.
        let asked = unsafe {
            sys::cuStreamGetCaptureInfo_v3(
                stream.cu_stream(),
                &mut status,
                &mut id,
                &mut graph,
                null_mut(),
                null_mut(),
                null_mut(),
            )
        };
        asked.result().doing(doing)?;
        Ok((status != none).then_some(Capture { id, graph }))
    }

    /// Keeps something alive until the graph, and everything instantiated from it, is destroyed and
    /// has finished running.
    pub(crate) fn keep(&self, kept: Kept) -> Result<(), Error> {
        let doing = "give the graph its memory";
        let kept = Box::into_raw(Box::new(kept));
        let mut object = null_mut();
        let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC as u32;
        // SAFETY: `release` gets the pointer made above, once.
        let created = unsafe { sys::cuUserObjectCreate(&mut object, kept.cast(), Some(release), 1, flags) };
        if let Err(error) = created.result() {
            // SAFETY: there is no object that would release it.
            drop(unsafe { Box::from_raw(kept) });
            return Err(failed(doing, error));
        }
        let flags = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE as u32;
        // SAFETY: the capture is in progress, which permits this for its graph. The only reference
        // to the object moves there.
        let moved = unsafe { sys::cuGraphRetainUserObject(self.graph, object, 1, flags) };
        if let Err(error) = moved.result() {
            // SAFETY: the reference did not move.
            let _ = unsafe { sys::cuUserObjectRelease(object, 1) };
            return Err(failed(doing, error));
        }
        Ok(())
    }
}

/// The resources of destroyed graphs. The driver must not be called when it reports the end of a graph, so they wait
/// for [`drop_released`].
static RELEASED: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

fn released() -> MutexGuard<'static, Vec<Kept>> {
    RELEASED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The driver's callback for a resource of a destroyed graph.
///
/// # Safety
///
/// The pointer must be to a boxed [`Kept`], which is not used otherwise.
unsafe extern "C" fn release(kept: *mut c_void) {
    // SAFETY: the caller promises this.
    let kept = unsafe { Box::from_raw(kept.cast::<Kept>()) };
    released().push(*kept);
}

/// Drops the resources of destroyed graphs.
pub(crate) fn drop_released() {
    let kept = std::mem::take(&mut *released());
    if !kept.is_empty() {
        beside_captures(|| drop(kept));
    }
}

/// Allows this thread to allocate and to wait while a stream is being captured. Otherwise the
/// driver refuses such calls beside a capture, and the capture fails.
pub(crate) fn beside_captures<T>(action: impl FnOnce() -> T) -> T {
    let _mode = ThreadMode::exchange(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
    action()
}

/// Restores the thread's capture mode when dropped.
struct ThreadMode {
    /// `None` if it was not changed.
    before: Option<CUstreamCaptureMode>,
}

impl ThreadMode {
    fn exchange(mode: CUstreamCaptureMode) -> ThreadMode {
        let mut before = mode;
        // SAFETY: the pointer is to a variable that lives during the call.
        let exchanged = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut before) };
        ThreadMode { before: exchanged.result().is_ok().then_some(before) }
    }
}

impl Drop for ThreadMode {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            // Nothing is left to restore in the temporary value.
            std::mem::forget(ThreadMode::exchange(before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_graph_kept_lives_until_it_is_dropped_outside_the_driver() {
        let memory = Arc::new(());
        let kept: Kept = memory.clone();
        // SAFETY: the pointer is to a boxed `Kept` and is given away.
        unsafe { release(Box::into_raw(Box::new(kept)).cast()) };
        assert_eq!(Arc::strong_count(&memory), 2, "the driver's thread drops nothing");
        released().clear();
        assert_eq!(Arc::strong_count(&memory), 1);
    }
}
