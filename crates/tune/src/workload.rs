//! A pipeline with data, and the ways to run it: reference, simulator, GPU.

use thiserror::Error;
use warploom_codegen::instance::{InstanceError, Strides};
use warploom_codegen::ir::{Program, Role};
use warploom_codegen::points::Points;
use warploom_codegen::printer::{Build, PRINTER};
use warploom_interp::buffer::{Buffer, BufferError, Data};
use warploom_interp::expected::Expected;
use warploom_interp::{EvalError, Evaluation};
use warploom_lang::rounding::Rounding;
use warploom_lang::{Id, Pipeline, Realisation, Region, Scalar, Type, Value, dispatch};
use warploom_runtime::{Driver, Executable, Execute, Gpu, Launcher, Timing, TimingOptions};
use warploom_sim::{Observer, Outcome, SimError, Simulation};
use warploom_target::Device;

/// Number of perturbed reference evaluations from which a tolerance is derived.
pub const PERTURBED_RUNS: u64 = 8;

/// A pipeline with its inputs, its Params and the required regions of its outputs, in the order of
/// the pipeline's tables.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The pipeline to run.
    pub pipeline: Pipeline,
    /// One buffer per input.
    pub inputs: Vec<Buffer>,
    /// One value per Param.
    pub params: Vec<Value>,
    /// One box per output: the region to compute.
    pub outputs: Vec<Region>,
}

