//! Greedy searches with random choices: the samples of a batch other than the beam search.

use std::sync::Arc;

use rayon::prelude::*;

use crate::expand::{Decision, Expander, Sampling};
use crate::hash::{of_words, unit};
use crate::search::Search;
use crate::state::State;
use crate::statistics::Event;

/// Groups of samples. The samples of a group share the evaluated tiles but choose independently.
const GROUPS: usize = 8;

/// Temperatures of the coldest and the hottest sample.
const TEMPERATURES: (f64, f64) = (0.02, 0.6);

/// The depth at which options are grouped into buckets.
const DEPTH: usize = 1;

/// Runs the samples other than the beam search.
pub(crate) fn greedy(search: &Search<'_>, start: &Arc<State>, decisions: &[Decision]) {
    let options = search.options();
    let seed = |word: u64, number: usize| of_words(&[options.seed, word, number as u64]);
    let samples = |group: usize| -> Vec<Arc<State>> {
        let sampling = Sampling { seed: seed(u64::MAX - 1, group), depth: DEPTH, coarse: false };
        let mut expander = search.expander(sampling);
        let numbers = (1..options.samples.max(1)).filter(|number| number % GROUPS == group);
        let sample = |number| {
            let state = sample(search, &mut expander, start, decisions, seed(u64::MAX, number));
            search.say(Event::SampleFinished { sample: number, best: state.cost() });
            state
        };
        numbers.take_while(|_| !search.is_over()).map(sample).collect()
    };
    let states: Vec<Vec<Arc<State>>> = (0..GROUPS).into_par_iter().map(samples).collect();
    search.keep(search.refined(&states.concat()));
}

/// Makes all decisions for one sample. The cheapest option of a decision is the most likely. The
/// probability of the others falls with their extra cost, at a rate set by the sample's
/// temperature.
fn sample(
    search: &Search<'_>,
    expander: &mut Expander<'_>,
    start: &Arc<State>,
    decisions: &[Decision],
    seed: u64,
) -> Arc<State> {
    let (coldest, hottest): (f64, f64) = TEMPERATURES;
    let temperature = coldest * (hottest / coldest).powf(unit(&[seed]));
    // The more decisions there are, the less each of them changes the total.
    let scale = temperature / decisions.len() as f64;
    let mut state = start.clone();
    for (step, decision) in decisions.iter().enumerate() {
        if search.is_over() {
            break;
        }
        let children = expander.expand(&state, *decision);
        let costs: Vec<f64> = children.iter().map(|child| child.cost()).collect();
        let at = unit(&[seed, step as u64, state.identity() as u64]);
        state = children[choice(&costs, scale, at)].state();
    }
    state
}

/// Picks the index of a cost, given a random number from 0 to 1.
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
    // Rounding may leave a remainder beyond the last one.
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
