//! The learned model: a small network that corrects the parts of the [analytic model](Analytic).
//!
//! | step | result |
//! | --- | --- |
//! | every number of a row and of the kernel, minus its mean in training, divided by its standard deviation there, clamped to -[`LIMIT`]..[`LIMIT`] | inputs |
//! | `row`: a layer over the inputs of each row, `max(x, 0)` | 32 numbers per row |
//! | their mean over the rows, weighted by the clocks that the analytic model predicts for each row | 32 numbers |
//! | `hidden`: a layer over those and the inputs of the kernel, `max(x, 0)` | 32 numbers |
//! | `output`: a layer, [`BOUND`] times the hyperbolic tangent | one logarithm per part |
//!
//! Each part of the analytic prediction (launch, DRAM, L2, SMs, latency) is multiplied by its
//! correction, which is at most e^[`BOUND`] and at least its inverse. The corrected parts are
//! combined as in the analytic model. A network whose last layer is 0 equals the analytic model. A
//! kernel with a decision that the weights do not know gets its analytic cost.
//!
//! Each kernel is computed separately and with a fixed order of additions, vectorised over the
//! channels of a layer, so a prediction has the same bits in any batch. Nothing is allocated. Half
//! of the features of a row are 0, so the first layer starts with the result for a row of zeros and
//! adds the differences.

mod basis;
mod elementary;
mod inputs;
#[cfg(test)]
mod tests;
mod weights;

use warploom_schedule::Dag;
use warploom_target::Device;

pub use basis::{SCHEMA_VERSION, schema_hash};
pub use inputs::{KernelInputs, RowInputs};
pub use weights::{Weights, WeightsError};

use crate::analytic::Analytic;
use crate::kernel::{KernelFeatures, NewDecisions};
use crate::model::{CostModel, Term, Terms};
use crate::range::{Ranges, TimeRange};
use elementary::{exp, ln, tanh};
use inputs::{KERNEL_INPUTS, PARTS, ROW_INPUTS, SMS, shares};
use weights::{HIDDEN, ROW_CHANNELS};

/// The largest logarithm of a correction.
pub(crate) const BOUND: f32 = 1.5;

/// Inputs are clamped to this many standard deviations from the mean, because nothing is known
/// beyond.
pub(crate) const LIMIT: f32 = 4.0;

/// A cost model with learned weights.
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
    known: NewDecisions,
    /// Known only on the device that the weights were trained on.
    ranges: Option<Ranges>,
    analytic: Analytic,
    row: RowLayer,
    kernel_scaling: Scaling<KERNEL_INPUTS>,
    hidden: Layer<HIDDEN>,
    output: Layer<PARTS>,
}

/// Means and scale factors of inputs.
#[derive(Clone, Debug)]
struct Scaling<const INPUTS: usize> {
    means: [f32; INPUTS],
    factors: [f32; INPUTS],
}

/// The first layer, for inputs that are mostly 0.
#[derive(Clone, Debug)]
struct RowLayer {
    scaling: Scaling<ROW_INPUTS>,
    /// The scaled inputs of a row of zeros.
    zeros: [f32; ROW_INPUTS],
    /// The weights. The bias is the result for a row of zeros.
    layer: Layer<ROW_CHANNELS>,
}

/// A fully connected layer. Stores the weights of all channels for each input.
#[derive(Clone, Debug)]
struct Layer<const CHANNELS: usize> {
    weights: Vec<[f32; CHANNELS]>,
    bias: [f32; CHANNELS],
}

impl Network {
    /// The constants that training shares: the bound on the logarithm of a correction, and the
    /// limit of inputs.
    pub const CONSTANTS: (f32, f32) = (BOUND, LIMIT);

    /// Makes a network with these weights, which corrects the analytic model of a device.
    pub fn new(weights: &Weights, device: &Device) -> Network {
        let [row_means, row_factors, kernel_means, kernel_factors, layers @ ..] = weights.tensors();
        let [row, row_bias, hidden, hidden_bias, output, output_bias] = layers;
        Network {
            name: weights.name().to_owned(),
            known: weights.known() | NewDecisions::DESCRIBED,
            ranges: weights.ranges().filter(|_| weights.check_device(device).is_ok()).cloned(),
            analytic: Analytic::new(device),
            row: RowLayer::new(Scaling::new(row_means, row_factors), Layer::new(row, row_bias)),
            kernel_scaling: Scaling::new(kernel_means, kernel_factors),
            hidden: Layer::new(hidden, hidden_bias),
            output: Layer::new(output, output_bias),
        }
    }

    /// Predicts the time of all launches of a kernel in microseconds, from the inputs of the kernel
    /// and its rows.
    pub fn predict(&self, kernel: &KernelInputs, rows: impl IntoIterator<Item = RowInputs>) -> f64 {
        // A kernel that computes nothing is not launched.
        if kernel.launches > 0.0 {
            let [launch, parts @ ..] = self.logarithms(kernel, rows);
            let (_, together) = shares(&parts, self.analytic.constants().overlap as f32);
            let [launch, together] = exp(&[launch, together]);
            f64::from(kernel.launches) * f64::from(launch + together)
        } else {
            0.0
        }
    }

