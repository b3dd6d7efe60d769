//! Congruences: known remainders of integers.

use crate::affine::gcd;

/// `value ≡ remainder (mod modulus)`. Modulus 0 means that the value itself is known; modulus 1
/// means that nothing is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Congruence {
    modulus: i64,
    remainder: i64,
}

impl Congruence {
    /// Nothing is known.
    pub const ANY: Congruence = Congruence { modulus: 1, remainder: 0 };

    /// The value itself is known.
    pub fn exactly(value: i64) -> Congruence {
        Congruence { modulus: 0, remainder: value }
    }

    /// `value ≡ remainder (mod modulus)`; modulus 0 gives the exact value.
    pub fn new(modulus: i64, remainder: i64) -> Congruence {
        match modulus.abs() {
            0 => Congruence::exactly(remainder),
            modulus => Congruence { modulus, remainder: remainder.rem_euclid(modulus) },
        }
    }

    /// The modulus; 0 if the value is known exactly.
    pub fn modulus(self) -> i64 {
        self.modulus
    }

    /// The remainder; the value itself if the modulus is 0.
    pub fn remainder(self) -> i64 {
        self.remainder
    }

    /// The remainder modulo `divisor`, if the congruence determines it.
    pub fn remainder_of(self, divisor: i64) -> Option<i64> {
        (divisor > 0 && self.modulus % divisor == 0).then(|| self.remainder.rem_euclid(divisor))
    }

    /// The congruence of the sum of two values.
    pub fn plus(self, other: Congruence) -> Congruence {
        match self.remainder.checked_add(other.remainder) {
            Some(sum) => Congruence::new(gcd(self.modulus, other.modulus), sum),
            None => Congruence::ANY,
        }
    }

    /// The congruence of the product with a constant.
    pub fn scale(self, factor: i64) -> Congruence {
        match (self.modulus.checked_mul(factor), self.remainder.checked_mul(factor)) {
            (Some(modulus), Some(remainder)) => Congruence::new(modulus, remainder),
            _ => Congruence::ANY,
        }
    }

    /// The congruence of the floor division by a positive constant.
    pub fn floor_div(self, divisor: i64) -> Congruence {
        match self.modulus % divisor {
            0 => Congruence::new(self.modulus / divisor, self.remainder.div_euclid(divisor)),
            _ => Congruence::ANY,
        }
    }
}
