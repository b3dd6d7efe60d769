//! Hashes of words, the same on every machine. The schedule crate hashes trees.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The most words of a short list.
const SHORT: usize = 16;

/// The hash of some words.
pub(crate) fn of_words(words: &[u64]) -> u64 {
    with_bytes(words, xxh3_64)
}

/// A hash of some words that is wide enough to identify them.
pub(crate) fn wide(words: &[u64]) -> u128 {
    with_bytes(words, xxh3_128)
}

fn with_bytes<T>(words: &[u64], hash: impl Fn(&[u8]) -> T) -> T {
    // Most lists are short and need no allocation.
    let mut short = [0u8; 8 * SHORT];
    if words.len() > SHORT {
        return hash(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    }
    for (slot, word) in short.chunks_exact_mut(8).zip(words) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
    hash(&short[..8 * words.len()])
}

/// A pseudo-random number from 0 to 1, derived from some words.
pub(crate) fn unit(words: &[u64]) -> f64 {
    (of_words(words) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_hashed_like_short_ones() {
        let words: Vec<u64> = (0..40).collect();
        let hashes: Vec<u64> = (0..40).map(|len| of_words(&words[..len])).collect();
        assert!((1..40).all(|len| hashes[len] != hashes[len - 1]));
        assert_eq!(
            of_words(&words[..16]),
            xxh3_64(&(0..16u64).flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
        );
        assert!((0.0..1.0).contains(&unit(&words)));
    }
}
