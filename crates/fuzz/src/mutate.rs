//! Generates damaged files from valid ones, to test that readers of untrusted files survive them.
//!
//! An input depends only on the seed and its number, so any input can be reproduced.

use crate::data::{Draws, mixed};

/// Maximum number of changes per input.
const CHANGES: u64 = 6;
/// Maximum length of a piece that is repeated or removed, in bytes. Pieces copied from another
/// input are up to four times as long.
const PIECE: u64 = 64;
/// Maximum number of repetitions of a piece, which bounds the nesting depth.
const REPETITIONS: u64 = 400;

/// Lengths and counts that tend to trigger arithmetic errors.
const BOUNDARIES: [u64; 16] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    1 << 20,
    i32::MAX as u64,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 60,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Numbers as text that tend to trigger arithmetic errors.
const NUMBERS: [&str; 14] = [
    "0",
    "-1",
    "1",
    "0.5",
    "-0.0",
    "255",
    "65536",
    "2147483647",
    "-2147483648",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "1e308",
    "-1e999",
];

/// Generates damaged inputs from valid ones.
///
/// ```
/// use warploom_fuzz::Mutator;
/// let mutator = Mutator::new(1, vec![b"P5 2 2 255 abcd".to_vec()]);
/// assert_eq!(mutator.input(7), mutator.input(7));
/// assert_ne!(mutator.input(7), mutator.input(8));
/// ```
#[derive(Clone, Debug)]
pub struct Mutator {
    seed: u64,
    whole: Vec<Vec<u8>>,
}

impl Mutator {
    /// A generator with a seed and some valid inputs.
    ///
    /// # Panics
    /// If `whole` is empty.
    pub fn new(seed: u64, whole: Vec<Vec<u8>>) -> Mutator {
        assert!(!whole.is_empty(), "there is something to damage");
        Mutator { seed, whole }
    }

    /// The damaged input with this number.
    pub fn input(&self, number: u64) -> Vec<u8> {
        let mut draws = Draws(mixed(self.seed ^ mixed(number)));
        let mut bytes = draws.one_of(&self.whole).clone();
        for _ in 0..=draws.below(CHANGES) {
            self.change(&mut bytes, &mut draws);
        }
        bytes
    }

    fn change(&self, bytes: &mut Vec<u8>, draws: &mut Draws) {
        let at = draws.below(bytes.len() as u64 + 1) as usize;
        let piece = at..at + (draws.below(PIECE) as usize).min(bytes.len() - at);
        match draws.below(11) {
            0..=1 => bytes[at..].iter_mut().take(1).for_each(|byte| *byte ^= 1 << draws.below(8)),
            2 => overwrite(bytes, at, &[draws.below(256) as u8]),
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(piece)),
            5 => {
                let repeated = bytes[piece].repeat(1 + draws.below(3) as usize);
                insert(bytes, at, &repeated);
            }
            6 => {
                let few = bytes[at..(at + 1 + draws.below(8) as usize).min(bytes.len())].to_vec();
                insert(bytes, at, &few.repeat(draws.below(REPETITIONS) as usize));
            }
            7 => {
                let other = draws.one_of(&self.whole);
                let from = draws.below(other.len() as u64 + 1) as usize;
                let length = (draws.below(4 * PIECE) as usize).min(other.len() - from);
                overwrite(bytes, at, &other[from..from + length]);
            }
            8 => overwrite(bytes, at, &boundary(draws)),
            _ => replace_number(bytes, at, draws),
        }
    }
}

/// A boundary as a number of one to eight bytes in either byte order, or as bincode encodes
/// lengths.
fn boundary(draws: &mut Draws) -> Vec<u8> {
    let value = *draws.one_of(&BOUNDARIES);
    let bytes = value.to_le_bytes();
    match draws.below(9) {
        0 => vec![bytes[0]],
        1 => bytes[..2].to_vec(),
        2 => bytes[..4].to_vec(),
        3 => bytes.to_vec(),
        4 => (value as u16).to_be_bytes().to_vec(),
        5 => (value as u32).to_be_bytes().to_vec(),
        6 => value.to_be_bytes().to_vec(),
        7 => [&[252], &bytes[..4]].concat(),
        _ => [&[253], bytes.as_slice()].concat(),
    }
}

/// Replaces the first decimal number at or after `at`.
fn replace_number(bytes: &mut Vec<u8>, at: usize, draws: &mut Draws) {
    let digit = |byte: &u8| byte.is_ascii_digit();
    if let Some(start) = bytes[at..].iter().position(digit).map(|found| at + found) {
        let end = bytes[start..].iter().position(|byte| !digit(byte)).map_or(bytes.len(), |end| start + end);
        bytes.splice(start..end, draws.one_of(&NUMBERS).bytes());
    }
}

/// Overwrites bytes without changing the length.
fn overwrite(bytes: &mut [u8], at: usize, with: &[u8]) {
    bytes[at..].iter_mut().zip(with).for_each(|(byte, with)| *byte = *with);
}

fn insert(bytes: &mut Vec<u8>, at: usize, with: &[u8]) {
    bytes.splice(at..at, with.iter().copied());
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn inputs_are_many_and_stay_near_what_they_come_from() {
        let whole = [b"{\"shape\": [3, 96, 128]}".to_vec(), b"{\"extent\": 255}".to_vec()];
        let mutator = Mutator::new(3, whole.to_vec());
        let inputs: HashSet<Vec<u8>> = (0..1000).map(|number| mutator.input(number)).collect();
        assert!(inputs.len() > 850, "{} different inputs of 1000", inputs.len());
        let has =
            |text: &[u8]| inputs.iter().filter(|input| input.windows(text.len()).any(|w| w == text)).count();
        assert!(has(b"shape") > 100 && has(b"18446744073709551616") > 5 && has(b"[3[3[3") > 1);
        assert_ne!(Mutator::new(4, whole.to_vec()).input(0), mutator.input(0));
        // An empty input stays empty and does not panic.
        assert!(Mutator::new(1, vec![Vec::new()]).input(1).is_empty());
    }
}
