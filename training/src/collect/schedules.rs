//! Chooses the schedules of a pipeline to measure: from a search, the default, and random ones.

use std::collections::HashSet;
use std::time::Duration;

use warploom::cost::{CostModel, Featurizer};
use warploom::plan::Problem;
use warploom::schedule::Schedule;
use warploom::search::{Limits, Options, search};
use warploom::tune::sample::Origin;

use super::mixed;

/// Schedules with a longer predicted time (microseconds) are not run, because no kernel may occupy
/// the GPU for seconds.
const LONGEST: f64 = 60_000.0;

/// One in this many schedules is random.
const RANDOM: usize = 4;

/// The number of schedules to choose, and limits of the choice.
pub(super) struct Choice {
    pub seed: u64,
    pub samples: usize,
    pub with_default: bool,
    /// Time limit of the search, in seconds.
    pub search_seconds: u64,
    /// Maximum number of nodes of a schedule, over all kernels: more nodes take longer to compile.
    pub max_nodes: f64,
}

/// The chosen schedules.
#[derive(Default)]
pub(super) struct Chosen {
    pub schedules: Vec<(Schedule, Origin)>,
    /// The shortest predicted time, in microseconds.
    pub best: f64,
    /// Number of schedules skipped because they would run or compile for too long.
    pub too_slow: u64,
}

/// Estimates for a schedule before it is compiled.
pub(super) struct Prediction {
    pub microseconds: f64,
    pub nodes: f64,
}

/// Predicts the times of a pipeline's schedules.
pub(super) struct Predictor<'a> {
    problem: &'a Problem,
    model: &'a dyn CostModel,
    featurizer: Featurizer,
}

impl<'a> Predictor<'a> {
    pub fn new(problem: &'a Problem, model: &'a dyn CostModel) -> Predictor<'a> {
        Predictor { problem, model, featurizer: Featurizer::new(problem) }
    }

    /// The predicted time of a schedule, and its number of nodes.
    pub fn predict(&self, schedule: &Schedule) -> Prediction {
        let features = self.featurizer.of_schedule(schedule);
        let mut costs = Vec::new();
        self.model.costs(self.problem.dag(), &features.iter().collect::<Vec<_>>(), &mut costs);
        let nodes = features.iter().map(|kernel| kernel.nodes).sum();
        Prediction { microseconds: costs.iter().sum(), nodes }
    }

    /// Chooses schedules of varying quality: the best of a search and others from its list, random
    /// ones, and the default.
    pub fn choose(&self, choice: &Choice) -> Chosen {
        let options = Options {
            seed: choice.seed,
            beam: 6,
            passes: 2,
            samples: choice.samples,
            memo: 64 << 20,
            threads: 1,
            time_limit: Some(Duration::from_secs(choice.search_seconds)),
            limits: Limits { nodes: choice.max_nodes, ..Limits::default() },
            ..Options::default()
        };
        let found = search(self.problem, self.model, &options, &|_| {});
        let mut chosen = Chosen {
            best: found.candidates.first().map_or(f64::INFINITY, |best| best.cost),
            ..Chosen::default()
        };
        let mut known = HashSet::new();
        let mut add = |chosen: &mut Chosen, schedule: Schedule, origin: Origin| {
            let Prediction { microseconds, nodes } = self.predict(&schedule);
            if microseconds > LONGEST || nodes > choice.max_nodes {
                chosen.too_slow += 1;
            } else if known.insert(schedule.to_text(self.problem.pipeline())) {
                chosen.schedules.push((schedule, origin));
            }
        };
        let default = self.problem.default_schedule();
        if choice.with_default && self.problem.check(&default).is_ok() {
            add(&mut chosen, default, Origin::Default);
        }
        let random = choice.samples / RANDOM;
        for number in 0..random as u64 {
            let seed = mixed(&[choice.seed, number]);
            let schedule = self.problem.random_schedule(seed);
            add(&mut chosen, schedule, Origin::Random);
        }
        let wanted = choice.samples.saturating_sub(chosen.schedules.len());
        for position in positions(found.candidates.len(), wanted) {
            let schedule = found.candidates[position].schedule.clone();
            add(&mut chosen, schedule, Origin::Search);
        }
        chosen
    }
}

/// `count` positions in a sorted list, including the first, denser near the start.
fn positions(length: usize, count: usize) -> Vec<usize> {
    if count >= length {
        return (0..length).collect();
    }
    let place = |number: usize| {
        let share = number as f64 / (count - 1).max(1) as f64;
        // At least one more than the previous position.
        number + (share.powf(1.5) * (length - count) as f64).round() as usize
    };
    (0..count).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_and_the_worst_are_taken() {
        assert_eq!(positions(4, 9), [0, 1, 2, 3]);
        assert_eq!(positions(100, 0), [0usize; 0]);
        assert_eq!(positions(100, 1), [0]);
        let many = positions(100, 10);
        assert_eq!((many[0], many[9], many.len()), (0, 99, 10));
        assert!(many.windows(2).all(|pair| pair[0] < pair[1]), "{many:?}");
        assert!(many[5] < 50, "{many:?}");
    }
}
