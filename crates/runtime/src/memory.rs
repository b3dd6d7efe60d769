//! Device memory that is used again.
//!
//! Tuning loads thousands of programs with the same buffers. Pieces of memory that nothing uses any more are
//! kept by size and given out again; all work on them runs on one stream, so that whoever gets a piece comes
//! after whoever had it. That holds for a stream of the caller too: a pool belongs to one stream, and none of
//! its memory is ever given to the caller.
//!
//! Kernels get addresses of these pieces. The events that cudarc keeps with a piece order it among streams, and
//! here there is one, so that nothing is lost without them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{CUresult, CUstreamCaptureStatus};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError, result};

use crate::error::{Doing, Error};

/// Pieces of memory that nothing uses.
#[derive(Default)]
pub(crate) struct Pool {
    free: BTreeMap<usize, Vec<Piece>>,
}

struct Piece {
    slice: CudaSlice<u8>,
    address: u64,
}

/// A pool and the stream on which its memory is used.
#[derive(Clone)]
pub(crate) struct Memory {
    pub(crate) stream: Arc<CudaStream>,
    pool: Arc<Mutex<Pool>>,
}

/// A piece of device memory; goes back to the pool when dropped.
pub(crate) struct Allocation {
    /// Present until the drop.
    piece: Option<Piece>,
    address: u64,
    bytes: usize,
    memory: Memory,
}

/// Bytes on the device that any number of programs may read; see [`Gpu::upload`](crate::Gpu::upload).
///
/// The memory is free for others once nothing holds the buffer any more.
#[derive(Clone)]
pub struct DeviceBuffer {
    allocation: Arc<Allocation>,
}

impl DeviceBuffer {
    /// How many bytes it holds.
    pub fn bytes(&self) -> usize {
        self.allocation.bytes
    }

    pub(crate) fn allocation(&self) -> &Allocation {
        &self.allocation
    }
}

impl std::fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceBuffer").field("bytes", &self.bytes()).finish()
    }
}

impl Memory {
    pub(crate) fn new(stream: Arc<CudaStream>) -> Memory {
        Memory { stream, pool: Arc::default() }
    }

    /// A piece of at least `bytes` bytes with arbitrary contents. `what` is for messages.
    pub(crate) fn allocate(&self, what: &str, bytes: usize) -> Result<Allocation, Error> {
        let size = size_class(bytes);
        let kept = self.with_pool(|pool| pool.free.get_mut(&size).and_then(Vec::pop));
        let piece = match kept {
            Some(piece) => piece,
            None => self.fresh(what, size)?,
        };
        let address = piece.address;
        Ok(Allocation { piece: Some(piece), address, bytes, memory: self.clone() })
    }

    /// A piece with contents that will not change.
    pub(crate) fn upload(&self, what: &str, data: &[u8]) -> Result<DeviceBuffer, Error> {
        let mut allocation = self.allocate(what, data.len())?;
        allocation.upload(what, data)?;
        Ok(DeviceBuffer { allocation: Arc::new(allocation) })
    }

