//! The learned model: a small network whose outputs are the coefficients of a cost formula.
//!
//! For each row of a kernel's features:
//!
//! - `head1` turns what the stage computes at a point ([counts](warploom_schedule::Features), 0 for the copy of an
//!   input) into 8 numbers: weights through a sigmoid, a bias, no activation;
//! - `head2` turns how it is scheduled (`ln(1 + x)` of all [features](crate::StageFeatures)) into 24;
//! - `trunk` turns those 32 into 32 coefficients; it and `head2` have biases and the activation
//!   `max(x, 0) + 1e-10 min(x, 0)`.
//!
//! The row's time is the sum of the coefficients times the quantities in the [table](terms); that of a kernel is the
//! sum over its rows, and not below 0.
//!
//! A row is computed by itself and always in the same order of additions, all channels of a layer side by side, so that
//! a prediction is the same bits in whatever batch.

mod logarithm;
mod terms;
#[cfg(test)]
mod tests;
mod weights;

use std::cell::RefCell;

use warploom_lang::Id;
use warploom_schedule::{Dag, Features, StageId};

pub use weights::{Weights, WeightsError};

use crate::kernel::{KernelFeatures, RowSource};
use crate::model::{CostModel, Term, Terms};
use crate::schema::StageFeatures;
use logarithm::ln_1p;
use terms::{COEFFICIENTS, KERNEL_PARTS, ROW_PARTS};
use weights::{EMBEDDING, HIDDEN};

/// Slope of the activation below 0, so that training can bring a channel back to life.
const SLOPE: f32 = 1e-10;

/// Microseconds of a coefficient of 1.
const PICOSECOND: f64 = 1e-6;

/// Predicts with learned weights.
///
/// ```
/// use warploom_cost::{CostModel, Network, Weights};
/// let network = Network::new(&Weights::random(1));
/// assert_eq!(network.name(), "random 1");
/// ```
#[derive(Clone, Debug)]
pub struct Network {
    name: String,
    /// `head1` after the sigmoid.
    algorithm: Layer<EMBEDDING>,
    schedule: Layer<HIDDEN>,
    /// The part of `trunk` that `head1` feeds, and the bias.
    trunk_of_algorithm: Layer<COEFFICIENTS>,
    /// The part that `head2` feeds.
    trunk_of_schedule: Vec<[f32; COEFFICIENTS]>,
}

/// A fully connected layer: for each input its weights for all channels.
#[derive(Clone, Debug)]
struct Layer<const CHANNELS: usize> {
    weights: Vec<[f32; CHANNELS]>,
    bias: [f32; CHANNELS],
}

thread_local! {
    /// What `trunk` makes of each stage's algorithm, where the batch has needed it; kept for its memory alone.
    static STAGES: RefCell<Vec<Option<[f32; COEFFICIENTS]>>> = const { RefCell::new(Vec::new()) };
}

impl Network {
    /// A network with these weights.
    pub fn new(weights: &Weights) -> Network {
        let [head1, head1_bias, head2, head2_bias, trunk, trunk_bias] = weights.tensors();
        let positive: Vec<f32> = head1.iter().map(|weight| sigmoid(*weight)).collect();
        let (of_algorithm, of_schedule) = trunk.split_at(EMBEDDING * COEFFICIENTS);
        Network {
            name: weights.name().to_owned(),
            algorithm: Layer::new(&positive, head1_bias),
            schedule: Layer::new(head2, head2_bias),
            trunk_of_algorithm: Layer::new(of_algorithm, trunk_bias),
            trunk_of_schedule: of_schedule.as_chunks().0.to_vec(),
        }
    }

    /// What `head2` is given for a row: `ln(1 + x)` of its features. Training uses the same.
    pub fn inputs(features: &StageFeatures) -> [f32; StageFeatures::COUNT] {
        ln_1p(&features.values())
    }

    /// What the coefficients of a row are multiplied with; picoseconds, if a coefficient is 1. Training uses the same.
    ///
    /// # Panics
    /// If the kernel has no such row.
    pub fn quantities(kernel: &KernelFeatures, row: usize) -> [f64; COEFFICIENTS] {
        terms::quantities(kernel, row)
    }

    /// The coefficients of a row, from what `trunk` makes of the algorithm and from the schedule.
    fn coefficients(
        &self,
        of_algorithm: &[f32; COEFFICIENTS],
        features: &StageFeatures,
    ) -> [f32; COEFFICIENTS] {
        let hidden = activated(self.schedule.apply(&Network::inputs(features)));
        activated(sums(*of_algorithm, &hidden, &self.trunk_of_schedule))
    }

