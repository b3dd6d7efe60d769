//! The training loop.
//!
//! For each group of schedules of one pipeline, with `e` the logarithm of predicted over measured
//! time, the loss is the weighted sum of
//!
//! - the deviation of `e` from its mean in the group, which makes the order of schedules right;
//! - that mean, with less weight, which makes the times right;
//! - the regret of a pick: the mean of the logarithm of time over best time, where schedules are
//!   picked with probabilities that fall with their predicted times;
//! - the squares of the corrections. This regularisation keeps corrections small unless samples
//!   support them, and leaves the analytic model unchanged where the network has no data.
//!
//! Fast schedules have more weight than slow ones. All groups have equal weight.
//!
//! The resulting weights are a moving average over the steps: single steps jump between weights
//! that are equally good on the training samples but differ on unseen ones.

use burn::optim::{AdamWConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::activation::softmax;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use thiserror::Error;
use warploom::cost::{Network, NewDecisions, Weights, WeightsError};

use crate::batch::{Batch, Scaling};
use crate::data::{Data, Group};
use crate::evaluate::{mean_score, predictions};
use crate::model::{Backend, Layers, Model, NoBackend, predict, weights};
use crate::score::Score;

/// Options of training.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of passes over all groups.
    pub epochs: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// The burn backend to train with.
    pub backend: Backend,
    /// Peak learning rate; it falls to 0 along a cosine.
    pub rate: f64,
    /// Weight decay per step, as a fraction of the learning rate.
    pub decay: f32,
    /// Maximum number of samples per chunk of a group.
    pub chunk: usize,
    /// Maximum number of chunks per group and epoch.
    pub chunks: usize,
    /// Number of chunks per step.
    pub step: usize,
    /// Loss weight of a group's mean error.
    pub bias: f32,
    /// Loss weight of the regret.
    pub regret: f32,
    /// Softmax temperature of picks: the increase in the logarithm of the predicted time that makes
    /// a pick e times less likely.
    pub temperature: f32,
    /// Loss weight of the squared corrections.
    pub restraint: f32,
    /// Decay of the moving average of weights per step.
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

/// Why training failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The program was built without the backend.
    #[error(transparent)]
    Backend(#[from] NoBackend),
    /// Training diverged.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// No group is left for training.
    #[error("nothing is left to train on; collect samples of more pipelines")]
    Nothing,
}

/// Progress report after an epoch.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// Number of the epoch, from 1.
    pub number: usize,
    /// Total number of epochs.
    pub of: usize,
    /// Mean loss on the training groups over the epoch.
    pub loss: f64,
    /// Loss on the validation groups after the epoch, if there are any.
    pub validation: Option<f64>,
    /// Score on the validation groups, if there are any.
    pub scores: Option<Score>,
}

/// The result of training.
#[derive(Debug)]
pub struct Trained {
    /// The trained weights, averaged over the steps.
    pub weights: Weights,
    /// Number of groups trained on.
    pub groups: usize,
    /// Number of samples in those groups.
    pub samples: usize,
    /// Number of epochs.
    pub epoch: usize,
    /// Mean loss on the training groups, per epoch.
    pub losses: Vec<f64>,
    /// Final score on the validation groups, if there are any.
    pub validation: Option<Score>,
}

/// Trains on all groups for which `keep` holds, from `initial` weights or from scratch. Validation
/// groups among them are only scored. `observer` is called after every epoch.
///
/// # Errors
/// If the backend is missing, no group is left for training, or training diverges.
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
    let kernels = samples.iter().flat_map(|sample| &data.inputs[data.kernels[*sample].clone()]);
    let mut run = Run {
        data,
        options,
        scaling,
        known: kernels.fold(start.known(), |known, kernel| known | kernel.decisions),
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

/// The description stored with the weights.
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
    /// New decisions in the training samples, or known to the initial weights.
    known: NewDecisions,
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
            trained = weights(name, &self.scaling, &average.layers)?.knowing(self.known);
            let (validation, scores) = self.validate(&trained);
            let loss = sum / steps as f64;
            observer(&Epoch { number, of: options.epochs, loss, validation, scores });
            losses.push(loss);
            last = scores;
        }
        Ok((trained, losses, last))
    }

    /// The learning rate: a short warm-up, then a cosine.
    fn rate(&self, done: f64) -> f64 {
        let rise = (done + 0.05).min(1.0);
        let along = std::f64::consts::PI * done / self.options.epochs as f64;
        self.options.rate * rise * (0.5 + 0.5 * along.cos())
    }

    /// The training samples in a new random order, as chunks of groups.
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

/// A moving average of the layers.
struct Average {
    layers: Layers,
    steps: usize,
}

impl Average {
    /// Adds the layers of one more step. The first steps are forgotten sooner, because their
    /// weights are poor.
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

/// Splits samples into pieces of about equal size, at most `most` each.
fn pieces(samples: &[usize], most: usize) -> impl Iterator<Item = &[usize]> {
    let count = samples.len().div_ceil(most.max(1)).max(1);
    samples.chunks(samples.len().div_ceil(count).max(1))
}

/// The loss of a batch.
fn loss(model: &Model, batch: &Batch, options: &Options) -> Tensor<1> {
    let corrections = model.corrections(batch);
    let size = (corrections.clone().square() * batch.kernel_weights.clone()).sum();
    let predicted = predict(batch, corrections);
    let errors = predicted.clone() - batch.times.clone();
    let means = (batch.weights.clone() * errors.clone()).sum_dim(1);
    // The mean error of each sample's group.
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

/// Huber loss: quadratic up to 1/2, linear beyond.
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
