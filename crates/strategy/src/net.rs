//! Small networks: dense layers with ReLU between them. Sums have a fixed order and no function depends on the
//! platform, so that training gives the same bits on every machine.

mod optimiser;

pub use optimiser::Optimiser;

use crate::{Draw, maths};

/// Dense layers with ReLU after each but the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Net {
    widths: Vec<usize>,
    /// Layer by layer, the weights input by input, then the biases.
    values: Vec<f32>,
}

impl Net {
    /// Random weights (He's uniform ones) and zero biases; `widths` are those of the input, the hidden layers and the
    /// output. The weights of the last layer are a tenth of that, so that initially all outputs are almost equal.
    pub fn new(widths: &[usize], draw: &mut Draw) -> Net {
        let mut values = Vec::new();
        for (number, pair) in widths.windows(2).enumerate() {
            let scale = if number + 2 == widths.len() { 0.1 } else { 1.0 };
            let limit = scale * (6.0 / pair[0].max(1) as f32).sqrt();
            values.extend((0..pair[0] * pair[1]).map(|_| draw.around_zero(limit)));
            values.extend((0..pair[1]).map(|_| 0.0));
        }
        Net { widths: widths.to_vec(), values }
    }

    /// A zero gradient, to accumulate into.
    pub fn gradient(&self) -> Vec<f32> {
        vec![0.0; self.values.len()]
    }

    /// All weights and biases, for an [`Optimiser`].
    pub fn values(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// The position of each layer's weights and biases: the first weight, the first bias, the end.
    fn layers(&self) -> Vec<[usize; 3]> {
        let mut end = 0;
        let place = |pair: &[usize]| {
            let start = end;
            end += pair[0] * pair[1] + pair[1];
            [start, start + pair[0] * pair[1], end]
        };
        self.widths.windows(2).map(place).collect()
    }

    /// The activations of a pass: the input, each hidden layer, and the output.
    pub fn forward(&self, input: &[f32]) -> Vec<Vec<f32>> {
        let mut levels = vec![input.to_vec()];
        let layers = self.layers();
        for (number, &[weights, biases, end]) in layers.iter().enumerate() {
            let mut sums = self.values[biases..end].to_vec();
            let rows = self.values[weights..biases].chunks_exact(sums.len());
            for (&x, row) in levels[number].iter().zip(rows).filter(|(x, _)| **x != 0.0) {
                sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += x * weight);
            }
            if number + 1 < layers.len() {
                sums.iter_mut().for_each(|sum| *sum = sum.max(0.0));
            }
            levels.push(sums);
        }
        levels
    }

    /// The output for an input.
    pub fn output(&self, input: &[f32]) -> Vec<f32> {
        self.forward(input).pop().unwrap_or_default()
    }

    /// Adds the derivatives of a loss by all weights and biases, given the activations from [`Net::forward`] and the
    /// derivatives by the output.
    pub fn backward(&self, levels: &[Vec<f32>], by_output: &[f32], gradient: &mut [f32]) {
        let mut by_sums = by_output.to_vec();
        for (number, &[weights, biases, end]) in self.layers().iter().enumerate().rev() {
            let input = &levels[number];
            add(&mut gradient[biases..end], &by_sums, 1.0);
            let into = gradient[weights..biases].chunks_exact_mut(by_sums.len());
            for (row, &x) in into.zip(input).filter(|(_, x)| **x != 0.0) {
                add(row, &by_sums, x);
            }
            if number > 0 {
                let rows = self.values[weights..biases].chunks_exact(by_sums.len());
                let through = |(row, &x): (&[f32], &f32)| {
                    // A ReLU with output 0 passes no derivative back.
                    if x > 0.0 { row.iter().zip(&by_sums).map(|(weight, d)| weight * d).sum() } else { 0.0 }
                };
                by_sums = rows.zip(input).map(through).collect();
            }
        }
    }
}

fn add(sums: &mut [f32], terms: &[f32], scale: f32) {
    sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += scale * term);
}

