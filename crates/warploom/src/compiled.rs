//! Compiled pipelines: a schedule and a backend, ready to run on data.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use warploom_codegen::build::{BuildError, build_with};
use warploom_codegen::instance::InstanceError;
use warploom_codegen::ir::Program;
use warploom_codegen::lower;
use warploom_codegen::printer::{Build, PRINTER};
use warploom_interp::buffer::Buffer;
use warploom_lang::{IdVec, ParamId, Pipeline, Range, Realisation, Region, Value, infer};
use warploom_plan::{PlanError, Problem};
use warploom_runtime::{Gpu, Kernels, Launcher, Stream, compiler, is_capturing};
use warploom_schedule::Schedule;
use warploom_target::Device;
use warploom_target::program::{self, Code};
use warploom_tune::cache::Cache;
use warploom_tune::workload::{GpuError, Workload};

use crate::any_size::{AnySize, GivenStrides, of_buffers};
use crate::backend::{Backend, RunError};
use crate::on_device::{
    DeviceInput, DeviceMemoryError, DeviceOutput, given_strides, take_inputs, take_outputs, values,
};
use crate::recent::Recent;
use crate::sizes::check_number;

/// The number of sizes whose kernels are kept.
const KEPT_SIZES: usize = 16;

/// Warn if the number of output points differs from the scheduled one by more than this factor.
const FAR: f64 = 4.0;

/// A pipeline with a schedule, ready to run on data of any size.
///
/// Kernels are built for the sizes that the pipeline was scheduled for. At other sizes they are
/// rebuilt under the same schedule. The kernels of the 16 most recently used sizes are kept. If a
/// block would need more resources than the device has, the default schedule is used instead.
///
/// The machine code is kept in the [user's cache](Cache::of_user), so a program that is restarted
/// does not compile again. `WARPLOOM_CACHE_DIR` sets another cache folder; if it is empty, there is
/// no cache. [`Compiled::with_cache`] sets the cache of one pipeline.
///
/// [`Compiled::run`] takes and returns buffers in host memory. [`Compiled::launch`] takes device
/// memory and a stream and does not wait: it is for callers whose data is on the GPU.
///
/// # Threads and streams
///
/// Any number of threads may run and launch at the same time, on any streams. Each run has device
/// memory of its own for its temporaries, so runs do not disturb each other; that memory is used
/// again when the run has ended. If several threads need kernels for the same new size, one of them
/// builds these and the others wait.
///
/// A clone shares the kernels and has its own values of the Params:
///
/// ```
/// # use warploom::prelude::*;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let x = vars!(x);
/// # let (input, gain) = (Input::f32("input", 1), Param::f32("gain"));
/// # let pipeline = Pipeline::new("louder", [func("louder", x, &gain * input.at(x))])?;
/// # let samples = Buffer::from_vec(Region::of_extents(&[2]), vec![1.0f32, 2.0])?;
/// # let sizes = [&samples].realisation(&pipeline)?.param("gain", 2.0f32);
/// # let device = Device::preset("h200")?;
/// # let compiled = pipeline.autoschedule(&device, &sizes)?.compile_for(Backend::Simulator(device.clone()))?;
/// let mut quiet = compiled.clone();
/// quiet.set_param("gain", 0.5f32)?;
/// let (loud, quiet) = std::thread::scope(|scope| {
///     let loud = scope.spawn(|| compiled.run(&[&samples]));
///     (loud.join().expect("it does not panic"), quiet.run(&[&samples]))
/// });
/// assert_eq!(loud?[0].as_slice::<f32>(), Some([2.0, 4.0].as_slice()));
/// assert_eq!(quiet?[0].as_slice::<f32>(), Some([0.5, 1.0].as_slice()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Compiled {
    shared: Arc<Shared>,
    /// The sizes that the pipeline was scheduled for, and the current values of its Params.
    request: Realisation,
}

/// The state that clones share.
struct Shared {
    pipeline: Pipeline,
    schedule: Schedule,
    backend: Backend,
    cache: Option<Cache>,
    /// For each Param, whether kernels are built for its value.
    specialised: IdVec<ParamId, bool>,
    /// The kernels for all sizes, if they exist.
    any_size: Option<AnySize>,
    /// The kernels by sizes, specialised Params and strides; other Params are `None` in the keys.
    recent: Recent<Key, Ready>,
    warned: AtomicBool,
}

