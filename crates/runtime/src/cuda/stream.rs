//! Streams of callers, for code that only passes them on.

use std::sync::Arc;

use cudarc::driver::CudaStream;

/// A stream of a caller, in whose order a launch is enqueued: a borrowed [`CudaStream`].
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a>(pub(crate) &'a CudaStream);

impl<'a> From<&'a CudaStream> for Stream<'a> {
    fn from(stream: &'a CudaStream) -> Stream<'a> {
        Stream(stream)
    }
}

impl<'a> From<&'a Arc<CudaStream>> for Stream<'a> {
    fn from(stream: &'a Arc<CudaStream>) -> Stream<'a> {
        Stream(stream)
    }
}
