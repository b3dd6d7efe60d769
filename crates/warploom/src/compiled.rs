//! A scheduled pipeline that runs on data.

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
use warploom_schedule::schedule::Schedule;
use warploom_sim::SimError;
use warploom_target::{Device, program};
use warploom_tune::cache::Cache;
use warploom_tune::workload::{CudaError, Loaded, Workload};

use crate::on_device::{DeviceInput, DeviceMemoryError, DeviceOutput, take_inputs, take_outputs, values};
use crate::sizes::{SizesError, check_number};

/// A size that differs by more than this factor is far from the one that was scheduled for.
const FAR: f64 = 4.0;

/// What runs a pipeline. Nothing else ever takes its place: where there is no GPU, [`Backend::gpu`] is an error.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
pub enum Backend {
    /// Kernels on a GPU, on the stream that it was opened with.
    Cuda(Arc<Gpu>),
    /// The same kernels in the simulator, which is slow and refuses whatever is undefined on a GPU.
    Simulator(Device),
    /// The reference evaluator, which has no use for a schedule.
    Reference,
}

impl Backend {
    /// The first GPU, on a stream of its own.
    ///
    /// # Errors
    /// If there is none, or no driver.
    pub fn gpu() -> Result<Backend, RunError> {
        let gpu = Gpu::new(0).map_err(CudaError::from)?;
        Ok(Backend::Cuda(Arc::new(gpu)))
    }

    /// The GPU of a stream of the caller, on which everything then runs, in the caller's context; see [`Gpu::on`]. What has
    /// raw handles begins with [`Gpu::from_raw`].
    ///
    /// # Errors
    /// If the driver is too old, or does not answer.
    pub fn on(stream: &Arc<CudaStream>) -> Result<Backend, RunError> {
        let gpu = Gpu::on(stream).map_err(CudaError::from)?;
        Ok(Backend::Cuda(Arc::new(gpu)))
    }

