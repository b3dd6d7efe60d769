//! As much of CUDA's driver as this program needs. A larger program would use a crate such as `cudarc`.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

pub type RawPointer = u64;
pub type RawStream = *mut c_void;

unsafe extern "C" {
    fn cuInit(flags: c_uint) -> c_int;
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int;
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int;
    fn cuCtxSetCurrent(context: *mut c_void) -> c_int;
    // The names in the library. cuda.h gives them others.
    fn cuMemAlloc_v2(pointer: *mut RawPointer, bytes: usize) -> c_int;
    fn cuMemFree_v2(pointer: RawPointer) -> c_int;
    fn cuMemcpyHtoD_v2(to: RawPointer, from: *const c_void, bytes: usize) -> c_int;
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: RawPointer, bytes: usize) -> c_int;
}

/// An error of the driver or of an exported pipeline, as a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error(c_int);

impl Error {
    /// A Param is out of its range: `ERROR_PARAM` of every exported pipeline.
    pub const PARAM: Error = Error(1005);
}

pub fn check(result: c_int) -> Result<(), Error> {
    if result == 0 { Ok(()) } else { Err(Error(result)) }
}

/// The first GPU, made current in this thread.
pub struct Context;

impl Context {
    pub fn new() -> Result<Context, Error> {
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: the pointers are to places for the results.
        unsafe {
            check(cuInit(0))?;
            check(cuDeviceGet(&mut device, 0))?;
            check(cuDevicePrimaryCtxRetain(&mut context, device))?;
            check(cuCtxSetCurrent(context))?;
        }
        Ok(Context)
    }
}

/// Device memory.
pub struct Memory<'a> {
    start: RawPointer,
    bytes: usize,
    _context: &'a Context,
}

impl Memory<'_> {
    pub fn new(context: &Context, bytes: usize) -> Result<Memory<'_>, Error> {
        let (mut start, bytes) = (0, bytes.max(1));
        // SAFETY: the pointer is to a place for the result.
        check(unsafe { cuMemAlloc_v2(&mut start, bytes) })?;
        Ok(Memory { start, bytes, _context: context })
    }

    /// Memory with this content.
    pub fn of<'a>(context: &'a Context, values: &[f32]) -> Result<Memory<'a>, Error> {
        let memory = Memory::new(context, size_of_val(values))?;
        // SAFETY: both sides have so many bytes.
        check(unsafe { cuMemcpyHtoD_v2(memory.start, values.as_ptr().cast(), memory.bytes) })?;
        Ok(memory)
    }

    pub fn start(&self) -> RawPointer {
        self.start
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads so many values, once all runs on the default stream are over.
    pub fn read(&self, count: usize) -> Result<Vec<f32>, Error> {
        let mut values = vec![0.0f32; count];
        assert!(size_of_val(&*values) <= self.bytes);
        // SAFETY: both sides have so many bytes.
        check(unsafe { cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), self.start, size_of_val(&*values)) })?;
        Ok(values)
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        // SAFETY: it was allocated, and nothing refers to it any more.
        unsafe { cuMemFree_v2(self.start) };
    }
}
