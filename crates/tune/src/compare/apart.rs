//! The number of seeds that tells the two best strategies apart.

use serde::{Deserialize, Serialize};

use super::ComparedWorkload;

/// The quantile of the normal distribution for a two-sided test at 95 %, plus that for a power of 80 %.
const QUANTILES: f64 = 1.959964 + 0.841621;

/// The two strategies with the best means, and the number of seeds needed to detect their difference.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Apart {
    /// The strategy with the best mean.
    pub best: String,
    /// The strategy with the second best mean.
    pub second: String,
    /// The number of trials of the comparison.
    pub trials: usize,
    /// The number of seeds that both have.
    pub seeds: usize,
    /// The seeds that each would need for a two-sided z test at 95 % to find the difference with a probability of 80 %,
    /// assuming the means and deviations of these runs; `None` if there is no difference.
    pub needed: Option<usize>,
}

impl Apart {
    /// The comparison after `trials` trials; `None` if fewer than two strategies have at least two seeds with valid
    /// times.
    pub(super) fn of(subject: &ComparedWorkload, trials: usize) -> Option<Apart> {
        let mut known: Vec<(&str, f64, f64, usize)> = subject
            .strategies
            .iter()
            .filter_map(|compared| {
                let mean = compared.after(trials);
                Some((compared.strategy.as_str(), mean.mean_us?, mean.deviation_us?, mean.seeds))
            })
            .collect();
        known.sort_by(|a, b| a.1.total_cmp(&b.1));
        let [best, second, ..] = known.as_slice() else { return None };
        let (difference, variance) = (second.1 - best.1, best.2 * best.2 + second.2 * second.2);
        let needed = QUANTILES * QUANTILES * variance / (difference * difference);
        Some(Apart {
            best: best.0.to_owned(),
            second: second.0.to_owned(),
            trials,
            seeds: best.3.min(second.3),
            // A deviation needs at least two.
            needed: needed.is_finite().then(|| (needed.ceil() as usize).max(2)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Comparison, Curve};

    fn apart(runs: &[(&str, &[f64])]) -> Option<(String, String, usize, Option<usize>)> {
        let mut comparison = Comparison { trials: 5, ..Comparison::default() };
        for (strategy, times) in runs {
            for (seed, time) in times.iter().enumerate() {
                comparison.add("a", strategy, Curve::new(seed as u64, &[Some(*time)]));
            }
        }
        let apart = comparison.subjects[0].apart.clone()?;
        assert_eq!(apart.trials, 5);
        Some((apart.best, apart.second, apart.seeds, apart.needed))
    }

    #[test]
    fn close_and_noisy_strategies_need_many_seeds() {
        // Deviations of 1 and a difference of 1: 2 * 2.8016^2 = 15.7.
        let close = apart(&[("x", &[11.0, 10.0, 12.0]), ("y", &[10.0, 9.0, 11.0]), ("z", &[30.0, 31.0])]);
        assert_eq!(close, Some(("y".into(), "x".into(), 3, Some(16))));
        let far = apart(&[("x", &[20.0, 19.0, 21.0]), ("y", &[10.0, 9.0, 11.0])]);
        assert_eq!(far, Some(("y".into(), "x".into(), 3, Some(2))));
    }

    #[test]
    fn equal_strategies_need_no_number() {
        let equal = apart(&[("x", &[10.0, 12.0]), ("y", &[12.0, 10.0])]);
        assert_eq!(equal, Some(("x".into(), "y".into(), 2, None)));
        assert_eq!(apart(&[("x", &[10.0, 12.0]), ("y", &[12.0])]), None, "one run has no deviation");
        assert_eq!(apart(&[("x", &[10.0, 12.0])]), None);
        let both_sure = apart(&[("x", &[10.0, 10.0]), ("y", &[12.0, 12.0])]);
        assert_eq!(both_sure, Some(("x".into(), "y".into(), 2, Some(2))));
    }
}
