//! Comparison of buffers, sample by sample.

use std::fmt;

use rayon::prelude::*;
use thiserror::Error;
use warploom_lang::{Range, Region, Type, Value, dispatch};

use crate::buffer::{Buffer, Element};

/// The tolerance of a comparison. A sample passes if it is within any of `abs`, `rel` and `ulp`.
///
/// The default accepts only equal samples. With any tolerance, NaN equals only NaN, and an infinity
/// equals only itself.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tolerance {
    /// The largest absolute difference.
    pub abs: f64,
    /// The largest difference as a fraction of the expected value.
    pub rel: f64,
    /// The largest number of steps between representable values; for integers, the difference.
    pub ulp: u32,
    /// A wider tolerance for a fraction of the samples; `None` allows no outliers.
    pub outliers: Option<Outliers>,
}

/// How many samples may exceed the tolerance, and by how much.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outliers {
    /// The largest absolute difference of an outlier.
    pub abs: f64,
    /// The largest fraction of all samples that may be outliers.
    pub fraction: f64,
}

/// The result of [`compare`].
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The number of samples.
    pub samples: usize,
    /// The number of samples whose values differ.
    pub differing: usize,
    /// Whether all samples are bit-identical. NaNs may differ in their bits.
    pub identical: bool,
    /// The number of samples that exceed `abs`, `rel` and `ulp`, including accepted outliers.
    pub beyond: usize,
    /// The largest difference; infinite between a number and NaN or an infinity.
    pub max_abs: f64,
    /// The largest difference as a fraction of the expected value.
    pub max_rel: f64,
    /// The largest number of steps between representable values.
    pub max_ulp: u32,
    /// The first sample that exceeds `abs`, `rel` and `ulp`, first index fastest.
    pub first: Option<Mismatch>,
    /// Whether the tolerance accepts all samples.
    pub passed: bool,
}

/// A sample that differs too much from the expected one.
#[derive(Clone, PartialEq, Debug)]
pub struct Mismatch {
    /// The coordinates of the sample.
    pub at: Vec<i64>,
    /// The sample found.
    pub actual: Value,
    /// The sample expected.
    pub expected: Value,
}

/// Why two buffers cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ShapeMismatch {
    /// Samples of different types.
    #[error("the samples have type {actual} instead of {expected}")]
    Type {
        /// The type found.
        actual: Type,
        /// The type expected.
        expected: Type,
    },
    /// Different numbers of dimensions.
    #[error("the buffer has {actual} dimensions instead of {expected}")]
    Dimensions {
        /// The number of dimensions found.
        actual: usize,
        /// The number of dimensions expected.
        expected: usize,
    },
    /// Different extents.
    #[error("dimension {dimension} has extent {actual} instead of {expected}")]
    Extent {
        /// The first dimension that differs.
        dimension: usize,
        /// The extent found.
        actual: i64,
        /// The extent expected.
        expected: i64,
    },
    /// Different first coordinates.
    #[error("dimension {dimension} starts at {actual} instead of {expected}")]
    Min {
        /// The first dimension that differs.
        dimension: usize,
        /// The coordinate found.
        actual: i64,
        /// The coordinate expected.
        expected: i64,
    },
}

/// Compares two buffers over the same region. Their storage orders may differ.
///
/// ```
/// use warploom_interp::buffer::Buffer;
/// use warploom_interp::compare::{Tolerance, compare};
/// use warploom_lang::Region;
///
/// let region = Region::of_extents(&[2, 2]);
/// let expected = Buffer::from_vec(region.clone(), vec![1.0_f32, 2.0, 3.0, 4.0])?;
/// let actual = Buffer::from_vec(region, vec![1.0_f32, 2.0, 3.5, 4.0])?;
///
/// let strict = compare(&actual, &expected, &Tolerance::default())?;
/// assert_eq!(strict.first.map(|mismatch| mismatch.at), Some(vec![0, 1]));
/// assert!(compare(&actual, &expected, &Tolerance { abs: 0.5, ..Tolerance::default() })?.passed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compare(
    actual: &Buffer,
    expected: &Buffer,
    tolerance: &Tolerance,
) -> Result<Comparison, ShapeMismatch> {
    check_shapes(actual, expected)?;
    Ok(dispatch!(actual.ty(), T => compare_samples::<T>(actual, expected, tolerance)))
}

/// The number of samples compared at a time.
pub(crate) const PART: usize = 1 << 16;

/// Whether buffers have the same region, type and bits.
pub(crate) fn is_identical(actual: &Buffer, expected: &Buffer) -> bool {
    fn bits<T: Element>(actual: &Buffer, expected: &Buffer) -> bool {
        let actuals = actual.as_slice::<T>().unwrap_or_default();
        let wanted = expected.as_slice::<T>().unwrap_or_default();
        let starts: Vec<usize> = (0..expected.len()).step_by(PART).collect();
        starts.into_par_iter().all(|start| {
            let mut offsets = actual.offsets_from(start).zip(expected.offsets_from(start)).take(PART);
            offsets.all(|(from, to)| actuals[from].to_bits() == wanted[to].to_bits())
        })
    }
    check_shapes(actual, expected).is_ok() && dispatch!(actual.ty(), T => bits::<T>(actual, expected))
}

