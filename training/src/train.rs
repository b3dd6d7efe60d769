//! The training loop.
//!
//! What is minimised, for each group of schedules of one pipeline: with `e` the logarithm of predicted over measured time,
//!
//! - the deviation of `e` from its mean in the group, so that the order of schedules is right;
//! - that mean, less, so that times are right;
//! - the regret of a pick: the mean of the logarithm of time over best time, where schedules are picked with
//!   probabilities that fall with their predicted times;
//! - the squares of the corrections, so that the network says no more than samples speak for, and where it knows nothing,
//!   the analytic model is left as it is.
//!
//! Fast schedules count more than slow ones, and all groups the same.
//!
//! The weights that training gives are a moving average over its steps: single steps jump between weights that are equally
//! good on what was seen, and differ on what was not.

use burn::optim::{AdamWConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::activation::softmax;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use thiserror::Error;
use warploom::cost::{Network, Weights, WeightsError};

use crate::batch::{Batch, Scaling};
use crate::data::{Data, Group};
use crate::evaluate::{mean_score, predictions};
use crate::model::{Backend, Layers, Model, NoBackend, predict, weights};
use crate::score::Score;

/// How to train.
#[derive(Clone, Debug)]
pub struct Options {
    /// Times that all groups are seen.
    pub epochs: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// Where.
    pub backend: Backend,
    /// The largest learning rate; it falls to 0 along a cosine.
    pub rate: f64,
    /// How much weights shrink each step, as a share of the learning rate.
    pub decay: f32,
    /// Samples of a group that are seen together.
    pub chunk: usize,
    /// Such chunks of one group in an epoch, at most.
    pub chunks: usize,
    /// Chunks of a step.
    pub step: usize,
    /// How much the mean of a group's errors counts.
    pub bias: f32,
    /// How much regret counts.
    pub regret: f32,
    /// By how much, as a logarithm, a predicted time has to be longer to be picked e times less often.
    pub temperature: f32,
    /// How much the squares of corrections count.
    pub restraint: f32,
    /// How much of the average of all weights so far is kept in a step.
    pub average: f32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            epochs: 20,
            seed: 0,
            backend: Backend::default(),
            rate: 2e-3,
            decay: 1e-2,
            chunk: 32,
            chunks: 4,
            step: 16,
            bias: 0.1,
            regret: 1.0,
            temperature: 0.1,
            restraint: 0.1,
            average: 0.998,
        }
    }
}

/// Why there are no weights.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The program has not this backend.
    #[error(transparent)]
    Backend(#[from] NoBackend),
    /// Training went wrong.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// All groups are held out.
    #[error("nothing is left to train on; collect samples of more pipelines")]
    Nothing,
}

/// What training says after each epoch.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// Which, from 1.
    pub number: usize,
    /// Of how many.
    pub of: usize,
    /// What is minimised, on the training groups, over the epoch.
    pub loss: f64,
    /// The same on the validation groups, if there are any, after the epoch.
    pub validation: Option<f64>,
    /// How good predictions are on them.
    pub scores: Option<Score>,
}

/// Weights and how they came to be.
#[derive(Debug)]
pub struct Trained {
    /// The weights.
    pub weights: Weights,
    /// Groups and samples that were trained on.
    pub groups: usize,
    /// Samples of those.
    pub samples: usize,
    /// The last epoch.
    pub epoch: usize,
    /// What was minimised, on the training groups, over each epoch.
    pub losses: Vec<f64>,
    /// The scores on the validation groups, if there are any.
    pub validation: Option<Score>,
}

