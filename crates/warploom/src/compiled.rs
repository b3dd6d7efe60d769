//! Compiled pipelines: a schedule and a backend, ready to run on data.

use std::sync::Arc;

use thiserror::Error;
use warploom_codegen::build::{BuildError, build};
use warploom_codegen::cuda::{Build, describe};
use warploom_codegen::ir::Program;
use warploom_interp::EvalError;
use warploom_interp::buffer::Buffer;
use warploom_lang::{BoundsError, ParamId, Pipeline, Range, Realisation, Region, Type, Value, infer};
use warploom_runtime::cuda::CudaStream;
use warploom_runtime::{Gpu, Kernels, nvrtc};
use warploom_schedule::schedule::{Problem, Schedule};
use warploom_sim::SimError;
use warploom_target::{Device, program};
use warploom_tune::cache::Cache;
use warploom_tune::workload::{CudaError, Loaded, Workload};

use crate::on_device::{DeviceInput, DeviceMemoryError, DeviceOutput, take_inputs, take_outputs, values};
use crate::sizes::{SizesError, check_number};

/// Warn if the number of output points differs from the scheduled one by more than this factor.
const FAR: f64 = 4.0;

/// Where a pipeline runs. There is no silent fallback: without a GPU, [`Backend::gpu`] returns an
/// error.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
pub enum Backend {
    /// Kernels on a GPU, on the stream it was opened with.
    Cuda(Arc<Gpu>),
    /// The same kernels in the simulator, which is slow and reports everything that is undefined
    /// behaviour on a GPU.
    Simulator(Device),
    /// The reference evaluator, which ignores the schedule.
    Reference,
}

impl Backend {
    /// The first GPU, with a stream of its own.
    ///
    /// # Errors
    /// If there is no GPU or no driver.
    pub fn gpu() -> Result<Backend, RunError> {
        let gpu = Gpu::new(0).map_err(CudaError::from)?;
        Ok(Backend::Cuda(Arc::new(gpu)))
    }

    /// The GPU of the caller's stream. Everything runs on that stream, in the caller's context; see
    /// [`Gpu::on`]. If you have raw handles, start with [`Gpu::from_raw`].
    ///
    /// # Errors
    /// If the driver is too old or does not respond.
    pub fn on(stream: &Arc<CudaStream>) -> Result<Backend, RunError> {
        let gpu = Gpu::on(stream).map_err(CudaError::from)?;
        Ok(Backend::Cuda(Arc::new(gpu)))
    }

    /// The device that kernels are built for; `None` for the reference evaluator.
    fn device(&self) -> Option<&Device> {
        match self {
            Backend::Cuda(gpu) => Some(gpu.device()),
            Backend::Simulator(device) => Some(device),
            Backend::Reference => None,
        }
    }
}

