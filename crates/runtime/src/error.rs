//! What can go wrong, as sentences.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use thiserror::Error;
use warploom_target::program::{ProgramError, Role};

/// A place where a library was looked for, and what was found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// A file, a folder or a bare name.
    pub place: String,
    /// Why it did not do.
    pub outcome: String,
}

/// What can go wrong between a program and its results.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// NVRTC is not installed, or not where anything looks.
    #[error(
        "NVRTC, CUDA's run-time compiler, was not found; install the CUDA toolkit or \
         `pip install nvidia-cuda-nvrtc`, or set WARPLOOM_NVRTC_DIR to the folder that holds it; tried:{}",
        list(.tried)
    )]
    NoNvrtc {
        /// Where it was looked for.
        tried: Vec<Attempt>,
    },
    /// A call of NVRTC failed for a reason other than the code.
    #[error("NVRTC could not {doing}: {message}")]
    Nvrtc {
        /// What was asked of it.
        doing: &'static str,
        /// What it answered.
        message: String,
    },
    /// NVRTC found a mistake in the code: a mistake of the compiler that made it.
    #[error("NVRTC refused the code for {arch}:\n{log}")]
    Compile {
        /// What it was to be compiled for.
        arch: String,
        /// NVRTC's messages.
        log: String,
    },
    /// The device is older than anything NVRTC still compiles for.
    #[error(
        "NVRTC {}.{} compiles for sm_{oldest} and newer, but the device is sm_{device}: use an older NVRTC",
        .nvrtc.0, .nvrtc.1
    )]
    OldDevice {
        /// The version of NVRTC.
        nvrtc: (i32, i32),
        /// The oldest architecture it knows.
        oldest: u32,
        /// That of the device.
        device: u32,
    },
    /// There is no NVIDIA driver.
    #[error("the NVIDIA driver's library was not found; tried:{}", list(.tried))]
    NoDriver {
        /// Where it was looked for.
        tried: Vec<Attempt>,
    },
    /// The driver lacks functions that are needed.
    #[error(
        "the NVIDIA driver supports CUDA {}.{}, but {}.{} is needed: update it",
        .version.0, .version.1, .needed.0, .needed.1
    )]
    OldDriver {
        /// The newest CUDA that the driver supports.
        version: (i32, i32),
        /// The oldest that will do.
        needed: (i32, i32),
    },
    /// A result is not the program's own.
    #[error(
        "element {element} of `{what}` is not written, or depends on memory that is not: it was another value over memory \
         with other contents"
    )]
    Unwritten {
        /// The output.
        what: String,
        /// Its first element, counted in memory, that differs.
        element: usize,
    },
    /// There is no device of that number.
    #[error("there is no GPU number {ordinal}: the driver reports {count}")]
    NoDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// A call of the driver failed.
    #[error("the driver could not {doing}: {name} ({message})")]
    Driver {
        /// What was asked of it.
        doing: String,
        /// The name of its answer.
        name: String,
        /// What the answer means.
        message: String,
    },
    /// A kernel did something forbidden, such as an access outside its memory. The driver accepts nothing
    /// further from this process.
    #[error("a kernel failed while the driver was to {doing}: {name} ({message})")]
    Fault {
        /// What was asked of the driver when it noticed.
        doing: String,
        /// The name of its answer.
        name: String,
        /// What the answer means.
        message: String,
    },
    /// The device has too little memory.
    #[error("{bytes} bytes for `{what}` do not fit on the device, which has {free} of {total} bytes free")]
    OutOfMemory {
        /// What they are for.
        what: String,
        /// How many were asked for.
        bytes: usize,
        /// How many there are.
        free: usize,
        /// How many there are in all.
        total: usize,
    },
    /// The program contradicts itself.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A kernel needs more of something than the device has.
    #[error("kernel `{kernel}` needs {asked} {what}, but the device has {limit}")]
    Limit {
        /// The kernel.
        kernel: String,
        /// Of what.
        what: &'static str,
        /// How much it needs.
        asked: u64,
        /// How much there is.
        limit: u64,
    },
    /// The code is damaged.
    #[error("the code of program `{program}` is damaged: {why}")]
    DamagedCode {
        /// The program's name.
        program: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The program has no such buffer.
    #[error("the program has no {}", role_name(.role))]
    NoBuffer {
        /// Which.
        role: Role,
    },
    /// More or less memory than a program takes.
    #[error("the program has {expected} {what}, but memory for {given} was given; give one piece for each")]
    WrongNumber {
        /// Inputs or outputs.
        what: &'static str,
        /// How many there are.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// Memory of a context that the stream is not of.
    #[error(
        "the memory of `{what}` belongs to another CudaContext than the stream: allocate it in the stream's context, or \
         give it by its address"
    )]
    OtherContext {
        /// The input or output.
        what: String,
    },
    /// Memory whose events cannot be captured.
    #[error(
        "the stream is being captured, and the events that cudarc keeps with the memory of `{what}` would break the \
         capture: turn event tracking of the context off, or give the memory by its address"
    )]
    Captured {
        /// The input or output.
        what: String,
    },
    /// A program that is to be loaded while its stream is captured.
    #[error("`{what}` cannot be loaded while the stream is being captured: do that before")]
    LoadedInCapture {
        /// The program, or something that it needs memory for.
        what: String,
    },
    /// Memory that elements cannot lie in.
    #[error("`{what}` lies at {address:#x}, which is no multiple of the {unit} bytes of its elements")]
    Misaligned {
        /// The input or output.
        what: String,
        /// Where it lies.
        address: u64,
        /// Bytes of an element.
        unit: u64,
    },
    /// An output in memory that something else has too.
    #[error("`{first}` and `{second}` overlap in device memory: give every output memory of its own")]
    Overlap {
        /// An input or output.
        first: String,
        /// Another.
        second: String,
    },
    /// Data of the wrong size.
    #[error("`{what}` takes {expected} bytes, but {given} were given")]
    WrongSize {
        /// For what.
        what: String,
        /// How many it takes.
        expected: usize,
        /// How many were given.
        given: usize,
    },
}

