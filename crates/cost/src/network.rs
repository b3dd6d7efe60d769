//! The learned model: a small network that corrects the parts of the [analytic model](Analytic).
//!
//! | step | gives |
//! | --- | --- |
//! | every number of a row and of the kernel, less the mean and divided by the deviation that they had in training, brought between -[`LIMIT`] and [`LIMIT`] | inputs |
//! | `row`: a layer over the inputs of each row, `max(x, 0)` | 32 numbers a row |
//! | their mean over the rows, each weighted with the clocks that the analytic model predicts for it | 32 numbers |
//! | `hidden`: a layer over those and the inputs of the kernel, `max(x, 0)` | 32 numbers |
//! | `output`: a layer, [`BOUND`] times the hyperbolic tangent | a logarithm for each part |
//!
//! Each part of the analytic prediction (launch, DRAM, L2, SMs, latency) is multiplied with its correction, at most
//! e^[`BOUND`], at least its inverse; the corrected parts come together as in the analytic model. A network whose last
//! layer is 0 is the analytic model.
//!
//! A kernel is computed by itself and always in the same order of additions, all channels of a layer side by side, so
//! that a prediction is the same bits in whatever batch. Nothing is allocated.

mod inputs;
mod logarithm;
#[cfg(test)]
mod tests;
mod weights;

use warploom_schedule::Dag;
use warploom_target::Device;

pub use inputs::{KernelInputs, RowInputs};
pub use weights::{Weights, WeightsError};

use crate::analytic::{Analytic, Parts};
use crate::kernel::KernelFeatures;
use crate::model::{CostModel, Term, Terms};
use inputs::{KERNEL_INPUTS, PARTS, ROW_INPUTS};
use weights::{HIDDEN, ROW_CHANNELS};

/// The largest logarithm of a correction.
pub(crate) const BOUND: f32 = 1.5;

/// Inputs further than this many deviations from the mean count as this far: nothing is known about them.
pub(crate) const LIMIT: f32 = 4.0;

/// Predicts with learned weights.
///
/// ```
/// use warploom_cost::{CostModel, Network, Weights};
/// use warploom_target::Device;
/// let network = Network::new(&Weights::random(1), &Device::preset("h200")?);
/// assert_eq!(network.name(), "random 1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Network {
    name: String,
    analytic: Analytic,
    row_scaling: Scaling<ROW_INPUTS>,
    kernel_scaling: Scaling<KERNEL_INPUTS>,
    row: Layer<ROW_CHANNELS>,
    hidden: Layer<HIDDEN>,
    output: Layer<PARTS>,
}

/// Means of inputs, and what their differences from it are multiplied with.
#[derive(Clone, Debug)]
struct Scaling<const INPUTS: usize> {
    means: [f32; INPUTS],
    factors: [f32; INPUTS],
}

/// A fully connected layer: for each input its weights for all channels.
#[derive(Clone, Debug)]
struct Layer<const CHANNELS: usize> {
    weights: Vec<[f32; CHANNELS]>,
    bias: [f32; CHANNELS],
}

impl Network {
    /// What training shares with it: the bound of a correction's logarithm, and the limit of inputs.
    pub const CONSTANTS: (f32, f32) = (BOUND, LIMIT);

    /// A network with these weights, which corrects the analytic model of a device.
    pub fn new(weights: &Weights, device: &Device) -> Network {
        let [row_means, row_factors, kernel_means, kernel_factors, layers @ ..] = weights.tensors();
        let [row, row_bias, hidden, hidden_bias, output, output_bias] = layers;
        Network {
            name: weights.name().to_owned(),
            analytic: Analytic::new(device),
            row_scaling: Scaling::new(row_means, row_factors),
            kernel_scaling: Scaling::new(kernel_means, kernel_factors),
            row: Layer::new(row, row_bias),
            hidden: Layer::new(hidden, hidden_bias),
            output: Layer::new(output, output_bias),
        }
    }

    /// How long all launches of a kernel take, microseconds, from what the network is given for it and its rows.
    pub fn predict(&self, kernel: &KernelInputs, rows: impl IntoIterator<Item = RowInputs>) -> f64 {
        // A kernel that computes nothing is not launched.
        if kernel.launches > 0.0 {
            f64::from(kernel.launches) * self.parts(kernel, rows).together(self.analytic.constants().overlap)
        } else {
            0.0
        }
    }

