//! Exact rational numbers.

use std::cmp::Ordering;
use std::fmt;

use warploom_lang::affine::lcm;

/// A fraction in lowest terms with a positive denominator.
///
/// Arithmetic returns `None` if the result does not fit; callers treat that as unknown.
///
/// ```
/// use warploom_schedule::Rational;
/// let half = Rational::new(2, 4).unwrap();
/// assert_eq!(half.add(Rational::ZERO), Some(half));
/// assert_eq!(half.add(half), Some(Rational::ONE));
/// assert_eq!(half.to_string(), "1/2");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rational {
    numerator: i64,
    denominator: i64,
}

impl Rational {
    /// The number 0.
    pub const ZERO: Rational = Rational::integer(0);
    /// The number 1.
    pub const ONE: Rational = Rational::integer(1);

    /// `numerator / denominator`; `None` if the denominator is zero or the reduced fraction does not
    /// fit.
    pub fn new(numerator: i64, denominator: i64) -> Option<Rational> {
        Rational::reduced(i128::from(numerator), i128::from(denominator))
    }

    /// The fraction `value / 1`.
    pub const fn integer(value: i64) -> Rational {
        Rational { numerator: value, denominator: 1 }
    }

    /// Reduces a fraction. Products and sums of 64-bit numbers fit into 128 bits here, so only the
    /// reduced result can be too large.
    fn reduced(numerator: i128, denominator: i128) -> Option<Rational> {
        if denominator == 0 {
            return None;
        }
        let divisor = gcd_wide(numerator, denominator) * denominator.signum();
        Some(Rational {
            numerator: i64::try_from(numerator / divisor).ok()?,
            denominator: i64::try_from(denominator / divisor).ok()?,
        })
    }

    /// The numerator of the reduced fraction; it carries the sign.
    pub const fn numerator(self) -> i64 {
        self.numerator
    }

    /// The denominator of the reduced fraction, at least 1.
    pub const fn denominator(self) -> i64 {
        self.denominator
    }

    /// Whether the number is 0.
    pub const fn is_zero(self) -> bool {
        self.numerator == 0
    }

    /// The value, if it is an integer.
    pub const fn as_integer(self) -> Option<i64> {
        if self.denominator == 1 { Some(self.numerator) } else { None }
    }

    /// The largest integer that is not larger.
    pub fn floor(self) -> i64 {
        self.numerator().div_euclid(self.denominator())
    }

    /// The smallest integer that is not smaller.
    pub fn ceil(self) -> i64 {
        -(-self.numerator()).div_euclid(self.denominator())
    }

    /// `self + other`, if it fits.
    #[expect(clippy::should_implement_trait, reason = "the result may not fit")]
    pub fn add(self, other: Rational) -> Option<Rational> {
        if let Some((a, b)) = self.both_whole(other) {
            return a.checked_add(b).map(Rational::integer);
        }
        let ((a, b), (c, d)) = (self.wide(), other.wide());
        Rational::reduced(a * d + c * b, b * d)
    }

    /// `self - other`, if it fits.
    #[expect(clippy::should_implement_trait, reason = "the result may not fit")]
    pub fn sub(self, other: Rational) -> Option<Rational> {
        if let Some((a, b)) = self.both_whole(other) {
            return a.checked_sub(b).map(Rational::integer);
        }
        let ((a, b), (c, d)) = (self.wide(), other.wide());
        Rational::reduced(a * d - c * b, b * d)
    }

    /// `self * other`, if it fits.
    #[expect(clippy::should_implement_trait, reason = "the result may not fit")]
    pub fn mul(self, other: Rational) -> Option<Rational> {
        if let Some((a, b)) = self.both_whole(other) {
            return a.checked_mul(b).map(Rational::integer);
        }
        let ((a, b), (c, d)) = (self.wide(), other.wide());
        Rational::reduced(a * c, b * d)
    }

    /// `self / other`; `None` if the divisor is zero or the result does not fit.
    #[expect(clippy::should_implement_trait, reason = "the result may not fit")]
    pub fn div(self, other: Rational) -> Option<Rational> {
        let ((a, b), (c, d)) = (self.wide(), other.wide());
        Rational::reduced(a * d, b * c)
    }

