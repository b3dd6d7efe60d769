//! The package `soften` in Rust. Its interface is documented in `soften.h`, beside the other files in `OUT_DIR`.

use std::ffi::c_char;
use std::ptr::{null, null_mut};

use crate::cuda::{Context, Error, Memory, RawPointer, RawStream, check};

pub const WIDTH: usize = 640;
pub const HEIGHT: usize = 480;

#[repr(C)]
struct RawPipeline {
    _private: [u8; 0],
}

#[repr(C)]
struct Buffers {
    input: RawPointer,
    output: RawPointer,
}

#[repr(C)]
struct Params {
    strength: f32,
}

unsafe extern "C" {
    fn soften_create(pipeline: *mut *mut RawPipeline, file: *const c_char) -> i32;
    fn soften_workspace_bytes() -> usize;
    fn soften_run(
        pipeline: *const RawPipeline,
        stream: RawStream,
        workspace: RawPointer,
        buffers: *const Buffers,
        params: *const Params,
    ) -> i32;
    fn soften_destroy(pipeline: *mut RawPipeline) -> i32;
}

/// The loaded kernels.
pub struct Soften<'a> {
    raw: *mut RawPipeline,
    _context: &'a Context,
}

impl Soften<'_> {
    pub fn new(context: &Context) -> Result<Soften<'_>, Error> {
        let mut raw = null_mut();
        // SAFETY: a context is current, and `raw` is a place for the result.
        check(unsafe { soften_create(&mut raw, null()) })?;
        Ok(Soften { raw, _context: context })
    }

    pub fn workspace_bytes() -> usize {
        // SAFETY: it reads nothing.
        unsafe { soften_workspace_bytes() }
    }

    /// Blurs a picture, on the default stream.
    pub fn run(
        &self,
        workspace: &Memory<'_>,
        input: &Memory<'_>,
        output: &Memory<'_>,
        strength: f32,
    ) -> Result<(), Error> {
        let buffers = Buffers { input: input.start(), output: output.start() };
        let params = Params { strength };
        let bytes = WIDTH * HEIGHT * size_of::<f32>();
        assert!(
            workspace.bytes() >= Self::workspace_bytes() && input.bytes() >= bytes && output.bytes() >= bytes
        );
        // SAFETY: all memory is as large as soften.h says, and both structs live until the call returns.
        check(unsafe { soften_run(self.raw, null_mut(), workspace.start(), &buffers, &params) })
    }
}

impl Drop for Soften<'_> {
    fn drop(&mut self) {
        // SAFETY: it was created, and reading an output has waited for all runs.
        unsafe { soften_destroy(self.raw) };
    }
}
