//! Pseudo-random choices that are the same on every machine.

use std::ops::RangeInclusive;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// The source of all choices. Every draw uses a fixed-width type, so the word size of the machine
/// does not matter.
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    /// The choices for `seed` in attempt number `attempt`.
    pub fn new(seed: u64, attempt: u64) -> Dice {
        let spread = attempt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Dice(Xoshiro256PlusPlus::seed_from_u64(seed.rotate_left(17) ^ spread ^ 0x5eed))
    }

    /// An integer in a range.
    pub fn between(&mut self, range: RangeInclusive<i64>) -> i64 {
        self.0.random_range(range)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end as u64) as usize
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability)
    }

    /// One of the items. There must be at least one.
    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// A random index of `weights`, with probability proportional to the weight.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = self.0.random_range(0.0..1.0) * weights.iter().sum::<f64>();
        let chosen = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        chosen.unwrap_or(weights.len() - 1)
    }

    /// A random permutation of the numbers below `count`.
    pub fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for i in 1..count {
            let other = self.below(i + 1);
            order.swap(i, other);
        }
        order
    }

    /// A non-zero factor between -2 and 2 that an `f32` represents exactly.
    pub fn factor(&mut self) -> f32 {
        let sixteenths = self.between(1..=32) as f32 / 16.0;
        if self.chance(0.3) { -sixteenths } else { sixteenths }
    }
}
