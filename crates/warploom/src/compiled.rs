//! A scheduled pipeline that runs on data.

use std::sync::Arc;

use thiserror::Error;
use warploom_codegen::cuda::Build;
use warploom_codegen::ir::Program;
use warploom_interp::EvalError;
use warploom_interp::buffer::Buffer;
use warploom_lang::{BoundsError, ParamId, Pipeline, Range, Realisation, Region, Type, Value, infer};
use warploom_runtime::Gpu;
use warploom_schedule::schedule::Schedule;
use warploom_sim::SimError;
use warploom_target::Device;
use warploom_tune::build::{BuildError, build};
use warploom_tune::workload::{CudaError, Loaded, Workload};

use crate::sizes::SizesError;

/// A size that differs by more than this factor is far from the one that was scheduled for.
const FAR: f64 = 4.0;

/// What runs a pipeline. Nothing else ever takes its place: where there is no GPU, [`Backend::gpu`] is an error.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
pub enum Backend {
    /// Kernels on a GPU.
    Cuda(Arc<Gpu>),
    /// The same kernels in the simulator, which is slow and refuses whatever is undefined on a GPU.
    Simulator(Device),
    /// The reference evaluator, which has no use for a schedule.
    Reference,
}

impl Backend {
    /// The first GPU.
    ///
    /// # Errors
    /// If there is none, or no driver.
    pub fn gpu() -> Result<Backend, RunError> {
        let gpu = Gpu::new(0).map_err(CudaError::from)?;
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
/// kept as long as the sizes stay.
pub struct Compiled {
    pipeline: Pipeline,
    schedule: Schedule,
    /// The sizes that were scheduled for, and the values of Params.
    request: Realisation,
    backend: Backend,
    ready: Option<Ready>,
    warned: bool,
}

/// Kernels for some sizes and Params.
struct Ready {
    request: Realisation,
    program: Program,
    /// On the GPU, if they run there.
    loaded: Option<Loaded>,
}

impl Compiled {
    /// Makes the kernels of a schedule for the sizes it is meant for.
    ///
    /// # Errors
    /// If the schedule cannot be used there or the kernels cannot be compiled.
    pub fn new(
        pipeline: Pipeline,
        schedule: Schedule,
        request: Realisation,
        backend: Backend,
    ) -> Result<Compiled, RunError> {
        infer(&pipeline, &request)?;
        let mut compiled = Compiled { pipeline, schedule, request, backend, ready: None, warned: false };
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
        match &mut self.ready {
            Some(Ready { loaded: Some(loaded), .. }) => {
                workload.upload(loaded)?;
                Ok(loaded.execute()?)
            }
            Some(Ready { program, loaded: None, .. }) => Ok(workload.simulate(program, &device, 0)?.outputs),
            None => Ok(Vec::new()),
        }
    }

    /// The kernels for the sizes of the last run, if there are any.
    pub fn program(&self) -> Option<&Program> {
        self.ready.as_ref().map(|ready| &ready.program)
    }

    /// The boxes of outputs that go with inputs.
    fn output_boxes(&self, inputs: &[&Buffer]) -> Result<Vec<Region>, RunError> {
        self.check_number(inputs)?;
        let known: Vec<&Region> = self.request.inputs.values().flatten().collect();
        let along = |d: usize, range: &Range| {
            let like = known.iter().position(|region| region.0.get(d) == Some(range));
            like.and_then(|input| inputs[input].region().0.get(d)).copied().unwrap_or(*range)
        };
        let of = |region: &Region| Region(region.0.iter().enumerate().map(|(d, r)| along(d, r)).collect());
        Ok(self.request.outputs.iter().flatten().map(of).collect())
    }

    fn workload(&self, inputs: &[&Buffer], outputs: &[Region]) -> Result<Workload, RunError> {
        self.check_number(inputs)?;
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

    fn check_number(&self, inputs: &[&Buffer]) -> Result<(), SizesError> {
        let (expected, given) = (self.pipeline.inputs().len(), inputs.len());
        match expected == given {
            true => Ok(()),
            false => Err(SizesError::Inputs { pipeline: self.pipeline.name().to_string(), expected, given }),
        }
    }

    /// Sees to it that there are kernels for some sizes.
    fn prepare(&mut self, request: Realisation, device: &Device) -> Result<(), RunError> {
        if self.ready.as_ref().is_some_and(|ready| self.serves(&ready.request, &request)) {
            return Ok(());
        }
        self.ready = None;
        let program = build(&self.pipeline, &self.schedule, &request, device)?;
        let loaded = match &self.backend {
            Backend::Cuda(gpu) => Some(Loaded::new(gpu, &program, Build::Timing)?),
            _ => None,
        };
        self.ready = Some(Ready { request, program, loaded });
        Ok(())
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