impl Error {
    /// Whether this process can do nothing further on the device.
    pub fn is_fault(&self) -> bool {
        matches!(self, Error::Fault { .. })
    }

    /// What the driver answered when it was asked to do something.
    pub(crate) fn driver(doing: impl Into<String>, error: DriverError) -> Error {
        let text = |text: Result<&std::ffi::CStr, DriverError>| {
            text.map_or_else(
                |_| format!("error {}", error.0 as u32),
                |text| text.to_string_lossy().into_owned(),
            )
        };
        let (name, message) = (text(error.error_name()), text(error.error_string()));
        let doing = doing.into();
        if is_fault(error.0) {
            Error::Fault { doing, name, message }
        } else {
            Error::Driver { doing, name, message }
        }
    }
}

/// Whether an answer of the driver means that a kernel broke the context.
fn is_fault(code: CUresult) -> bool {
    use CUresult::*;
    matches!(
        code,
        CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_ECC_UNCORRECTABLE
    )
}

fn list(tried: &[Attempt]) -> String {
    tried.iter().map(|attempt| format!("\n  {}: {}", attempt.place, attempt.outcome)).collect()
}

fn role_name(role: &Role) -> String {
    match role {
        Role::Input(input) => format!("input number {input}"),
        Role::Output { output, value } => format!("output number {output} with a value number {value}"),
        Role::Temporary => "such temporary".to_string(),
    }
}

/// Says what the driver was asked to do when it failed.
pub(crate) trait Doing<T> {
    /// The value, or the error with what was being done.
    fn doing(self, what: &str) -> Result<T, Error>;
}

impl<T> Doing<T> for Result<T, DriverError> {
    fn doing(self, what: &str) -> Result<T, Error> {
        self.map_err(|error| Error::driver(what, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sentences_that_name_every_place() {
        let attempt =
            |place: &str| Attempt { place: place.to_string(), outcome: "no such folder".to_string() };
        let error = Error::NoNvrtc { tried: vec![attempt("/a"), attempt("/b")] };
        let text = error.to_string();
        assert!(text.contains("\n  /a: no such folder\n  /b: no such folder"), "{text}");
        assert!(text.contains("WARPLOOM_NVRTC_DIR"), "{text}");
        let error = Error::OldDevice { nvrtc: (13, 0), oldest: 75, device: 70 };
        assert_eq!(
            error.to_string(),
            "NVRTC 13.0 compiles for sm_75 and newer, but the device is sm_70: use an older NVRTC"
        );
        assert_eq!(Error::NoBuffer { role: Role::Input(2) }.to_string(), "the program has no input number 2");
    }
}
