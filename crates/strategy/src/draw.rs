//! Random choices.

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// Random choices from a seed, the same on every machine.
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// The choices that belong to a seed.
    pub fn new(seed: u64) -> Draw {
        Draw(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// True with probability `share`, which is clamped to 0..=1.
    pub fn chance(&mut self, share: f64) -> bool {
        self.0.random_bool(share.clamp(0.0, 1.0))
    }

    /// A position in a list with `len` elements, at least one.
    pub fn position(&mut self, len: usize) -> usize {
        self.0.random_range(0..len.max(1))
    }

    /// A number below `end`, which is at least one.
    pub fn below(&mut self, end: u128) -> u128 {
        self.0.random_range(0..end.max(1))
    }

    /// A number from `-limit` up to `limit`.
    pub fn around_zero(&mut self, limit: f32) -> f32 {
        self.0.random_range(-1.0f32..1.0) * limit
    }

    /// Puts a list into random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        list.shuffle(&mut self.0);
    }

    /// A position drawn in proportion to its weight; `None` if none has any. Weights that are negative or not finite
    /// count as none.
    pub fn roulette(&mut self, weights: &[f64]) -> Option<usize> {
        let weight = |at: usize| if weights[at].is_finite() { weights[at].max(0.0) } else { 0.0 };
        let total: f64 = (0..weights.len()).map(weight).sum();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        let mut left = self.0.random_range(0.0..total);
        let mut last = None;
        for at in (0..weights.len()).filter(|&at| weight(at) > 0.0) {
            last = Some(at);
            left -= weight(at);
            if left < 0.0 {
                break;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roulette_follows_the_weights() {
        let mut draw = Draw::new(1);
        let mut hits = [0; 4];
        for _ in 0..10_000 {
            hits[draw.roulette(&[1.0, 0.0, 3.0, f64::NAN]).unwrap()] += 1;
        }
        assert_eq!((hits[1], hits[3]), (0, 0));
        assert!((2_300..2_700).contains(&hits[0]), "{hits:?}");
    }

    #[test]
    fn roulette_without_weight_gives_nothing() {
        assert_eq!(Draw::new(0).roulette(&[]), None);
        assert_eq!(Draw::new(0).roulette(&[0.0, -1.0]), None);
    }
}
