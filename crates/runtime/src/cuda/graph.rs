//! The graph of a program's launches.

use std::sync::Arc;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstream, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaGraph, CudaStream, result};

use crate::cuda::failed::Doing;
use crate::error::Error;

/// Launches that the driver submits together, on any stream of their context.
pub(crate) struct Graph {
    /// Its own stream no longer exists, so its functions that use one must not be called.
    graph: CudaGraph,
}

impl Graph {
    /// Captures the launches that `enqueue` makes; `None` if it makes none.
    ///
    /// The capture uses a private stream. On a shared one it would also capture work that another thread enqueues at
    /// that moment. That work would then run with this graph, perhaps on memory that is freed by then, and not when it
    /// was requested.
    pub(crate) fn capture(
        context: &Arc<CudaContext>,
        enqueue: impl FnOnce(&CudaStream) -> Result<(), Error>,
    ) -> Result<Option<Graph>, Error> {
        let doing = "capture the launches";
        let private = PrivateStream::new(context)?;
        let stream = private.stream();
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).doing(doing)?;
        let launched = enqueue(&stream);
        // The capture must end even if a launch failed.
        let graph = stream.end_capture(CUgraphInstantiate_flags(0));
        launched?;
        Ok(graph.doing(doing)?.map(|graph| Graph { graph }))
    }

    /// Prepares the device for the first launch.
    pub(crate) fn upload(&self, stream: &CudaStream) -> Result<(), Error> {
        let doing = "prepare the graph";
        stream.context().bind_to_thread().doing(doing)?;
        // SAFETY: graph and stream are valid and belong to one context.
        unsafe { result::graph::upload(self.graph.cu_graph_exec(), stream.cu_stream()) }.doing(doing)
    }

    /// Enqueues all launches on a stream. The resources that they use must exist until they have ended.
    pub(crate) fn launch(&self, stream: &CudaStream) -> Result<(), Error> {
        let doing = "launch the graph";
        stream.context().bind_to_thread().doing(doing)?;
        // SAFETY: graph and stream are valid and belong to one context. The executable that captured
        // the graph owns what it uses, and waits before it is dropped.
        unsafe { result::graph::launch(self.graph.cu_graph_exec(), stream.cu_stream()) }.doing(doing)
    }
}

/// A stream that cudarc does not count among those of its context: counting would turn the context's
/// events on.
struct PrivateStream {
    handle: CUstream,
    context: Arc<CudaContext>,
}

impl PrivateStream {
    fn new(context: &Arc<CudaContext>) -> Result<PrivateStream, Error> {
        let doing = "create a stream";
        context.bind_to_thread().doing(doing)?;
        let handle = result::stream::create(result::stream::StreamKind::NonBlocking).doing(doing)?;
        Ok(PrivateStream { handle, context: context.clone() })
    }

    fn stream(&self) -> Arc<CudaStream> {
        // SAFETY: the stream belongs to the context. It is used only for a capture, which ends before
        // this object is dropped.
        unsafe { self.context.wrap_borrowed_stream(self.handle) }
    }
}

impl Drop for PrivateStream {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: the stream was created here, and nothing uses it any more.
            let _ = unsafe { result::stream::destroy(self.handle) };
        }
    }
}
