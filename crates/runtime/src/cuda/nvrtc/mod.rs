//! Compiles CUDA C++ with NVRTC. Needs no GPU and no driver.
//!
//! NVRTC is searched for in this order: the folder named by `WARPLOOM_NVRTC_DIR`; the usual library
//! names, through the system's loader; the CUDA installations of `CUDA_HOME`, `CUDA_PATH`,
//! `CUDA_ROOT` and `CUDA_TOOLKIT_ROOT_DIR`; `/usr/local/cuda*`; the Python packages
//! (`nvidia-cuda-nvrtc`) of the Python interpreters on `PATH`. All functions may be called from
//! many threads at once.

mod arch;
mod library;
mod log;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use warploom_target::Program;
use warploom_target::program::Code;

pub use arch::Arch;
pub use library::DIRECTORY_VARIABLE;

use crate::driver::Resources;
use crate::error::Error;
use library::{Nvrtc, RawProgram, Status, nvrtc};

/// The first version of NVRTC with a cache.
const FIRST_WITH_CACHE: (i32, i32) = (12, 9);

/// NVRTC's status for invalid code.
const COMPILATION: Status = 6;

/// Compiled code, with the compiler's statistics.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Image {
    /// The architecture that it was compiled for.
    pub arch: Arch,
    /// Machine code; `None` if the architecture is virtual.
    pub cubin: Option<Vec<u8>>,
    /// The PTX.
    pub ptx: String,
    /// The resource usage of each kernel, by entry name; empty without machine code.
    pub kernels: BTreeMap<String, Resources>,
    /// The compiler's warnings.
    pub log: String,
    /// The compile time.
    pub time: Duration,
}

impl Image {
    /// The code in the form to load: machine code if there is any, otherwise PTX.
    pub fn code(&self) -> Code {
        match &self.cubin {
            Some(cubin) => Code::Machine(cubin.clone()),
            None => Code::Virtual(self.ptx.clone()),
        }
    }

    /// The bytes spilled by all kernels, stores plus loads.
    pub fn spilled_bytes(&self) -> u64 {
        self.kernels
            .values()
            .map(|kernel| u64::from(kernel.spill_stores) + u64::from(kernel.spill_loads))
            .sum()
    }
}

/// The version of NVRTC, as major and minor.
///
/// # Errors
///
/// If NVRTC is not found.
pub fn version() -> Result<(i32, i32), Error> {
    let nvrtc = nvrtc()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both pointers are to integers that live during the call.
    let status = unsafe { (nvrtc.functions.version)(&mut major, &mut minor) };
    nvrtc.check(status, "report its version")?;
    Ok((major, minor))
}

/// Where NVRTC was found: a file, or the library name that the system's loader resolved.
///
/// # Errors
///
/// If NVRTC is not found.
pub fn place() -> Result<String, Error> {
    Ok(nvrtc()?.place.clone())
}

/// The architectures that NVRTC supports; 90 stands for `sm_90`.
///
/// # Errors
///
/// If NVRTC is not found.
pub fn supported() -> Result<Vec<u32>, Error> {
    let nvrtc = nvrtc()?;
    let mut count: c_int = 0;
    // SAFETY: the pointer is to an integer that lives during the call.
    let status = unsafe { (nvrtc.functions.arch_count)(&mut count) };
    nvrtc.check(status, "count its architectures")?;
    let mut archs: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or_default()];
    // SAFETY: the array has as many elements as NVRTC reported.
    let status = unsafe { (nvrtc.functions.archs)(archs.as_mut_ptr()) };
    nvrtc.check(status, "list its architectures")?;
    Ok(archs.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect())
}

/// Compiles a translation unit.
///
/// # Errors
///
/// If NVRTC is not found, does not know an option, or rejects the code.
pub fn compile(source: &str, arch: Arch, options: &[String]) -> Result<Image, Error> {
    let start = Instant::now();
    let program = OpenProgram::new(source)?;
    let mut all = vec![format!("--gpu-architecture={arch}"), "--std=c++17".to_string()];
    // Unused variables and comparisons that are always true are not mistakes in generated code.
    all.extend(["--diag-suppress=177".to_string(), "--diag-suppress=186".to_string()]);
    if let Arch::Machine(_) = arch {
        all.push("--ptxas-options=-v".to_string());
    }
    // With a driver present, NVRTC takes previously compiled code from the driver's cache and then
    // does not report registers and spills.
    if version()? >= FIRST_WITH_CACHE {
        all.push("--no-cache".to_string());
    }
    all.extend_from_slice(options);
    let status = program.compile(&all)?;
    let log = program.log()?;
    if status == COMPILATION {
        return Err(Error::Compile { arch: arch.to_string(), log: log::messages(&log) });
    }
    program.nvrtc.check(status, "compile").map_err(|error| match error {
        Error::Nvrtc { doing, message } => {
            Error::Nvrtc { doing, message: format!("{message}\n{}", log.trim()).trim().to_string() }
        }
        other => other,
    })?;
    let cubin = match arch {
        Arch::Machine(_) => Some(program.cubin()?),
        Arch::Virtual(_) => None,
    };
    let (kernels, time) = (log::resources(&log), start.elapsed());
    tracing::debug!(%arch, kernels = kernels.len(), milliseconds = time.as_millis(), "compiled");
    Ok(Image { arch, cubin, ptx: program.ptx()?, kernels, log: log::messages(&log), time })
}