    /// What `trunk` makes of what a stage computes, before the schedule is added.
    fn of_algorithm(&self, features: Option<&Features>) -> [f32; COEFFICIENTS] {
        let mut embedding = self.algorithm.bias;
        let counts = features.map_or(&[][..], |features| features.counts().as_flattened());
        // Most counts are 0.
        for (count, weights) in counts.iter().zip(&self.algorithm.weights).filter(|(count, _)| **count > 0) {
            embedding = sums(embedding, &[*count as f32], &[*weights]);
        }
        self.trunk_of_algorithm.apply(&embedding)
    }

    /// The time of each row, in coefficients and quantities.
    fn rows(
        &self,
        dag: &Dag,
        kernel: &KernelFeatures,
        stages: &mut [Option<[f32; COEFFICIENTS]>],
        mut each: impl FnMut([f32; COEFFICIENTS], [f64; COEFFICIENTS]),
    ) {
        let mut of_stage = |stage: StageId| {
            let known = &mut stages[stage.index()];
            *known.get_or_insert_with(|| self.of_algorithm(Some(&dag.stages()[stage].features)))
        };
        for (number, row) in kernel.rows.iter().enumerate() {
            let of_algorithm = match row.source {
                RowSource::Stage(stage) | RowSource::Inlined(stage) => of_stage(stage),
                RowSource::Staged(_) => self.of_algorithm(None),
            };
            each(self.coefficients(&of_algorithm, &row.features), terms::quantities(kernel, number));
        }
    }
}

impl CostModel for Network {
    fn costs(&self, dag: &Dag, kernels: &[&KernelFeatures], costs: &mut Vec<f64>) {
        STAGES.with_borrow_mut(|stages| {
            stages.clear();
            stages.resize(dag.stages().len(), None);
            costs.extend(kernels.iter().map(|kernel| {
                let mut total = 0.0;
                self.rows(dag, kernel, stages, |coefficients, quantities| {
                    total += product(&coefficients, &quantities);
                });
                (total * PICOSECOND).max(0.0)
            }));
        });
    }

    fn explain(&self, dag: &Dag, kernel: &KernelFeatures) -> Terms {
        let mut terms = Terms::default();
        let mut whole = KERNEL_PARTS.map(|(name, _)| Term { name, microseconds: 0.0 });
        let mut stages = vec![None; dag.stages().len()];
        self.rows(dag, kernel, &mut stages, |coefficients, quantities| {
            let part = |numbers: &[usize]| {
                let picoseconds = numbers.iter().map(|n| f64::from(coefficients[*n]) * quantities[*n]);
                picoseconds.sum::<f64>() * PICOSECOND
            };
            let row = ROW_PARTS.map(|(name, numbers)| Term { name, microseconds: part(numbers) });
            terms.rows.push(row.into());
            for (term, (_, numbers)) in whole.iter_mut().zip(&KERNEL_PARTS) {
                term.microseconds += part(numbers);
            }
            terms.total += product(&coefficients, &quantities);
        });
        terms.total = (terms.total * PICOSECOND).max(0.0);
        terms.kernel = whole.into();
        terms
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl<const CHANNELS: usize> Layer<CHANNELS> {
    /// From tensors of the right size, the weights input by input.
    fn new(weights: &[f32], bias: &[f32]) -> Layer<CHANNELS> {
        let mut layer = Layer { weights: weights.as_chunks().0.to_vec(), bias: [0.0; CHANNELS] };
        layer.bias.copy_from_slice(bias);
        layer
    }

    fn apply(&self, inputs: &[f32]) -> [f32; CHANNELS] {
        sums(self.bias, inputs, &self.weights)
    }
}

/// Adds inputs times weights, all channels side by side: the sums stay in vector registers.
#[inline]
fn sums<const CHANNELS: usize>(
    mut sums: [f32; CHANNELS],
    inputs: &[f32],
    weights: &[[f32; CHANNELS]],
) -> [f32; CHANNELS] {
    for (input, weights) in inputs.iter().zip(weights) {
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum += input * weight;
        }
    }
    sums
}

fn activated<const CHANNELS: usize>(channels: [f32; CHANNELS]) -> [f32; CHANNELS] {
    channels.map(|channel| channel.max(0.0) + SLOPE * channel.min(0.0))
}

fn sigmoid(weight: f32) -> f32 {
    (1.0 / (1.0 + (-f64::from(weight)).exp())) as f32
}

/// The sum of coefficients times quantities: eight sums side by side, then those.
fn product(coefficients: &[f32; COEFFICIENTS], quantities: &[f64; COEFFICIENTS]) -> f64 {
    let mut sums = [0.0; 8];
    for (coefficients, quantities) in
        coefficients.as_chunks::<8>().0.iter().zip(quantities.as_chunks::<8>().0)
    {
        for lane in 0..8 {
            sums[lane] += f64::from(coefficients[lane]) * quantities[lane];
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}
