//! How runs share the GPUs of a farm: by the expected gain of a trial.
//!
//! [`gain`] estimates it from the trials of a run, [`shares`] converts the estimates to shares, and [`next`] and
//! [`after`] keep to the shares while candidates are taken: weighted fair queueing.

/// The number of latest trials that show the progress of a run.
const WINDOW: usize = 100;

/// The prior improvement of a run by its first trials, as a natural logarithm.
const HOPE: f64 = 0.05;

/// The least share of a run while there are few runs, and the total of the least shares while there are many.
const LEAST: f64 = 0.08;
const LEAST_OF_ALL: f64 = 0.5;

/// The factor by which the best time of a run is expected to shrink with its next trial, as a natural logarithm.
/// `times` are the times of its trials in order, `None` for failed ones.
///
/// It is the mean over the last 100 trials, including failed ones, because they take time as well. Logarithms make runs
/// comparable: one per cent of a long time is worth as much as one per cent of a short one. Earlier gains are ignored,
/// since runs improve fast at first and hardly at all in the end.
///
/// The last trials alone would give up a run that has just begun, or one that makes no progress for a while. So there
/// is a prior: among independent trials, the *n*th is the best so far with a probability of 1 / *n*, and a new best
/// time is assumed to be 5 % better. The prior decays as fast as that probability, so it dominates only the first
/// trials.
pub fn gain(times: &[Option<f64>]) -> f64 {
    let (before, window) = times.split_at(times.len().saturating_sub(WINDOW));
    let valid = |times: &[Option<f64>]| -> Vec<f64> {
        times.iter().flatten().copied().filter(|time| time.is_finite() && *time > 0.0).collect()
    };
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let recent = valid(window);
    // A run without an earlier valid trial has improved since its first valid one.
    let before = match valid(before).as_slice() {
        [] => recent.first().copied().unwrap_or(f64::INFINITY),
        before => least(before),
    };
    let best = least(&recent).min(before);
    let improved = if best.is_finite() { (before / best).ln() } else { 0.0 };
    let prior = HOPE / (times.len() + 1) as f64;
    improved / window.len().max(1) as f64 + prior
}

/// The share of each run, from the expected gain of its next trial. The shares sum up to 1. None is less than
/// [`least_share`], because a run may improve again; the rest is in proportion to gains.
pub fn shares(gains: &[f64]) -> Vec<f64> {
    let gains: Vec<f64> =
        gains.iter().map(|gain| if gain.is_finite() { gain.max(0.0) } else { 0.0 }).collect();
    let runs = gains.len() as f64;
    let total: f64 = gains.iter().sum();
    let least = least_share(gains.len());
    let rest = 1.0 - least * runs;
    let part = |gain: &f64| if total > 0.0 { gain / total } else { 1.0 / runs };
    gains.iter().map(|gain| least + rest * part(gain)).collect()
}

/// The least share of each of `runs` runs: 8 %, or half of an equal share.
pub fn least_share(runs: usize) -> f64 {
    LEAST.min(LEAST_OF_ALL / runs.max(1) as f64)
}

/// The run whose candidates are next: the one that has used the least of its share; ties go to the largest share.
/// `runs` are those with candidates: the used part of each share, and the share. `None` if there are none.
pub fn next(runs: &[(f64, f64)]) -> Option<usize> {
    let order = |(used, share): &(f64, f64), (other_used, other_share): &(f64, f64)| {
        used.total_cmp(other_used).then(other_share.total_cmp(share))
    };
    (0..runs.len()).min_by(|&one, &other| order(&runs[one], &runs[other]))
}

/// The used part of a run's share after `count` more of its candidates were taken. `clock` is the [time that all runs
/// share](clock): a run that had no candidates for a while does not catch up on the trials that it left to others.
pub fn after(used: f64, share: f64, count: usize, clock: f64) -> f64 {
    used.max(clock) + cost(count, share)
}

/// The least used part of a share that a run can have if it has always had candidates. `runs` are all unfinished runs,
/// in the same form as in [`next`], and `count` is the number of candidates taken at a time.
///
/// Candidates are always taken from the run that has used the least. So no run with candidates had used less than the
/// chosen one, before that took `count` more.
pub fn clock(runs: &[(f64, f64)], count: usize) -> f64 {
    runs.iter().map(|&(used, share)| used - cost(count, share)).fold(0.0, f64::max)
}

