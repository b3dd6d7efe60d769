//! The backends that run a pipeline, and their errors.

use std::sync::Arc;

use thiserror::Error;
use warploom_codegen::build::BuildError;
use warploom_codegen::instance::InstanceError;
use warploom_interp::EvalError;
use warploom_lang::{BoundsError, Type};
use warploom_runtime::Gpu;
use warploom_sim::SimError;
use warploom_target::Device;
use warploom_tune::workload::GpuError;

use crate::on_device::DeviceMemoryError;
use crate::sizes::SizesError;

/// Where a pipeline runs. There is no silent fallback: without a GPU, [`Backend::gpu`] returns an
/// error.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
pub enum Backend {
    /// Kernels on a GPU. Runs on host memory use the stream it was opened with.
    Gpu(Arc<Gpu>),
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
        let gpu = Gpu::new(0).map_err(GpuError::from)?;
        Ok(Backend::Gpu(Arc::new(gpu)))
    }

    /// The GPU of the caller's stream. Everything runs in the caller's context, and on that stream
    /// unless a launch names another; see [`Gpu::on`]. If you have raw handles, start with
    /// [`Gpu::from_raw`].
    ///
    /// # Errors
    /// If the driver is too old or does not respond.
    pub fn on<S>(stream: S) -> Result<Backend, RunError>
    where
        Gpu: TryFrom<S, Error = warploom_runtime::Error>,
    {
        let gpu = Gpu::try_from(stream).map_err(GpuError::from)?;
        Ok(Backend::Gpu(Arc::new(gpu)))
    }

    /// The device that kernels are built for; `None` for the reference evaluator.
    pub(crate) fn device(&self) -> Option<&Device> {
        match self {
            Backend::Gpu(gpu) => Some(gpu.device()),
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
    /// The compiler, the driver or the GPU reported an error.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// The simulator found a fault in the kernels, such as a race or an out-of-bounds access.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// The reference evaluator reported an error.
    #[error(transparent)]
    Reference(#[from] EvalError),
    /// The kernels cannot run at these sizes or strides.
    #[error(transparent)]
    Instance(#[from] InstanceError),
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