    /// The device that kernels are made for; the reference has none.
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
    /// The inputs are not those of the pipeline.
    #[error(transparent)]
    Sizes(#[from] SizesError),
    /// The sizes or Params don't fit the pipeline.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The schedule cannot be used at these sizes or on this device.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The compiler, the driver or the GPU refused.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// The simulator found a fault in the kernels.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// The reference evaluator refused.
    #[error(transparent)]
    Reference(#[from] EvalError),
    /// The device memory is not what the pipeline takes.
    #[error(transparent)]
    Memory(#[from] DeviceMemoryError),
    /// An input of another type.
    #[error("the input `{input}` is {expected}, but the buffer holds {given}; convert it")]
    Type {
        /// The input.
        input: String,
        /// Its type.
        expected: Type,
        /// That of the buffer.
        given: Type,
    },
}

/// A pipeline with a schedule, ready to run on data of any size.
///
/// Kernels are made for the sizes that were scheduled for. At other sizes they are made anew, under the same schedule, and
/// kept as long as the sizes stay; the default schedule takes its place where a block would need more than the device has. Their machine code is kept in the [user's cache](Cache::of_user), so that a program that
/// is started again compiles nothing; `WARPLOOM_CACHE_DIR` names another folder or, if it is empty, none, and
/// [`Compiled::with_cache`] decides for one pipeline.
///
/// [`Compiled::run`] takes and gives buffers of the host. [`Compiled::launch`] takes device memory and does not wait: it is
/// for those who have their data on the GPU, and a stream of their own.
pub struct Compiled {
    pipeline: Pipeline,
    schedule: Schedule,
    /// The sizes that were scheduled for, and the values of Params.
    request: Realisation,
    backend: Backend,
    cache: Option<Cache>,
    ready: Option<Ready>,
    warned: bool,
}

/// Kernels for some sizes and Params.
struct Ready {
    request: Realisation,
    program: Program,
    code: Code,
    from_cache: bool,
}

/// What runs kernels.
enum Code {
    /// Nothing but the kernels themselves.
    Simulated,
    /// The GPU, on memory of the caller.
    Kernels(Kernels),
    /// The GPU, on memory of their own too.
    Loaded(Loaded),
}

impl Ready {
    /// The same with memory for inputs and outputs, if it is on a GPU.
    fn with_memory(self) -> Result<Ready, CudaError> {
        let code = match self.code {
            Code::Kernels(kernels) => Code::Loaded(Loaded::of(kernels.with_memory()?, &self.program)),
            other => other,
        };
        Ok(Ready { code, ..self })
    }
}

impl Compiled {
    /// Makes the kernels of a schedule for the sizes it is meant for, with the user's cache.
    ///
    /// # Errors
    /// If the schedule cannot be used there or the kernels cannot be compiled.
    pub fn new(
        pipeline: Pipeline,
        schedule: Schedule,
        request: Realisation,
        backend: Backend,
    ) -> Result<Compiled, RunError> {
        Compiled::with_cache(pipeline, schedule, request, backend, Cache::of_user())
    }

    /// The same with another cache for machine code, or none.
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

    /// Gives a Param another value. Nothing is compiled for that, unless a size depends on it.
    ///
    /// # Errors
    /// If there is no such Param, or the value is of another type or outside of its range; it then keeps the one it has.
    pub fn set_param(&mut self, name: &str, value: impl Into<Value>) -> Result<(), RunError> {
        let request = self.request.clone().param(name, value);
        infer(&self.pipeline, &request)?;
        self.request = request;
        Ok(())
    }

    /// Runs on inputs in the pipeline's order, and gives the outputs in its order, one buffer a value.
    ///
    /// Sizes are those of the inputs. A dimension of an output that was as long as the same one of an input when the
    /// pipeline was scheduled still is; [`Compiled::run_at`] says what is wanted.
    ///
    /// A GPU copies the inputs, runs and copies the outputs back, in the order of its stream, and is waited for.
    ///
    /// # Errors
    /// If the inputs don't fit the pipeline, or whatever runs it refuses.
    pub fn run(&mut self, inputs: &[&Buffer]) -> Result<Vec<Buffer>, RunError> {
        let outputs = self.output_boxes(inputs)?;
        self.run_at(inputs, &outputs)
    }

    /// Runs on inputs in the pipeline's order, and gives some boxes of the outputs in its order, one buffer a value.
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
    /// Inputs are in the pipeline's order, outputs in its order with one piece of memory a value. Sizes are those that are
    /// given with the memory. An output must not overlap an input or another output.
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
    /// As long as the sizes stay, nothing is compiled, and nothing is allocated on the device; Params may be
    /// [set](Compiled::set_param) between launches, and each launch keeps those that it was enqueued with. At other sizes,
    /// or other values of a Param that sizes depend on, earlier launches are waited for and kernels are made anew.
    ///
    /// Memory that cudarc manages is ordered with what other streams do with it by cudarc's events, where the context has
    /// event tracking on, as it has by default. Memory given by its address is the caller's to order.
    ///
    /// While the stream is captured, the run becomes a part of the caller's graph, with its memory and its Params. That
    /// needs kernels for these sizes, from a launch before or the sizes that were scheduled for, and memory without events
    /// (see [`Kernels::launch`]). The graph can be launched on the same stream, or in order with it, as long as this object
    /// lives and its sizes stay.
    ///
    /// # Errors
    /// If the memory does not fit the pipeline, this is not on a GPU, or the kernels cannot be made. An error of the kernels
    /// themselves shows when the stream is waited for.
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
        // An output over an empty box has no buffer.
        let exists =
            |output, value| kernels.program().buffer(program::Role::Output { output, value }).is_some();
        let outputs = outputs.filter(|((output, value), _)| exists(*output, *value));
        let mut outputs: Vec<_> = outputs.map(|(_, memory)| memory).collect();
        Ok(kernels.launch(&inputs, &mut outputs, &params).map_err(CudaError::from)?)
    }

    /// The kernels for the sizes of the last run, if there are any.
    pub fn program(&self) -> Option<&Program> {
        self.ready.as_ref().map(|ready| &ready.program)
    }

    /// Whether the machine code of these kernels was in the cache, so that nothing was compiled.
    pub fn is_from_cache(&self) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.from_cache)
    }

    /// The boxes of outputs that go with inputs.
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

    /// Sees to it that there are kernels for some sizes.
    fn prepare(&mut self, request: Realisation, device: &Device) -> Result<(), RunError> {
        if self.is_ready_for(&request) {
            return Ok(());
        }
        self.ready = None;
        let program = self.build(&request, device)?;
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

    /// The kernels for some sizes. A schedule may keep more in a block than there is room for at larger sizes than its own:
    /// the default one, which fits always, then takes its place.
    fn build(&self, request: &Realisation, device: &Device) -> Result<Program, BuildError> {
        let built = build(&self.pipeline, &self.schedule, request, device);
        let own = request.inputs == self.request.inputs && request.outputs == self.request.outputs;
        match built {
            Err(BuildError::Illegal(violations)) if !own => {
                let reason = violations.first().map(|violation| violation.rule.to_string());
                tracing::warn!(
                    "the schedule of `{}` cannot be used at this size, and the default one is: {}",
                    self.pipeline.name(),
                    reason.unwrap_or_default()
                );
                let regions = infer(&self.pipeline, request)?;
                let default = Schedule::default_for(&self.pipeline, &regions);
                build(&self.pipeline, &default, request, device)
            }
            built => built,
        }
    }

    /// Kernels on a GPU, and whether the cache had their code.
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

    /// Whether kernels for one realisation serve another.
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