    /// The logarithm of the correction of each part.
    fn corrections(&self, kernel: &KernelInputs, rows: impl IntoIterator<Item = RowInputs>) -> [f32; PARTS] {
        let mut joined = [0.0; ROW_CHANNELS + KERNEL_INPUTS];
        let (of_rows, of_kernel) = joined.split_at_mut(ROW_CHANNELS);
        let mut total = 0.0;
        for RowInputs { numbers, weight } in rows {
            let channels = self.row.apply(&self.row_scaling.apply(&numbers));
            for (sum, channel) in of_rows.iter_mut().zip(&channels) {
                *sum += weight * channel.max(0.0);
            }
            total += weight;
        }
        if total > 0.0 {
            of_rows.iter_mut().for_each(|sum| *sum /= total);
        }
        of_kernel.copy_from_slice(&self.kernel_scaling.apply(&kernel.numbers));
        let hidden = self.hidden.apply(&joined).map(|channel| channel.max(0.0));
        self.output.apply(&hidden).map(|channel| BOUND * channel.tanh())
    }

    /// The parts of one launch of a kernel.
    fn parts(&self, kernel: &KernelInputs, rows: impl IntoIterator<Item = RowInputs>) -> Parts {
        let corrections = self.corrections(kernel, rows);
        let corrected = |part: usize| f64::from(kernel.parts[part]) * f64::from(corrections[part]).exp();
        Parts {
            launch: corrected(0),
            dram: corrected(1),
            l2: corrected(2),
            sm: corrected(3),
            latency: corrected(4),
        }
    }

    fn cost(&self, kernel: &KernelFeatures) -> f64 {
        let inputs = KernelInputs::new(&self.analytic, kernel);
        self.predict(&inputs, kernel.rows.iter().map(|row| inputs.row(&self.analytic, kernel, row)))
    }
}

impl CostModel for Network {
    fn costs(&self, _: &Dag, kernels: &[&KernelFeatures], costs: &mut Vec<f64>) {
        costs.extend(kernels.iter().map(|kernel| self.cost(kernel)));
    }

    fn explain(&self, dag: &Dag, kernel: &KernelFeatures) -> Terms {
        let inputs = KernelInputs::new(&self.analytic, kernel);
        let parts =
            self.parts(&inputs, kernel.rows.iter().map(|row| inputs.row(&self.analytic, kernel, row)));
        let plain = self.analytic.explain(dag, kernel);
        let corrected = [parts.launch, parts.dram, parts.l2, parts.sm, parts.latency];
        let launches = kernel.launches;
        let whole = plain.kernel.iter().zip(corrected);
        let of_sms = self.analytic.parts(kernel).sm.max(1e-9);
        let row = |terms: &Vec<Term>| {
            let scaled = |term: &Term| Term { microseconds: term.microseconds * parts.sm / of_sms, ..*term };
            terms.iter().map(scaled).collect()
        };
        Terms {
            total: self.cost(kernel),
            kernel: whole.map(|(term, part)| Term { microseconds: part * launches, ..*term }).collect(),
            rows: plain.rows.iter().map(row).collect(),
        }
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl<const INPUTS: usize> Scaling<INPUTS> {
    /// From tensors of the right size.
    fn new(means: &[f32], factors: &[f32]) -> Scaling<INPUTS> {
        let mut scaling = Scaling { means: [0.0; INPUTS], factors: [0.0; INPUTS] };
        scaling.means.copy_from_slice(means);
        scaling.factors.copy_from_slice(factors);
        scaling
    }

    fn apply(&self, numbers: &[f32; INPUTS]) -> [f32; INPUTS] {
        let mut scaled = [0.0; INPUTS];
        for (number, scaled) in scaled.iter_mut().enumerate() {
            let deviation = (numbers[number] - self.means[number]) * self.factors[number];
            *scaled = deviation.clamp(-LIMIT, LIMIT);
        }
        scaled
    }
}

impl<const CHANNELS: usize> Layer<CHANNELS> {
    /// From tensors of the right size, the weights input by input.
    fn new(weights: &[f32], bias: &[f32]) -> Layer<CHANNELS> {
        let mut layer = Layer { weights: weights.as_chunks().0.to_vec(), bias: [0.0; CHANNELS] };
        layer.bias.copy_from_slice(bias);
        layer
    }

    /// Adds inputs times weights, all channels side by side: the sums stay in vector registers.
    #[inline]
    fn apply(&self, inputs: &[f32]) -> [f32; CHANNELS] {
        let mut sums = self.bias;
        for (input, weights) in inputs.iter().zip(&self.weights) {
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum += input * weight;
            }
        }
        sums
    }
}
