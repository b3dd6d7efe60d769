//! The best time so far of one run, and its mean over several.

use serde::{Deserialize, Serialize};

/// The best time so far over the trials of a finished run. Only its changes are stored.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Curve {
    /// The seed of the run.
    pub seed: u64,
    /// The trials of the run: as many as it was allowed, or fewer if nothing was left to ask.
    pub trials: usize,
    /// The trials that were faster than all before, counted from 1.
    pub improved_at: Vec<usize>,
    /// Their times, in microseconds.
    pub best_us: Vec<f64>,
}

/// The best time after a number of trials, over the runs of a strategy.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Mean {
    /// The number of trials.
    pub trials: usize,
    /// The mean over the runs that have a valid time by then, in microseconds; `None` if none has.
    pub mean_us: Option<f64>,
    /// The standard deviation of the sample; `None` for fewer than two runs.
    pub deviation_us: Option<f64>,
    /// Number of runs that have a valid time by then.
    pub seeds: usize,
}

impl Curve {
    /// The curve of a run from the times of its trials, in order; `None` is a trial without a valid time.
    pub fn new(seed: u64, times: &[Option<f64>]) -> Curve {
        let mut curve = Curve { seed, trials: times.len(), ..Curve::default() };
        for (time, trial) in times.iter().zip(1..) {
            let valid = time.filter(|time| time.is_finite());
            if let Some(time) = valid.filter(|time| curve.best_us.last().is_none_or(|best| time < best)) {
                curve.improved_at.push(trial);
                curve.best_us.push(time);
            }
        }
        curve
    }

    /// The best time of the first `trials` trials, in microseconds; `None` if none of them is valid. It stays constant
    /// after the end of the run.
    pub fn best_after(&self, trials: usize) -> Option<f64> {
        let improved = self.improved_at.partition_point(|at| *at <= trials);
        self.best_us.get(improved.checked_sub(1)?).copied()
    }
}

impl Mean {
    /// The mean and the deviation of the best times after `trials` trials.
    pub fn of(runs: &[Curve], trials: usize) -> Mean {
        let best: Vec<f64> = runs.iter().filter_map(|run| run.best_after(trials)).collect();
        let count = best.len() as f64;
        let mean = best.iter().sum::<f64>() / count;
        let squares: f64 = best.iter().map(|time| (time - mean) * (time - mean)).sum();
        Mean {
            trials,
            mean_us: (!best.is_empty()).then_some(mean),
            deviation_us: (best.len() > 1).then(|| (squares / (count - 1.0)).sqrt()),
            seeds: best.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_the_minimum_of_what_came_before() {
        let times =
            [None, Some(5.0), Some(7.0), Some(f64::NAN), Some(5.0), Some(3.5), None, Some(4.0), Some(1.0)];
        let curve = Curve::new(9, &times);
        assert_eq!(
            (curve.improved_at.as_slice(), curve.best_us.as_slice()),
            (&[2, 6, 9][..], &[5.0, 3.5, 1.0][..])
        );
        for trials in 0..=times.len() {
            let valid = times[..trials].iter().flatten().filter(|time| time.is_finite());
            assert_eq!(curve.best_after(trials), valid.copied().reduce(f64::min), "{trials}");
        }
        assert_eq!((curve.seed, curve.trials, curve.best_after(1000)), (9, 9, Some(1.0)));
    }

    #[test]
    fn a_run_without_valid_times_has_no_best() {
        for times in [&[][..], &[None, None], &[Some(f64::INFINITY)]] {
            assert_eq!(Curve::new(0, times).best_after(99), None, "{times:?}");
        }
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let runs = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].map(|time| Curve::new(0, &[Some(time)]));
        let mean = Mean::of(&runs, 1);
        assert_eq!((mean.mean_us, mean.seeds), (Some(5.0), 8));
        // The sum of squares is 32, and 7 are free.
        assert_eq!(mean.deviation_us, Some((32.0_f64 / 7.0).sqrt()));
    }

    #[test]
    fn runs_without_a_time_yet_are_not_counted() {
        let runs = [Curve::new(0, &[Some(6.0)]), Curve::new(1, &[None, Some(2.0)]), Curve::new(2, &[None])];
        let of = |trials| {
            let Mean { mean_us, deviation_us, seeds, .. } = Mean::of(&runs, trials);
            (mean_us, deviation_us, seeds)
        };
        assert_eq!(of(0), (None, None, 0));
        assert_eq!(of(1), (Some(6.0), None, 1));
        assert_eq!(of(2), (Some(4.0), Some(8.0_f64.sqrt()), 2));
        assert_eq!(Mean::of(&[], 5).mean_us, None);
    }
}