/// The key of kernels: what they are built for, or launched with.
#[derive(Clone, PartialEq)]
struct Key {
    request: Realisation,
    /// The strides of inputs and outputs; empty if all are dense.
    strides: GivenStrides,
    /// Whether all memory is aligned for vector accesses.
    aligned: bool,
}

/// Kernels built for some sizes and Params.
struct Ready {
    program: Arc<Program>,
    /// `None` for the simulator, which needs only the program.
    kernels: Option<Launcher>,
    from_cache: bool,
}

impl Compiled {
    /// Builds the kernels of a schedule for the sizes in `request`, using the user's cache.
    ///
    /// # Errors
    /// If the schedule is illegal at these sizes, or if the kernels do not compile.
    pub fn new(
        pipeline: Pipeline,
        schedule: Schedule,
        request: Realisation,
        backend: Backend,
    ) -> Result<Compiled, RunError> {
        Compiled::with_cache(pipeline, schedule, request, backend, Cache::of_user())
    }

    /// Like `new`, with another cache for machine code, or without one.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    pub fn with_cache(
        pipeline: Pipeline,
        schedule: Schedule,
        request: Realisation,
        backend: Backend,
        cache: Option<Cache>,
    ) -> Result<Compiled, RunError> {
        infer(&pipeline, &request)?;
        let compiled = Compiled::unprepared(pipeline, schedule, request, backend, cache, None);
        if let Some(device) = compiled.shared.backend.device() {
            compiled.ready_dense(compiled.request.clone(), device)?;
        }
        Ok(compiled)
    }

    /// Kernels for all sizes of a problem, prepared for the typical ones.
    pub(crate) fn of_any_size(
        problem: &Problem,
        schedule: Schedule,
        program: Program,
        backend: Backend,
    ) -> Result<Compiled, RunError> {
        let (pipeline, typical, cache) =
            (problem.pipeline().clone(), problem.request().clone(), Cache::of_user());
        let any_size = problem.sizes().map(|sizes| AnySize::new(sizes.request.clone(), program));
        let compiled = Compiled::unprepared(pipeline, schedule, typical, backend, cache, any_size);
        if let Some(device) = compiled.shared.backend.device() {
            compiled.ready_dense(compiled.request.clone(), device)?;
        }
        Ok(compiled)
    }

    /// The kernels of a problem's schedule for a backend. `built` is the program of the schedule on the problem's
    /// device, if it exists already.
    pub(crate) fn of_problem(
        problem: &Problem,
        schedule: Schedule,
        built: Option<&Program>,
        backend: Backend,
    ) -> Result<Compiled, RunError> {
        let (pipeline, request) = (problem.pipeline().clone(), problem.request().clone());
        let compiled = Compiled::unprepared(pipeline, schedule, request, backend, Cache::of_user(), None);
        match (compiled.shared.backend.device(), built) {
            (Some(device), Some(program)) if device == problem.device() => {
                let key = compiled.shared.key(compiled.request.clone(), Vec::new());
                compiled.shared.recent.get_or_make(key, |_| compiled.shared.load(program.clone()))?;
            }
            (Some(device), _) => drop(compiled.ready_dense(compiled.request.clone(), device)?),
            (None, _) => {}
        }
        Ok(compiled)
    }

    /// A pipeline without kernels for any size yet.
    fn unprepared(
        pipeline: Pipeline,
        schedule: Schedule,
        request: Realisation,
        backend: Backend,
        cache: Option<Cache>,
        any_size: Option<AnySize>,
    ) -> Compiled {
        let (specialised, recent) = (pipeline.specialised_params(), Recent::new(KEPT_SIZES));
        let warned = AtomicBool::new(false);
        let shared = Shared { pipeline, schedule, backend, cache, specialised, any_size, recent, warned };
        Compiled { shared: Arc::new(shared), request }
    }

    /// Sets the value of a Param for later runs of this object; clones keep theirs. Nothing is
    /// recompiled unless a size depends on it.
    ///
    /// # Errors
    /// If there is no such Param, or if the value has another type or is out of its range. The
    /// Param then keeps its old value.
    pub fn set_param(&mut self, name: &str, value: impl Into<Value>) -> Result<(), RunError> {
        let request = self.request.clone().param(name, value);
        infer(&self.shared.pipeline, &request)?;
        self.request = request;
        Ok(())
    }

    /// Runs on inputs in the pipeline's order. Returns one buffer per output value, in the
    /// pipeline's order.
    ///
    /// The sizes are those of the inputs. If a dimension of an output had the same range as that
    /// dimension of an input when the pipeline was scheduled, it follows that input; otherwise it
    /// stays the same. Kernels for any size compute the boxes of the outputs from the sizes instead. To ask for other boxes,
    /// use [`Compiled::run_at`].
    ///
    /// On a GPU, this copies the inputs, runs the kernels and copies the outputs back, all on the
    /// stream that it was opened with, and waits for the result.
    ///
    /// # Errors
    /// If the inputs don't fit the pipeline, or if the backend reports an error.
    pub fn run(&self, inputs: &[&Buffer]) -> Result<Vec<Buffer>, RunError> {
        let outputs = self.output_boxes(inputs)?;
        self.run_at(inputs, &outputs)
    }

    /// Runs on inputs in the pipeline's order and computes the given boxes of the outputs. Returns
    /// one buffer per output value, in the pipeline's order.
    ///
    /// # Errors
    /// As [`Compiled::run`].
    pub fn run_at(&self, inputs: &[&Buffer], outputs: &[Region]) -> Result<Vec<Buffer>, RunError> {
        let workload = self.workload(inputs, outputs)?;
        let request = workload.realisation();
        self.warn_of_other_sizes(&request);
        let Some(device) = self.shared.backend.device() else { return Ok(workload.reference()?) };
        let ready = self.ready_dense(request, device)?;
        match &ready.kernels {
            None => Ok(workload.simulate(&ready.program, device, 0)?.outputs),
            Some(kernels) => Ok(self.shared.with_memory(|| workload.run(kernels, &ready.program))?),
        }
    }

    /// Enqueues a run on a stream, from device memory to device memory, and returns without waiting.
    ///
    /// Inputs and outputs are in the pipeline's order, with one block of memory per output value.
    /// The sizes are those given with the memory. An output must not overlap an input or another
    /// output.
    ///
    /// ```no_run
    /// use warploom::prelude::*;
    /// use warploom::runtime::cuda::{CudaContext, CudaSlice};
    ///
    /// # fn run(blur: &Autoscheduled, pixels: Vec<f32>) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
    /// let stream = CudaContext::new(0)?.new_stream()?;
    /// let image: CudaSlice<f32> = stream.clone_htod(&pixels)?;
    /// let mut blurred: CudaSlice<f32> = stream.alloc_zeros(1536 * 2560)?;
    ///
    /// let blur = blur.compile_for(Backend::on(&stream)?)?;
    /// let whole = Region::of_extents(&[1536, 2560]);
    /// let input = DeviceInput::new(whole.clone(), image.as_view());
    /// let output = DeviceOutput::new(whole, blurred.as_view_mut());
    /// blur.launch(&stream, &[input], &mut [output])?;
    /// // More work for the stream, which waits nowhere until something is read.
    /// # Ok(stream.clone_dtoh(&blurred)?)
    /// # }
    /// ```
    ///
    /// The stream must belong to the context of the GPU. Kernels for the sizes of the last 16 launches
    /// with different sizes exist already; otherwise this call builds them. Device memory for
    /// temporaries is allocated only if that of earlier launches is still in use by other streams.
    /// Each launch uses the values of the Params at the time it was enqueued. Where the schedule has
    /// vectors and some memory does not start at a multiple of 16 bytes, kernels without vectors are
    /// used, which the first such call builds.
    ///
    /// For memory managed by cudarc, cudarc's events order the launch with other streams' uses of
    /// that memory, if the context has event tracking enabled, which is the default. For memory
    /// given by address, ordering is up to the caller.
    ///
    /// While the stream is being captured, the run becomes part of the caller's graph, with its
    /// memory and Params. This requires kernels for these sizes, either from an earlier launch or
    /// because these are the scheduled sizes, and memory that is given by address
    /// ([`DeviceBytes::at`](warploom_runtime::DeviceBytes::at)), which the caller keeps as long as the graph.
    /// The graph keeps the kernels and the device memory for temporaries until it is destroyed, and
    /// nothing else uses that memory. So it can be launched on any stream, beside other launches,
    /// and outlives this object.
    ///
    /// # Errors
    /// If the memory does not fit the pipeline, if the backend is not a GPU, or if the kernels
    /// cannot be built. Errors inside the kernels are reported when the stream is synchronised.
    pub fn launch<'s>(
        &self,
        stream: impl Into<Stream<'s>>,
        inputs: &[DeviceInput<'_>],
        outputs: &mut [DeviceOutput<'_>],
    ) -> Result<(), RunError> {
        let stream = stream.into();
        let pipeline = &self.shared.pipeline;
        self.shared.gpu()?;
        let mut request = self.request.clone();
        take_inputs(pipeline, &inputs.iter().map(DeviceInput::shape).collect::<Vec<_>>(), &mut request)?;
        take_outputs(pipeline, &outputs.iter().map(DeviceOutput::shape).collect::<Vec<_>>(), &mut request)?;
        self.warn_of_other_sizes(&request);
        let shapes = inputs.iter().map(DeviceInput::shape).chain(outputs.iter().map(DeviceOutput::shape));
        let mut key = self.shared.key(request, given_strides(shapes));
        let launched = self.launch_as(&key, stream, inputs, outputs);
        match launched {
            Err(RunError::Gpu(GpuError::Runtime(warploom_runtime::Error::Misaligned { .. })))
                if self.shared.schedule.nests().any(|nest| nest.numbers.vector) =>
            {
                key.aligned = false;
                self.launch_as(&key, stream, inputs, outputs)
            }
            launched => launched,
        }
    }

    /// Enqueues a run of the kernels of a key.
    fn launch_as(
        &self,
        key: &Key,
        stream: Stream<'_>,
        inputs: &[DeviceInput<'_>],
        outputs: &mut [DeviceOutput<'_>],
    ) -> Result<(), RunError> {
        let (pipeline, gpu) = (&self.shared.pipeline, self.shared.gpu()?);
        let ready = self.ready_on(stream, key.clone(), gpu.device())?;
        let Some(kernels) = &ready.kernels else { return Ok(()) };
        let params = Value::words(&self.request.params.values().flatten().copied().collect::<Vec<Value>>());
        let inputs: Vec<_> = inputs.iter().map(DeviceInput::memory).collect();
        let outputs = values(pipeline).into_iter().zip(outputs.iter_mut().map(DeviceOutput::memory));
        // An output over an empty box has no buffer in the program.
        let program = kernels.kernels().program();
        let exists = |output, value| program.buffer(program::Role::Output { output, value }).is_some();
        let outputs = outputs.filter(|((output, value), _)| exists(*output, *value));
        let mut outputs: Vec<_> = outputs.map(|(_, memory)| memory).collect();
        Ok(self.shared.with_memory(|| Ok(kernels.launch(stream, &inputs, &mut outputs, &params)?))?)
    }

    /// The kernels that were used last, by this object or a clone; before the first run, those for the
    /// scheduled sizes. `None` on the reference evaluator.
    pub fn program(&self) -> Option<Arc<Program>> {
        self.last().map(|ready| ready.program.clone())
    }

    /// Whether the machine code of these kernels came from the cache, without compilation.
    pub fn is_from_cache(&self) -> bool {
        self.last().is_some_and(|ready| ready.from_cache)
    }

    fn last(&self) -> Option<Arc<Ready>> {
        self.shared.recent.values().into_iter().next()
    }

    /// The boxes of the outputs for some inputs; see `run`.
    fn output_boxes(&self, inputs: &[&Buffer]) -> Result<Vec<Region>, RunError> {
        check_number(&self.shared.pipeline, inputs.len())?;
        if let Some(any_size) = &self.shared.any_size {
            let inputs: Vec<Region> = inputs.iter().map(|buffer| buffer.region().clone()).collect();
            return Ok(any_size.request.outputs_for(&inputs).map_err(InstanceError::from)?);
        }
        let known: Vec<&Region> = self.request.inputs.values().flatten().collect();
        let along = |d: usize, range: &Range| {
            let like = known.iter().position(|region| region.0.get(d) == Some(range));
            like.and_then(|input| inputs[input].region().0.get(d)).copied().unwrap_or(*range)
        };
        let of = |region: &Region| Region(region.0.iter().enumerate().map(|(d, r)| along(d, r)).collect());
        Ok(self.request.outputs.iter().flatten().map(of).collect())
    }

    fn workload(&self, inputs: &[&Buffer], outputs: &[Region]) -> Result<Workload, RunError> {
        check_number(&self.shared.pipeline, inputs.len())?;
        for (decl, buffer) in self.shared.pipeline.inputs().values().zip(inputs) {
            if decl.ty != buffer.ty() {
                let (expected, given) = (decl.ty, buffer.ty());
                return Err(RunError::Type { input: decl.name.clone(), expected, given });
            }
        }
        Ok(Workload {
            pipeline: self.shared.pipeline.clone(),
            inputs: inputs.iter().map(|buffer| (*buffer).clone()).collect(),
            params: self.request.params.values().flatten().copied().collect(),
            outputs: outputs.to_vec(),
        })
    }

    /// The kernels for some sizes and memory of our own, built if there are none yet.
    fn ready_dense(&self, request: Realisation, device: &Device) -> Result<Arc<Ready>, RunError> {
        self.ready(self.shared.key(request, Vec::new()), device)
    }

    /// The kernels of a key, built if there are none yet.
    fn ready(&self, key: Key, device: &Device) -> Result<Arc<Ready>, RunError> {
        self.shared.recent.get_or_make(key, |key| {
            let mut request = key.request.clone();
            request.params = self.request.params.clone();
            if let Some(any_size) = &self.shared.any_size {
                return self.shared.load_any_size(any_size, &request, &key.strides);
            }
            let options = lower::Options { pitched: !key.strides.is_empty(), ..lower::Options::default() };
            let mut program = self.build(&request, options, key.aligned, device)?;
            if options.pitched {
                program = program.at(&[], &of_buffers(&program, &self.shared.pipeline, &key.strides))?;
            }
            self.shared.load(program)
        })
    }

    /// The same for a launch on a stream. None are built while that is being captured.
    fn ready_on(&self, stream: Stream<'_>, key: Key, device: &Device) -> Result<Arc<Ready>, RunError> {
        if let Some(ready) = self.shared.recent.get(&key) {
            return Ok(ready);
        }
        if is_capturing(stream).map_err(GpuError::from)? {
            let pipeline = self.shared.pipeline.name().to_string();
            return Err(DeviceMemoryError::Capturing { pipeline }.into());
        }
        self.ready(key, device)
    }

    /// Builds the kernels for some sizes. At sizes larger than the scheduled ones, a block may need
    /// more memory than the device has; the default schedule, which always fits, is used then.
    fn build(
        &self,
        request: &Realisation,
        options: lower::Options,
        aligned: bool,
        device: &Device,
    ) -> Result<Program, BuildError> {
        let problem = Problem::new(&self.shared.pipeline, request, device)?;
        let built = match aligned {
            true => build_with(&problem, &self.shared.schedule, options),
            false => build_with(&problem, &without_vectors(&self.shared.schedule), options),
        };
        let own = request.inputs == self.request.inputs && request.outputs == self.request.outputs;
        match built {
            Err(error @ BuildError::Plan(_)) if !own => {
                let reason = match &error {
                    BuildError::Plan(PlanError::Illegal(violations)) => {
                        violations.first().map(|first| first.rule.to_string())
                    }
                    error => Some(error.to_string()),
                };
                tracing::warn!(
                    "the schedule of `{}` cannot be used at this size, so the default schedule is used: {}",
                    self.shared.pipeline.name(),
                    reason.unwrap_or_default()
                );
                build_with(&problem, &problem.default_schedule(), options)
            }
            built => built,
        }
    }

    fn warn_of_other_sizes(&self, request: &Realisation) {
        let points = |request: &Realisation| -> f64 {
            let points = request.outputs.iter().flatten().filter_map(Region::points);
            points.map(|points| points as f64).sum()
        };
        let ratio = points(request) / points(&self.request).max(1.0);
        let is_far = !(1.0 / FAR..=FAR).contains(&ratio);
        if is_far && !self.shared.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "`{}` was scheduled for outputs of {} points and runs with {}; a schedule for this size may be faster",
                self.shared.pipeline.name(),
                points(&self.request),
                points(request)
            );
        }
    }
}

