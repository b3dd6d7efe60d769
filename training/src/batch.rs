//! Converts groups of samples to tensors.

use burn::prelude::*;
use burn::tensor::{Int, TensorData};
use rayon::prelude::*;
use warploom::cost::{KernelInputs, Network, RowInputs, Weights};

use crate::data::Data;

/// Normalisation of the network's inputs: their means, and the factors for the differences from the
/// means.
#[derive(Clone, Debug)]
pub struct Scaling {
    row: Vec<(f32, f32)>,
    kernel: Vec<(f32, f32)>,
}

impl Scaling {
    /// The scaling for which the inputs of these samples' kernels have mean 0 and standard
    /// deviation 1. Inputs that never vary become 0.
    pub fn of(data: &Data, samples: &[usize]) -> Scaling {
        let kernels = || samples.iter().flat_map(|sample| data.kernels[*sample].clone());
        let rows = || kernels().flat_map(|kernel| data.rows[kernel].clone());
        Scaling {
            row: moments(rows().map(|row| &data.row_inputs[row].numbers[..])),
            kernel: moments(kernels().map(|kernel| &data.inputs[kernel].numbers[..])),
        }
    }

    /// The scaling stored in weights.
    pub fn of_weights(weights: &Weights) -> Scaling {
        let [row_means, row_factors, kernel_means, kernel_factors, ..] = weights.tensors();
        let pairs =
            |means: &[f32], factors: &[f32]| means.iter().copied().zip(factors.iter().copied()).collect();
        Scaling { row: pairs(row_means, row_factors), kernel: pairs(kernel_means, kernel_factors) }
    }

    /// The scaling as the first four tensors of [`Weights::TENSORS`].
    pub fn tensors(&self) -> [Vec<f32>; 4] {
        let means = |pairs: &[(f32, f32)]| pairs.iter().map(|pair| pair.0).collect();
        let factors = |pairs: &[(f32, f32)]| pairs.iter().map(|pair| pair.1).collect();
        [means(&self.row), factors(&self.row), means(&self.kernel), factors(&self.kernel)]
    }
}

/// The mean of each number, and the inverse of its standard deviation.
fn moments<'a>(all: impl Iterator<Item = &'a [f32]>) -> Vec<(f32, f32)> {
    let mut count = 0.0;
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for numbers in all {
        sums.resize(numbers.len(), (0.0, 0.0));
        count += 1.0;
        for ((sum, squares), number) in sums.iter_mut().zip(numbers) {
            *sum += f64::from(*number);
            *squares += f64::from(*number) * f64::from(*number);
        }
    }
    let moment = |(sum, squares): &(f64, f64)| {
        let mean = sum / count;
        let deviation = (squares / count - mean * mean).max(0.0).sqrt();
        (mean as f32, if deviation > 1e-3 { (1.0 / deviation) as f32 } else { 0.0 })
    };
    sums.iter().map(moment).collect()
}

fn scaled(numbers: &[f32], scaling: &[(f32, f32)], into: &mut [f32]) {
    let (_, limit) = Network::CONSTANTS;
    for ((number, (mean, factor)), scaled) in numbers.iter().zip(scaling).zip(into) {
        *scaled = ((number - mean) * factor).clamp(-limit, limit);
    }
}

/// The samples of several groups as tensors: R rows of K kernels of S samples in G groups.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Scaled inputs of the rows: R x features.
    pub rows: Tensor<2>,
    /// Share of each row in its kernel: R x 1.
    pub shares: Tensor<2>,
    /// Index of each row's kernel: R.
    pub row_kernels: Tensor<1, Int>,
    /// Scaled inputs of the kernels: K x numbers.
    pub kernels: Tensor<2>,
    /// Logarithms of the time parts that the analytic model predicts: K x parts.
    pub parts: Tensor<2>,
    /// Number of launches of each kernel: K x 1.
    pub launches: Tensor<2>,
    /// Weight of each kernel: K x 1. Samples of a group have equal weight, and so have kernels of a
    /// sample.
    pub kernel_weights: Tensor<2>,
    /// Index of each kernel's sample: K.
    pub kernel_samples: Tensor<1, Int>,
    /// Logarithms of measured times: 1 x S.
    pub times: Tensor<2>,
    /// Logarithm of each sample's time over the shortest time of its group: 1 x S.
    pub slower: Tensor<2>,
    /// Membership: 1 where a sample is in a group, else 0: G x S.
    pub members: Tensor<2>,
    /// Weight of each sample in its group, summing to 1 per group: G x S.
    pub weights: Tensor<2>,
}

