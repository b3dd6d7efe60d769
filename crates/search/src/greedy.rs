//! Greedy searches with random choices: the other samples of a batch.

use std::sync::Arc;

use crate::expand::{Decision, Manner, expand};
use crate::hash::unit;
use crate::menu::Menus;
use crate::run::Run;
use crate::state::State;
use crate::statistics::Statistics;

/// Temperatures of the coldest and the hottest sample.
const TEMPERATURES: (f64, f64) = (0.02, 0.6);

/// The depth at which options fall into buckets.
const DEPTH: usize = 1;

/// Samples that look at the same tiles together, each of which chooses for itself.
pub(crate) struct Group<'a> {
    pub decisions: &'a [Decision],
    /// Decides which tiles.
    pub seed: u64,
    menus: Menus,
}

impl<'a> Group<'a> {
    pub fn new(decisions: &'a [Decision], seed: u64) -> Group<'a> {
        Group { decisions, seed, menus: Menus::default() }
    }

    /// One state from the start to the end. At every decision the cheapest option is the likeliest; how much less likely
    /// others are depends on how much more they cost, and on the sample's temperature.
    pub fn sample(
        &mut self,
        run: &Run<'_>,
        start: &Arc<State>,
        seed: u64,
        counts: &mut Statistics,
    ) -> Arc<State> {
        let (coldest, hottest): (f64, f64) = TEMPERATURES;
        let temperature = coldest * (hottest / coldest).powf(unit(&[seed]));
        // What one decision can change of the whole is the less, the more there are.
        let scale = temperature / self.decisions.len() as f64;
        let manner = Manner { seed: self.seed, depth: DEPTH, coarse: false };
        let mut state = start.clone();
        for (step, decision) in self.decisions.iter().enumerate() {
            if run.is_over() {
                break;
            }
            let evaluator = &run.evaluator;
            self.menus.prepare(evaluator, std::iter::once(&*state), *decision, manner, counts);
            let children = expand(evaluator, &state, *decision, manner, &self.menus, counts);
            let costs: Vec<f64> = children.iter().map(|child| child.totals.cost).collect();
            let at = unit(&[seed, step as u64, state.totals.identity as u64]);
            state = children[choice(&costs, scale, at)].state();
        }
        state
    }
}

/// The position of one of some costs, by a number from 0 to 1.
fn choice(costs: &[f64], temperature: f64, at: f64) -> usize {
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    let weight = |cost: &f64| (-(cost / least - 1.0) / temperature).exp();
    let total: f64 = costs.iter().map(weight).sum();
    let mut left = at * total;
    for (position, cost) in costs.iter().enumerate() {
        left -= weight(cost);
        if left < 0.0 {
            return position;
        }
    }
    // Rounding may leave a little beyond the last one.
    costs.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::choice;

    #[test]
    fn the_cheapest_is_the_likeliest() {
        let costs = [1.1, 1.0, 2.0];
        let count = |temperature: f64| {
            let mut counts = [0; 3];
            for i in 0..1000 {
                counts[choice(&costs, temperature, (f64::from(i) + 0.5) / 1000.0)] += 1;
            }
            counts
        };
        assert_eq!(count(0.001), [0, 1000, 0]);
        let warm = count(0.3);
        assert!(warm[1] > warm[0] && warm[0] > warm[2] && warm[2] > 0, "{warm:?}");
    }
}