    /// The logarithm of the correction of each part.
    fn corrections(&self, kernel: &KernelInputs, rows: impl IntoIterator<Item = RowInputs>) -> [f32; PARTS] {
        if !self.known.contains(kernel.decisions) {
            return [0.0; PARTS];
        }
        let mut joined = [0.0; ROW_CHANNELS + KERNEL_INPUTS];
        let (of_rows, of_kernel) = joined.split_at_mut(ROW_CHANNELS);
        let mut total = 0.0;
        for RowInputs { numbers, weight } in rows {
            let channels = self.row.apply(&numbers);
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
        tanh(&self.output.apply(&hidden)).map(|channel| BOUND * channel)
    }

    /// The logarithms of the parts of one launch of a kernel, after correction.
    fn logarithms(&self, kernel: &KernelInputs, rows: impl IntoIterator<Item = RowInputs>) -> [f32; PARTS] {
        let mut logarithms = ln(&kernel.parts.map(f64::from));
        for (logarithm, correction) in logarithms.iter_mut().zip(self.corrections(kernel, rows)) {
            *logarithm += correction;
        }
        logarithms
    }

    fn cost(&self, kernel: &KernelFeatures) -> f64 {
        if !self.known.contains(kernel.decisions) {
            return self.analytic.cost(kernel);
        }
        let inputs = KernelInputs::new(&self.analytic, kernel);
        self.predict(&inputs, kernel.rows.iter().map(|row| inputs.row(&self.analytic, kernel, row)))
    }
}

impl CostModel for Network {
    fn costs(&self, _: &Dag, kernels: &[&KernelFeatures], costs: &mut Vec<f64>) {
        costs.extend(kernels.iter().map(|kernel| self.cost(kernel)));
    }

    fn knows(&self, decisions: NewDecisions) -> bool {
        self.known.contains(decisions)
    }

    fn explain(&self, dag: &Dag, kernel: &KernelFeatures) -> Terms {
        if !self.known.contains(kernel.decisions) {
            return self.analytic.explain(dag, kernel);
        }
        let inputs = KernelInputs::new(&self.analytic, kernel);
        let rows = kernel.rows.iter().map(|row| inputs.row(&self.analytic, kernel, row));
        let corrected = self.logarithms(&inputs, rows).map(|logarithm| f64::from(logarithm).exp());
        let plain = self.analytic.explain(dag, kernel);
        let launches = kernel.launches;
        let whole = plain.kernel.iter().zip(corrected);
        let of_sms = corrected[SMS] / f64::from(inputs.parts[SMS]);
        let row = |terms: &Vec<Term>| {
            let scaled = |term: &Term| Term { microseconds: term.microseconds * of_sms, ..*term };
            terms.iter().map(scaled).collect()
        };
        Terms {
            total: self.cost(kernel),
            kernel: whole.map(|(term, part)| Term { microseconds: part * launches, ..*term }).collect(),
            rows: plain.rows.iter().map(row).collect(),
        }
    }

    fn range(&self, predicted_us: f64) -> Option<TimeRange> {
        self.ranges.as_ref()?.of(predicted_us)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl<const INPUTS: usize> Scaling<INPUTS> {
    /// Takes tensors of the right size.
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

impl RowLayer {
    fn new(scaling: Scaling<ROW_INPUTS>, mut layer: Layer<ROW_CHANNELS>) -> RowLayer {
        let zeros = scaling.apply(&[0.0; ROW_INPUTS]);
        layer.bias = layer.apply(&zeros);
        RowLayer { scaling, zeros, layer }
    }

    fn apply(&self, numbers: &[f32; ROW_INPUTS]) -> [f32; ROW_CHANNELS] {
        let mut differences = self.scaling.apply(numbers);
        for (difference, zero) in differences.iter_mut().zip(&self.zeros) {
            *difference -= zero;
        }
        // Collect the nonzero inputs without an unpredictable branch.
        let mut places = [0u16; ROW_INPUTS];
        let mut count = 0;
        for (place, number) in numbers.iter().enumerate() {
            places[count] = place as u16;
            count += usize::from(number.to_bits() != 0);
        }
        let mut sums = self.layer.bias;
        for place in places[..count].iter().copied().map(usize::from) {
            add(&mut sums, differences[place], &self.layer.weights[place]);
        }
        sums
    }
}

impl<const CHANNELS: usize> Layer<CHANNELS> {
    /// Takes tensors of the right size, the weights input by input.
    fn new(weights: &[f32], bias: &[f32]) -> Layer<CHANNELS> {
        let mut layer = Layer { weights: weights.as_chunks().0.to_vec(), bias: [0.0; CHANNELS] };
        layer.bias.copy_from_slice(bias);
        layer
    }

    /// Adds inputs times weights for all channels at once, so that the sums stay in vector
    /// registers.
    #[inline]
    fn apply(&self, inputs: &[f32]) -> [f32; CHANNELS] {
        let mut sums = self.bias;
        for (input, weights) in inputs.iter().zip(&self.weights) {
            add(&mut sums, *input, weights);
        }
        sums
    }
}

#[inline(always)]
fn add<const CHANNELS: usize>(sums: &mut [f32; CHANNELS], input: f32, weights: &[f32; CHANNELS]) {
    for (sum, weight) in sums.iter_mut().zip(weights) {
        *sum += input * weight;
    }
}
