//! A program on a device: code, buffers and launches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{
    CUevent_flags, CUfunction_attribute, CUgraphInstantiate_flags, CUstreamCaptureMode,
};
use cudarc::driver::{CudaFunction, CudaGraph, CudaStream, LaunchConfig, PushKernelArg};
use warploom_target::program::{Buffer, Code, Kernel, Role};
use warploom_target::{Device, Program};

use crate::error::{Doing, Error};
use crate::gpu::Gpu;
use crate::load;
use crate::memory::{Allocation, DeviceBuffer};
use crate::nvrtc::{self, Image};
use crate::timing::{Mode, Sample, Timing, TimingOptions};

/// What outputs and temporaries are filled with by [`Executable::poison`].
pub const POISON: u8 = 0xa5;

/// One launch of a run.
struct Launch {
    kernel: usize,
    iterations: Vec<i32>,
}

/// The memory of one buffer.
enum Slot {
    Own(Allocation),
    /// An input that other programs read too.
    Shared(DeviceBuffer),
}

impl Slot {
    fn get(&self) -> &Allocation {
        match self {
            Slot::Own(allocation) => allocation,
            Slot::Shared(buffer) => buffer.allocation(),
        }
    }
}

/// A loaded program with its buffers.
///
/// Inputs and params stay on the device until they are uploaded again; a fresh program's hold arbitrary bytes.
pub struct Executable {
    program: Program,
    image: Option<Image>,
    functions: Vec<CudaFunction>,
    launches: Vec<Launch>,
    /// Captured when first needed; dropped before the buffers it refers to.
    graph: Option<CudaGraph>,
    buffers: Vec<Slot>,
    params: Allocation,
    stream: Arc<CudaStream>,
}

/// What a loaded kernel takes, as the driver sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelFacts {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread.
    pub local_bytes: u32,
    /// Bytes of shared memory of a block, declared and asked for.
    pub shared_bytes: u32,
    /// Blocks that one SM holds at a time.
    pub blocks_per_sm: u32,
}

impl Executable {
    pub(crate) fn new(gpu: &Gpu, program: &Program, inputs: &[DeviceBuffer]) -> Result<Executable, Error> {
        program.validate()?;
        program.kernels.iter().try_for_each(|kernel| check_limits(kernel, gpu.device()))?;
        let (mut program, image) = match &program.code {
            Code::Source { .. } => nvrtc::compile_program(program, gpu.arch()?)?,
            _ => (program.clone(), None),
        };
        // The driver keeps its own copy of the code.
        let code = std::mem::replace(&mut program.code, Code::Cubin(Vec::new()));
        let functions = load::functions(gpu.context(), &program, code)?;
        let buffers = program.buffers.iter().map(|buffer| slot(gpu, buffer, inputs));
        let buffers = buffers.collect::<Result<Vec<Slot>, Error>>()?;
        let params = gpu.memory().allocate("params", program.params * 4)?;
        let mut launches = Vec::new();
        let flat: Result<(), Error> = program.for_each_launch(|kernel, iterations| {
            let levels = &program.kernels[kernel].iterations;
            let iterations = levels.iter().map(|&level| iterations[level] as i32).collect();
            launches.push(Launch { kernel, iterations });
            Ok(())
        });
        flat?;
        let stream = gpu.stream().clone();
        Ok(Executable { program, image, functions, launches, graph: None, buffers, params, stream })
    }

    /// The program, without its code.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What the compiler said, if loading compiled the program.
    pub fn image(&self) -> Option<&Image> {
        self.image.as_ref()
    }

    /// Sets an input: its elements' bytes in the order of the buffer. One that was shared becomes the program's own.
    ///
    /// # Errors
    ///
    /// If there is no such input, the size is wrong, or the driver fails.
    pub fn upload(&mut self, input: usize, data: &[u8]) -> Result<(), Error> {
        let position = self.position(Role::Input(input))?;
        let name = &self.program.buffers[position].name;
        if let Slot::Shared(buffer) = &self.buffers[position] {
            self.buffers[position] = Slot::Own(buffer.allocation().another(name)?);
            // It refers to the old one.
            self.graph = None;
        }
        match &mut self.buffers[position] {
            Slot::Own(allocation) => allocation.upload(name, data),
            Slot::Shared(_) => Ok(()),
        }
    }

    /// Sets the scalars: 32 bits each, narrower types extended. Graphs need no new capture.
    ///
    /// # Errors
    ///
    /// If their number is wrong, or the driver fails.
    pub fn set_params(&mut self, params: &[u32]) -> Result<(), Error> {
        let bytes: Vec<u8> = params.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.params.upload("params", &bytes)
    }

    /// The bytes of one value of an output.
    ///
    /// # Errors
    ///
    /// If there is no such output, or the driver or an earlier kernel fails.
    pub fn download(&self, output: usize, value: usize) -> Result<Vec<u8>, Error> {
        self.buffers[self.position(Role::Output { output, value })?].get().download()
    }

