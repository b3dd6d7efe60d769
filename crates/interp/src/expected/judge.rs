//! Compares an output with the reference, sample by sample.

use rayon::prelude::*;
use warploom_lang::{Value, dispatch};

use super::{Closeness, Envelope, Fault, ILL_CONDITIONED, NEARBY, OUTLIERS, Output};
use crate::buffer::{Buffer, Element};
use crate::compare::{Mismatch, PART, check_shapes, point};

/// A sample that differs from the reference's.
#[derive(Clone, Copy)]
struct Pair {
    index: usize,
    actual: Value,
    expected: Value,
}

/// The tally of some samples.
#[derive(Default)]
struct Tally {
    differing: usize,
    used: f64,
    max_abs: f64,
    ill_conditioned: bool,
    inexact: Option<Pair>,
    not_finite: Option<Pair>,
    /// Whether all samples that are not finite are so in some run too.
    by_nature: bool,
    out_of_range: Option<Pair>,
    first_outlier: Option<Pair>,
    outliers: usize,
}

impl Tally {
    /// The tally of these samples and of those that follow them.
    fn followed_by(self, next: Tally) -> Tally {
        let by_nature = |of: &Tally| of.by_nature || of.not_finite.is_none();
        Tally {
            differing: self.differing + next.differing,
            used: self.used.max(next.used),
            max_abs: self.max_abs.max(next.max_abs),
            ill_conditioned: self.ill_conditioned || next.ill_conditioned,
            by_nature: by_nature(&self) && by_nature(&next),
            inexact: self.inexact.or(next.inexact),
            not_finite: self.not_finite.or(next.not_finite),
            out_of_range: self.out_of_range.or(next.out_of_range),
            first_outlier: self.first_outlier.or(next.first_outlier),
            outliers: self.outliers + next.outliers,
        }
    }
}

impl Output {
    pub(super) fn closeness(&self, actual: &Buffer) -> Closeness {
        let mut found = Closeness {
            output: self.name.clone(),
            exact: self.envelope.is_none(),
            samples: self.buffer.len(),
            differing: 0,
            used: 0.0,
            outliers: 0,
            max_abs: 0.0,
            ill_conditioned: false,
            fault: None,
        };
        match check_shapes(actual, &self.buffer) {
            Err(mismatch) => found.fault = Some(Fault::Shape(mismatch)),
            Ok(()) => {
                let tally = dispatch!(actual.ty(), T => self.tally::<T>(actual));
                found.differing = tally.differing;
                found.used = tally.used;
                found.outliers = tally.outliers;
                found.max_abs = tally.max_abs;
                found.ill_conditioned = tally.ill_conditioned;
                found.fault = self.fault(&tally);
            }
        }
        found
    }

    /// Compares in parts, on all cores. The result does not depend on the number of cores.
    fn tally<T: Element>(&self, actual: &Buffer) -> Tally {
        let starts: Vec<usize> = (0..self.buffer.len()).step_by(PART).collect();
        let parts: Vec<Tally> =
            starts.into_par_iter().map(|start| self.tally_part::<T>(actual, start)).collect();
        parts.into_iter().reduce(Tally::followed_by).unwrap_or_default()
    }

    fn tally_part<T: Element>(&self, actual: &Buffer, start: usize) -> Tally {
        let actuals = actual.as_slice::<T>().unwrap_or_default();
        let wanted = self.buffer.as_slice::<T>().unwrap_or_default();
        let offsets = actual.offsets_from(start).zip(self.buffer.offsets_from(start)).take(PART);
        let mut tally = Tally::default();
        for (index, (from, to)) in (start..).zip(offsets) {
            let (sample, wanted) = (actuals[from], wanted[to]);
            if sample.to_bits() != wanted.to_bits() {
                let pair = Pair { index, actual: Value::from(sample), expected: Value::from(wanted) };
                self.judge(&pair, &mut tally);
            }
        }
        tally
    }

