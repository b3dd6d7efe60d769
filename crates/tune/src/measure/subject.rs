//! Pipelines with their data in device memory layout.

use std::sync::OnceLock;

use warploom_codegen::build::{BuildError, build};
use warploom_codegen::ir::Program;
use warploom_interp::buffer::BufferError;
use warploom_interp::noise_bytes;
use warploom_lang::{BoundsError, Pipeline, Realisation, Value};
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_target::Device;

use crate::sample::Sizes;
use crate::workload::Workload;

/// A pipeline at fixed sizes, with the bytes of its inputs and the values of its Params.
#[derive(Debug)]
pub struct Subject {
    pipeline: Pipeline,
    request: Realisation,
    inputs: Vec<Vec<u8>>,
    params: Vec<u32>,
    /// The problem of the first requested device; a run has only one.
    problem: OnceLock<Problem>,
}

impl Subject {
    /// Copies a workload's pipeline, sizes, inputs and Params.
    ///
    /// # Errors
    /// If an input cannot be converted to the storage order that the pipeline declares.
    pub fn of(workload: &Workload) -> Result<Subject, BufferError> {
        Ok(Subject {
            pipeline: workload.pipeline.clone(),
            request: workload.realisation(),
            inputs: workload.input_bytes()?,
            params: Value::words(&workload.params),
            problem: OnceLock::new(),
        })
    }

    /// A pipeline with noise as inputs: floats in [0, 1), integers over their full range.
    pub fn noise(pipeline: Pipeline, request: Realisation, seed: u64) -> Subject {
        let inputs = pipeline.inputs().iter().zip(0u64..).map(|((id, decl), number)| {
            let points = request.inputs[id].as_ref().and_then(|region| region.points()).unwrap_or(0);
            noise_bytes(decl.ty, points as usize, seed ^ number)
        });
        let inputs = inputs.collect();
        let params = Value::words(&request.params.values().flatten().copied().collect::<Vec<Value>>());
        Subject { pipeline, request, inputs, params, problem: OnceLock::new() }
    }

    /// A pipeline with the bytes of its inputs in device memory layout, and the bits of its Params.
    pub fn from_parts(
        pipeline: Pipeline,
        request: Realisation,
        inputs: Vec<Vec<u8>>,
        params: Vec<u32>,
    ) -> Subject {
        Subject { pipeline, request, inputs, params, problem: OnceLock::new() }
    }

    /// The pipeline at these sizes on a device.
    ///
    /// # Errors
    /// If the sizes or Params do not fit the pipeline.
    pub fn problem(&self, device: &Device) -> Result<Problem, BoundsError> {
        if let Some(known) = self.problem.get().filter(|known| known.device() == device) {
            return Ok(known.clone());
        }
        let problem = Problem::new(&self.pipeline, &self.request, device)?;
        // Another thread may have been first.
        let _ = self.problem.set(problem.clone());
        Ok(problem)
    }

    /// The kernels of a schedule on a device.
    ///
    /// # Errors
    /// If the sizes do not fit the pipeline, or the schedule cannot be built.
    pub fn build(&self, schedule: &Schedule, device: &Device) -> Result<Program, BuildError> {
        build(&self.problem(device)?, schedule)
    }

    /// The pipeline to measure.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The sizes of inputs and outputs, and the Params.
    pub fn request(&self) -> &Realisation {
        &self.request
    }

    /// The bytes of each input, in device memory layout.
    pub fn inputs(&self) -> &[Vec<u8>] {
        &self.inputs
    }

    /// The bits of each Param.
    pub fn params(&self) -> &[u32] {
        &self.params
    }

    /// The sizes in the form that samples store.
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes::of(&self.request)
    }
}
