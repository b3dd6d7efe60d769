//! The kernels of a program on a device, ready to be launched from any thread.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::CUfunction_attribute;
use cudarc::driver::{CudaFunction, CudaStream};
use warploom_target::program::{Code, Kernel, Role};
use warploom_target::{Device, Program};

use crate::cuda::caller::{AddressRange, DeviceBytes, DeviceBytesMut, check_places};
use crate::cuda::capture::Capture;
use crate::cuda::failed::{Doing, failed};
use crate::cuda::gpu::Gpu;
use crate::cuda::launch::{self, Launches};
use crate::cuda::load;
use crate::cuda::memory::StreamMemory;
use crate::cuda::nvrtc::{self, Image};
use crate::cuda::params;
use crate::cuda::workspace::Workspace;
use crate::error::Error;

/// A loaded program without memory. Inputs and outputs, the stream and a [`Workspace`] are passed
/// with every [launch](Kernels::launch), which changes nothing here.
///
/// The code stays loaded as long as this object or one of its workspaces lives.
pub struct Kernels {
    loaded: Arc<Loaded>,
    image: Option<Image>,
    memory: StreamMemory,
    kind: Launches,
}

/// Code in the driver, and its launches.
pub(crate) struct Loaded {
    pub(crate) program: Program,
    functions: Vec<CudaFunction>,
    launches: Vec<Launch>,
}

/// One launch of a run.
struct Launch {
    kernel: usize,
    iterations: Vec<i32>,
    /// Whether it follows another launch, and its kernel waits for that.
    can_be_early: bool,
}

/// The resource usage of a loaded kernel, as the driver reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelFacts {
    /// The number of registers per thread.
    pub registers: u32,
    /// Local memory per thread, in bytes.
    pub local_bytes: u32,
    /// Shared memory per block, static plus dynamic, in bytes.
    pub shared_bytes: u32,
    /// The number of resident blocks per SM.
    pub blocks_per_sm: u32,
}

impl Kernels {
    pub(crate) fn new(gpu: &Gpu, program: &Program) -> Result<Kernels, Error> {
        program.validate()?;
        program.kernels.iter().try_for_each(|kernel| check_limits(kernel, gpu.device()))?;
        if gpu.is_capturing()? {
            return Err(Error::LoadedInCapture { what: program.name.clone() });
        }
        let (mut program, image) = match &program.code {
            Code::Source { .. } => nvrtc::compile_program(program, gpu.arch()?)?,
            _ => (program.clone(), None),
        };
        // The driver keeps its own copy of the code.
        let code = std::mem::replace(&mut program.code, Code::Machine(Vec::new()));
        let functions = load::functions(gpu.stream().context(), &program, code)?;
        let waits =
            functions.iter().zip(&program.kernels).map(|(function, kernel)| launch::waits(function, kernel));
        let waits = waits.collect::<Result<Vec<bool>, Error>>()?;
        let mut launches = Vec::new();
        let flat: Result<(), Error> = program.for_each_launch(|kernel, iterations| {
            let levels = &program.kernels[kernel].iterations;
            let iterations = levels.iter().map(|&level| iterations[level] as i32).collect();
            let can_be_early = waits[kernel] && !launches.is_empty();
            launches.push(Launch { kernel, iterations, can_be_early });
            Ok(())
        });
        flat?;
        let loaded = Arc::new(Loaded { program, functions, launches });
        Ok(Kernels { loaded, image, memory: gpu.memory().clone(), kind: Launches::from_environment()? })
    }

    /// Sets how kernels follow each other in runs enqueued from now on.
    pub fn set_launches(&mut self, kind: Launches) {
        self.kind = kind;
    }

    /// The number of launches of a run that are early.
    pub fn early_launches(&self) -> usize {
        let early = self.loaded.launches.iter().filter(|launch| launch.is_early(self.kind));
        early.count()
    }

    /// The program, without its code.
    pub fn program(&self) -> &Program {
        &self.loaded.program
    }

    /// The compiled image, if loading compiled the program.
    pub fn image(&self) -> Option<&Image> {
        self.image.as_ref()
    }