    /// The bytes of any buffer, by its position in the program.
    ///
    /// # Errors
    ///
    /// If the driver or an earlier kernel fails.
    ///
    /// # Panics
    ///
    /// If the program has no such buffer.
    pub fn download_buffer(&self, position: usize) -> Result<Vec<u8>, Error> {
        self.buffers[position].get().download()
    }

    /// Fills outputs and temporaries with [`POISON`], so that what a run does not write shows.
    ///
    /// # Errors
    ///
    /// If the driver or an earlier kernel fails.
    pub fn poison(&mut self) -> Result<(), Error> {
        for (slot, buffer) in self.buffers.iter_mut().zip(&self.program.buffers) {
            if let (Slot::Own(allocation), Role::Output { .. } | Role::Temporary) = (slot, buffer.role) {
                allocation.fill(POISON)?;
            }
        }
        self.stream.synchronize().doing("fill memory")
    }

    /// Runs once and waits.
    ///
    /// # Errors
    ///
    /// If a launch is refused or a kernel fails.
    pub fn run(&mut self) -> Result<(), Error> {
        self.enqueue()?;
        self.stream.synchronize().doing("run the program")
    }

    /// Runs once, waiting after every launch, so that an error names the kernel at fault.
    ///
    /// # Errors
    ///
    /// If a launch is refused or a kernel fails.
    pub fn run_step_by_step(&mut self) -> Result<(), Error> {
        for launch in &self.launches {
            self.launch(launch)?;
            let kernel = &self.program.kernels[launch.kernel].entry;
            self.stream.synchronize().doing(&format!("run kernel `{kernel}` {:?}", launch.iterations))?;
        }
        Ok(())
    }

    /// Runs once as a graph, captured on first use, and waits.
    ///
    /// # Errors
    ///
    /// If the capture or a kernel fails.
    pub fn replay(&mut self) -> Result<(), Error> {
        self.enqueue_graph()?;
        self.stream.synchronize().doing("replay the graph")
    }

    /// Times the program in each mode.
    ///
    /// # Errors
    ///
    /// If a launch is refused or a kernel fails.
    pub fn time(&mut self, options: &TimingOptions) -> Result<Timing, Error> {
        let samples = options.modes.iter().map(|&mode| self.time_mode(mode, options));
        Ok(Timing { samples: samples.collect::<Result<_, _>>()? })
    }

