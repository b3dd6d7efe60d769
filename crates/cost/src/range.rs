//! How far measured times lie from predicted ones.

use serde::{Deserialize, Serialize};

/// The share of measured times that lie below a range, and the share above it.
const OUTSIDE: f64 = 0.05;
/// The most intervals of predicted times that are told apart.
const MOST_BANDS: usize = 8;
/// The largest factor between a measured and a predicted time that a file may hold.
const LARGEST: f64 = 1e3;

/// The times between which the measured time lies for nine of ten pipelines, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimeRange {
    /// One in twenty measured times is shorter.
    pub low_us: f64,
    /// One in twenty measured times is longer.
    pub high_us: f64,
}

/// The errors of a model's predictions on pipelines that it never saw, by predicted time.
///
/// ```
/// use warploom_cost::Ranges;
/// // Twenty schedules, predicted to take 10 us, that take 10.5 to 20 us.
/// let picks: Vec<(f64, f64)> = (1..=20).map(|number| (10.0, 10.0 + 0.5 * f64::from(number))).collect();
/// let ranges = Ranges::fit(&picks, &[]).expect("there are enough");
/// let range = ranges.of(10.0).expect("as long a time was measured");
/// assert!(range.low_us > 10.4 && range.high_us < 20.1);
/// assert_eq!(ranges.of(9.0), None);
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ranges {
    /// The shortest and the longest predicted time that the errors come from, in microseconds. Nothing is known beyond.
    known_us: (f64, f64),
    bands: Vec<Band>,
}

/// The errors of predictions within an interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Band {
    /// The interval ends before this predicted time, in microseconds; that of the last band does not end.
    pub below_us: f64,
    /// How many predictions the factors come from.
    pub count: u32,
    /// One in twenty measured times is shorter than the predicted one times this factor.
    pub low: f64,
    /// One in twenty measured times is longer than the predicted one times this factor.
    pub high: f64,
}

impl Ranges {
    /// The least number of predictions in an interval.
    pub const LEAST: usize = 20;

    /// Takes pairs of predicted and measured times of pipelines that the model never saw, one pair per pipeline, and the
    /// predicted times where an interval ends and the next begins, in ascending order. `None` if an interval has fewer than
    /// [`Ranges::LEAST`] pairs.
    pub fn fit(picks: &[(f64, f64)], ends: &[f64]) -> Option<Ranges> {
        let mut from = 0.0;
        let mut bands = Vec::new();
        for below_us in ends.iter().copied().chain([f64::INFINITY]) {
            let inside = picks.iter().filter(|(predicted, _)| (from..below_us).contains(predicted));
            let mut factors: Vec<f64> = inside.map(|(predicted, measured)| measured / predicted).collect();
            if factors.len() < Ranges::LEAST {
                return None;
            }
            factors.sort_by(f64::total_cmp);
            let (low, high) = (quantile(&factors, OUTSIDE), quantile(&factors, 1.0 - OUTSIDE));
            bands.push(Band { below_us, count: factors.len() as u32, low, high });
            from = below_us;
        }
        let predicted = || picks.iter().map(|(predicted, _)| *predicted);
        let known_us = (predicted().fold(f64::INFINITY, f64::min), predicted().fold(0.0, f64::max));
        let ranges = Ranges { known_us, bands };
        ranges.is_sensible().then_some(ranges)
    }

    /// The range of a predicted time; `None` if no pipeline as short or as long was measured.
    pub fn of(&self, predicted_us: f64) -> Option<TimeRange> {
        let (shortest, longest) = self.known_us;
        let known = (shortest..=longest).contains(&predicted_us);
        let band = self.bands.iter().find(|band| known && predicted_us < band.below_us)?;
        Some(TimeRange { low_us: predicted_us * band.low, high_us: predicted_us * band.high })
    }

    /// The shortest and the longest predicted time that has a range, in microseconds.
    pub fn known_us(&self) -> (f64, f64) {
        self.known_us
    }