fn cost(count: usize, share: f64) -> f64 {
    count as f64 / share.max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers from 0 to 1.
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// Takes 16 candidates at a time, as workers do, and returns the run of each trial.
    fn simulated(trials: usize, runs: &mut [Box<dyn FnMut(usize) -> Option<f64> + '_>]) -> Vec<usize> {
        let mut times: Vec<Vec<Option<f64>>> = vec![Vec::new(); runs.len()];
        let mut used = vec![0.0; runs.len()];
        let mut order = Vec::new();
        while order.len() < trials {
            let shares = shares(&times.iter().map(|times| gain(times)).collect::<Vec<_>>());
            let state: Vec<(f64, f64)> = used.iter().copied().zip(shares).collect();
            let run = next(&state).unwrap();
            used[run] = after(used[run], state[run].1, 16, clock(&state, 16));
            for _ in 0..16 {
                let time = runs[run](times[run].len());
                times[run].push(time);
                order.push(run);
            }
        }
        order
    }

    fn share_of(run: usize, order: &[usize]) -> f64 {
        order.iter().filter(|other| **other == run).count() as f64 / order.len() as f64
    }

    #[test]
    fn a_run_that_improves_gets_most_trials() {
        for (slope, seed) in [(0.001, 1), (0.003, 2), (0.01, 3)] {
            let (mut noise, mut other) = (Noise(seed), Noise(seed + 100));
            let flat = move |_| Some(100.0 * (1.0 + 0.01 * noise.next()));
            // It improves slowly, with much noise and some failures.
            let improving = move |trial: usize| {
                let failed = other.next() < 0.1;
                (!failed).then(|| 100.0 * (-slope * trial as f64).exp() * (1.0 + 0.3 * other.next()))
            };
            let order = simulated(1100, &mut [Box::new(flat), Box::new(improving)]);
            let shares = [0, 1].map(|run| share_of(run, &order[100..]));
            assert!(shares[1] >= 0.7 && shares[0] >= 0.05, "{slope}: {shares:?}");
        }
    }

    #[test]
    fn runs_alike_get_as_many_trials_each() {
        let mut runs: Vec<Box<dyn FnMut(usize) -> Option<f64>>> = Vec::new();
        (0..4).for_each(|_| runs.push(Box::new(|_| Some(10.0))));
        let order = simulated(1600, &mut runs);
        for run in 0..4 {
            assert!((share_of(run, &order) - 0.25).abs() < 0.02, "{run}");
        }
    }

    #[test]
    fn new_runs_are_hoped_for() {
        let flat = vec![Some(10.0); 300];
        assert!(gain(&[]) > 100.0 * gain(&flat));
        let failing = vec![None; 300];
        assert_eq!(gain(&failing), gain(&flat), "failures are no improvement");
        let decayed: Vec<f64> = [0, 1, 10, 100].iter().map(|&trials| gain(&flat[..trials])).collect();
        assert!(decayed.is_sorted_by(|one, other| one > other), "{decayed:?}");
    }

    #[test]
    fn only_the_last_trials_count() {
        let mut times = vec![Some(100.0), Some(10.0)];
        times.resize(102, Some(11.0));
        assert!(gain(&times) < 0.001, "{}", gain(&times));
        times.push(Some(5.0));
        let improved = 2f64.ln() / 100.0;
        assert!((gain(&times) - improved).abs() < 0.001, "{}", gain(&times));
        // The improvement is relative to the first valid trial.
        let late = [None, None, Some(8.0), Some(4.0)];
        assert!((gain(&late) - 2f64.ln() / 4.0 - HOPE / 5.0).abs() < 1e-12);
    }

    #[test]
    fn shares_are_in_proportion_but_never_small() {
        assert_eq!(shares(&[]), Vec::<f64>::new());
        assert_eq!(shares(&[0.0]), [1.0]);
        assert_eq!(shares(&[0.0; 4]), [0.25; 4]);
        let two = shares(&[0.03, 0.01]);
        assert!((two[0] - (0.08 + 0.84 * 0.75)).abs() < 1e-12, "{two:?}");
        let odd = shares(&[f64::NAN, -1.0, f64::INFINITY, 1.0]);
        assert!((odd.iter().sum::<f64>() - 1.0).abs() < 1e-12 && odd[0] == 0.08 && odd[3] > 0.7, "{odd:?}");
        let many = shares(&vec![0.0; 99].into_iter().chain([1.0]).collect::<Vec<_>>());
        assert!(many[0] == 0.005 && many[99] > 0.5, "{many:?}");
    }

    #[test]
    fn the_one_that_used_least_is_next() {
        assert_eq!(next(&[]), None);
        assert_eq!(next(&[(3.0, 0.5), (1.0, 0.1), (2.0, 0.4)]), Some(1));
        assert_eq!(next(&[(0.0, 0.3), (0.0, 0.7)]), Some(1), "of several, the largest share");
    }

    #[test]
    fn a_run_that_was_idle_does_not_catch_up() {
        let mut runs = [(0.0, 0.8), (0.0, 0.2)];
        let take = |runs: &mut [(f64, f64); 2], run: usize| {
            let (used, share) = runs[run];
            runs[run].0 = after(used, share, 16, clock(runs, 16));
        };
        (0..100).for_each(|_| take(&mut runs, 0));
        for idle in [1, 0] {
            let mut taken = [0, 0];
            for _ in 0..50 {
                let run = next(&runs).unwrap();
                take(&mut runs, run);
                taken[run] += 1;
            }
            assert!((taken[0] - 40i32).abs() <= 1, "{idle} was idle: {taken:?}");
            (0..100).for_each(|_| take(&mut runs, idle));
        }
    }
}