/// Compiles a program's source. Returns the same program with loadable code, and the compiled
/// image. If the code is not a single source, returns the program unchanged and `None`.
///
/// # Errors
///
/// As [`compile`].
pub fn compile_program(program: &Program, arch: Arch) -> Result<(Program, Option<Image>), Error> {
    let Code::Source { text, options } = &program.code else {
        return Ok((program.clone(), None));
    };
    let image = compile(text, arch, options)?;
    let compiled = Program {
        name: program.name.clone(),
        code: image.code(),
        kernels: program.kernels.clone(),
        buffers: program.buffers.clone(),
        params: program.params,
        steps: program.steps.clone(),
    };
    Ok((compiled, Some(image)))
}

impl Nvrtc {
    fn check(&self, status: Status, doing: &'static str) -> Result<(), Error> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: for every number, NVRTC returns a static string that is never freed.
        let text = unsafe { (self.functions.error_string)(status) };
        let message = if text.is_null() {
            format!("error {status}")
        } else {
            // SAFETY: see above; the string is NUL-terminated.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Err(Error::Nvrtc { doing, message })
    }
}

/// An NVRTC program, freed on drop.
struct OpenProgram {
    nvrtc: &'static Nvrtc,
    raw: RawProgram,
    /// Kept alive because NVRTC may refer to the source as long as the program lives.
    _source: CString,
}

impl OpenProgram {
    fn new(source: &str) -> Result<OpenProgram, Error> {
        let nvrtc = nvrtc()?;
        let source = c_string(source, "read the source")?;
        let mut raw: RawProgram = std::ptr::null_mut();
        // SAFETY: source and name are NUL-terminated, the source lives as long as the program, the
        // name is static, and there are no headers.
        let status = unsafe {
            (nvrtc.functions.create)(
                &mut raw,
                source.as_ptr(),
                c"warploom.cu".as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        nvrtc.check(status, "read the source")?;
        Ok(OpenProgram { nvrtc, raw, _source: source })
    }

    fn compile(&self, options: &[String]) -> Result<Status, Error> {
        let options: Vec<CString> =
            options.iter().map(|option| c_string(option, "read the options")).collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program is open, and the pointers are to the given number of live strings.
        Ok(unsafe { (self.nvrtc.functions.compile)(self.raw, pointers.len() as c_int, pointers.as_ptr()) })
    }

    fn log(&self) -> Result<String, Error> {
        let functions = &self.nvrtc.functions;
        self.read(functions.log_size, functions.log, "return its messages").map(text)
    }

    fn ptx(&self) -> Result<String, Error> {
        let functions = &self.nvrtc.functions;
        self.read(functions.ptx_size, functions.ptx, "return the virtual code").map(text)
    }

    fn cubin(&self) -> Result<Vec<u8>, Error> {
        let functions = &self.nvrtc.functions;
        self.read(functions.cubin_size, functions.cubin, "return the machine code")
    }

    /// Reads data whose size another function returns.
    fn read(
        &self,
        size: unsafe extern "C" fn(RawProgram, *mut usize) -> Status,
        data: unsafe extern "C" fn(RawProgram, *mut c_char) -> Status,
        doing: &'static str,
    ) -> Result<Vec<u8>, Error> {
        let mut bytes = 0usize;
        // SAFETY: the program is open, and the pointer is to an integer that lives during the call.
        self.nvrtc.check(unsafe { size(self.raw, &mut bytes) }, doing)?;
        let mut buffer = vec![0u8; bytes];
        // SAFETY: the program is open, and the buffer has as many bytes as NVRTC reported.
        self.nvrtc.check(unsafe { data(self.raw, buffer.as_mut_ptr().cast()) }, doing)?;
        Ok(buffer)
    }
}

impl Drop for OpenProgram {
    fn drop(&mut self) {
        // SAFETY: the program is open, and nothing uses it afterwards.
        let _ = unsafe { (self.nvrtc.functions.destroy)(&mut self.raw) };
    }
}

fn c_string(text: &str, doing: &'static str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::Nvrtc { doing, message: "it contains a NUL byte".to_string() })
}

/// The text up to its terminating NUL byte.
fn text(bytes: Vec<u8>) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
