//! Random choices.

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// Random choices from a seed, the same on every machine.
pub(crate) struct Draw(Xoshiro256PlusPlus);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// True with probability `share`, from 0 to 1.
    pub fn chance(&mut self, share: f64) -> bool {
        self.0.random_bool(share)
    }

    /// An integer from `low` to `high`, inclusive.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.random_range(low..=high.max(low))
    }

    /// A position in a list with `len` elements, at least one.
    pub fn position(&mut self, len: usize) -> usize {
        self.0.random_range(0..len.max(1))
    }

    /// A power of two, at most `high`.
    pub fn power_of_two(&mut self, high: i64) -> i64 {
        1 << self.between(0, i64::from(high.max(1).ilog2()))
    }

    /// Puts a list into random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        list.shuffle(&mut self.0);
    }

    /// An order in which heavier choices tend to come first; choices without weight are left out.
    pub fn by_weight<T: Copy>(&mut self, choices: &[(T, f64)]) -> Vec<T> {
        let mut left: Vec<(T, f64)> = choices.iter().copied().filter(|(_, weight)| *weight > 0.0).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let total: f64 = left.iter().map(|(_, weight)| weight).sum();
            let mut at = self.0.random_range(0.0..total);
            let hit = left.iter().position(|(_, weight)| {
                at -= weight;
                at < 0.0
            });
            // Rounding can leave a small remainder beyond the last choice.
            order.push(left.remove(hit.unwrap_or(left.len() - 1)).0);
        }
        order
    }

    /// One choice, drawn by weight; `None` if no choice has weight.
    pub fn pick<T: Copy>(&mut self, choices: &[(T, f64)]) -> Option<T> {
        self.by_weight(choices).first().copied()
    }
}
