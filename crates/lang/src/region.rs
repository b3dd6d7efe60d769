//! Integer ranges and boxes of grid points.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The integers `min .. min + extent`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Range {
    /// The first integer.
    pub min: i64,
    /// The number of integers; never negative.
    pub extent: i64,
}

impl Range {
    /// `extent` integers starting at `min`; empty if `extent` is negative.
    pub fn new(min: i64, extent: i64) -> Range {
        Range { min, extent: extent.max(0) }
    }

    /// The integers from `first` to `last`, both included.
    pub fn inclusive(first: i64, last: i64) -> Range {
        Range::new(first, last - first + 1)
    }

    /// One past the last integer, or the largest integer if that is beyond it.
    pub fn end(self) -> i64 {
        self.min.saturating_add(self.extent)
    }

    /// The last integer; `min - 1` if the range is empty. At most the largest integer, at least the smallest one.
    pub fn last(self) -> i64 {
        self.min.saturating_add(self.extent.saturating_sub(1))
    }

    /// Whether the range is empty.
    pub fn is_empty(self) -> bool {
        self.extent == 0
    }

    /// Whether `point` is in the range.
    pub fn contains(self, point: i64) -> bool {
        self.min <= point && point < self.end()
    }

    /// Whether `other` is a subset of the range.
    pub fn covers(self, other: Range) -> bool {
        other.is_empty() || (self.min <= other.min && other.end() <= self.end())
    }

    /// The smallest range that covers both.
    pub fn union(self, other: Range) -> Range {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let min = self.min.min(other.min);
        Range::new(min, self.end().max(other.end()).saturating_sub(min))
    }

    /// All integers of the range, in order.
    pub fn iter(self) -> std::ops::Range<i64> {
        self.min..self.end()
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.min, self.end())
    }
}

/// A box of grid points: one [`Range`] per dimension, first dimension first.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Region(pub Vec<Range>);

impl Region {
    /// A box at the origin with these extents.
    pub fn of_extents(extents: &[i64]) -> Region {
        Region(extents.iter().map(|&extent| Range::new(0, extent)).collect())
    }

    /// The box of `dimensions` dimensions that holds no point.
    pub fn empty(dimensions: usize) -> Region {
        Region(vec![Range::new(0, 0); dimensions])
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }

    /// Whether the box contains no point. A box without dimensions contains one point.
    pub fn is_empty(&self) -> bool {
        self.0.iter().any(|range| range.is_empty())
    }

    /// The number of points; `None` if it overflows.
    pub fn points(&self) -> Option<u64> {
        self.0.iter().try_fold(1u64, |points, range| points.checked_mul(range.extent as u64))
    }

    /// The extents, first dimension first.
    pub fn extents(&self) -> Vec<i64> {
        self.0.iter().map(|range| range.extent).collect()
    }

    /// Whether every point of `other` is inside.
    pub fn covers(&self, other: &Region) -> bool {
        other.is_empty() || self.0.iter().zip(&other.0).all(|(outer, inner)| outer.covers(*inner))
    }

    /// The smallest box that covers both.
    pub fn union(&self, other: &Region) -> Region {
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self.clone();
        }
        Region(self.0.iter().zip(&other.0).map(|(a, b)| a.union(*b)).collect())
    }
}

impl std::ops::Index<usize> for Region {
    type Output = Range;

    fn index(&self, dimension: usize) -> &Range {
        &self.0[dimension]
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<String> = self.0.iter().map(Range::to_string).collect();
        f.write_str(&ranges.join(" x "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_at_the_largest_integer() {
        let far = Range { min: i64::MAX, extent: 67 };
        assert_eq!((far.end(), far.last(), far.contains(i64::MAX)), (i64::MAX, i64::MAX, false));
        let wide = Range { min: -9, extent: i64::MAX };
        assert_eq!((wide.end(), wide.last()), (i64::MAX - 9, i64::MAX - 10));
        let none = Range { min: i64::MIN, extent: 0 };
        assert_eq!((none.end(), none.last()), (i64::MIN, i64::MIN));
        let both = Range { min: i64::MIN, extent: 1 }.union(far);
        assert_eq!((both.min, both.extent), (i64::MIN, i64::MAX));
        assert_eq!((Range::new(3, 4).end(), Range::new(3, 4).last(), Range::new(3, 0).last()), (7, 6, 2));
    }
}