/// Trains on all groups for which `keep` holds, from weights or from nothing.
///
/// # Errors
/// If the backend is missing or training goes wrong.
pub fn train(
    data: &Data,
    keep: impl Fn(&Group) -> bool,
    initial: Option<&Weights>,
    name: &str,
    options: &Options,
    observer: &mut dyn FnMut(&Epoch),
) -> Result<Trained, TrainError> {
    let (validation, training): (Vec<&Group>, Vec<&Group>) =
        data.groups.iter().filter(|group| keep(group)).partition(|group| group.is_validation());
    let samples: Vec<usize> = training.iter().flat_map(|group| group.samples.clone()).collect();
    if samples.is_empty() {
        return Err(TrainError::Nothing);
    }
    let device = options.backend.device()?;
    let scaling = match initial {
        Some(weights) => Scaling::of_weights(weights),
        None => Scaling::of(data, &samples),
    };
    let start = match initial {
        Some(weights) => weights.clone(),
        None => Weights::initial(options.seed, scaling.tensors())?,
    };
    let mut run = Run {
        data,
        options,
        scaling,
        plain: device.clone(),
        device: device.autodiff(),
        random: Xoshiro256PlusPlus::seed_from_u64(options.seed),
        training,
        validation,
    };
    let (weights, losses, validation) = run.run(start, name, observer)?;
    let (groups, samples, epoch) = (run.training.len(), samples.len(), losses.len());
    let weights = weights.trained_on(&data.device, scores(groups, samples, epoch, options.seed, validation));
    Ok(Trained { weights, groups, samples, epoch, losses, validation })
}

/// What is kept with weights, for people.
fn scores(groups: usize, samples: usize, epoch: usize, seed: u64, validation: Option<Score>) -> String {
    let validation = validation.map_or(String::new(), |score| {
        let Score { groups, spearman, top1, .. } = score;
        format!("; on {groups} other pipelines: top-1 regret {top1:.3}, rank correlation {spearman:.3}")
    });
    format!("{samples} samples of {groups} pipelines, seed {seed}, epoch {epoch}{validation}")
}

struct Run<'a> {
    data: &'a Data,
    options: &'a Options,
    scaling: Scaling,
    /// The device without gradients.
    plain: Device,
    device: Device,
    random: Xoshiro256PlusPlus,
    training: Vec<&'a Group>,
    validation: Vec<&'a Group>,
}

impl Run<'_> {
    fn run(
        &mut self,
        start: Weights,
        name: &str,
        observer: &mut dyn FnMut(&Epoch),
    ) -> Result<(Weights, Vec<f64>, Option<Score>), TrainError> {
        let options = self.options;
        let mut model = Model::new(&start, &self.device);
        let mut optimiser = AdamWConfig::new().with_weight_decay(options.decay).init();
        let mut average = Average { layers: model.layers(), steps: 0 };
        let (mut losses, mut trained, mut last) = (Vec::new(), start, None);
        for number in 1..=options.epochs {
            let chunks = self.chunks();
            let steps = chunks.len().div_ceil(options.step);
            let mut sum = 0.0;
            for (step, chunks) in chunks.chunks(options.step).enumerate() {
                let done = (number - 1) as f64 + step as f64 / steps as f64;
                let groups: Vec<&[usize]> = chunks.iter().map(Vec::as_slice).collect();
                let batch = Batch::new(self.data, &self.scaling, &groups, &self.device);
                let loss = loss(&model, &batch, options);
                sum += f64::from(loss.clone().into_scalar::<f32>());
                let gradients = GradientsParams::from_grads(loss.backward(), &model);
                model = optimiser.step(self.rate(done), model, gradients);
                average.add(&model.layers(), options.average);
            }
            trained = weights(name, &self.scaling, &average.layers)?;
            let (validation, scores) = self.validate(&trained);
            let loss = sum / steps as f64;
            observer(&Epoch { number, of: options.epochs, loss, validation, scores });
            losses.push(loss);
            last = scores;
        }
        Ok((trained, losses, last))
    }

    /// The learning rate: a short rise, then a cosine.
    fn rate(&self, done: f64) -> f64 {
        let rise = (done + 0.05).min(1.0);
        let along = std::f64::consts::PI * done / self.options.epochs as f64;
        self.options.rate * rise * (0.5 + 0.5 * along.cos())
    }

    /// The training samples in a new order: chunks of groups.
    fn chunks(&mut self) -> Vec<Vec<usize>> {
        let options = self.options;
        let mut all = Vec::new();
        for group in &self.training {
            let mut samples: Vec<usize> = group.samples.clone().collect();
            samples.shuffle(&mut self.random);
            all.extend(pieces(&samples, options.chunk).take(options.chunks).map(<[usize]>::to_vec));
        }
        all.shuffle(&mut self.random);
        all
    }

    fn validate(&self, weights: &Weights) -> (Option<f64>, Option<Score>) {
        if self.validation.is_empty() {
            return (None, None);
        }
        let model = Model::new(weights, &self.plain);
        let groups: Vec<Vec<usize>> =
            self.validation.iter().map(|group| group.samples.clone().collect()).collect();
        let pieces: Vec<&[usize]> =
            groups.iter().flat_map(|group| pieces(group, self.options.chunk)).collect();
        let batches = pieces.chunks(self.options.step).map(|groups| {
            let batch = Batch::new(self.data, &self.scaling, groups, &self.plain);
            let loss = loss(&model, &batch, self.options).into_scalar::<f32>();
            f64::from(loss) * groups.len() as f64
        });
        let total = batches.sum::<f64>() / pieces.len() as f64;
        let network = Network::new(weights, &self.data.device);
        let predicted = predictions(self.data, &self.validation, &network);
        (Some(total), mean_score(self.data, &self.validation, &predicted))
    }
}