/// Why a workload could not run on a GPU.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The compiler, the driver or the GPU reported an error.
    #[error(transparent)]
    Runtime(#[from] warploom_runtime::Error),
    /// The program cannot run at these sizes.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// A buffer could not be created.
    #[error(transparent)]
    Buffer(#[from] BufferError),
}

impl Workload {
    /// A pipeline at the sizes and with the Params of a request, with its inputs.
    pub fn new(pipeline: &Pipeline, request: &Realisation, inputs: Vec<Buffer>) -> Workload {
        Workload {
            pipeline: pipeline.clone(),
            inputs,
            params: request.params.values().flatten().copied().collect(),
            outputs: request.outputs.iter().flatten().cloned().collect(),
        }
    }

    /// The sizes and Params of this workload.
    pub fn realisation(&self) -> Realisation {
        let mut request = Realisation::new(&self.pipeline);
        for (id, buffer) in self.pipeline.inputs().keys().zip(&self.inputs) {
            request.inputs[id] = Some(buffer.region().clone());
        }
        for (slot, region) in request.outputs.iter_mut().zip(&self.outputs) {
            *slot = Some(region.clone());
        }
        for (id, value) in self.pipeline.params().keys().zip(&self.params) {
            request.params[id] = Some(*value);
        }
        request
    }

    /// The outputs computed by the reference evaluator; a tuple yields one buffer per value.
    pub fn reference(&self) -> Result<Vec<Buffer>, EvalError> {
        self.evaluation().run()
    }

    /// The reference outputs, with a tolerance for kernels built for speed. The tolerance is
    /// `stated`, or derived from how much the outputs change in `runs` evaluations with perturbed
    /// rounding.
    pub fn expected(&self, stated: Option<f64>, runs: u64) -> Result<Expected, EvalError> {
        let perturbed = (0..runs).map(|seed| self.evaluation().perturbed(seed).run());
        Expected::new(&self.pipeline, self.reference()?, perturbed, stated, Rounding::Timing)
    }

    /// Like [`expected`](Workload::expected), for reductions that may combine their terms in another order.
    pub fn expected_in_any_order(&self, stated: Option<f64>, runs: u64) -> Result<Expected, EvalError> {
        let reordered = (0..runs).map(|seed| self.evaluation().reordered(seed).run());
        Expected::new(&self.pipeline, self.reference()?, reordered, stated, Rounding::Reordered)
    }

    /// A reference evaluation, prepared but not yet run.
    pub fn evaluation(&self) -> Evaluation<'_> {
        let mut evaluation = Evaluation::new(&self.pipeline);
        for (input, buffer) in self.pipeline.inputs().values().zip(&self.inputs) {
            evaluation = evaluation.input(&input.name, buffer);
        }
        for (param, value) in self.pipeline.params().values().zip(&self.params) {
            evaluation = evaluation.param(&param.name, *value);
        }
        for (id, region) in self.pipeline.outputs().iter().zip(&self.outputs) {
            evaluation = evaluation.output(&self.pipeline.funcs()[*id].name, region.clone());
        }
        evaluation
    }

    /// Runs a lowered program in the simulator.
    pub fn simulate(&self, program: &Program, device: &Device, seed: u64) -> Result<Outcome, SimError> {
        self.simulation(program, device).seed(seed).run()
    }

    /// Runs a lowered program in the simulator, and reports every access to an observer.
    pub fn observe(
        &self,
        program: &Program,
        points: &Points,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, SimError> {
        self.simulation(program, device).observe(points, observer)
    }

    fn simulation<'a>(&'a self, program: &'a Program, device: &'a Device) -> Simulation<'a> {
        let mut simulation = Simulation::new(program, device);
        for (id, buffer) in self.pipeline.inputs().keys().zip(&self.inputs) {
            simulation = simulation.input(id, buffer);
        }
        for (id, value) in self.pipeline.params().keys().zip(&self.params) {
            simulation = simulation.param(id, *value);
        }
        simulation
    }

    /// The bytes of the inputs in device memory layout.
    pub(crate) fn input_bytes(&self) -> Result<Vec<Vec<u8>>, BufferError> {
        let inputs = self.inputs.iter().enumerate().map(|(position, buffer)| {
            let order = &self.pipeline.inputs()[Id::new(position)].storage_order;
            let stored = if buffer.order() == order { None } else { Some(buffer.reordered(order)?) };
            Ok(to_bytes(stored.as_ref().unwrap_or(buffer).data()))
        });
        inputs.collect()
    }

    /// Runs kernels that were loaded from `program`, lowered for these sizes, and returns the outputs.
    /// Any number of threads may do this at the same time.
    pub fn run(&self, kernels: &Launcher, program: &Program) -> Result<Vec<Buffer>, GpuError> {
        let found = kernels.run(&self.input_bytes()?, &self.param_bits())?;
        Ok(buffers(&outputs(program), &found)?)
    }

    /// Compiles a lowered program for a GPU, and uploads the inputs and Params.
    pub fn load(&self, gpu: &Gpu, program: &Program, build: Build) -> Result<Loaded, GpuError> {
        self.load_at(gpu, program, build, &[])
    }

    /// Like [`load`](Self::load), for a program that gets the `sizes` of this workload when it is launched.
    pub fn load_at(
        &self,
        gpu: &Gpu,
        program: &Program,
        build: Build,
        sizes: &[i64],
    ) -> Result<Loaded, GpuError> {
        let mut loaded = Loaded::at(gpu, program, build, sizes)?;
        self.upload(&mut loaded)?;
        Ok(loaded)
    }

    /// Uploads these inputs and Params to kernels that were loaded for the same sizes.
    pub fn upload(&self, loaded: &mut Loaded) -> Result<(), GpuError> {
        for (position, bytes) in self.input_bytes()?.iter().enumerate() {
            loaded.executable.upload(position, bytes)?;
        }
        Ok(loaded.executable.set_params(&self.param_bits())?)
    }

    fn param_bits(&self) -> Vec<u32> {
        Value::words(&self.params)
    }
}

/// The type, the box and the storage order of an output value.
type Output = (Type, Region, Vec<usize>);

/// A program loaded on a GPU.
pub struct Loaded {
    /// The compiled kernels with their device memory.
    pub executable: Executable,
    outputs: Vec<Output>,
}

impl Loaded {
    /// Compiles a lowered program for a GPU. Its inputs and Params are still to be
    /// [uploaded](Workload::upload).
    pub fn new(gpu: &Gpu, program: &Program, build: Build) -> Result<Loaded, GpuError> {
        Loaded::at(gpu, program, build, &[])
    }

