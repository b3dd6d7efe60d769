//! Loads code into the driver.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;
use warploom_target::Program;
use warploom_target::program::Code;

use crate::cuda::failed::Doing;
use crate::cuda::kernels::opt_in;
use crate::error::Error;

/// The kernels of a program, ready to launch. A module lives as long as its functions.
pub(crate) fn functions(
    context: &Arc<CudaContext>,
    program: &Program,
    code: Code,
) -> Result<Vec<CudaFunction>, Error> {
    let damaged = |why| Error::DamagedCode { program: program.name.clone(), why };
    let load = |code| context.load_module(loadable(code).map_err(damaged)?).doing("load the code");
    let modules: Vec<Arc<CudaModule>> = match code {
        Code::Parts(parts) => parts.into_iter().map(load).collect::<Result<_, Error>>()?,
        whole => vec![load(whole)?; program.kernels.len()],
    };
    let functions = program.kernels.iter().zip(&modules).map(|(kernel, module)| {
        if kernel.entry.contains('\0') {
            return Err(damaged("the name of a kernel contains a NUL byte"));
        }
        let function = module
            .load_function(&kernel.entry)
            .doing(&format!("find kernel `{}` in the code", kernel.entry))?;
        opt_in(&function, kernel)?;
        Ok(function)
    });
    functions.collect()
}

/// One piece of code in the driver's form, or the reason why it is unusable.
fn loadable(code: Code) -> Result<Ptx, &'static str> {
    match code {
        Code::Machine(bytes) => check_elf(&bytes).map(|()| Ptx::from_binary(bytes)),
        Code::Virtual(text) if text.contains('\0') => Err("it contains a NUL byte"),
        Code::Virtual(text) => Ok(Ptx::from_src(text)),
        Code::Source { .. } => Err("it is not compiled"),
        Code::Parts(_) => Err("a part of it has parts"),
    }
}

/// Checks that an ELF file is complete. The driver is not given a length and trusts the file's
/// headers, so a truncated file must not reach it.
fn check_elf(bytes: &[u8]) -> Result<(), &'static str> {
    const HEADER: usize = 64;
    if bytes.len() < HEADER || !bytes.starts_with(b"\x7fELF\x02") {
        return Err("it is not a 64-bit ELF file");
    }
    let number = |at: usize, size: usize| {
        bytes[at..at + size].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
    };
    // Offset, entry size and count of the segment table and the section table.
    let tables = [
        (number(0x20, 8), number(0x36, 2), number(0x38, 2)),
        (number(0x28, 8), number(0x3a, 2), number(0x3c, 2)),
    ];
    let whole = tables.into_iter().all(|(offset, size, count)| {
        offset.checked_add(size * count).is_some_and(|end| end <= bytes.len() as u64)
    });
    if !whole {
        return Err("it is truncated");
    }
    let (offset, size, count) = tables[1];
    let inside = (0..count).all(|section| {
        let at = (offset + section * size) as usize;
        if size < 0x40 {
            return false;
        }
        // A section of type 8 (no bits) occupies no space in the file.
        let (kind, start, length) = (number(at + 4, 4), number(at + 0x18, 8), number(at + 0x20, 8));
        kind == 8 || start.checked_add(length).is_some_and(|end| end <= bytes.len() as u64)
    });
    if inside { Ok(()) } else { Err("a section lies outside the file") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_are_refused() {
        assert_eq!(check_elf(b""), Err("it is not a 64-bit ELF file"));
        assert_eq!(check_elf(&[0; 100]), Err("it is not a 64-bit ELF file"));
        let mut header = vec![0u8; 64];
        header[..5].copy_from_slice(b"\x7fELF\x02");
        assert_eq!(check_elf(&header), Ok(()));
        // One section header of 64 bytes, past the end.
        header[0x28] = 64;
        header[0x3a] = 64;
        header[0x3c] = 1;
        assert_eq!(check_elf(&header), Err("it is truncated"));
        header.extend([0; 64]);
        assert_eq!(check_elf(&header), Ok(()));
        // The section claims 200 bytes from the start.
        header[64 + 0x20] = 200;
        assert_eq!(check_elf(&header), Err("a section lies outside the file"));
    }
}
