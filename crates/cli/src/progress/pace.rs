//! How much of a task is done, and how long the rest will take at the recent pace.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The most moments that are remembered.
const MOMENTS: usize = 256;

/// The work of a task. What is shown of it never goes back, however the amounts are revised.
pub(super) struct Pace {
    total: Option<u64>,
    done: u64,
    /// How much of the thing at hand is done, from 0 to 1.
    part: f64,
    /// The largest share of the work that was done at any time.
    share: f64,
    /// When the pace began to be measured, and how much was done then.
    start: (Instant, f64),
    /// How much was done at some moments since, in order.
    moments: VecDeque<(Instant, f64)>,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace { total: None, done: 0, part: 0.0, share: 0.0, start: (now, 0.0), moments: VecDeque::new() }
    }

    pub(super) fn total(&self) -> Option<u64> {
        self.total
    }

    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// The share of the work that is done, from 0 to 1.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// How many things are done, of how many.
    pub(super) fn count(&self) -> String {
        format!("{}/{}", self.done, self.total.unwrap_or_default().max(self.done))
    }

    pub(super) fn set_total(&mut self, total: u64) {
        self.total = Some(total);
        self.see();
    }

    pub(super) fn set_done(&mut self, done: u64, now: Instant) {
        if done > self.done {
            (self.done, self.part) = (done, 0.0);
            self.remember(now);
        }
    }

    pub(super) fn set_part(&mut self, part: f64, now: Instant) {
        if part > self.part {
            self.part = part.min(1.0);
            self.remember(now);
        }
    }

    /// Measures the pace from now on.
    pub(super) fn restart(&mut self, now: Instant) {
        self.start = (now, self.amount());
        self.moments.clear();
    }

    /// The time that the rest takes at the pace of the second half of the time so far: what was slower or faster at first says
    /// little. `None` while nothing is known, and once nothing is left.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        let rest = self.total? as f64 - self.amount();
        let (start, at_start) = self.start;
        let middle = start + now.saturating_duration_since(start) / 2;
        let before = self.moments.iter().take_while(|(at, _)| *at <= middle).last();
        let (since, before) = before.copied().unwrap_or(self.start);
        let (since, amount) = match self.amount() - before {
            recent if recent > 0.0 => (since, recent),
            _ => (start, self.amount() - at_start),
        };
        let time = now.saturating_duration_since(since);
        let left = (rest > 0.0 && amount > 0.0).then(|| time.as_secs_f64() * rest / amount)?;
        Duration::try_from_secs_f64(left).ok()
    }

    fn amount(&self) -> f64 {
        self.done as f64 + self.part
    }

    fn remember(&mut self, now: Instant) {
        self.see();
        self.moments.push_back((now, self.amount()));
        if self.moments.len() > MOMENTS {
            // Every second one is enough.
            let mut number = 0;
            self.moments.retain(|_| {
                number += 1;
                number % 2 == 0
            });
        }
    }

    fn see(&mut self) {
        let share = self.amount() / self.total.unwrap_or_default().max(1) as f64;
        if self.total.is_some() {
            self.share = self.share.max(share.min(1.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn about(left: Option<Duration>, expected: f64) -> bool {
        left.is_some_and(|left| (left.as_secs_f64() - expected).abs() < 0.05 * expected)
    }

    #[test]
    fn nothing_is_said_before_the_first_thing_and_after_the_last() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        assert_eq!(pace.left(start + seconds(5.0)), None);
        pace.set_total(2);
        assert_eq!(pace.left(start + seconds(5.0)), None);
        pace.set_done(1, start + seconds(10.0));
        assert!(about(pace.left(start + seconds(10.0)), 10.0));
        pace.set_done(2, start + seconds(20.0));
        assert_eq!(pace.left(start + seconds(20.0)), None);
    }

    #[test]
    fn the_recent_pace_counts() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.set_total(1000);
        // A thing each 2 seconds for 100 seconds, then ten per second for as long.
        (1..=50).for_each(|done| pace.set_done(done, start + seconds(2.0 * done as f64)));
        assert!(about(pace.left(start + seconds(100.0)), 1900.0));
        (1..=500).for_each(|done| pace.set_done(50 + done, start + seconds(100.0 + 0.1 * done as f64)));
        // 513 of 550 things were done in the second half of 150 seconds.
        let left = pace.left(start + seconds(150.0)).unwrap();
        assert!((60.0..80.0).contains(&left.as_secs_f64()), "{left:?}");
        // Without progress, the rest takes longer and longer.
        assert!(pace.left(start + seconds(250.0)).unwrap() > left);
        assert!(pace.left(start + seconds(2500.0)).unwrap() > seconds(1000.0));
    }

    #[test]
    fn preparation_does_not_count_after_a_restart() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.set_total(5);
        pace.restart(start + seconds(20.0));
        pace.set_done(1, start + seconds(21.0));
        pace.set_done(2, start + seconds(22.0));
        assert!(about(pace.left(start + seconds(22.0)), 3.0), "{:?}", pace.left(start + seconds(22.0)));
    }

    #[test]
    fn revised_amounts_never_move_what_is_shown_back() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut shown = 0.0;
        let mut number = 1_u64;
        for step in 0..2000 {
            number = number.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let now = start + seconds(f64::from(step));
            match number >> 62 {
                0 => pace.set_total(number >> 33 & 0xff),
                1 => pace.set_done(number >> 33 & 0xff, now),
                _ => pace.set_part((number >> 33 & 0xff) as f64 / 200.0, now),
            }
            assert!(pace.share() >= shown && pace.share() <= 1.0);
            shown = pace.share();
            let _ = pace.left(now);
        }
        assert!(pace.moments.len() <= MOMENTS);
    }
}
