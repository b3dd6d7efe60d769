//! Errors of the runtime, with one-sentence messages.

use thiserror::Error;
use warploom_target::program::{ProgramError, Role};

/// A location where a library was searched for, and the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// A file, a folder or a bare library name.
    pub place: String,
    /// Why this location did not work.
    pub outcome: String,
}

/// Errors between loading a program and reading its results.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// NVRTC is not installed or not in any searched location.
    #[error(
        "NVRTC, CUDA's run-time compiler, was not found; install the CUDA toolkit or \
         `pip install nvidia-cuda-nvrtc`, or set WARPLOOM_NVRTC_DIR to the folder that contains it; tried:{}",
        list(.tried)
    )]
    NoNvrtc {
        /// The locations that were searched.
        tried: Vec<Attempt>,
    },
    /// A call to NVRTC failed for a reason other than the code.
    #[error("NVRTC could not {doing}: {message}")]
    Nvrtc {
        /// The request to NVRTC.
        doing: &'static str,
        /// NVRTC's error message.
        message: String,
    },
    /// NVRTC rejected the code. This is a bug in the compiler that generated it.
    #[error("NVRTC refused the code for {arch}:\n{log}")]
    Compile {
        /// The architecture that the code was compiled for.
        arch: String,
        /// NVRTC's messages.
        log: String,
    },
    /// The device is older than any architecture that this NVRTC supports.
    #[error(
        "NVRTC {}.{} compiles for sm_{oldest} and newer, but the device is sm_{device}: use an older NVRTC",
        .nvrtc.0, .nvrtc.1
    )]
    OldDevice {
        /// The version of NVRTC, as major and minor.
        nvrtc: (i32, i32),
        /// The oldest architecture that it supports.
        oldest: u32,
        /// The architecture of the device.
        device: u32,
    },
    /// The NVIDIA driver is not installed.
    #[error("the NVIDIA driver's library was not found; tried:{}", list(.tried))]
    NoDriver {
        /// The locations that were searched.
        tried: Vec<Attempt>,
    },
    /// The variable that selects the kind of launches has an unknown value.
    #[error("WARPLOOM_LAUNCH is `{value}`, but it can only be `early` or `plain`")]
    Launches {
        /// Its value.
        value: String,
    },
    /// The driver is too old.
    #[error(
        "the NVIDIA driver supports CUDA {}.{}, but {}.{} is needed: update it",
        .version.0, .version.1, .needed.0, .needed.1
    )]
    OldDriver {
        /// The newest CUDA version that the driver supports.
        version: (i32, i32),
        /// The oldest CUDA version that is sufficient.
        needed: (i32, i32),
    },
    /// An output depends on uninitialised memory.
    #[error(
        "element {element} of `{what}` is not written, or depends on uninitialised memory: its value changed with the \
         previous contents of the memory"
    )]
    Unwritten {
        /// The name of the output.
        what: String,
        /// The position in memory of the first element that differs.
        element: usize,
    },
    /// The device number does not exist.
    #[error("there is no GPU number {ordinal}: the driver reports {count}")]
    NoDevice {
        /// The device number requested.
        ordinal: usize,
        /// The number of devices.
        count: usize,
    },
    /// A driver call failed.
    #[error("the driver could not {doing}: {name} ({message})")]
    Driver {
        /// The request to the driver.
        doing: String,
        /// The name of the driver's error code.
        name: String,
        /// The driver's description of the error.
        message: String,
    },
    /// A kernel faulted, for example by an out-of-bounds access. The driver accepts no further work
    /// from this process.
    #[error("a kernel failed when the driver tried to {doing}: {name} ({message})")]
    Fault {
        /// The request to the driver during which the fault surfaced.
        doing: String,
        /// The name of the driver's error code.
        name: String,
        /// The driver's description of the error.
        message: String,
    },
    /// The device does not have enough free memory.
    #[error("{bytes} bytes for `{what}` do not fit on the device, which has {free} of {total} bytes free")]
    OutOfMemory {
        /// The purpose of the memory.
        what: String,
        /// The number of bytes requested.
        bytes: usize,
        /// The number of bytes free.
        free: usize,
        /// The total number of bytes on the device.
        total: usize,
    },
    /// The program is inconsistent.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A kernel exceeds a limit of the device.
    #[error("kernel `{kernel}` needs {asked} {what}, but the device has {limit}")]
    Limit {
        /// The entry name of the kernel.
        kernel: String,
        /// The limited resource.
        what: &'static str,
        /// The amount that the kernel needs.
        asked: u64,
        /// The amount that the device has.
        limit: u64,
    },
    /// The compiled code is corrupt.
    #[error("the code of program `{program}` is damaged: {why}")]
    DamagedCode {
        /// The name of the program.
        program: String,
        /// The problem with the code.
        why: &'static str,
    },
    /// The program has no buffer with this role.
    #[error("the program has no {}", role_name(.role))]
    NoBuffer {
        /// The requested role.
        role: Role,
    },
    /// The number of inputs or outputs given does not match the program.
    #[error("the program has {expected} {what}, but memory for {given} was given; give one piece for each")]
    WrongNumber {
        /// `inputs` or `outputs`.
        what: &'static str,
        /// The number that the program has.
        expected: usize,
        /// The number that was given.
        given: usize,
    },
    /// Memory that belongs to a different context than the stream.
    #[error(
        "the memory of `{what}` belongs to another CudaContext than the stream: allocate it in the stream's context, or \
         pass it by its address"
    )]
    OtherContext {
        /// The name of the input or output.
        what: String,
    },
    /// A shared input that was uploaded to a different context than the program's.
    #[error(
        "the memory for `{what}` was uploaded to another context than the one that `{program}` is loaded in: upload it \
         with the Gpu that loads the program"
    )]
    OtherGpu {
        /// The name of the input.
        what: String,
        /// The name of the program.
        program: String,
    },
    /// A stream that belongs to a different context than the kernels.
    #[error(
        "the stream belongs to another context than the kernels of `{program}`: load them with a Gpu of its context"
    )]
    OtherStream {
        /// The name of the program.
        program: String,
    },
    /// A workspace that was made by other kernels.
    #[error("the workspace was not made for these kernels of `{program}`: use one of Kernels::workspace")]
    OtherWorkspace {
        /// The name of the program.
        program: String,
    },
    /// A workspace whose memory belongs to a captured graph.
    #[error(
        "the workspace of `{program}` belongs to a graph that was captured with it: use another workspace"
    )]
    WorkspaceInGraph {
        /// The name of the program.
        program: String,
    },
    /// A run on host memory, which waits, while the stream is being captured.
    #[error(
        "`{program}` cannot run on host memory while the stream is being captured: launch it on device memory"
    )]
    HostInCapture {
        /// The name of the program.
        program: String,
    },
    /// Borrowed memory in a launch that becomes part of a graph, which can outlive it.
    #[error(
        "the stream is being captured, and the graph would not keep the memory of `{what}`, which is only borrowed: pass \
         it by its address (DeviceBytes::at) and keep it as long as the graph"
    )]
    Captured {
        /// The name of the input or output.
        what: String,
    },
    /// A program cannot be loaded while its stream is being captured.
    #[error("`{what}` cannot be loaded while the stream is being captured: load it before the capture")]
    LoadedInCapture {
        /// The program, or the buffer that would be allocated.
        what: String,
    },
    /// Memory that is not aligned to the element size, or to the vectors that kernels access it by.
    #[error("`{what}` lies at {address:#x}, which is not a multiple of {unit} bytes, as its kernels need it")]
    Misaligned {
        /// The name of the input or output.
        what: String,
        /// The device address.
        address: u64,
        /// The bytes that the address must be a multiple of.
        unit: u64,
    },
    /// An output that overlaps other memory of the same launch.
    #[error("`{first}` and `{second}` overlap in device memory: give every output its own memory")]
    Overlap {
        /// The name of one input or output.
        first: String,
        /// The name of the other input or output.
        second: String,
    },
    /// Data of the wrong size.
    #[error("`{what}` takes {expected} bytes, but {given} were given")]
    WrongSize {
        /// The name of the input, output or parameter block.
        what: String,
        /// The number of bytes expected.
        expected: usize,
        /// The number of bytes given.
        given: usize,
    },
}

impl Error {
    /// Whether a kernel faulted, after which this process can no longer use the device.
    pub fn is_fault(&self) -> bool {
        matches!(self, Error::Fault { .. })
    }
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
