//! Measures how long a program takes.
//!
//! Calls are timed in batches, each between two events on the device's clock. A batch has at least
//! [`TimingOptions::batch_calls`] calls and takes at least [`TimingOptions::batch_time`], so that
//! the clock's resolution and the cost of an event are negligible. A batch yields one number: its
//! time divided by its calls.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A program this many times slower than its rival is called only twice.
const HOPELESS: u32 = 4;

/// A program this many times slower gets only a few batches.
const BEHIND: f64 = 1.2;

/// The number of batches that such a program gets.
const FEW: usize = 3;

/// How launches are submitted to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One after the other on a stream.
    Stream,
    /// As one captured graph.
    Graph,
}

/// Limits and modes of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingOptions {
    /// The number of warm-up calls.
    pub warm_ups: u32,
    /// The minimum number of calls per batch.
    pub batch_calls: u32,
    /// The minimum time per batch.
    pub batch_time: Duration,
    /// The maximum number of batches.
    pub batches: usize,
    /// The target measuring time per mode.
    pub total: Duration,
    /// The hard time limit per mode. A program whose first batch would take longer gets smaller
    /// batches of at least one call. A program whose first two calls each take longer is not called
    /// again.
    pub limit: Duration,
    /// The best time so far, if the program competes with others; `None` if it does not. Timing
    /// stops after two calls if both are 4 times slower than the rival, and after three batches if
    /// the program is still more than 20 % slower: the exact time of a losing program does not
    /// matter.
    pub rival: Option<Duration>,
    /// The modes to measure, in order.
    pub modes: Vec<Mode>,
}

impl Default for TimingOptions {
    fn default() -> TimingOptions {
        TimingOptions {
            warm_ups: 3,
            batch_calls: 10,
            batch_time: Duration::from_millis(2),
            batches: usize::MAX,
            total: Duration::from_millis(800),
            limit: Duration::from_secs(10),
            rival: None,
            modes: vec![Mode::Stream, Mode::Graph],
        }
    }
}

impl TimingOptions {
    /// Quick timing for tuning: both modes in about a tenth of a second.
    pub fn quick() -> TimingOptions {
        TimingOptions {
            warm_ups: 2,
            total: Duration::from_millis(40),
            limit: Duration::from_secs(2),
            ..TimingOptions::default()
        }
    }

    /// Timing for collecting thousands of samples: graph mode only, at most five batches of one
    /// millisecond or one call each, in about 10 milliseconds. A program that takes longer than 30
    /// milliseconds is called twice.
    pub fn collection() -> TimingOptions {
        TimingOptions {
            warm_ups: 2,
            batch_calls: 1,
            batch_time: Duration::from_millis(1),
            batches: 5,
            total: Duration::from_millis(10),
            limit: Duration::from_millis(30),
            rival: None,
            modes: vec![Mode::Graph],
        }
    }

    /// A program whose calls take at least this long is called only twice.
    pub(crate) fn patience(&self) -> Duration {
        self.rival.map_or(self.limit, |rival| (rival * HOPELESS).min(self.limit))
    }

    /// Whether the batches so far, in microseconds per call, show that the program loses to its
    /// rival.
    pub(crate) fn has_lost(&self, batches: &[f64]) -> bool {
        let shortest = batches.iter().copied().fold(f64::INFINITY, f64::min);
        let behind = |rival: Duration| shortest > BEHIND * rival.as_secs_f64() * 1e6;
        batches.len() >= FEW && self.rival.is_some_and(behind)
    }

    /// The number of calls per batch, if one call takes about `call`.
    pub(crate) fn calls(&self, call: Duration) -> u32 {
        let call = call.as_secs_f64().max(1e-7);
        let wanted = (self.batch_time.as_secs_f64() / call).ceil().max(f64::from(self.batch_calls));
        let affordable = (self.limit.as_secs_f64() / call).floor().max(1.0);
        wanted.min(affordable) as u32
    }
}