    /// Whether the stream is being captured into a graph.
    pub(crate) fn is_capturing(&self) -> Result<bool, Error> {
        let status = self.stream.capture_status().doing("tell whether the stream is captured")?;
        Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    fn fresh(&self, what: &str, size: usize) -> Result<Piece, Error> {
        // It would be memory of the caller's graph, which exists only while that runs.
        if self.is_capturing()? {
            return Err(Error::LoadedInCapture { what: what.to_string() });
        }
        let slice = self.fresh_slice(what, size)?;
        let address = slice.device_ptr(&self.stream).0;
        Ok(Piece { slice, address })
    }

    fn fresh_slice(&self, what: &str, size: usize) -> Result<CudaSlice<u8>, Error> {
        // SAFETY: bytes may hold anything.
        let allocate = || unsafe { self.stream.alloc::<u8>(size) };
        let out_of_memory = |error: &DriverError| error.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        let first = allocate();
        if !first.as_ref().is_err_and(out_of_memory) {
            return first.doing("allocate memory");
        }
        // What the pool keeps may be what is lacking.
        self.trim()?;
        match allocate() {
            Err(error) if out_of_memory(&error) => {
                let (free, total) = self.stream.context().mem_get_info().doing("tell the free memory")?;
                Err(Error::OutOfMemory { what: what.to_string(), bytes: size, free, total })
            }
            second => second.doing("allocate memory"),
        }
    }

    /// Gives everything that nothing uses back to the driver.
    pub(crate) fn trim(&self) -> Result<(), Error> {
        let kept = self.with_pool(|pool| std::mem::take(&mut pool.free));
        drop(kept);
        self.stream.synchronize().doing("free memory")
    }

    /// Bytes that the pool keeps.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.with_pool(|pool| pool.free.iter().map(|(size, pieces)| size * pieces.len()).sum())
    }

    fn with_pool<T>(&self, action: impl FnOnce(&mut Pool) -> T) -> T {
        // A panic elsewhere leaves the pool whole: it is changed by single calls only.
        action(&mut self.pool.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Allocation {
    /// Where it is, to be passed to a kernel.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The stream on which it is used.
    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        &self.memory.stream
    }

    /// Another piece of the same size.
    pub(crate) fn another(&self, what: &str) -> Result<Allocation, Error> {
        self.memory.allocate(what, self.bytes)
    }

    /// Copies from the host and waits until that is done.
    pub(crate) fn upload(&mut self, what: &str, data: &[u8]) -> Result<(), Error> {
        if data.len() != self.bytes {
            let (expected, given) = (self.bytes, data.len());
            return Err(Error::WrongSize { what: what.to_string(), expected, given });
        }
        let stream = self.memory.stream.clone();
        if let (Some(piece), false) = (&mut self.piece, data.is_empty()) {
            stream.memcpy_htod(data, &mut piece.slice).doing("copy data to the device")?;
        }
        stream.synchronize().doing("copy data to the device")
    }

    /// Waits for everything before and copies to the host.
    pub(crate) fn download(&self) -> Result<Vec<u8>, Error> {
        let mut data = vec![0u8; self.bytes];
        let stream = &self.memory.stream;
        if let (Some(piece), false) = (&self.piece, data.is_empty()) {
            let view = piece.slice.slice(..self.bytes);
            stream.memcpy_dtoh(&view, &mut data).doing("copy data from the device")?;
        }
        stream.synchronize().doing("copy data from the device")?;
        Ok(data)
    }

    /// Sets every byte, those beyond the end too.
    pub(crate) fn fill(&mut self, byte: u8) -> Result<(), Error> {
        let stream = &self.memory.stream;
        let size = self.piece.as_ref().map_or(0, |piece| piece.slice.len());
        stream.context().bind_to_thread().doing("fill memory")?;
        // SAFETY: the memory is ours, has `size` bytes, and is used on this stream only.
        unsafe { result::memset_d8_async(self.address, byte, size, stream.cu_stream()) }.doing("fill memory")
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Some(piece) = self.piece.take() {
            self.memory.with_pool(|pool| pool.free.entry(piece.slice.len()).or_default().push(piece));
        }
    }
}

/// Sizes are rounded so that similar buffers can take each other's place.
fn size_class(bytes: usize) -> usize {
    const SMALL: usize = 512;
    const LARGE: usize = 1 << 20;
    let unit = if bytes < LARGE { SMALL } else { LARGE };
    bytes.max(1).checked_next_multiple_of(unit).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up() {
        assert_eq!(size_class(0), 512);
        assert_eq!(size_class(512), 512);
        assert_eq!(size_class(513), 1024);
        assert_eq!(size_class((1 << 20) + 1), 2 << 20);
    }
}