    fn fault(&self, tally: &Tally) -> Option<Fault> {
        let at = |pair: Pair| Mismatch {
            at: point(self.buffer.region(), pair.index),
            actual: pair.actual,
            expected: pair.expected,
        };
        let tolerance = |pair: &Pair| {
            self.envelope.as_ref().map_or(0.0, |envelope| f64::from(envelope.tolerance[pair.index]))
        };
        let too_many = tally.outliers > ((OUTLIERS * self.buffer.len() as f64) as usize).max(1);
        match *tally {
            Tally { inexact: Some(first), .. } => Some(Fault::Inexact(at(first))),
            Tally { not_finite: Some(first), by_nature, .. } => {
                Some(Fault::NotFinite { first: at(first), by_nature })
            }
            Tally { out_of_range: Some(first), .. } => {
                Some(Fault::OutOfRange { tolerance: tolerance(&first), first: at(first) })
            }
            Tally { first_outlier: Some(first), .. } if too_many => Some(Fault::Outliers(at(first))),
            _ => None,
        }
    }

    /// Checks a sample whose bits differ from the reference's.
    fn judge(&self, pair: &Pair, tally: &mut Tally) {
        let (actual, expected) = (pair.actual.as_f64(), pair.expected.as_f64());
        if actual.is_nan() && expected.is_nan() {
            return;
        }
        tally.differing += 1;
        let Some(envelope) = &self.envelope else {
            tally.inexact.get_or_insert(*pair);
            return;
        };
        if !actual.is_finite() && !expected.is_finite() {
            return;
        }
        if !actual.is_finite() {
            tally.by_nature = envelope.broken.get(pair.index).copied().unwrap_or(false)
                && (tally.by_nature || tally.not_finite.is_none());
            tally.not_finite.get_or_insert(*pair);
            return;
        }
        let tolerance = f64::from(envelope.tolerance[pair.index]);
        let difference = (actual - expected).abs();
        if expected.is_finite() {
            tally.max_abs = tally.max_abs.max(difference);
            // Zeros of either sign are equal.
            if difference <= tolerance {
                tally.used = tally.used.max(if difference > 0.0 { difference / tolerance } else { 0.0 });
                tally.ill_conditioned |= self.is_wild(pair, difference);
                return;
            }
        }
        let (low, high) = envelope.range_nearby(pair.index, &self.buffer);
        let beyond = tolerance.max(envelope.outlying * low.abs().max(high.abs()));
        if !(low - beyond..=high + beyond).contains(&actual) {
            tally.out_of_range.get_or_insert(*pair);
        }
        // If the reference is not finite, the sample does not count as an outlier.
        if expected.is_finite() {
            tally.outliers += 1;
            tally.first_outlier.get_or_insert(*pair);
        }
        tally.ill_conditioned |= !expected.is_finite() || self.is_wild(pair, difference);
    }

    fn is_wild(&self, pair: &Pair, difference: f64) -> bool {
        let step = if self.buffer.ty().is_float() { 0.0 } else { 1.0 };
        let scale = pair.actual.as_f64().abs().max(pair.expected.as_f64().abs());
        difference > step && difference > ILL_CONDITIONED * scale
    }
}

impl Envelope {
    /// The range of the runs over the samples nearby.
    fn range_nearby(&self, index: usize, buffer: &Buffer) -> (f64, f64) {
        let mut near = vec![0];
        let (mut stride, mut rest) = (1, index);
        for range in &buffer.region().0 {
            let extent = range.extent as usize;
            let at = rest % extent;
            rest /= extent;
            let along = at.saturating_sub(NEARBY)..(at + NEARBY + 1).min(extent);
            near = near.iter().flat_map(|base| along.clone().map(move |at| base + at * stride)).collect();
            stride *= extent;
        }
        let low = near.iter().map(|place| self.low[*place]).fold(f32::INFINITY, f32::min);
        let high = near.iter().map(|place| self.high[*place]).fold(f32::NEG_INFINITY, f32::max);
        (f64::from(low), f64::from(high))
    }
}