impl Shared {
    fn gpu(&self) -> Result<&Gpu, DeviceMemoryError> {
        match &self.backend {
            Backend::Gpu(gpu) => Ok(gpu),
            Backend::Simulator(_) | Backend::Reference => {
                Err(DeviceMemoryError::NoGpu { pipeline: self.pipeline.name().to_string() })
            }
        }
    }

    /// The key of kernels: the sizes, and the Params that they are built for.
    fn key(&self, mut request: Realisation, strides: GivenStrides) -> Key {
        for (id, _) in self.specialised.iter().filter(|(_, fixed)| !**fixed) {
            request.params[id] = None;
        }
        Key { request, strides, aligned: true }
    }

    /// Makes kernels for all sizes ready for some of them.
    fn load_any_size(
        &self,
        any_size: &AnySize,
        request: &Realisation,
        strides: &GivenStrides,
    ) -> Result<Ready, RunError> {
        let program = Arc::new(any_size.at(&self.pipeline, request, strides)?);
        let Backend::Gpu(gpu) = &self.backend else {
            return Ok(Ready { program, kernels: None, from_cache: false });
        };
        let described = any_size.described(&self.pipeline, request, strides)?;
        let (compiled, from_cache) = match &described.code {
            Code::Source { .. } => self.compiled(gpu, &described).map_err(GpuError::from)?,
            _ => (described, true),
        };
        any_size.keep(&compiled.code);
        let kernels = gpu.load_kernels(&compiled).map_err(GpuError::from)?;
        Ok(Ready { program, kernels: Some(Launcher::new(kernels)), from_cache })
    }

