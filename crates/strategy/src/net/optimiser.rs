//! Update rules for networks.

/// An update rule along a gradient, with its state.
#[derive(Clone, Debug)]
pub struct Optimiser {
    rule: Rule,
    rate: f32,
    /// Running means, one per weight: of gradients (Adam) or squared changes (AdaDelta), and of squared gradients.
    first: Vec<f32>,
    squares: Vec<f32>,
}

#[derive(Clone, Debug)]
enum Rule {
    /// The remaining share of the initial zeros in both means.
    Adam {
        first_left: f32,
        squares_left: f32,
    },
    AdaDelta,
}

impl Optimiser {
    /// Adam, with the usual 0.9, 0.999 and 1e-8.
    pub fn adam(rate: f32) -> Optimiser {
        Optimiser::new(Rule::Adam { first_left: 1.0, squares_left: 1.0 }, rate)
    }

    /// AdaDelta, with the usual 0.9 and 1e-6.
    pub fn ada_delta(rate: f32) -> Optimiser {
        Optimiser::new(Rule::AdaDelta, rate)
    }

    fn new(rule: Rule, rate: f32) -> Optimiser {
        Optimiser { rule, rate, first: Vec::new(), squares: Vec::new() }
    }

    /// Updates the values of a network, always the same one.
    pub fn step(&mut self, values: &mut [f32], gradient: &[f32]) {
        self.first.resize(values.len(), 0.0);
        self.squares.resize(values.len(), 0.0);
        let means = self.first.iter_mut().zip(&mut self.squares);
        let all = values.iter_mut().zip(gradient).zip(means);
        match &mut self.rule {
            Rule::Adam { first_left, squares_left } => {
                *first_left *= 0.9;
                *squares_left *= 0.999;
                let (first_share, square_share) = (1.0 - *first_left, 1.0 - *squares_left);
                for ((value, slope), (first, square)) in all {
                    *first = 0.9 * *first + 0.1 * slope;
                    *square = 0.999 * *square + 0.001 * slope * slope;
                    *value -= self.rate * (*first / first_share) / ((*square / square_share).sqrt() + 1e-8);
                }
            }
            Rule::AdaDelta => {
                for ((value, slope), (change, square)) in all {
                    *square = 0.9 * *square + 0.1 * slope * slope;
                    let step = ((*change + 1e-6) / (*square + 1e-6)).sqrt() * slope;
                    *change = 0.9 * *change + 0.1 * step * step;
                    *value -= self.rate * step;
                }
            }
        }
    }
}
