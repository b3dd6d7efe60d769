//! Integer arithmetic of the analyses: intervals, congruences and linear forms.
//!
//! Bounds inference, the schedule's footprints, the kernel builder, the CUDA printer and the cost model's features
//! share these definitions, so that an operation means the same in all of them.
//!
//! | module | holds |
//! | --- | --- |
//! | [`interval`] | ranges of integers, and the range of each operation's result |
//! | [`congruence`] | remainders |
//! | [`linear`] | sums of multiples of atoms, so that equal terms cancel |

pub mod congruence;
pub mod interval;
pub mod linear;

pub use congruence::Congruence;
pub use interval::Interval;
pub use linear::Linear;

/// The greatest common divisor; `gcd(a, 0)` is `|a|`.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a.saturating_abs()
}

/// The least common multiple of two positive numbers; `None` if it does not fit.
pub fn lcm(a: i64, b: i64) -> Option<i64> {
    (a / gcd(a, b)).checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_and_multiples() {
        assert_eq!((gcd(12, -18), gcd(0, 5), gcd(-5, 0), gcd(i64::MIN, -1)), (6, 5, 5, 1));
        assert_eq!((lcm(4, 6), lcm(i64::MAX, 2)), (Some(12), None));
    }
}