/// The times of one mode, in microseconds per call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// How launches were submitted to the device.
    pub mode: Mode,
    /// The time per call of the fastest batch.
    pub min_us: f64,
    /// The median over the batches.
    pub median_us: f64,
    /// The mean over the batches.
    pub mean_us: f64,
    /// The interquartile range of the batches, relative to the median.
    pub spread: f64,
    /// The number of batches.
    pub batches: usize,
    /// The number of calls in all batches together.
    pub runs: u64,
}

/// The times of a program: one sample per mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The samples, in the order of the options' modes; at least one.
    pub samples: Vec<Sample>,
}

impl Timing {
    /// The sample of the faster mode, by minimum time.
    pub fn best(&self) -> Option<&Sample> {
        self.samples.iter().min_by(|a, b| a.min_us.total_cmp(&b.min_us))
    }

    /// The sample of a mode; `None` if it was not measured.
    pub fn of(&self, mode: Mode) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.mode == mode)
    }
}

impl Sample {
    /// Statistics over batch times, in microseconds per call. Each batch has `calls` calls.
    pub(crate) fn new(mode: Mode, mut batches: Vec<f64>, calls: u32) -> Sample {
        batches.sort_by(f64::total_cmp);
        let median_us = quantile(&batches, 0.5);
        let spread = (quantile(&batches, 0.75) - quantile(&batches, 0.25)) / median_us.max(f64::MIN_POSITIVE);
        Sample {
            mode,
            min_us: batches.first().copied().unwrap_or_default(),
            median_us,
            mean_us: batches.iter().sum::<f64>() / batches.len().max(1) as f64,
            spread,
            batches: batches.len(),
            runs: batches.len() as u64 * u64::from(calls),
        }
    }
}

/// A quantile of sorted numbers, interpolated linearly between neighbours.
fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let place = fraction * sorted.len().saturating_sub(1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    match (sorted.get(low), sorted.get(high)) {
        (Some(low), Some(high)) => low + (high - low) * place.fract(),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_long_enough_and_affordable() {
        let options = TimingOptions::default();
        assert_eq!(options.calls(Duration::from_micros(10)), 200);
        assert_eq!(options.calls(Duration::from_millis(1)), 10);
        assert_eq!(options.calls(Duration::from_secs(3)), 3);
        assert_eq!(options.calls(Duration::from_secs(60)), 1);
        assert_eq!(options.calls(Duration::ZERO), 20_000);
    }

    #[test]
    fn losers_get_little_time() {
        let alone = TimingOptions::default();
        let rivalled = TimingOptions { rival: Some(Duration::from_micros(10)), ..TimingOptions::default() };
        assert_eq!(alone.patience(), alone.limit);
        assert_eq!(rivalled.patience(), Duration::from_micros(40));
        assert!(!alone.has_lost(&[50.0; 9]));
        assert!(!rivalled.has_lost(&[50.0; 2]), "too early to say");
        assert!(!rivalled.has_lost(&[50.0, 11.9, 50.0]), "it can be as fast");
        assert!(rivalled.has_lost(&[50.0, 12.1, 50.0]));
    }

    #[test]
    fn statistics_are_of_batches() {
        let sample = Sample::new(Mode::Graph, vec![5.0, 1.0, 2.0, 3.0, 4.0], 10);
        assert_eq!((sample.min_us, sample.median_us, sample.mean_us), (1.0, 3.0, 3.0));
        assert_eq!((sample.batches, sample.runs), (5, 50));
        assert!((sample.spread - 2.0 / 3.0).abs() < 1e-12);
        let timing = Timing { samples: vec![Sample::new(Mode::Stream, vec![2.0], 1), sample] };
        assert_eq!(timing.best().map(|sample| sample.mode), Some(Mode::Graph));
        assert_eq!(timing.of(Mode::Stream).map(|sample| sample.median_us), Some(2.0));
    }
}
