//! The scores of models over groups of samples.

use rayon::prelude::*;
use warploom::cost::{Analytic, Network, Parts};

use crate::data::{Data, Group};
use crate::score::{Score, Summary};

/// Groups with fewer samples say nothing about an order.
pub const LEAST_SAMPLES: usize = 5;

/// What predicts the time of samples.
pub trait Predictor: Sync {
    /// The predicted time of a sample, microseconds.
    fn predict(&self, data: &Data, sample: usize) -> f64;
}

impl Predictor for Network {
    fn predict(&self, data: &Data, sample: usize) -> f64 {
        let kernels = data.kernels[sample].clone();
        let kernel = |kernel: usize| {
            let rows = data.row_inputs[data.rows[kernel].clone()].iter().copied();
            self.predict(&data.inputs[kernel], rows)
        };
        kernels.map(kernel).sum()
    }
}

impl Predictor for Analytic {
    fn predict(&self, data: &Data, sample: usize) -> f64 {
        let kernel = |kernel: usize| {
            let inputs = &data.inputs[kernel];
            let [launch, dram, l2, sm, latency] = inputs.parts.map(f64::from);
            let parts = Parts { launch, dram, l2, sm, latency };
            f64::from(inputs.launches) * parts.together(self.constants().overlap)
        };
        data.kernels[sample].clone().map(kernel).sum()
    }
}

/// The predicted times of all samples of each group.
pub fn predictions(data: &Data, groups: &[&Group], predictor: &impl Predictor) -> Vec<Vec<f64>> {
    let group = |group: &&Group| group.samples.clone().map(|sample| predictor.predict(data, sample)).collect();
    groups.par_iter().map(group).collect()
}

/// The score of each group's predictions.
pub fn scores(data: &Data, groups: &[&Group], predicted: &[Vec<f64>]) -> Vec<Score> {
    let score = |(group, predicted): (&&Group, &Vec<f64>)| Score::new(predicted, &times(data, group));
    groups.iter().zip(predicted).map(score).collect()
}

/// What a random pick scores in each group.
pub fn chance(data: &Data, groups: &[&Group]) -> Vec<Score> {
    groups.iter().map(|group| Score::of_chance(&times(data, group))).collect()
}

/// The scores of predictions over all groups that are large enough.
pub fn summary(data: &Data, groups: &[&Group], predicted: &[Vec<f64>]) -> Summary {
    let scores = scores(data, groups, predicted);
    let large: Vec<Score> = scores.into_iter().filter(|score| score.samples >= LEAST_SAMPLES).collect();
    Summary::of(&large)
}

/// The measured times of a group, microseconds.
pub fn times(data: &Data, group: &Group) -> Vec<f64> {
    data.times[group.samples.clone()].iter().map(|time| f64::from(*time)).collect()
}