    /// Both values, if both are integers. This is the common case, and 128-bit arithmetic is slow.
    const fn both_whole(self, other: Rational) -> Option<(i64, i64)> {
        if self.denominator == 1 && other.denominator == 1 {
            Some((self.numerator, other.numerator))
        } else {
            None
        }
    }

    fn wide(self) -> (i128, i128) {
        (i128::from(self.numerator), i128::from(self.denominator))
    }
}

impl From<i32> for Rational {
    fn from(value: i32) -> Rational {
        Rational::integer(i64::from(value))
    }
}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Rational) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rational {
    fn cmp(&self, other: &Rational) -> Ordering {
        if let Some((a, b)) = self.both_whole(*other) {
            return a.cmp(&b);
        }
        let ((a, b), (c, d)) = (self.wide(), other.wide());
        (a * d).cmp(&(c * b))
    }
}

impl fmt::Display for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            below => write!(f, "{}/{below}", self.numerator),
        }
    }
}

/// The least common denominator of some fractions; `i64::MAX` if it does not fit.
pub fn common_denominator(parts: impl IntoIterator<Item = Rational>) -> i64 {
    let mut parts = parts.into_iter();
    // Most are whole numbers.
    let all =
        |all, part: Rational| if part.denominator == 1 { Some(all) } else { lcm(all, part.denominator) };
    parts.try_fold(1, all).unwrap_or(i64::MAX)
}

fn gcd_wide(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rational(numerator: i64, denominator: i64) -> Rational {
        Rational::new(numerator, denominator).unwrap()
    }

    #[test]
    fn is_held_in_lowest_terms() {
        assert_eq!(rational(6, -4), rational(-3, 2));
        assert_eq!(rational(0, -7), Rational::ZERO);
        assert_eq!(rational(i64::MIN, i64::MIN), Rational::ONE);
        assert_eq!(Rational::new(1, 0), None);
        assert_eq!(Rational::new(i64::MIN, -1), None);
        assert_eq!((rational(4, 6).to_string(), rational(4, 2).to_string()), ("2/3".into(), "2".into()));
    }

    #[test]
    fn a_half_and_nothing_is_a_half() {
        for below in [2, 3, 4, 8] {
            assert_eq!(rational(1, below).add(Rational::ZERO), Some(rational(1, below)));
            assert_eq!(Rational::ZERO.add(rational(1, below)), Some(rational(1, below)));
        }
        assert_eq!(rational(1, 2).add(rational(1, 2)), Some(Rational::ONE));
        assert_eq!(rational(1, 2).add(rational(1, 3)), Some(rational(5, 6)));
        assert_eq!(rational(1, 2).div(Rational::ZERO), None);
    }

    #[test]
    fn fractions_have_a_common_denominator() {
        assert_eq!(common_denominator([rational(1, 4), rational(5, 6), Rational::ONE]), 12);
        assert_eq!(common_denominator([]), 1);
        assert_eq!(common_denominator([rational(1, i64::MAX), rational(1, 2)]), i64::MAX);
    }

    #[test]
    fn what_does_not_fit_is_unknown() {
        let large = Rational::integer(i64::MAX);
        assert_eq!(large.add(Rational::ONE), None);
        assert_eq!(large.mul(large), None);
        assert_eq!(large.mul(rational(1, i64::MAX)), Some(Rational::ONE));
        assert_eq!(Rational::integer(i64::MIN).mul(Rational::integer(-1)), None);
        assert_eq!(large.sub(large), Some(Rational::ZERO));
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_fractions(a in -99i64..99, b in 1i64..99, c in -99i64..99, d in 1i64..99) {
            let (left, right) = (rational(a, b), rational(c, d));
            let value = |r: Option<Rational>| {
                let r = r.unwrap();
                (i128::from(r.numerator()), i128::from(r.denominator()))
            };
            let (n, m) = value(left.add(right));
            prop_assert_eq!(n * i128::from(b * d), m * i128::from(a * d + c * b));
            let (n, m) = value(left.mul(right));
            prop_assert_eq!(n * i128::from(b * d), m * i128::from(a * c));
            prop_assert_eq!(left.add(right).unwrap().sub(right), Some(left));
            prop_assert_eq!(left.cmp(&right), (a * d).cmp(&(c * b)));
            if c != 0 {
                prop_assert_eq!(left.mul(right).unwrap().div(right), Some(left));
            }
        }
    }
}
