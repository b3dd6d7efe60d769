//! The network in burn: computes the same values as [`warploom::cost::Network`], with gradients.

use burn::module::Param;
use burn::nn::Linear;
use burn::prelude::*;
use burn::tensor::activation::relu;
use burn::tensor::{IndexingUpdateOp, TensorData};
use thiserror::Error;
use warploom::cost::{Constants, Network, Weights, WeightsError};

use crate::batch::{Batch, Scaling};

/// The burn backend that a model is trained with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Backend {
    /// The CPU, in pure Rust.
    #[default]
    Flex,
    /// The CPU, with the older backend that flex replaces.
    Ndarray,
    /// A GPU, through Vulkan, Metal or DirectX.
    Wgpu,
}

/// The program was built without this backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error(
    "this program was built without the backend {name}; build it with --features warploom-training/{name}"
)]
pub struct NoBackend {
    /// Name of the backend.
    pub name: &'static str,
}

impl Backend {
    /// The name of the backend, also of its Cargo feature.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Flex => "flex",
            Backend::Ndarray => "ndarray",
            Backend::Wgpu => "wgpu",
        }
    }

    /// The burn device, without gradients.
    ///
    /// # Errors
    /// If the program was built without the backend.
    pub fn device(self) -> Result<Device, NoBackend> {
        match self {
            #[cfg(feature = "flex")]
            Backend::Flex => Ok(Device::flex()),
            #[cfg(feature = "ndarray")]
            #[expect(deprecated, reason = "it is asked for by name")]
            Backend::Ndarray => Ok(Device::ndarray()),
            #[cfg(feature = "wgpu")]
            Backend::Wgpu => Ok(Device::wgpu(Default::default())),
            #[cfg(not(all(feature = "flex", feature = "ndarray", feature = "wgpu")))]
            _ => Err(NoBackend { name: self.name() }),
        }
    }
}

/// Weights and biases of the three layers. Weight matrices are stored row by row, one row per
/// input.
pub type Layers = [Vec<f32>; 6];

/// Assembles weights from the scaling and the layers.
///
/// # Errors
/// If training diverged and a weight is not a number.
pub fn weights(name: &str, scaling: &Scaling, layers: &Layers) -> Result<Weights, WeightsError> {
    let [a, b, c, d] = scaling.tensors();
    let [e, f, g, h, i, j] = layers.clone();
    Weights::new(name, [a, b, c, d, e, f, g, h, i, j])
}

/// The trainable layers of the network.
#[derive(Module, Debug)]
pub struct Model {
    row: Linear,
    hidden: Linear,
    output: Linear,
}

impl Model {
    /// Creates the layers from weights.
    pub fn new(weights: &Weights, device: &Device) -> Model {
        let [_, _, _, _, row, row_bias, hidden, hidden_bias, output, output_bias] = weights.tensors();
        let layer = |weights: &[f32], bias: &[f32]| {
            let shape = [weights.len() / bias.len(), bias.len()];
            let weight = Tensor::<2>::from_data(TensorData::new(weights.to_vec(), shape), device);
            let bias = Tensor::<1>::from_data(TensorData::new(bias.to_vec(), [bias.len()]), device);
            Linear { weight: Param::from_tensor(weight), bias: Some(Param::from_tensor(bias)) }
        };
        Model {
            row: layer(row, row_bias),
            hidden: layer(hidden, hidden_bias),
            output: layer(output, output_bias),
        }
    }

    /// The values of the layers, as the last tensors of [`Weights::TENSORS`].
    pub fn layers(&self) -> Layers {
        let matrix = |layer: &Linear| values(layer.weight.val());
        let bias = |layer: &Linear| layer.bias.as_ref().map(|bias| values(bias.val())).unwrap_or_default();
        let Model { row, hidden, output } = self;
        [matrix(row), bias(row), matrix(hidden), bias(hidden), matrix(output), bias(output)]
    }

    /// The logarithms of the correction factors of each kernel's parts: K x parts.
    pub fn corrections(&self, batch: &Batch) -> Tensor<2> {
        let (bound, _) = Network::CONSTANTS;
        let [kernels, _] = batch.kernels.dims();
        let rows = relu(self.row.forward(batch.rows.clone())) * batch.shares.clone();
        let pooled = sum_by(rows, &batch.row_kernels, kernels);
        let joined = Tensor::cat(vec![pooled, batch.kernels.clone()], 1);
        self.output.forward(relu(self.hidden.forward(joined))).tanh() * bound
    }

    /// The logarithms of the predicted times: 1 x S.
    pub fn predict(&self, batch: &Batch) -> Tensor<2> {
        predict(batch, self.corrections(batch))
    }
}

/// The logarithms of the predicted times for given corrections: 1 x S.
pub fn predict(batch: &Batch, corrections: Tensor<2>) -> Tensor<2> {
    let overlap = Constants::default().overlap;
    let [_, samples] = batch.times.dims();
    let parts = batch.parts.clone() + corrections;
    let launch = parts.clone().narrow(1, 0, 1).exp();
    let scaled = parts.narrow(1, 1, 4) * overlap;
    let largest = scaled.clone().detach().max_dim(1);
    let sum = (scaled - largest.clone()).exp().sum_dim(1);
    let together = ((sum.log() + largest) / overlap).exp();
    let times = (launch + together) * batch.launches.clone();
    sum_by(times, &batch.kernel_samples, samples).log().transpose()
}

/// Sums the rows with the same index.
fn sum_by(rows: Tensor<2>, indices: &Tensor<1, Int>, count: usize) -> Tensor<2> {
    let [_, columns] = rows.dims();
    let zeros = Tensor::zeros([count, columns], &rows.device());
    zeros.select_assign(0, indices.clone(), rows, IndexingUpdateOp::Add)
}

/// The values of a tensor.
pub(crate) fn values<const RANK: usize>(tensor: Tensor<RANK>) -> Vec<f32> {
    // Reading the process's own memory does not fail, and all tensors hold f32.
    tensor.into_data().try_to_vec::<f32>().unwrap_or_default()
}
