//! Indices as linear forms of a stage's loop variables, valid away from the edges.

use std::hash::Hash;
use warploom_lang::affine::{gcd, lcm};

use ahash::RandomState;
use smallvec::SmallVec;

/// An integer expression: `floor((coefs · variables + constant) / den)`.
///
/// The variables are the dimensions of the stage's Func, then its reduction variables.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Form {
    /// One per variable; 0 for those in `unknown`.
    pub coefs: SmallVec<[i64; 6]>,
    pub constant: i64,
    /// At least 1.
    pub den: i64,
    /// A bit mask of variables that affect the value in a non-linear way.
    pub unknown: u64,
    /// 0 if the form is exact. Otherwise a hash that distinguishes expressions with the same form.
    pub tag: u64,
}

/// Forms with larger constants become opaque, so that arithmetic never overflows.
const MAX: i64 = 1 << 40;

/// The bit of a variable or an axis in a mask. Those from number 63 on share one: what is unknown of one
/// of them is unknown of all.
pub(crate) fn bit(number: usize) -> u64 {
    1 << number.min(63)
}

/// A hash that is the same in every run.
pub(crate) fn tag_of(value: impl Hash) -> u64 {
    RandomState::with_seeds(1, 2, 3, 4).hash_one(value) | 1
}

impl Form {
    pub(crate) fn constant(vars: usize, value: i64) -> Form {
        Form { coefs: SmallVec::from_elem(0, vars), constant: value, den: 1, unknown: 0, tag: 0 }
    }

    pub(crate) fn variable(vars: usize, number: usize) -> Form {
        let mut form = Form::constant(vars, 0);
        form.coefs[number] = 1;
        form
    }

    /// A value that depends on some variables in an unknown way; `tag` identifies it.
    pub(crate) fn opaque(vars: usize, moved_by: u64, tag: u64) -> Form {
        Form { unknown: moved_by, tag, ..Form::constant(vars, 0) }
    }

    /// The variables that the value depends on.
    pub(crate) fn moved_by(&self) -> u64 {
        let moving = self.coefs.iter().enumerate().filter(|(_, coef)| **coef != 0);
        moving.fold(self.unknown, |mask, (number, _)| mask | bit(number))
    }

    /// Whether it is a sum of variables, possibly rounded.
    pub(crate) fn is_affine(&self) -> bool {
        self.tag == 0 && self.unknown == 0
    }

    pub(crate) fn as_constant(&self) -> Option<i64> {
        (self.tag == 0 && self.moved_by() == 0).then(|| self.constant.div_euclid(self.den))
    }

    /// The smallest value of a sum of variables that lie between the given numbers.
    pub(crate) fn least(&self, ranges: &[(i64, i64)]) -> i64 {
        let terms = self.coefs.iter().zip(ranges).map(|(coef, (low, high))| (coef * low).min(coef * high));
        (self.constant + terms.sum::<i64>()).div_euclid(self.den)
    }

    pub(crate) fn add(&self, other: &Form) -> Form {
        let den = lcm(self.den, other.den).unwrap_or(i64::MAX);
        let (a, b) = (den / self.den, den / other.den);
        let exact = self.tag == 0 && other.tag == 0 && (self.den == 1 || other.den == 1);
        let mut unknown = self.unknown | other.unknown;
        let mut coefs = SmallVec::with_capacity(self.coefs.len());
        for (number, (x, y)) in self.coefs.iter().zip(&other.coefs).enumerate() {
            let sum = x * a + y * b;
            // Terms that cancel except for rounding leave a remainder.
            if sum == 0 && *x != 0 && !exact {
                unknown |= bit(number);
            }
            coefs.push(sum);
        }
        let tag = if exact { 0 } else { tag_of(("add", self, other)) };
        let constant = self.constant * a + other.constant * b;
        Form { coefs, constant, den, unknown, tag }.settled()
    }

    pub(crate) fn scale(&self, factor: i64) -> Form {
        if factor == 0 {
            return Form::constant(self.coefs.len(), 0);
        }
        let exact = self.tag == 0 && (self.den == 1 || factor.abs() == 1);
        // The negation of a quotient that is rounded down is rounded up.
        let rounding = if factor == -1 { self.den - 1 } else { 0 };
        Form {
            coefs: self.coefs.iter().map(|coef| coef.saturating_mul(factor)).collect(),
            constant: self.constant.saturating_mul(factor).saturating_add(rounding),
            den: self.den,
            unknown: self.unknown,
            tag: if exact { 0 } else { tag_of(("scale", self, factor)) },
        }
        .settled()
    }

    /// The quotient by a positive number, rounded down.
    pub(crate) fn floor_div(&self, divisor: i64) -> Form {
        let tag = if self.tag == 0 { 0 } else { tag_of(("div", self, divisor)) };
        Form { den: self.den.saturating_mul(divisor), tag, ..self.clone() }.settled()
    }

    /// Reduces to lowest terms; becomes opaque if numbers are too large.
    fn settled(mut self) -> Form {
        self.mask_unknown();
        let common = self.coefs.iter().fold(self.den, |common, coef| gcd(common, *coef));
        if common > 1 {
            self.coefs.iter_mut().for_each(|coef| *coef /= common);
            self.constant = self.constant.div_euclid(common);
            self.den /= common;
        }
        let large = self.coefs.iter().chain([&self.constant, &self.den]).any(|value| value.abs() > MAX);
        if large {
            return Form::opaque(self.coefs.len(), self.moved_by(), tag_of(("large", &self)));
        }
        self
    }

    fn mask_unknown(&mut self) {
        for (number, coef) in self.coefs.iter_mut().enumerate() {
            if self.unknown & bit(number) != 0 {
                *coef = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_of_sums_are_exact_and_sums_of_quotients_are_not() {
        let x = Form::variable(2, 0);
        let half = x.add(&Form::constant(2, 3)).floor_div(2);
        assert_eq!((half.coefs[0], half.constant, half.den, half.tag), (1, 3, 2, 0));
        assert_eq!(x.scale(2).add(&Form::constant(2, 3)).floor_div(2), x.add(&Form::constant(2, 1)));
        assert_ne!(half.scale(2).tag, 0);
        assert_ne!(half.add(&half).tag, 0);
        let remainder = x.add(&x.floor_div(2).scale(-2));
        assert_eq!((remainder.unknown, remainder.coefs[0]), (1, 0));
        assert_eq!(half.scale(-1).scale(-1), half);
    }
}