/// Why a pipeline could not be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The number of inputs is wrong.
    #[error(transparent)]
    Sizes(#[from] SizesError),
    /// The sizes or Params don't fit the pipeline.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The schedule is illegal at these sizes or on this device.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The CUDA compiler, the driver or the GPU reported an error.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// The simulator found a fault in the kernels, such as a race or an out-of-bounds access.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// The reference evaluator reported an error.
    #[error(transparent)]
    Reference(#[from] EvalError),
    /// The device memory does not fit the inputs and outputs of the pipeline.
    #[error(transparent)]
    Memory(#[from] DeviceMemoryError),
    /// An input buffer has another element type than the pipeline declares.
    #[error("the input `{input}` is {expected}, but the buffer holds {given}; convert it")]
    Type {
        /// The name of the input.
        input: String,
        /// The type that the pipeline declares.
        expected: Type,
        /// The type of the buffer.
        given: Type,
    },
}

/// A pipeline with a schedule, ready to run on data of any size.
///
/// Kernels are built for the sizes that the pipeline was scheduled for. At other sizes they are
/// rebuilt under the same schedule, and kept until the sizes change again. If a block would then
/// need more resources than the device has, the default schedule is used instead.
///
/// The machine code is kept in the [user's cache](Cache::of_user), so a program that is restarted
/// does not compile again. `WARPLOOM_CACHE_DIR` sets another cache folder; if it is empty, there is
/// no cache. [`Compiled::with_cache`] sets the cache of one pipeline.
///
/// [`Compiled::run`] takes and returns buffers in host memory. [`Compiled::launch`] takes device
/// memory and does not wait: it is for callers whose data is on the GPU and who have a stream of
/// their own.
pub struct Compiled {
    pipeline: Pipeline,
    schedule: Schedule,
    /// The sizes that the pipeline was scheduled for, and the current values of its Params.
    request: Realisation,
    backend: Backend,
    cache: Option<Cache>,
    ready: Option<Ready>,
    warned: bool,
}

/// Kernels built for some sizes and Params.
struct Ready {
    request: Realisation,
    program: Program,
    code: Code,
    from_cache: bool,
}

/// Kernels in the form that the backend runs.
enum Code {
    /// The simulator needs nothing but the program.
    Simulated,
    /// On the GPU, with inputs and outputs in the caller's memory.
    Kernels(Kernels),
    /// On the GPU, with memory of their own for inputs and outputs.
    Loaded(Loaded),
}

impl Ready {
    /// Allocates memory for inputs and outputs if the kernels are on a GPU and have none yet.
    fn with_memory(self) -> Result<Ready, CudaError> {
        let code = match self.code {
            Code::Kernels(kernels) => Code::Loaded(Loaded::of(kernels.with_memory()?, &self.program)),
            other => other,
        };
        Ok(Ready { code, ..self })
    }
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
        let mut compiled =
            Compiled { pipeline, schedule, request, backend, cache, ready: None, warned: false };
        if let Some(device) = compiled.backend.device().cloned() {
            let request = compiled.request.clone();
            compiled.prepare(request, &device)?;
        }
        Ok(compiled)
    }

    /// The kernels of a problem's schedule for a backend. `built` is the program of the schedule on the problem's
    /// device, if there is one already.
    pub(crate) fn of_problem(
        problem: &Problem,
        schedule: Schedule,
        built: Option<&Program>,
        backend: Backend,
    ) -> Result<Compiled, RunError> {
        let (pipeline, request) = (problem.pipeline().clone(), problem.request().clone());
        let cache = Cache::of_user();
        let mut compiled =
            Compiled { pipeline, schedule, request, backend, cache, ready: None, warned: false };
        if let Some(device) = compiled.backend.device().cloned() {
            let program = match built.filter(|_| device == *problem.device()) {
                Some(program) => program.clone(),
                None => compiled.build(&compiled.request, &device)?,
            };
            compiled.make_ready(compiled.request.clone(), program)?;
        }
        Ok(compiled)
    }

    /// Sets the value of a Param. Nothing is recompiled unless a size depends on it.
    ///
    /// # Errors
    /// If there is no such Param, or if the value has another type or is out of its range. The
    /// Param then keeps its old value.
    pub fn set_param(&mut self, name: &str, value: impl Into<Value>) -> Result<(), RunError> {
        let request = self.request.clone().param(name, value);
        infer(&self.pipeline, &request)?;
        self.request = request;
        Ok(())
    }

    /// Runs on inputs in the pipeline's order. Returns one buffer per output value, in the
    /// pipeline's order.
    ///
    /// The sizes are those of the inputs. If a dimension of an output had the same range as that
    /// dimension of an input when the pipeline was scheduled, it follows that input; otherwise it
    /// stays the same. To ask for other boxes, use [`Compiled::run_at`].
    ///
    /// On a GPU, this copies the inputs, runs the kernels and copies the outputs back, all on its
    /// stream, and waits for the result.
    ///
    /// # Errors
    /// If the inputs don't fit the pipeline, or if the backend reports an error.
    pub fn run(&mut self, inputs: &[&Buffer]) -> Result<Vec<Buffer>, RunError> {
        let outputs = self.output_boxes(inputs)?;
        self.run_at(inputs, &outputs)
    }

    /// Runs on inputs in the pipeline's order and computes the given boxes of the outputs. Returns
    /// one buffer per output value, in the pipeline's order.
    ///
    /// # Errors
    /// As [`Compiled::run`].
    pub fn run_at(&mut self, inputs: &[&Buffer], outputs: &[Region]) -> Result<Vec<Buffer>, RunError> {
        let workload = self.workload(inputs, outputs)?;
        let request = workload.realisation();
        self.warn_of_other_sizes(&request);
        let Some(device) = self.backend.device().cloned() else { return Ok(workload.reference()?) };
        self.prepare(request, &device)?;
        let Some(ready) = self.ready.take() else { return Ok(Vec::new()) };
        let Ready { program, code, .. } = self.ready.insert(ready.with_memory()?);
        match code {
            Code::Simulated => Ok(workload.simulate(program, &device, 0)?.outputs),
            Code::Loaded(loaded) => {
                workload.upload(loaded)?;
                Ok(loaded.execute()?)
            }
            Code::Kernels(_) => unreachable!("they were just given memory"),
        }
    }

    /// Enqueues a run on the GPU's stream, from device memory to device memory, and returns without waiting.
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
    /// let mut blur = blur.compile_for(Backend::on(&stream)?)?;
    /// let whole = Region::of_extents(&[1536, 2560]);
    /// let input = DeviceInput::new(whole.clone(), image.as_view());
    /// let output = DeviceOutput::new(whole, blurred.as_view_mut());
    /// blur.launch(&[input], &mut [output])?;
    /// // More work for the stream, which waits nowhere until something is read.
    /// # Ok(stream.clone_dtoh(&blurred)?)
    /// # }
    /// ```
    ///
    /// As long as the sizes stay the same, nothing is compiled and nothing is allocated on the
    /// device. Params may be [set](Compiled::set_param) between launches; each launch uses the
    /// values at the time it was enqueued. When the sizes change, or the value of a Param that
    /// sizes depend on, this call waits for earlier launches and rebuilds the kernels.
    ///
    /// For memory managed by cudarc, cudarc's events order the launch with other streams' uses of
    /// that memory, if the context has event tracking enabled, which is the default. For memory
    /// given by address, ordering is up to the caller.
    ///
    /// While the stream is being captured, the run becomes part of the caller's graph, with its
    /// memory and Params. This requires kernels for these sizes, either from an earlier launch or
    /// because these are the scheduled sizes, and memory without events (see [`Kernels::launch`]).
    /// The graph can be launched on the same stream, or ordered with it, as long as this object
    /// lives and its sizes stay the same.
    ///
    /// # Errors
    /// If the memory does not fit the pipeline, if the backend is not a GPU, or if the kernels
    /// cannot be built. Errors inside the kernels are reported when the stream is synchronised.
    pub fn launch(
        &mut self,
        inputs: &[DeviceInput<'_>],
        outputs: &mut [DeviceOutput<'_>],
    ) -> Result<(), RunError> {
        let name = || self.pipeline.name().to_string();
        let Backend::Cuda(gpu) = self.backend.clone() else {
            return Err(DeviceMemoryError::NoGpu { pipeline: name() }.into());
        };
        let mut request = self.request.clone();
        take_inputs(
            &self.pipeline,
            &inputs.iter().map(DeviceInput::shape).collect::<Vec<_>>(),
            &mut request,
        )?;
        take_outputs(
            &self.pipeline,
            &outputs.iter().map(DeviceOutput::shape).collect::<Vec<_>>(),
            &mut request,
        )?;
        if !self.is_ready_for(&request) && gpu.is_capturing().map_err(CudaError::from)? {
            return Err(DeviceMemoryError::Capturing { pipeline: name() }.into());
        }
        self.warn_of_other_sizes(&request);
        self.prepare(request, gpu.device())?;
        let params: Vec<u32> = self.request.params.values().flatten().map(|value| value.bits()).collect();
        let kernels = match self.ready.as_mut().map(|ready| &mut ready.code) {
            Some(Code::Kernels(kernels)) => kernels,
            Some(Code::Loaded(loaded)) => loaded.executable.kernels(),
            Some(Code::Simulated) | None => return Ok(()),
        };
        let inputs: Vec<_> = inputs.iter().map(DeviceInput::memory).collect();
        let outputs = values(&self.pipeline).into_iter().zip(outputs.iter_mut().map(DeviceOutput::memory));
        // An output over an empty box has no buffer in the program.
        let exists =
            |output, value| kernels.program().buffer(program::Role::Output { output, value }).is_some();
        let outputs = outputs.filter(|((output, value), _)| exists(*output, *value));
        let mut outputs: Vec<_> = outputs.map(|(_, memory)| memory).collect();
        Ok(kernels.launch(&inputs, &mut outputs, &params).map_err(CudaError::from)?)
    }

    /// The kernels for the sizes of the last run; before the first run, for the scheduled sizes.
    /// `None` on the reference evaluator, or if the last build failed.
    pub fn program(&self) -> Option<&Program> {
        self.ready.as_ref().map(|ready| &ready.program)
    }

    /// Whether the machine code of these kernels came from the cache, without compilation.
    pub fn is_from_cache(&self) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.from_cache)
    }

    /// The boxes of the outputs for some inputs; see `run`.
    fn output_boxes(&self, inputs: &[&Buffer]) -> Result<Vec<Region>, RunError> {
        check_number(&self.pipeline, inputs.len())?;
        let known: Vec<&Region> = self.request.inputs.values().flatten().collect();
        let along = |d: usize, range: &Range| {
            let like = known.iter().position(|region| region.0.get(d) == Some(range));
            like.and_then(|input| inputs[input].region().0.get(d)).copied().unwrap_or(*range)
        };
        let of = |region: &Region| Region(region.0.iter().enumerate().map(|(d, r)| along(d, r)).collect());
        Ok(self.request.outputs.iter().flatten().map(of).collect())
    }

    fn workload(&self, inputs: &[&Buffer], outputs: &[Region]) -> Result<Workload, RunError> {
        check_number(&self.pipeline, inputs.len())?;
        for (decl, buffer) in self.pipeline.inputs().values().zip(inputs) {
            if decl.ty != buffer.ty() {
                let (expected, given) = (decl.ty, buffer.ty());
                return Err(RunError::Type { input: decl.name.clone(), expected, given });
            }
        }
        Ok(Workload {
            pipeline: self.pipeline.clone(),
            inputs: inputs.iter().map(|buffer| (*buffer).clone()).collect(),
            params: self.request.params.values().flatten().copied().collect(),
            outputs: outputs.to_vec(),
        })
    }

    /// Ensures that `self.ready` holds kernels for these sizes.
    fn prepare(&mut self, request: Realisation, device: &Device) -> Result<(), RunError> {
        if self.is_ready_for(&request) {
            return Ok(());
        }
        self.ready = None;
        let program = self.build(&request, device)?;
        self.make_ready(request, program)
    }

    fn make_ready(&mut self, request: Realisation, program: Program) -> Result<(), RunError> {
        let (code, from_cache) = match &self.backend {
            Backend::Cuda(gpu) => {
                let (kernels, found) = self.load(gpu, &program).map_err(CudaError::from)?;
                (Code::Kernels(kernels), found)
            }
            Backend::Simulator(_) | Backend::Reference => (Code::Simulated, false),
        };
        self.ready = Some(Ready { request, program, code, from_cache });
        Ok(())
    }

    /// Builds the kernels for some sizes. At sizes larger than the scheduled ones, a block may need
    /// more memory than the device has; the default schedule, which always fits, is used then.
    fn build(&self, request: &Realisation, device: &Device) -> Result<Program, BuildError> {
        let problem = Problem::new(&self.pipeline, request, device)?;
        let built = build(&problem, &self.schedule);
        let own = request.inputs == self.request.inputs && request.outputs == self.request.outputs;
        match built {
            Err(error @ (BuildError::Illegal(_) | BuildError::Rewritten(_))) if !own => {
                let reason = match &error {
                    BuildError::Illegal(violations) => violations.first().map(|first| first.rule.to_string()),
                    error => Some(error.to_string()),
                };
                tracing::warn!(
                    "the schedule of `{}` cannot be used at this size, so the default schedule is used: {}",
                    self.pipeline.name(),
                    reason.unwrap_or_default()
                );
                build(&problem, &Schedule::default_for(&problem))
            }
            built => built,
        }
    }

    /// Loads the kernels onto a GPU. Also returns whether their machine code was in the cache.
    fn load(&self, gpu: &Gpu, program: &Program) -> Result<(Kernels, bool), warploom_runtime::Error> {
        let source = describe(program, Build::Timing);
        let arch = gpu.arch()?;
        let found = self.cache.as_ref().map(|cache| cache.find(&source, arch)).transpose()?.flatten();
        let from_cache = found.is_some();
        let compiled = match (found, &self.cache) {
            (Some((compiled, _)), _) => compiled,
            (None, Some(cache)) => cache.compile_program(&source, arch)?.0,
            (None, None) => nvrtc::compile_program(&source, arch)?.0,
        };
        Ok((gpu.load_kernels(&compiled)?, from_cache))
    }

    fn is_ready_for(&self, request: &Realisation) -> bool {
        self.ready.as_ref().is_some_and(|ready| self.serves(&ready.request, request))
    }

    /// Whether kernels built for one realisation can run another: the boxes and specialised Params
    /// match.
    fn serves(&self, made_for: &Realisation, wanted: &Realisation) -> bool {
        let specialised = self.pipeline.specialised_params();
        let same = |(id, fixed): (ParamId, &bool)| !fixed || made_for.params[id] == wanted.params[id];
        made_for.inputs == wanted.inputs && made_for.outputs == wanted.outputs && specialised.iter().all(same)
    }

    fn warn_of_other_sizes(&mut self, request: &Realisation) {
        let points = |request: &Realisation| -> f64 {
            let points = request.outputs.iter().flatten().filter_map(Region::points);
            points.map(|points| points as f64).sum()
        };
        let ratio = points(request) / points(&self.request).max(1.0);
        if !self.warned && !(1.0 / FAR..=FAR).contains(&ratio) {
            self.warned = true;
            tracing::warn!(
                "`{}` was scheduled for outputs of {} points and runs with {}; a schedule for this size may be faster",
                self.pipeline.name(),
                points(&self.request),
                points(request)
            );
        }
    }
}
