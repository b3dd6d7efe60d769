//! Random orders, which depend only on the seed.

/// The random number generator splitmix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A random number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * u64::from(limit)) >> 32) as u32
    }
}

/// The numbers below `count` in a random order, which depends on the seed and on `before`, the number of
/// earlier orders.
pub fn shuffled(seed: u64, before: u64, count: u32) -> Vec<u32> {
    let mut random = Random::new(seed ^ before.wrapping_mul(0xd6e8_feb8_6659_fd93));
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u32 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_hold_every_number_once_and_depend_on_the_seed() {
        let mut order = shuffled(1, 0, 1000);
        assert_eq!(order, shuffled(1, 0, 1000));
        assert_ne!(order, shuffled(2, 0, 1000));
        assert_ne!(order, shuffled(1, 1, 1000));
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<u32>>());
        assert!(shuffled(1, 0, 0).is_empty());
    }
}