    /// What each kernel takes, in the program's order.
    ///
    /// # Errors
    ///
    /// If the driver does not answer.
    pub fn facts(&self) -> Result<Vec<KernelFacts>, Error> {
        let number = |value: i32| u32::try_from(value).unwrap_or_default();
        let facts = self.functions.iter().zip(&self.program.kernels).map(|(function, kernel)| {
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

    fn position(&self, role: Role) -> Result<usize, Error> {
        self.program.buffer(role).ok_or(Error::NoBuffer { role })
    }

    fn enqueue(&self) -> Result<(), Error> {
        self.launches.iter().try_for_each(|launch| self.launch(launch))
    }

    fn launch(&self, launch: &Launch) -> Result<(), Error> {
        let kernel = &self.program.kernels[launch.kernel];
        let mut builder = self.stream.launch_builder(&self.functions[launch.kernel]);
        for slice in kernel.buffers.iter().filter_map(|&buffer| self.buffers[buffer].get().slice()) {
            builder.arg(slice);
        }
        if let (true, Some(slice)) = (kernel.reads_params, self.params.slice()) {
            builder.arg(slice);
        }
        for iteration in &launch.iterations {
            builder.arg(iteration);
        }
        let config = LaunchConfig {
            grid_dim: kernel.grid.into(),
            block_dim: (kernel.threads, 1, 1),
            shared_mem_bytes: kernel.dynamic_shared_bytes,
        };
        // SAFETY: the arguments are those that the program says the kernel takes, in that order; their memory
        // lives as long as this object, and whoever frees it does so on the same stream. That the kernel stays
        // within its memory is what code generation promises.
        let launched = unsafe { builder.launch(config) };
        launched
            .map(|_| ())
            .map_err(|error| Error::driver(format!("launch kernel `{}`", kernel.entry), error))
    }

    /// The graph; none for a program that launches nothing.
    fn captured(&mut self) -> Result<Option<&CudaGraph>, Error> {
        if self.graph.is_none() {
            self.graph = self.capture()?;
        }
        Ok(self.graph.as_ref())
    }

    fn enqueue_graph(&mut self) -> Result<(), Error> {
        match self.captured()? {
            Some(graph) => graph.launch().doing("launch the graph"),
            None => Ok(()),
        }
    }

    fn capture(&self) -> Result<Option<CudaGraph>, Error> {
        let doing = "capture the launches";
        self.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).doing(doing)?;
        let launched = self.enqueue();
        // The capture must end even if a launch failed.
        let graph = self.stream.end_capture(CUgraphInstantiate_flags(0));
        launched?;
        let graph = graph.doing(doing)?;
        if let Some(graph) = &graph {
            graph.upload().doing(doing)?;
        }
        Ok(graph)
    }

    fn enqueue_mode(&mut self, mode: Mode) -> Result<(), Error> {
        match mode {
            Mode::Stream => self.enqueue(),
            Mode::Graph => self.enqueue_graph(),
        }
    }

    fn time_mode(&mut self, mode: Mode, options: &TimingOptions) -> Result<Sample, Error> {
        if mode == Mode::Graph {
            self.captured()?;
            self.stream.synchronize().doing("prepare the graph")?;
        }
        let start = Instant::now();
        let mut call = self.batch(mode, 1)?;
        if call >= options.patience() {
            // The first may have waited for the driver. Twice is enough of what takes longer than all the time there is.
            let again = self.batch(mode, 1)?;
            if again >= options.patience() {
                let calls = [call, again].map(|call| call.as_secs_f64() * 1e6);
                return Ok(Sample::new(mode, calls.to_vec(), 1));
            }
            call = again;
        }
        for _ in 1..options.warm_ups {
            if start.elapsed() + call >= options.limit {
                break;
            }
            call = self.batch(mode, 1)?;
        }
        let calls = options.calls(call);
        let start = Instant::now();
        let mut measured = Duration::ZERO;
        let mut batches = Vec::new();
        let more = |batches: usize, measured: Duration| {
            batches < options.batches && measured < options.total && start.elapsed() < options.limit
        };
        while batches.is_empty() || more(batches.len(), measured) {
            let time = self.batch(mode, calls)?;
            measured += time;
            batches.push(time.as_secs_f64() * 1e6 / f64::from(calls));
        }
        Ok(Sample::new(mode, batches, calls))
    }

    /// The time of some calls on the device's clock.
    fn batch(&mut self, mode: Mode, calls: u32) -> Result<Duration, Error> {
        let doing = "time the program";
        let event = || self.stream.context().new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).doing(doing);
        let (before, after) = (event()?, event()?);
        before.record(&self.stream).doing(doing)?;
        for _ in 0..calls {
            self.enqueue_mode(mode)?;
        }
        after.record(&self.stream).doing(doing)?;
        let milliseconds = before.elapsed_ms(&after).doing(doing)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds).max(0.0) / 1e3))
    }
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Executable { program, launches, .. } = self;
        f.debug_struct("Executable")
            .field("program", &program.name)
            .field("launches", &launches.len())
            .finish()
    }
}

/// Memory for a buffer of a program: what is given for an input, else a piece of its own.
fn slot(gpu: &Gpu, buffer: &Buffer, inputs: &[DeviceBuffer]) -> Result<Slot, Error> {
    let given = match buffer.role {
        Role::Input(input) => inputs.get(input),
        _ => None,
    };
    match given {
        None => Ok(Slot::Own(gpu.memory().allocate(&buffer.name, buffer.bytes())?)),
        Some(given) if given.bytes() == buffer.bytes() => Ok(Slot::Shared(given.clone())),
        Some(given) => {
            let (what, expected) = (buffer.name.clone(), buffer.bytes());
            Err(Error::WrongSize { what, expected, given: given.bytes() })
        }
    }
}

/// Refuses kernels that the device cannot launch, with what is lacking.
fn check_limits(kernel: &Kernel, device: &Device) -> Result<(), Error> {
    let dims = device.threads.grid_dims;
    let limits = [
        ("threads in a block", kernel.threads, device.threads.per_block),
        ("bytes of shared memory in a block", kernel.shared_bytes, device.shared.per_block_opt_in),
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

/// Lets a kernel have more shared memory than it gets without asking.
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
        }
    }

    #[test]
    fn kernels_that_do_not_fit_are_refused_before_the_driver_sees_them() {
        let device = Device::preset("h200").unwrap();
        check_limits(&kernel(), &device).unwrap();
        let refused = |kernel: Kernel| check_limits(&kernel, &device).unwrap_err().to_string();
        assert_eq!(
            refused(Kernel { threads: 2048, ..kernel() }),
            "kernel `blur` needs 2048 threads in a block, but the device has 1024"
        );
        assert_eq!(
            refused(Kernel { shared_bytes: 232_449, ..kernel() }),
            "kernel `blur` needs 232449 bytes of shared memory in a block, but the device has 232448"
        );
        assert_eq!(
            refused(Kernel { grid: [1, 70_000, 1], ..kernel() }),
            "kernel `blur` needs 70000 blocks along y, but the device has 65535"
        );
    }
}
