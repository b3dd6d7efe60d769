//! Pipelines with their data in device memory layout.

use std::sync::OnceLock;

use warploom_codegen::build::{BuildError, build};
use warploom_codegen::ir::Program;
use warploom_interp::buffer::BufferError;
use warploom_lang::{BoundsError, Pipeline, Realisation, Type, Value};
use warploom_schedule::schedule::{Problem, Schedule};
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
    /// The problem of the device that was asked for first; a run has only one.
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
            params: workload.params.iter().map(|value| value.bits()).collect(),
            problem: OnceLock::new(),
        })
    }

    /// A pipeline with noise as inputs: floats in [0, 1), integers over their full range.
    pub fn noise(pipeline: Pipeline, request: Realisation, seed: u64) -> Subject {
        let inputs = pipeline.inputs().iter().zip(0u64..).map(|((id, decl), number)| {
            let points = request.inputs[id].as_ref().and_then(|region| region.points()).unwrap_or(0);
            noise(decl.ty, points as usize, seed ^ number)
        });
        let inputs = inputs.collect();
        let params = request.params.values().flatten().map(|value: &Value| value.bits()).collect();
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

/// Random samples of a type, as bytes. Xorshift is fast enough for large inputs.
fn noise(ty: Type, points: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    let mut bytes = vec![0; points * ty.bytes()];
    match ty {
        Type::Bool => bytes.iter_mut().for_each(|byte| *byte = (next() & 1) as u8),
        Type::F32 => {
            for sample in bytes.chunks_exact_mut(4) {
                // 24 bits convert to `f32` exactly.
                sample.copy_from_slice(&((next() >> 8) as f32 / (1 << 24) as f32).to_le_bytes());
            }
        }
        _ => {
            for word in bytes.chunks_mut(4) {
                word.copy_from_slice(&next().to_le_bytes()[..word.len()]);
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_has_the_values_of_its_type() {
        let floats = noise(Type::F32, 10_000, 1);
        let floats: Vec<f32> =
            floats.chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        assert!(floats.iter().all(|float| (0.0..1.0).contains(float)));
        let mean = floats.iter().sum::<f32>() / 1e4;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert!(noise(Type::Bool, 1000, 2).iter().all(|byte| *byte < 2));
        let bytes = noise(Type::U8, 4099, 3);
        assert_eq!(bytes.len(), 4099);
        assert!((0..=255).all(|value| bytes.contains(&value)));
        assert_ne!(noise(Type::U16, 100, 4), noise(Type::U16, 100, 5));
    }
}
