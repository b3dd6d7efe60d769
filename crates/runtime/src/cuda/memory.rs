//! A pool of device memory.
//!
//! Tuning loads thousands of programs with the same buffers. Unused allocations are kept by size and reused. An
//! allocation returns to the pool when all work on it has ended, so its next user may be on any stream. New memory is
//! allocated in the order of the pool's stream; uses on another stream must be ordered after the allocation.
//!
//! Kernels get raw addresses of these allocations. cudarc's events, which would order accesses among
//! streams, are not used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DriverError, result};

use crate::cuda::capture::{drop_released, is_capturing};
use crate::cuda::failed::Doing;
use crate::error::Error;

/// Unused allocations, by size.
#[derive(Default)]
pub(crate) struct Pool {
    free: BTreeMap<usize, Vec<Piece>>,
}

struct Piece {
    slice: CudaSlice<u8>,
    address: u64,
}

/// A pool, and the stream in whose order its memory is allocated.
#[derive(Clone)]
pub(crate) struct StreamMemory {
    pub(crate) stream: Arc<CudaStream>,
    pool: Arc<Mutex<Pool>>,
}

/// An allocation of device memory. Returns to the pool when dropped.
pub(crate) struct Allocation {
    /// `Some` until the drop.
    piece: Option<Piece>,
    address: u64,
    bytes: usize,
    memory: StreamMemory,
}

/// Device memory that any number of programs may read; see [`Driver::upload`](crate::Driver::upload).
///
/// The memory returns to the pool when the last clone is dropped.
#[derive(Clone)]
pub struct DeviceBuffer {
    allocation: Arc<Allocation>,
}

impl DeviceBuffer {
    /// The size in bytes.
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

impl StreamMemory {
    pub(crate) fn new(stream: Arc<CudaStream>) -> StreamMemory {
        StreamMemory { stream, pool: Arc::default() }
    }

    /// Allocates at least `bytes` bytes with arbitrary contents. `what` is used in messages.
    pub(crate) fn allocate(&self, what: &str, bytes: usize) -> Result<Allocation, Error> {
        self.kept_or(bytes, |size| self.fresh(what, size))
    }

    /// The same while the pool's stream is being captured, by a thread that may
    /// [allocate beside captures](crate::cuda::capture::beside_captures).
    pub(crate) fn allocate_in_capture(&self, what: &str, bytes: usize) -> Result<Allocation, Error> {
        self.kept_or(bytes, |size| self.fresh_in_capture(what, size))
    }

    fn kept_or(
        &self,
        bytes: usize,
        fresh: impl FnOnce(usize) -> Result<Piece, Error>,
    ) -> Result<Allocation, Error> {
        drop_released();
        let size = size_class(bytes);
        let kept = self.with_pool(|pool| pool.free.get_mut(&size).and_then(Vec::pop));
        let piece = match kept {
            Some(piece) => piece,
            None => fresh(size)?,
        };
        let address = piece.address;
        Ok(Allocation { piece: Some(piece), address, bytes, memory: self.clone() })
    }

    /// Allocates memory and copies constant data into it.
    pub(crate) fn upload(&self, what: &str, data: &[u8]) -> Result<DeviceBuffer, Error> {
        let mut allocation = self.allocate(what, data.len())?;
        allocation.upload(what, data)?;
        Ok(DeviceBuffer { allocation: Arc::new(allocation) })
    }

    fn fresh(&self, what: &str, size: usize) -> Result<Piece, Error> {
        // Memory allocated during a capture would belong to the caller's graph and exist only while
        // that runs.
        if is_capturing(&self.stream)? {
            return Err(Error::LoadedInCapture { what: what.to_string() });
        }
        let slice = self.fresh_slice(what, size)?;
        let address = slice.device_ptr(&self.stream).0;
        Ok(Piece { slice, address })
    }

    /// New memory that is not ordered on any stream.
    fn fresh_in_capture(&self, what: &str, size: usize) -> Result<Piece, Error> {
        let doing = "allocate memory";
        self.stream.context().bind_to_thread().doing(doing)?;
        // SAFETY: every bit pattern is a valid byte.
        let address = match unsafe { result::malloc_sync(size) } {
            Err(error) if is_out_of_memory(&error) => return Err(self.out_of_memory(what, size)?),
            allocated => allocated.doing(doing)?,
        };
        // SAFETY: the allocation was just made and has that size.
        let slice = unsafe { self.stream.upgrade_device_ptr(address, size) };
        Ok(Piece { slice, address })
    }

    fn fresh_slice(&self, what: &str, size: usize) -> Result<CudaSlice<u8>, Error> {
        // SAFETY: every bit pattern is a valid byte.
        let allocate = || unsafe { self.stream.alloc::<u8>(size) };
        let first = allocate();
        if !first.as_ref().is_err_and(is_out_of_memory) {
            return first.doing("allocate memory");
        }
        // The pool itself may hold the missing memory.
        self.trim()?;
        match allocate() {
            Err(error) if is_out_of_memory(&error) => Err(self.out_of_memory(what, size)?),
            second => second.doing("allocate memory"),
        }
    }

    fn out_of_memory(&self, what: &str, bytes: usize) -> Result<Error, Error> {
        let (free, total) = self.stream.context().mem_get_info().doing("report the free memory")?;
        Ok(Error::OutOfMemory { what: what.to_string(), bytes, free, total })
    }

    /// Returns all unused memory to the driver.
    pub(crate) fn trim(&self) -> Result<(), Error> {
        drop_released();
        let kept = self.with_pool(|pool| std::mem::take(&mut pool.free));
        drop(kept);
        self.stream.synchronize().doing("free memory")
    }

    /// The size of the unused memory in the pool, in bytes.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.with_pool(|pool| pool.free.iter().map(|(size, pieces)| size * pieces.len()).sum())
    }

    fn with_pool<T>(&self, action: impl FnOnce(&mut Pool) -> T) -> T {
        // A panic elsewhere leaves the pool consistent: it is changed by single calls only.
        action(&mut self.pool.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Allocation {
    /// The device address, for kernel arguments.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The context that the memory belongs to.
    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        self.memory.stream.context()
    }

    /// The requested size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Another allocation of the same size.
    pub(crate) fn another(&self, what: &str) -> Result<Allocation, Error> {
        self.memory.allocate(what, self.bytes)
    }

    /// Copies from the host and waits for completion.
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

    /// Waits for all earlier work, then copies to the host.
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

    /// Sets every byte, including the padding up to the size class.
    pub(crate) fn fill(&self, byte: u8) -> Result<(), Error> {
        let stream = &self.memory.stream;
        let size = self.piece.as_ref().map_or(0, |piece| piece.slice.len());
        stream.context().bind_to_thread().doing("fill memory")?;
        // SAFETY: the memory is ours, has `size` bytes, and its uses are ordered with this stream.
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

fn is_out_of_memory(error: &DriverError) -> bool {
    error.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY
}

/// Rounds sizes up, so that similar buffers can reuse each other's memory.
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