pub(crate) fn check_shapes(actual: &Buffer, expected: &Buffer) -> Result<(), ShapeMismatch> {
    if actual.ty() != expected.ty() {
        return Err(ShapeMismatch::Type { actual: actual.ty(), expected: expected.ty() });
    }
    let (actual, expected) = (actual.region(), expected.region());
    if actual.dimensions() != expected.dimensions() {
        let (actual, expected) = (actual.dimensions(), expected.dimensions());
        return Err(ShapeMismatch::Dimensions { actual, expected });
    }
    for (dimension, (actual, expected)) in actual.0.iter().zip(&expected.0).enumerate() {
        if actual.extent != expected.extent {
            let (actual, expected) = (actual.extent, expected.extent);
            return Err(ShapeMismatch::Extent { dimension, actual, expected });
        }
        if actual.min != expected.min {
            return Err(ShapeMismatch::Min { dimension, actual: actual.min, expected: expected.min });
        }
    }
    Ok(())
}

fn compare_samples<T: Element>(actual: &Buffer, expected: &Buffer, tolerance: &Tolerance) -> Comparison {
    let actuals = actual.as_slice::<T>().unwrap_or_default();
    let expecteds = expected.as_slice::<T>().unwrap_or_default();
    let mut found = Comparison {
        samples: actuals.len(),
        differing: 0,
        identical: true,
        beyond: 0,
        max_abs: 0.0,
        max_rel: 0.0,
        max_ulp: 0,
        first: None,
        passed: false,
    };
    for (index, (from, to)) in actual.offsets().zip(expected.offsets()).enumerate() {
        let (sample, wanted) = (actuals[from], expecteds[to]);
        if sample.to_bits() == wanted.to_bits() {
            continue;
        }
        let (sample, wanted) = (Value::from(sample), Value::from(wanted));
        found.add(sample, wanted, tolerance, || point(actual.region(), index));
    }
    // The quotient of two integers rounds the same way as the fraction stated in the tolerance.
    let fraction = found.beyond as f64 / found.samples as f64;
    found.passed = found.beyond == 0
        || tolerance.outliers.is_some_and(|outliers| {
            found.max_abs.is_finite() && found.max_abs <= outliers.abs && fraction <= outliers.fraction
        });
    found
}

impl Comparison {
    /// Records two samples with different bits.
    fn add(&mut self, actual: Value, expected: Value, tolerance: &Tolerance, at: impl Fn() -> Vec<i64>) {
        let Some(difference) = Difference::between(actual, expected) else {
            self.identical &= actual.as_f64().is_nan();
            return;
        };
        self.identical = false;
        self.differing += 1;
        self.max_abs = self.max_abs.max(difference.abs);
        self.max_rel = self.max_rel.max(difference.rel);
        self.max_ulp = self.max_ulp.max(difference.ulp);
        if !difference.is_within(tolerance) {
            self.beyond += 1;
            self.first.get_or_insert_with(|| Mismatch { at: at(), actual, expected });
        }
    }
}

struct Difference {
    abs: f64,
    rel: f64,
    ulp: u32,
}

impl Difference {
    /// `None` for equal values.
    fn between(actual: Value, expected: Value) -> Option<Difference> {
        let (a, e) = (actual.as_f64(), expected.as_f64());
        let same_float = a == e && actual.ty().is_float();
        if same_float || actual == expected || (a.is_nan() && e.is_nan()) {
            return None;
        }
        if !a.is_finite() || !e.is_finite() {
            return Some(Difference { abs: f64::INFINITY, rel: f64::INFINITY, ulp: u32::MAX });
        }
        let abs = (a - e).abs();
        let ulp = rank(actual).abs_diff(rank(expected)).try_into().unwrap_or(u32::MAX);
        Some(Difference { abs, rel: abs / e.abs(), ulp })
    }

    fn is_within(&self, tolerance: &Tolerance) -> bool {
        self.abs.is_finite()
            && (self.abs <= tolerance.abs || self.rel <= tolerance.rel || self.ulp <= tolerance.ulp)
    }
}

/// The rank of a value among all values of its type. Both zeros have the same rank.
fn rank(value: Value) -> i128 {
    if !value.ty().is_float() {
        return value.as_int().map_or(value.bits().into(), i128::from);
    }
    let sign = 1_u64 << (8 * value.ty().bytes() - 1);
    let magnitude = i128::from(value.bits() & (sign - 1));
    if value.bits() & sign != 0 { -magnitude } else { magnitude }
}

/// The point with this linear index, first dimension fastest.
pub(crate) fn point(region: &Region, mut index: usize) -> Vec<i64> {
    let coordinate = |range: &Range| {
        let extent = range.extent as usize;
        let at = range.min + (index % extent) as i64;
        index /= extent;
        at
    };
    region.0.iter().map(coordinate).collect()
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { samples, differing, beyond, max_abs, max_rel, max_ulp, .. } = self;
        if *differing == 0 {
            return write!(f, "all {samples} samples are equal");
        }
        match (&self.first, self.passed) {
            (Some(first), false) => {
                write!(f, "{beyond} of {samples} samples are beyond the tolerance, {first}")?
            }
            (Some(first), true) => {
                write!(f, "all {samples} samples pass, {beyond} of them as outliers, {first}")?
            }
            (None, _) => {
                write!(f, "all {samples} samples are within the tolerance, {differing} of them differ")?
            }
        }
        write!(f, " (largest difference: {max_abs:.3e} absolute, {max_rel:.3e} relative, {max_ulp} ulp)")
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at: Vec<String> = self.at.iter().map(i64::to_string).collect();
        write!(f, "the first at ({}) with {} instead of {}", at.join(", "), self.actual, self.expected)
    }
}
