//! Groups of samples as tensors.

use burn::prelude::*;
use burn::tensor::{Int, TensorData};
use rayon::prelude::*;
use warploom::cost::{KernelInputs, Network, RowInputs, Weights};

use crate::data::Data;

/// Means of the network's inputs, and what differences from them are multiplied with.
#[derive(Clone, Debug)]
pub struct Scaling {
    row: Vec<(f32, f32)>,
    kernel: Vec<(f32, f32)>,
}

impl Scaling {
    /// Such that the inputs of the kernels of these samples have mean 0 and deviation 1. Inputs that never vary become 0.
    pub fn of(data: &Data, samples: &[usize]) -> Scaling {
        let kernels = || samples.iter().flat_map(|sample| data.kernels[*sample].clone());
        let rows = || kernels().flat_map(|kernel| data.rows[kernel].clone());
        Scaling {
            row: moments(rows().map(|row| &data.row_inputs[row].numbers[..])),
            kernel: moments(kernels().map(|kernel| &data.inputs[kernel].numbers[..])),
        }
    }

    /// That of weights.
    pub fn of_weights(weights: &Weights) -> Scaling {
        let [row_means, row_factors, kernel_means, kernel_factors, ..] = weights.tensors();
        let pairs =
            |means: &[f32], factors: &[f32]| means.iter().copied().zip(factors.iter().copied()).collect();
        Scaling { row: pairs(row_means, row_factors), kernel: pairs(kernel_means, kernel_factors) }
    }

    /// As the first tensors of [`Weights::TENSORS`].
    pub fn tensors(&self) -> [Vec<f32>; 4] {
        let means = |pairs: &[(f32, f32)]| pairs.iter().map(|pair| pair.0).collect();
        let factors = |pairs: &[(f32, f32)]| pairs.iter().map(|pair| pair.1).collect();
        [means(&self.row), factors(&self.row), means(&self.kernel), factors(&self.kernel)]
    }
}

/// The mean of each number, and the inverse of its deviation.
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

/// Samples of several groups as tensors: R rows of K kernels of S samples in G groups.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Inputs of rows, scaled: R x features.
    pub rows: Tensor<2>,
    /// Shares of rows in their kernels: R x 1.
    pub shares: Tensor<2>,
    /// The kernel of each row: R.
    pub row_kernels: Tensor<1, Int>,
    /// Inputs of kernels, scaled: K x numbers.
    pub kernels: Tensor<2>,
    /// Logarithms of the parts that the analytic model predicts: K x parts.
    pub parts: Tensor<2>,
    /// Launches: K x 1.
    pub launches: Tensor<2>,
    /// How much each kernel counts in its group, where samples count the same, and kernels of a sample: K x 1.
    pub kernel_weights: Tensor<2>,
    /// The sample of each kernel: K.
    pub kernel_samples: Tensor<1, Int>,
    /// Logarithms of measured times: 1 x S.
    pub times: Tensor<2>,
    /// How much slower each sample is than the fastest of its group, as a logarithm: 1 x S.
    pub slower: Tensor<2>,
    /// 1 where a sample is in a group: G x S.
    pub members: Tensor<2>,
    /// How much each sample counts in its group; sums to 1 in each: G x S.
    pub weights: Tensor<2>,
}

impl Batch {
    /// The samples of each group, which must not be empty.
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

/// Weights of rows such that those of each kernel sum to 1.
fn shares(data: &Data, kernels: &[usize]) -> Vec<f32> {
    let mut shares = Vec::new();
    for kernel in kernels {
        let rows = &data.row_inputs[data.rows[*kernel].clone()];
        let total: f32 = rows.iter().map(|row| row.weight).sum();
        shares.extend(rows.iter().map(|row| row.weight / total));
    }
    shares
}

/// Weights of kernels such that those of each sample sum to the same, and those of each group to 1.
fn kernel_weights(data: &Data, groups: &[&[usize]]) -> Vec<f32> {
    let mut weights = Vec::new();
    for (group, sample) in groups.iter().flat_map(|group| group.iter().map(move |sample| (group, sample))) {
        let kernels = data.kernels[*sample].len();
        weights.extend(std::iter::repeat_n(1.0 / (group.len() * kernels) as f32, kernels));
    }
    weights
}

/// Logarithms of times and of how much slower than the fastest they are; members of groups and their weights.
fn targets(data: &Data, groups: &[&[usize]]) -> (Vec<f32>, Vec<f32>, Vec<f32>, Vec<f32>) {
    let count = groups.iter().map(|group| group.len()).sum::<usize>();
    let (mut times, mut slower) = (Vec::new(), Vec::new());
    let mut members = vec![0.0; count * groups.len()];
    let mut weights = vec![0.0; count * groups.len()];
    for (number, group) in groups.iter().enumerate() {
        let fastest = group.iter().map(|sample| data.times[*sample]).fold(f32::INFINITY, f32::min);
        // Slow schedules need not be known well.
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