    /// Like [`new`](Self::new), for a program that gets these sizes when it is launched. All arrays are dense.
    pub fn at(gpu: &Gpu, program: &Program, build: Build, sizes: &[i64]) -> Result<Loaded, GpuError> {
        let dense = Strides::default();
        let executable = gpu.load(&PRINTER.describe_at(program, build, sizes, &dense)?)?;
        Ok(Loaded { executable, outputs: outputs(&program.at(sizes, &dense)?) })
    }

    /// Runs once in poisoned memory and returns the outputs.
    pub fn run(&mut self) -> Result<Vec<Buffer>, GpuError> {
        Ok(buffers(&self.outputs, &self.executable.run_over_poison()?)?)
    }

    /// Times complete runs of all kernels.
    pub fn time(&mut self, options: &TimingOptions) -> Result<Timing, GpuError> {
        Ok(self.executable.time(options)?)
    }
}

/// The output values of a program, by output, then by value.
fn outputs(program: &Program) -> Vec<Output> {
    let outputs = program.buffers.values().filter_map(|buffer| match buffer.role {
        Role::Output { output, value } => {
            Some(((output, value), (buffer.ty, buffer.region.clone(), buffer.storage_order())))
        }
        _ => None,
    });
    let mut outputs: Vec<_> = outputs.collect();
    outputs.sort_by_key(|(place, _)| *place);
    outputs.into_iter().map(|(_, output)| output).collect()
}

/// The storage order of each value of each output.
pub(crate) fn output_orders(pipeline: &Pipeline) -> Vec<Vec<usize>> {
    let outputs = pipeline.outputs().iter().map(|id| &pipeline.funcs()[*id]);
    outputs.flat_map(|func| func.types.iter().map(|_| func.storage_order())).collect()
}

/// Decodes the device memory of all outputs.
fn buffers(outputs: &[Output], found: &[Vec<u8>]) -> Result<Vec<Buffer>, BufferError> {
    outputs.iter().zip(found).map(|((ty, region, order), bytes)| buffer(*ty, region, order, bytes)).collect()
}

/// Encodes samples in device memory layout.
pub(crate) fn to_bytes(data: &Data) -> Vec<u8> {
    macro_rules! bytes {
        ($($variant:ident)*) => {
            match data {
                Data::Bool(samples) => samples.iter().map(|sample| u8::from(*sample)).collect(),
                $(Data::$variant(samples) => {
                    let size = data.ty().bytes();
                    let mut bytes = vec![0; samples.len() * size];
                    for (to, sample) in bytes.chunks_exact_mut(size).zip(samples) {
                        to.copy_from_slice(&sample.to_le_bytes());
                    }
                    bytes
                })*
            }
        };
    }
    bytes! { U8 U16 U32 U64 I8 I16 I32 I64 F32 F64 F16 BF16 }
}

/// Decodes device memory into a buffer.
pub(crate) fn buffer(
    ty: Type,
    region: &Region,
    order: &[usize],
    bytes: &[u8],
) -> Result<Buffer, BufferError> {
    dispatch!(ty, T => Buffer::from_vec_in_order::<T>(region.clone(), order, from_bytes::<T>(bytes)))
}

/// Decodes samples from device memory.
pub(crate) fn from_bytes<T: Scalar>(bytes: &[u8]) -> Vec<T> {
    let size = T::TYPE.bytes();
    let bits = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(chunk);
        T::from_word(u64::from_le_bytes(word))
    };
    bytes.chunks_exact(size).map(bits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_every_type() {
        let floats = vec![0.5f32, -1.0, f32::INFINITY];
        assert_eq!(from_bytes::<f32>(&to_bytes(&Data::F32(floats.clone()))), floats);
        let shorts = vec![-3i16, 7, i16::MIN];
        assert_eq!(from_bytes::<i16>(&to_bytes(&Data::I16(shorts.clone()))), shorts);
        let truths = vec![true, false, true];
        assert_eq!(from_bytes::<bool>(&to_bytes(&Data::Bool(truths.clone()))), truths);
    }
}