    /// The intervals, the shortest times first.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }

    /// Whether the factors can be those of a model; a damaged file may hold anything.
    pub(crate) fn is_sensible(&self) -> bool {
        let factors = |band: &Band| {
            (1.0 / LARGEST..=LARGEST).contains(&band.low)
                && (1.0 / LARGEST..=LARGEST).contains(&band.high)
                && band.low <= band.high
        };
        self.known_us.0 <= self.known_us.1
            && (1..=MOST_BANDS).contains(&self.bands.len())
            && self.bands.iter().all(factors)
            && self.bands.windows(2).all(|pair| pair[0].below_us < pair[1].below_us)
            && self.bands.last().is_some_and(|last| last.below_us == f64::INFINITY)
    }
}

/// The number below which a further one lies with this probability. Of `n` numbers, the first has `1 / (n + 1)` of all
/// further ones below it; between numbers, in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = (share * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, last as f64);
    let (below, part) = (place.floor() as usize, place.fract());
    sorted[below] + part * (sorted[(below + 1).min(last)] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 101 pairs at a predicted time, whose factors go evenly from `low` to `high`.
    fn pairs(predicted: f64, low: f64, high: f64) -> Vec<(f64, f64)> {
        let factor = |number: i32| low + (high - low) * f64::from(number) / 100.0;
        (0..=100).map(|number| (predicted, predicted * factor(number))).collect()
    }

    #[test]
    fn nine_of_ten_lie_inside() {
        let ranges = Ranges::fit(&pairs(40.0, 1.0, 2.0), &[]).expect("there are enough");
        let TimeRange { low_us, high_us } = ranges.of(40.0).expect("it is known");
        assert!((low_us - 41.64).abs() < 1e-9 && (high_us - 78.36).abs() < 1e-9, "{low_us} {high_us}");
        let even = |number: i32| 40.0 + 40.0 * f64::from(number) / 1000.0;
        let inside = (0..1000).filter(|number| (low_us..high_us).contains(&even(*number))).count();
        assert!((900..930).contains(&inside), "{inside}");
    }

    #[test]
    fn short_times_have_errors_of_their_own() {
        let mut picks = pairs(5.0, 1.0, 3.0);
        picks.extend(pairs(50.0, 0.5, 1.5));
        picks.push((3.0, 3.0));
        let ranges = Ranges::fit(&picks, &[10.0]).expect("there are enough");
        assert_eq!(ranges.bands().iter().map(|band| band.count).collect::<Vec<_>>(), [102, 101]);
        let factor =
            |predicted: f64| ranges.of(predicted).map_or(f64::NAN, |range| range.high_us / predicted);
        assert!((factor(9.99) - 2.9).abs() < 0.03 && (factor(10.0) - 1.459).abs() < 1e-9);
        for unknown in [2.9, 50.1, f64::NAN] {
            assert_eq!(ranges.of(unknown), None, "{unknown}");
        }
        assert_eq!(Ranges::fit(&picks, &[10.0, 60.0]), None, "nothing is as long");
        assert_eq!(Ranges::fit(&[], &[]), None);
    }

    #[test]
    fn what_no_model_has_is_not_sensible() {
        let band = Band { below_us: f64::INFINITY, count: 9, low: 0.5, high: 2.0 };
        let sensible = |bands: &[Band]| Ranges { known_us: (1.0, 9.0), bands: bands.to_vec() }.is_sensible();
        assert!(sensible(&[Band { below_us: 9.0, ..band }, band]));
        assert!(!sensible(&[]) && !sensible(&[band, band]) && !sensible(&[Band { below_us: 9.0, ..band }]));
        assert!(!Ranges { known_us: (9.0, f64::NAN), bands: vec![band] }.is_sensible());
        for (low, high) in [(2.0, 0.5), (f64::NAN, 2.0), (0.5, f64::INFINITY), (-1.0, 1.0)] {
            assert!(!sensible(&[Band { low, high, ..band }]), "{low} {high}");
        }
    }
}