    /// Loads kernels in the form that the backend runs.
    fn load(&self, program: Program) -> Result<Ready, RunError> {
        let (kernels, from_cache) = match &self.backend {
            Backend::Gpu(gpu) => {
                let (kernels, found) = self.load_on(gpu, &program).map_err(GpuError::from)?;
                (Some(Launcher::new(kernels)), found)
            }
            Backend::Simulator(_) | Backend::Reference => (None, false),
        };
        Ok(Ready { program: Arc::new(program), kernels, from_cache })
    }

    /// Loads the kernels onto a GPU. Also returns whether their machine code was in the cache.
    fn load_on(&self, gpu: &Gpu, program: &Program) -> Result<(Kernels, bool), warploom_runtime::Error> {
        let (compiled, from_cache) = self.compiled(gpu, &PRINTER.describe(program, Build::Timing))?;
        Ok((gpu.load_kernels(&compiled)?, from_cache))
    }

    /// A program with machine code, and whether that was in the cache.
    fn compiled(
        &self,
        gpu: &Gpu,
        source: &program::Program,
    ) -> Result<(program::Program, bool), warploom_runtime::Error> {
        let arch = gpu.arch()?;
        let found = self.cache.as_ref().map(|cache| cache.find(source, arch)).transpose()?.flatten();
        let from_cache = found.is_some();
        let compiled = match (found, &self.cache) {
            (Some((compiled, _)), _) => compiled,
            (None, Some(cache)) => cache.compile_program(source, arch)?.0,
            (None, None) => compiler::compile_program(source, arch)?.0,
        };
        Ok((compiled, from_cache))
    }