    /// Allocates the memory that a launch needs besides its inputs and outputs.
    ///
    /// # Errors
    ///
    /// If it does not fit on the device.
    pub fn workspace(&self) -> Result<Workspace, Error> {
        Workspace::new(&self.loaded, &self.memory)
    }

    /// Enqueues one run on a stream, on the caller's memory, and returns without waiting.
    ///
    /// Inputs are in the program's order, outputs in the order of [`Role::Output`]: by output, then
    /// by value. Nothing is allocated on the device. The params are part of the enqueued commands,
    /// so each run uses the values it was given, even if the next run is enqueued with others
    /// before it starts.
    ///
    /// The run is ordered after the workspace's previous one, on whatever stream that was. Runs on
    /// several streams overlap only if each has a workspace of its own.
    ///
    /// Memory that cudarc manages carries events: the stream first waits for other streams that use
    /// the memory, and they wait for this run. For memory given by address, the caller must do
    /// this.
    ///
    /// # While the stream is captured
    ///
    /// The run becomes part of the caller's graph, with its addresses and params. The graph takes
    /// the memory of the workspace and the code, and keeps both until it is destroyed. From then on
    /// the workspace accepts only launches on the same stream in the same capture. So no other
    /// launch disturbs a replay, and this object, the workspace and the graph may be dropped in any
    /// order. Two instances of the same graph share that memory and must not run at the same time.
    ///
    /// If the workspace was used before, this waits for that use. Inputs and outputs are given by
    /// address ([`DeviceBytes::at`]): cudarc's graph can be launched after a borrow has ended, so
    /// keeping that memory is up to the caller.
    ///
    /// # Errors
    ///
    /// If the workspace, the stream or the memory does not match the program, an output overlaps
    /// other memory, or the driver rejects the launch.
    pub fn launch(
        &self,
        stream: &CudaStream,
        workspace: &mut Workspace,
        inputs: &[&DeviceBytes<'_>],
        outputs: &mut [&mut DeviceBytesMut<'_>],
        params: &[u32],
    ) -> Result<(), Error> {
        self.check_stream(stream)?;
        workspace.check_owner(&self.loaded)?;
        params::check_number(self.program().params, params)?;
        let capture = Capture::of(stream)?;
        let positions = self.positions(inputs.len(), outputs.len())?;
        self.check(stream, inputs, outputs, &positions, capture.is_some())?;
        let mut addresses = workspace.addresses();
        let mut places = Vec::with_capacity(positions.len());
        // Dropping these guards after the launches tells other streams about this run.
        let mut uses = Vec::with_capacity(positions.len());
        let (of_inputs, of_outputs) = positions.split_at(inputs.len());
        for (&position, input) in of_inputs.iter().zip(inputs) {
            let (address, used) = input.address(stream);
            addresses[position] = address;
            places.push(AddressRange::new(&self.program().buffers[position], address, false));
            uses.push(used);
        }
        for (&position, output) in of_outputs.iter().zip(outputs) {
            let (address, used) = output.address(stream);
            addresses[position] = address;
            places.push(AddressRange::new(&self.program().buffers[position], address, true));
            uses.push(used);
        }
        check_places(&places)?;
        workspace.on(stream, capture.as_ref(), |workspace| {
            workspace.set_params(stream, params)?;
            self.loaded.enqueue(stream, &addresses, workspace.params_address(), self.kind)
        })
    }

    /// The resource usage of each kernel, in the program's order.
    ///
    /// # Errors
    ///
    /// If a driver call fails.
    pub fn facts(&self) -> Result<Vec<KernelFacts>, Error> {
        let number = |value: i32| u32::try_from(value).unwrap_or_default();
        let facts = self.loaded.functions.iter().zip(&self.program().kernels).map(|(function, kernel)| {
            let dynamic = kernel.dynamic_shared_bytes;
            let doing = "describe a kernel";
            Ok(KernelFacts {
                registers: number(function.num_regs().doing(doing)?),
                local_bytes: number(function.local_size_bytes().doing(doing)?),
                shared_bytes: number(function.shared_size_bytes().doing(doing)?) + dynamic,
                blocks_per_sm: function
                    .occupancy_max_active_blocks_per_multiprocessor(kernel.threads, dynamic as usize, None)
                    .doing(doing)?,
            })
        });
        facts.collect()
    }

    pub(crate) fn kind(&self) -> Launches {
        self.kind
    }

    pub(crate) fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    pub(crate) fn memory(&self) -> &StreamMemory {
        &self.memory
    }

    /// Rejects a stream of a context that the code is not loaded in.
    fn check_stream(&self, stream: &CudaStream) -> Result<(), Error> {
        if stream.context() == self.memory.stream.context() {
            return Ok(());
        }
        Err(Error::OtherStream { program: self.program().name.clone() })
    }

    /// The positions of inputs and outputs among the program's buffers, in their order.
    fn positions(&self, inputs: usize, outputs: usize) -> Result<Vec<usize>, Error> {
        let mut roles: Vec<(Role, usize)> = self
            .program()
            .buffers
            .iter()
            .enumerate()
            .map(|(position, buffer)| (buffer.role, position))
            .collect();
        roles.retain(|(role, _)| *role != Role::Temporary);
        roles.sort_by_key(|(role, _)| match *role {
            Role::Input(input) => (0, input, 0),
            Role::Output { output, value } => (1, output, value),
            Role::Temporary => (2, 0, 0),
        });
        let expected = roles.iter().filter(|(role, _)| matches!(role, Role::Input(_))).count();
        if inputs != expected {
            return Err(Error::WrongNumber { what: "inputs", expected, given: inputs });
        }
        let expected = roles.len() - expected;
        if outputs != expected {
            return Err(Error::WrongNumber { what: "outputs", expected, given: outputs });
        }
        Ok(roles.into_iter().map(|(_, position)| position).collect())
    }

    /// Rejects memory with the wrong size or context, and memory that cannot be used while the
    /// stream is captured.
    fn check(
        &self,
        stream: &CudaStream,
        inputs: &[&DeviceBytes<'_>],
        outputs: &[&mut DeviceBytesMut<'_>],
        positions: &[usize],
        capturing: bool,
    ) -> Result<(), Error> {
        let inputs = inputs.iter().map(|input| (input.bytes(), input.context()));
        let outputs = outputs.iter().map(|output| (output.bytes(), output.context()));
        let ours = stream.context();
        for (&position, (given, context)) in positions.iter().zip(inputs.chain(outputs)) {
            let buffer = &self.program().buffers[position];
            let (what, expected) = (buffer.name.clone(), buffer.bytes());
            // Memory after a buffer with a pitch is not touched.
            if given < expected {
                return Err(Error::WrongSize { what, expected, given });
            }
            let Some(context) = context else { continue };
            // Two objects may be the same context for the driver, but do not know each other's
            // streams.
            if !Arc::ptr_eq(context, ours) {
                return Err(Error::OtherContext { what });
            }
            // The graph would not hold the borrow.
            if capturing {
                return Err(Error::Captured { what });
            }
        }
        Ok(())
    }
}

impl Launch {
    fn is_early(&self, kind: Launches) -> bool {
        self.can_be_early && kind == Launches::Early
    }
}

impl Loaded {
    /// Enqueues all launches on buffers and params at these addresses.
    pub(crate) fn enqueue(
        &self,
        stream: &CudaStream,
        buffers: &[u64],
        params: u64,
        kind: Launches,
    ) -> Result<(), Error> {
        let each = |launch: &Launch| self.enqueue_one(stream, launch, buffers, params, launch.is_early(kind));
        self.launches.iter().try_for_each(each)
    }

    /// Enqueues all launches and waits after each, so that an error names the kernel at fault.
    pub(crate) fn step_by_step(
        &self,
        stream: &CudaStream,
        buffers: &[u64],
        params: u64,
    ) -> Result<(), Error> {
        for launch in &self.launches {
            self.enqueue_one(stream, launch, buffers, params, false)?;
            let kernel = &self.program.kernels[launch.kernel].entry;
            let doing = format!("run kernel `{kernel}` {:?}", launch.iterations);
            stream.synchronize().doing(&doing)?;
        }
        Ok(())
    }

    /// Enqueues one launch. Buffers are passed as addresses, not as cudarc's slices: those would
    /// record an event before and after every launch, which costs time and cannot be captured.
    fn enqueue_one(
        &self,
        stream: &CudaStream,
        launch: &Launch,
        buffers: &[u64],
        params: u64,
        early: bool,
    ) -> Result<(), Error> {
        let kernel = &self.program.kernels[launch.kernel];
        let addresses = kernel.buffers.iter().map(|&buffer| &buffers[buffer]);
        let addresses = addresses.chain(kernel.reads_params.then_some(&params)).map(argument);
        let numbers = launch.iterations.iter().chain(&kernel.sizes).map(argument);
        let mut arguments: Vec<*mut c_void> = addresses.chain(numbers).collect();
        let function = &self.functions[launch.kernel];
        // SAFETY: the arguments are those that the program declares for the kernel, in that order.
        // The workspace, which keeps the code loaded, waits for the launch before it frees its
        // memory, or a graph keeps both. Inputs and outputs have the sizes that the program
        // declares, and they are freed in the stream's order, by cudarc's events or as the caller
        // of `DeviceBytes::at` promised. Code generation guarantees that the kernel stays in bounds,
        // and that it waits for its predecessor if it is early.
        let launched = unsafe { launch::launch(stream, function, kernel, &mut arguments, early) };
        launched.map_err(|error| failed(format!("launch kernel `{}`", kernel.entry), error))
    }
}

/// An argument as the driver takes it, which only reads it.
fn argument<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Loaded { program, launches, .. } = &*self.loaded;
        f.debug_struct("Kernels").field("program", &program.name).field("launches", &launches.len()).finish()
    }
}

/// Rejects kernels that exceed a limit of the device, with the limit in the error.
fn check_limits(kernel: &Kernel, device: &Device) -> Result<(), Error> {
    let dims = device.threads.grid_dims;
    let limits = [
        ("threads per block", kernel.threads, device.threads.per_block),
        ("bytes of shared memory per block", kernel.shared_bytes, device.shared.per_block_opt_in),
        ("blocks along x", kernel.grid[0], dims[0]),
        ("blocks along y", kernel.grid[1], dims[1]),
        ("blocks along z", kernel.grid[2], dims[2]),
    ];
    match limits.into_iter().find(|(_, asked, limit)| asked > limit) {
        None => Ok(()),
        Some((what, asked, limit)) => {
            let (asked, limit) = (u64::from(asked), u64::from(limit));
            Err(Error::Limit { kernel: kernel.entry.clone(), what, asked, limit })
        }
    }
}

/// Opts a kernel in to more dynamic shared memory than the default limit.
pub(crate) fn opt_in(function: &CudaFunction, kernel: &Kernel) -> Result<(), Error> {
    if kernel.dynamic_shared_bytes == 0 {
        return Ok(());
    }
    let bytes = i32::try_from(kernel.dynamic_shared_bytes).unwrap_or(i32::MAX);
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    function
        .set_attribute(attribute, bytes)
        .doing(&format!("give kernel `{}` {bytes} bytes of shared memory", kernel.entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> Kernel {
        Kernel {
            entry: "blur".to_string(),
            grid: [4, 4, 1],
            threads: 256,
            shared_bytes: 100_000,
            dynamic_shared_bytes: 100_000,
            buffers: Vec::new(),
            reads_params: false,
            iterations: Vec::new(),
            sizes: Vec::new(),
            waits: false,
        }
    }

    #[test]
    fn kernels_that_do_not_fit_are_refused_before_the_driver_sees_them() {
        let device = Device::preset("h200").unwrap();
        check_limits(&kernel(), &device).unwrap();
        let refused = |kernel: Kernel| check_limits(&kernel, &device).unwrap_err().to_string();
        assert_eq!(
            refused(Kernel { threads: 2048, ..kernel() }),
            "kernel `blur` needs 2048 threads per block, but the device has 1024"
        );
        assert_eq!(
            refused(Kernel { shared_bytes: 232_449, ..kernel() }),
            "kernel `blur` needs 232449 bytes of shared memory per block, but the device has 232448"
        );
        assert_eq!(
            refused(Kernel { grid: [1, 70_000, 1], ..kernel() }),
            "kernel `blur` needs 70000 blocks along y, but the device has 65535"
        );
    }
}