/// The softmax of numbers: positive, with sum 1.
pub fn softmax(numbers: &[f32]) -> Vec<f32> {
    let most = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = numbers.iter().map(|number| maths::exp(f64::from(number - most)) as f32).collect();
    let sum: f32 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: [([f32; 3], [f32; 2]); 4] = [
        ([0.3, -0.7, 0.9], [0.5, -1.0]),
        ([-0.8, 0.4, 0.2], [0.1, 0.3]),
        ([0.5, 0.6, -0.9], [-0.7, 0.2]),
        ([-0.4, -0.5, -0.6], [0.9, 0.8]),
    ];

    /// Half the sum of squared errors of the outputs.
    fn loss(net: &Net) -> f32 {
        let distance = |y: f32, wanted: f32| (y - wanted) * (y - wanted) / 2.0;
        let of = |(input, wanted): &([f32; 3], [f32; 2])| {
            net.output(input).iter().zip(wanted).map(|(y, w)| distance(*y, *w)).sum::<f32>()
        };
        CASES.iter().map(of).sum()
    }

    #[test]
    fn derivatives_agree_with_finite_differences() {
        let mut net = Net::new(&[3, 6, 6, 2], &mut Draw::new(8));
        net.values().iter_mut().enumerate().for_each(|(at, value)| *value += 0.01 * (at % 3) as f32);
        let mut gradient = net.gradient();
        for (input, wanted) in CASES {
            let levels = net.forward(&input);
            let by_output: Vec<f32> = levels[3].iter().zip(wanted).map(|(y, w)| y - w).collect();
            net.backward(&levels, &by_output, &mut gradient);
        }
        assert!(gradient.iter().filter(|d| **d != 0.0).count() > gradient.len() / 2);
        for (at, &derivative) in gradient.iter().enumerate() {
            let mut loss_at = |shift: f32| {
                let old = net.values()[at];
                net.values()[at] = old + shift;
                let loss = loss(&net);
                net.values()[at] = old;
                loss
            };
            let slope = (loss_at(4e-3) - loss_at(-4e-3)) / 8e-3;
            assert!((slope - derivative).abs() < 2e-3 * (1.0 + slope.abs()), "{at}: {slope} {derivative}");
        }
    }

    #[test]
    fn softmax_is_a_distribution() {
        let shares = softmax(&[1.0, 3.0, -200.0]);
        assert!((shares.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!((shares[1] / shares[0] - 2f32.exp()).abs() < 1e-4);
        assert!(shares[2] < 1e-30);
    }

    /// XOR needs the hidden layer.
    #[test]
    fn both_optimisers_learn_xor() {
        let cases = [([0.0, 0.0], 0.0), ([0.0, 1.0], 1.0), ([1.0, 0.0], 1.0), ([1.0, 1.0], 0.0)];
        for (optimiser, steps) in [(Optimiser::adam(0.01), 800), (Optimiser::ada_delta(1.0), 2000)] {
            let mut net = Net::new(&[2, 16, 1], &mut Draw::new(3));
            let mut optimiser = optimiser;
            for _ in 0..steps {
                let mut gradient = net.gradient();
                for (input, wanted) in cases {
                    let levels = net.forward(&input);
                    net.backward(&levels, &[levels[2][0] - wanted], &mut gradient);
                }
                optimiser.step(net.values(), &gradient);
            }
            for (input, wanted) in cases {
                assert!((net.output(&input)[0] - wanted).abs() < 0.1, "{optimiser:?}");
            }
        }
    }

    /// The bits of a short training: they change with the order of sums, and with any function.
    #[test]
    fn training_gives_the_same_bits_everywhere() {
        let mut net = Net::new(&[4, 8, 3], &mut Draw::new(5));
        let mut optimiser = Optimiser::adam(0.01);
        for step in 0..50 {
            let input = [0.1, 0.2, 0.3, step as f32 / 50.0];
            let levels = net.forward(&input);
            let shares = softmax(&levels[2]);
            let mut gradient = net.gradient();
            net.backward(&levels, &[shares[0] - 1.0, shares[1], shares[2]], &mut gradient);
            optimiser.step(net.values(), &gradient);
        }
        let bits = net.values().iter().fold(0u32, |hash, value| hash.rotate_left(5) ^ value.to_bits());
        assert_eq!(bits, 1_662_935_721);
    }
}