    /// Tries again without the idle memory of all sizes if the device has too little.
    fn with_memory<T>(&self, mut action: impl FnMut() -> Result<T, GpuError>) -> Result<T, GpuError> {
        match action() {
            Err(GpuError::Runtime(warploom_runtime::Error::OutOfMemory { .. })) => {
                let all = self.recent.values();
                all.iter().filter_map(|ready| ready.kernels.as_ref()).for_each(Launcher::release_idle);
                action()
            }
            done => done,
        }
    }
}

/// The schedule without `vector`, for kernels with scalar accesses only.
fn without_vectors(schedule: &Schedule) -> Schedule {
    let mut schedule = schedule.clone();
    let nests = schedule.kernels_mut().flat_map(|kernel| kernel.nests_mut());
    nests.for_each(|nest| nest.numbers.vector = false);
    schedule
}

#[cfg(test)]
mod tests {
    use warploom_lang::{func, vars};

    use super::*;

    #[test]
    fn device_memory_needs_a_gpu() {
        let x = vars!(x);
        let pipeline = Pipeline::new("ramp", [func("ramp", x, x + 1)]).expect("it is right");
        let request = Realisation::new(&pipeline).output("ramp", Region::of_extents(&[8]));
        let device = Device::preset("h200").expect("it is known");
        let problem = Problem::new(&pipeline, &request, &device).expect("it fits");
        let schedule = problem.default_schedule();
        for backend in [Backend::Simulator(device), Backend::Reference] {
            let compiled =
                Compiled::of_problem(&problem, schedule.clone(), None, backend).expect("it is legal");
            assert_eq!(
                compiled.shared.gpu().expect_err("it is on no GPU").to_string(),
                "`ramp` was not compiled for a GPU, so it cannot use device memory; use Backend::Gpu"
            );
        }
    }
}