impl Batch {
    /// Builds the tensors of groups of sample indices. No group may be empty.
    pub fn new(data: &Data, scaling: &Scaling, groups: &[&[usize]], device: &Device) -> Batch {
        let samples = groups.concat();
        let kernels: Vec<usize> = samples.iter().flat_map(|sample| data.kernels[*sample].clone()).collect();
        let rows: Vec<usize> = kernels.iter().flat_map(|kernel| data.rows[*kernel].clone()).collect();
        let counts = |ranges: &mut dyn Iterator<Item = usize>| -> Vec<i32> {
            ranges.enumerate().flat_map(|(number, count)| std::iter::repeat_n(number as i32, count)).collect()
        };
        let row_kernels = counts(&mut kernels.iter().map(|kernel| data.rows[*kernel].len()));
        let kernel_samples = counts(&mut samples.iter().map(|sample| data.kernels[*sample].len()));
        let inputs: Vec<&KernelInputs> = kernels.iter().map(|kernel| &data.inputs[*kernel]).collect();
        let row_inputs: Vec<&RowInputs> = rows.iter().map(|row| &data.row_inputs[*row]).collect();
        let (times, slower, members, weights) = targets(data, groups);
        let matrix = |values: Vec<f32>, rows: usize| {
            let columns = values.len() / rows.max(1);
            Tensor::<2>::from_data(TensorData::new(values, [rows, columns]), device)
        };
        let indices = |values: Vec<i32>| {
            let count = values.len();
            Tensor::<1, Int>::from_data(TensorData::new(values, [count]), device)
        };
        let part = |one: &&KernelInputs| one.parts.map(f32::ln);
        Batch {
            rows: matrix(scale_all(&row_inputs, &scaling.row, |row| &row.numbers), rows.len()),
            shares: matrix(shares(data, &kernels), rows.len()),
            row_kernels: indices(row_kernels),
            kernels: matrix(scale_all(&inputs, &scaling.kernel, |kernel| &kernel.numbers), kernels.len()),
            parts: matrix(inputs.iter().flat_map(part).collect(), kernels.len()),
            launches: matrix(inputs.iter().map(|one| one.launches).collect(), kernels.len()),
            kernel_weights: matrix(kernel_weights(data, groups), kernels.len()),
            kernel_samples: indices(kernel_samples),
            times: matrix(times, 1),
            slower: matrix(slower, 1),
            members: matrix(members, groups.len()),
            weights: matrix(weights, groups.len()),
        }
    }
}

fn scale_all<T: Sync>(all: &[&T], scaling: &[(f32, f32)], numbers: impl Fn(&T) -> &[f32] + Sync) -> Vec<f32> {
    let mut into = vec![0.0; all.len() * scaling.len()];
    into.par_chunks_mut(scaling.len()).zip(all).for_each(|(into, one)| scaled(numbers(one), scaling, into));
    into
}

/// Weights of rows, summing to 1 per kernel.
fn shares(data: &Data, kernels: &[usize]) -> Vec<f32> {
    let mut shares = Vec::new();
    for kernel in kernels {
        let rows = &data.row_inputs[data.rows[*kernel].clone()];
        let total: f32 = rows.iter().map(|row| row.weight).sum();
        shares.extend(rows.iter().map(|row| row.weight / total));
    }
    shares
}

/// Weights of kernels, summing to the same value for each sample and to 1 per group.
fn kernel_weights(data: &Data, groups: &[&[usize]]) -> Vec<f32> {
    let mut weights = Vec::new();
    for (group, sample) in groups.iter().flat_map(|group| group.iter().map(move |sample| (group, sample))) {
        let kernels = data.kernels[*sample].len();
        weights.extend(std::iter::repeat_n(1.0 / (group.len() * kernels) as f32, kernels));
    }
    weights
}

/// Logarithms of times, logarithms of times over the group's shortest, group membership and sample
/// weights.
fn targets(data: &Data, groups: &[&[usize]]) -> (Vec<f32>, Vec<f32>, Vec<f32>, Vec<f32>) {
    let count = groups.iter().map(|group| group.len()).sum::<usize>();
    let (mut times, mut slower) = (Vec::new(), Vec::new());
    let mut members = vec![0.0; count * groups.len()];
    let mut weights = vec![0.0; count * groups.len()];
    for (number, group) in groups.iter().enumerate() {
        let fastest = group.iter().map(|sample| data.times[*sample]).fold(f32::INFINITY, f32::min);
        // Slow schedules need less accuracy.
        let weight = |sample: &usize| (fastest / data.times[*sample]).sqrt();
        let total: f32 = group.iter().map(weight).sum();
        for sample in *group {
            let place = number * count + times.len();
            members[place] = 1.0;
            weights[place] = weight(sample) / total;
            times.push(data.times[*sample].ln());
            slower.push((data.times[*sample] / fastest).ln());
        }
    }
    (times, slower, members, weights)
}