/// A moving average of layers.
struct Average {
    layers: Layers,
    steps: usize,
}

impl Average {
    /// Adds the layers of one more step. The first steps are forgotten sooner, because they are far from good.
    fn add(&mut self, layers: &Layers, kept: f32) {
        self.steps += 1;
        let kept = kept.min(self.steps as f32 / (self.steps as f32 + 10.0));
        for (mean, layer) in self.layers.iter_mut().zip(layers) {
            for (mean, value) in mean.iter_mut().zip(layer) {
                *mean += (1.0 - kept) * (value - *mean);
            }
        }
    }
}

/// Pieces of about equal size, each of at most `most`.
fn pieces(samples: &[usize], most: usize) -> impl Iterator<Item = &[usize]> {
    let count = samples.len().div_ceil(most.max(1)).max(1);
    samples.chunks(samples.len().div_ceil(count).max(1))
}

/// What is minimised.
fn loss(model: &Model, batch: &Batch, options: &Options) -> Tensor<1> {
    let corrections = model.corrections(batch);
    let size = (corrections.clone().square() * batch.kernel_weights.clone()).sum();
    let predicted = predict(batch, corrections);
    let errors = predicted.clone() - batch.times.clone();
    let means = (batch.weights.clone() * errors.clone()).sum_dim(1);
    // The mean of each sample's group.
    let of_sample = (batch.members.clone() * means.clone()).sum_dim(0);
    let weights = batch.weights.clone().sum_dim(0);
    let spread = (weights * huber(errors - of_sample)).sum();
    let bias = huber(means).sum();
    let outside = (batch.members.clone() - 1.0) * 1e4;
    let picks = softmax(predicted / -options.temperature + outside, 1);
    let regret = (picks * batch.slower.clone()).sum();
    let [groups, _] = batch.members.dims();
    (spread + bias * options.bias + regret * options.regret + size * options.restraint) / groups as f32
}

/// The square of small numbers; beyond 1/2 it goes on straight.
fn huber(errors: Tensor<2>) -> Tensor<2> {
    const KNEE: f32 = 0.5;
    let size = errors.abs();
    let small = size.clone().clamp_max(KNEE);
    small.clone() * (size * 2.0 - small)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_forgets_where_it_began() {
        let layers = |value: f32| [(); 6].map(|()| vec![value]);
        let mut average = Average { layers: layers(100.0), steps: 0 };
        for _ in 0..40 {
            average.add(&layers(1.0), 0.998);
        }
        let early = average.layers[0][0];
        assert!((early - 1.0).abs() < 0.01, "{early}");
        for step in 0..5000 {
            average.add(&layers(if step % 2 == 0 { 4.0 } else { 6.0 }), 0.998);
        }
        assert!((average.layers[0][0] - 5.0).abs() < 0.01, "{:?}", average.layers);
    }
}
