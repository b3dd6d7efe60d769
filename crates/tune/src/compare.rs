//! Compares strategies: the best time so far after a number of trials, over several seeds.
//!
//! It contains data and arithmetic alone: the times may come from runs on a GPU or from recorded ones.
//!
//! ```
//! use warploom_tune::compare::{Comparison, Curve};
//!
//! let mut comparison = Comparison { trials: 50, ..Comparison::default() };
//! for (seed, times) in [[Some(9.0), None, Some(4.0)], [None, Some(6.0), Some(8.0)]].iter().enumerate() {
//!     comparison.add("blur", "random", Curve::new(seed as u64, times));
//! }
//! let random = &comparison.subjects[0].strategies[0];
//! let after = random.after(3);
//! assert_eq!((after.mean_us, after.seeds), (Some(5.0), 2));
//! assert_eq!(random.at.iter().map(|at| at.trials).collect::<Vec<_>>(), [25, 50]);
//! ```

mod apart;
mod curve;

use serde::{Deserialize, Serialize};

pub use apart::Apart;
pub use curve::{Curve, Mean};

/// The numbers of trials after which strategies are compared.
const STEPS: [usize; 6] = [25, 50, 100, 200, 500, 1000];

/// Several strategies on several subjects, each with several seeds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Comparison {
    /// The device that times were measured on.
    pub device: String,
    /// Number of trials of a run.
    pub trials: usize,
    /// The subjects, in the order in which they were added.
    pub subjects: Vec<ComparedWorkload>,
}

/// The runs on one pipeline at one size.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ComparedWorkload {
    /// The pipeline and its sizes, for people.
    pub subject: String,
    /// The best time of all points of the space in microseconds, if all of them were measured.
    #[serde(default)]
    pub optimum_us: Option<f64>,
    /// The seeds that would tell the two best strategies apart at the end.
    #[serde(default)]
    pub apart: Option<Apart>,
    /// The strategies, in the order in which they were added.
    pub strategies: Vec<Compared>,
}

/// The runs of one strategy on one subject.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Compared {
    /// Its name.
    pub strategy: String,
    /// The best time so far after each of the comparison's [steps](Comparison::steps).
    pub at: Vec<Mean>,
    /// The runs, in the order in which they were added.
    pub runs: Vec<Curve>,
}

impl Comparison {
    /// The numbers of trials after which strategies are compared: 25, 50, 100, 200, 500 and 1,000, up to the length of
    /// runs. Runs of fewer than 25 trials are compared at their end.
    pub fn steps(&self) -> Vec<usize> {
        let steps: Vec<usize> = STEPS.into_iter().filter(|step| *step <= self.trials).collect();
        if steps.is_empty() { vec![self.trials] } else { steps }
    }

    /// Adds a run that has ended.
    pub fn add(&mut self, subject: &str, strategy: &str, run: Curve) {
        let (steps, trials) = (self.steps(), self.trials);
        let subject = self.subject(subject);
        let compared = entry(
            &mut subject.strategies,
            |known| known.strategy == strategy,
            || Compared { strategy: strategy.to_owned(), ..Compared::default() },
        );
        compared.runs.push(run);
        compared.at = steps.into_iter().map(|trials| compared.after(trials)).collect();
        subject.apart = Apart::of(subject, trials);
    }

    /// Sets the best possible time on a subject, in microseconds.
    pub fn set_optimum(&mut self, subject: &str, best_us: f64) {
        self.subject(subject).optimum_us = Some(best_us);
    }

    /// The subject with this name, which is added if it is missing.
    fn subject(&mut self, name: &str) -> &mut ComparedWorkload {
        let is_wanted = |known: &ComparedWorkload| known.subject == name;
        entry(&mut self.subjects, is_wanted, || ComparedWorkload {
            subject: name.to_owned(),
            ..ComparedWorkload::default()
        })
    }

    /// The names of the strategies of all subjects, in order of first appearance.
    pub fn strategies(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for compared in self.subjects.iter().flat_map(|subject| &subject.strategies) {
            if !names.contains(&compared.strategy.as_str()) {
                names.push(&compared.strategy);
            }
        }
        names
    }

