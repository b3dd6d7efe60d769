//! The quality of predictions.

use serde::Serialize;

/// Scores of predicted times for the schedules of one pipeline at one size, or the mean over
/// several such groups.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Score {
    /// Number of groups; the scores below are means over them.
    pub groups: usize,
    /// Total number of schedules.
    pub samples: usize,
    /// Spearman's rank correlation of predicted and measured times; 1 means the same order.
    pub spearman: f64,
    /// Top-1 regret: the measured time of the schedule with the shortest predicted time, divided by
    /// the shortest measured time.
    pub top1: f64,
    /// Top-5 regret: the same for the fastest of the five schedules with the shortest predicted
    /// times.
    pub top5: f64,
    /// The geometric mean of predicted over measured time; 1 means unbiased.
    pub bias: f64,
    /// The root mean square of the logarithm of predicted over measured time.
    pub error: f64,
}

impl Score {
    /// Scores predictions. `predicted` and `times` must have the same, nonzero length.
    pub fn new(predicted: &[f64], times: &[f64]) -> Score {
        let count = times.len() as f64;
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        let order = order(predicted);
        let best_of =
            |picks: &[usize]| picks.iter().map(|pick| times[*pick]).fold(f64::INFINITY, f64::min) / fastest;
        let logs: Vec<f64> =
            predicted.iter().zip(times).map(|(predicted, time)| (predicted / time).ln()).collect();
        Score {
            groups: 1,
            samples: times.len(),
            spearman: correlation(&ranks(predicted), &ranks(times)),
            top1: best_of(&order[..1]),
            top5: best_of(&order[..order.len().min(5)]),
            bias: (logs.iter().sum::<f64>() / count).exp(),
            error: (logs.iter().map(|log| log * log).sum::<f64>() / count).sqrt(),
        }
    }

    /// The score of a random pick; regrets are geometric means over all picks.
    pub fn of_chance(times: &[f64]) -> Score {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let logs: Vec<f64> = sorted.iter().map(|time| (time / sorted[0]).ln()).collect();
        let count = sorted.len();
        // The share of all draws of five whose fastest is the one at this place.
        let draws = count.min(5);
        let (mut left, mut top5) = (1.0, 0.0);
        for (place, log) in logs.iter().enumerate() {
            let rest = (count - place) as f64;
            let share = (draws as f64 / rest).min(1.0);
            top5 += left * share * log;
            left *= 1.0 - share;
        }
        let top1 = logs.iter().sum::<f64>() / count as f64;
        Score { groups: 1, samples: count, top1: top1.exp(), top5: top5.exp(), bias: 1.0, ..Score::default() }
    }

    /// The mean score of several groups with equal weight: geometric means of regrets and biases.
    /// `None` if there are no groups.
    pub fn mean(scores: &[Score]) -> Option<Score> {
        let count = scores.len() as f64;
        let mean = |value: fn(&Score) -> f64| scores.iter().map(value).sum::<f64>() / count;
        let score = || Score {
            groups: scores.iter().map(|score| score.groups).sum(),
            samples: scores.iter().map(|score| score.samples).sum(),
            spearman: mean(|score| score.spearman),
            top1: mean(|score| score.top1.ln()).exp(),
            top5: mean(|score| score.top5.ln()).exp(),
            bias: mean(|score| score.bias.ln()).exp(),
            error: mean(|score| score.error * score.error).sqrt(),
        };
        (!scores.is_empty()).then(score)
    }
}

/// Positions sorted by value; equal values keep their order.
fn order(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    order
}

/// The rank of each value; equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let order = order(values);
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for equal in order.chunk_by(|one, other| values[*one] == values[*other]) {
        let rank = start as f64 + (equal.len() - 1) as f64 / 2.0;
        equal.iter().for_each(|position| ranks[*position] = rank);
        start += equal.len();
    }
    ranks
}

/// Pearson's correlation; 0 if one side is constant.
fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (one_mean, other_mean) = (mean(one), mean(other));
    let mut sums = (0.0, 0.0, 0.0);
    for (one, other) in one.iter().zip(other) {
        let (one, other) = (one - one_mean, other - other_mean);
        sums = (sums.0 + one * other, sums.1 + one * one, sums.2 + other * other);
    }
    let norm = (sums.1 * sums.2).sqrt();
    if norm > 0.0 { sums.0 / norm } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perfect_predictions_have_no_regret() {
        let times = [3.0, 1.0, 2.0, 8.0, 5.0, 4.0];
        let score = Score::new(&times.map(|time| time * 2.0), &times);
        assert_eq!((score.spearman, score.top1, score.top5), (1.0, 1.0, 1.0));
        assert!((score.bias - 2.0).abs() < 1e-9 && (score.error - 2f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn regret_is_that_of_the_pick() {
        let times = [3.0, 1.0, 2.0, 8.0, 5.0, 4.0];
        let predicted = [3.0, 9.0, 2.0, 8.0, 5.0, 4.0];
        let score = Score::new(&predicted, &times);
        assert_eq!((score.top1, score.top5), (2.0, 2.0));
        let reversed = Score::new(&times.map(|time| -time + 10.0), &times);
        assert_eq!((reversed.spearman, reversed.top1), (-1.0, 8.0));
    }

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 7.0]), [1.5, 0.0, 1.5, 3.0]);
    }

    #[test]
    fn chance_is_the_mean_over_all_draws() {
        let chance = Score::of_chance(&[4.0, 1.0, 1.0, 4.0]);
        assert!((chance.top1 - 2.0).abs() < 1e-12);
        // Any five of the six contain one of the two fastest.
        assert!((Score::of_chance(&[4.0, 1.0, 1.0, 2.0, 2.0, 8.0]).top5 - 1.0).abs() < 1e-12);
        // Five of seven contain the fastest with probability 5/7.
        let one = Score::of_chance(&[1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
        assert!((one.top5 - 2f64.powf(2.0 / 7.0)).abs() < 1e-12);
    }

    #[test]
    fn groups_count_the_same_in_a_mean() {
        let score = |top1| Score { groups: 1, samples: 3, top1, top5: 1.0, bias: 1.0, ..Score::default() };
        let mean = Score::mean(&[score(1.0), score(4.0)]).unwrap();
        assert_eq!((mean.groups, mean.samples), (2, 6));
        assert!((mean.top1 - 2.0).abs() < 1e-12);
        assert_eq!(Score::mean(&[]), None);
    }
}