    /// For each subject where both have valid times after `trials` trials: the mean time of `than` divided by that of
    /// the strategy. Above 1, the strategy is better.
    pub fn speeds(&self, strategy: &str, than: &str, trials: usize) -> Vec<f64> {
        let of = |subject: &ComparedWorkload, name: &str| subject.get(name)?.after(trials).mean_us;
        let speed = |subject: &ComparedWorkload| Some(of(subject, than)? / of(subject, strategy)?);
        self.subjects.iter().filter_map(speed).collect()
    }
}

impl ComparedWorkload {
    /// The runs of a strategy, if there are any.
    pub fn get(&self, strategy: &str) -> Option<&Compared> {
        self.strategies.iter().find(|compared| compared.strategy == strategy)
    }
}

impl Compared {
    /// The best time after `trials` trials, over all runs.
    pub fn after(&self, trials: usize) -> Mean {
        Mean::of(&self.runs, trials)
    }

    /// The mean after each improvement of a run, in order, from the trial on at which all runs have a valid time.
    pub fn means(&self) -> Vec<Mean> {
        let mut changes: Vec<usize> =
            self.runs.iter().flat_map(|run| run.improved_at.iter().copied()).collect();
        changes.sort_unstable();
        changes.dedup();
        let all = |mean: &Mean| mean.seeds == self.runs.len();
        changes.into_iter().map(|trials| self.after(trials)).filter(all).collect()
    }
}

/// The wanted entry, which is added if it is missing.
fn entry<T>(all: &mut Vec<T>, is_wanted: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let place = all.iter().position(is_wanted).unwrap_or_else(|| {
        all.push(new());
        all.len() - 1
    });
    &mut all[place]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(runs: &[(&str, &str, &[f64])]) -> Comparison {
        let mut comparison = Comparison { trials: 3, ..Comparison::default() };
        for (number, (subject, strategy, times)) in runs.iter().enumerate() {
            let times: Vec<Option<f64>> = times.iter().map(|time| Some(*time)).collect();
            comparison.add(subject, strategy, Curve::new(number as u64, &times));
        }
        comparison
    }

    #[test]
    fn steps_end_with_the_trials() {
        let steps = |trials: usize| Comparison { trials, ..Comparison::default() }.steps();
        assert_eq!(steps(200), [25, 50, 100, 200]);
        assert_eq!(steps(1500), [25, 50, 100, 200, 500, 1000]);
        assert_eq!([steps(30), steps(4)], [[25], [4]]);
    }

    #[test]
    fn runs_are_grouped_by_subject_and_strategy() {
        let all = comparison(&[
            ("a", "random", &[8.0, 4.0]),
            ("a", "opevo", &[2.0]),
            ("b", "opevo", &[5.0]),
            ("a", "random", &[6.0, 7.0]),
        ]);
        assert_eq!(all.strategies(), ["random", "opevo"]);
        assert_eq!(all.subjects.iter().map(|subject| subject.strategies.len()).collect::<Vec<_>>(), [2, 1]);
        let random = all.subjects[0].get("random").unwrap();
        assert_eq!(random.runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [0, 3]);
        assert_eq!((random.at.len(), random.at[0].mean_us), (1, Some(5.0)));
    }

    #[test]
    fn speeds_are_relative_where_both_have_times() {
        let all = comparison(&[
            ("a", "random", &[8.0]),
            ("a", "opevo", &[2.0]),
            ("b", "opevo", &[5.0]),
            ("c", "random", &[]),
            ("c", "opevo", &[1.0]),
        ]);
        assert_eq!(all.speeds("opevo", "random", 3), [4.0]);
        assert_eq!(all.speeds("random", "random", 3), [1.0]);
        assert_eq!(all.speeds("opevo", "nobody", 3), [0.0; 0]);
    }

    #[test]
    fn a_line_begins_where_all_runs_have_a_time_and_never_rises() {
        let mut all = Comparison { trials: 9, ..Comparison::default() };
        all.add("a", "random", Curve::new(0, &[Some(4.0), None, Some(2.0)]));
        all.add("a", "random", Curve::new(1, &[None, Some(10.0), Some(12.0), Some(6.0)]));
        let means = all.subjects[0].strategies[0].means();
        let line: Vec<(usize, Option<f64>)> = means.iter().map(|mean| (mean.trials, mean.mean_us)).collect();
        assert_eq!(line, [(2, Some(7.0)), (3, Some(6.0)), (4, Some(4.0))]);
    }
}
