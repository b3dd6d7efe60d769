//! The expected outputs of kernels, and the tolerance per sample for kernels built for speed.
//!
//! Values that no rounding difference can reach ([`rounding`]) must be bit-identical. Every other
//! sample has a tolerance and a range. Both come from several runs of the pipeline that round
//! differently: the reference with perturbed rounding, or the builds of another schedule.
//!
//! - A sample passes if it is within its tolerance. The tolerance is either stated, as a fraction
//!   of the output's largest sample, or derived from the runs: [`WIDENED`] times the larger of the
//!   largest spread of the runs nearby and the spread that is usual for the output, plus [`ULPS`]
//!   units in the last place of the largest sample nearby. The tolerance of an integer is the
//!   spread nearby, and at least one step. The tolerance of a boolean is zero.
//! - Where a rounding difference flips a comparison or a cast, samples may be further off. At most
//!   a fraction [`OUTLIERS`] of all samples may be such outliers (a small output may always have
//!   one). Each must lie within the range of the runs nearby, widened by its tolerance. A single
//!   run cannot know the range of every sample. Without a stated tolerance, the range is then
//!   widened by at least [`WIDENED`] times the largest relative spread of the output.
//! - A sample must not be NaN or infinite where the reference is finite.
//!
//! Nearby means at most [`NEARBY`] samples away in every dimension.

mod judge;

use std::convert::Infallible;
use std::fmt;

use warploom_lang::rounding::{self, Rounding};
use warploom_lang::{Pipeline, Type, Value, bf16, dispatch, f16};

use crate::buffer::{Buffer, Element};
use crate::compare::{Mismatch, ShapeMismatch, Tolerance, compare, is_identical};

/// The factor between the spread of the runs and the tolerance derived from it.
pub const WIDENED: f64 = 4.0;

/// The error that is always allowed where rounding can reach, in units in the last place of the
/// largest sample nearby.
pub const ULPS: f64 = 4.0;

/// The maximum fraction of samples that may exceed their tolerance.
pub const OUTLIERS: f64 = 1e-3;

/// The radius of the neighbourhood of a sample, in samples per dimension.
pub const NEARBY: usize = 2;

/// A spread above this fraction of the largest sample nearby is not a rounding error: the
/// computation is ill-conditioned there.
pub const ILL_CONDITIONED: f64 = 1e-3;

/// The number of samples inspected to find the usual spread.
const USUAL: usize = 100_000;

/// The outputs of a pipeline, with the tolerances for kernels built for speed.
#[derive(Clone, Debug)]
pub struct Expected {
    outputs: Vec<Output>,
}

#[derive(Clone, Debug)]
struct Output {
    name: String,
    buffer: Buffer,
    /// `None` if no rounding difference can reach the output.
    envelope: Option<Envelope>,
}

/// The ranges and tolerances of one output's samples, first index fastest.
#[derive(Clone, Debug)]
struct Envelope {
    /// The range of the finite samples over the runs; empty (low is infinity, high is its negative)
    /// if there are none.
    low: Vec<f32>,
    high: Vec<f32>,
    tolerance: Vec<f32>,
    /// Whether a run is NaN or infinite where the reference is finite; the vector is empty if no
    /// run is.
    broken: Vec<bool>,
    /// The largest spread of a sample, relative to the largest sample nearby.
    spread: f64,
    /// How far outliers may be outside the range nearby, relative to the largest magnitude in that
    /// range. The tolerance applies if it is larger.
    outlying: f64,
    /// The number of samples with a spread above [`ILL_CONDITIONED`].
    wild: usize,
}

/// The distance of an output from the expected one.
#[derive(Clone, PartialEq, Debug)]
pub struct Closeness {
    /// The name of the output: `out`, or `out.1` for one of several values.
    pub output: String,
    /// Whether every bit must match.
    pub exact: bool,
    /// The number of samples.
    pub samples: usize,
    /// The number of samples that differ.
    pub differing: usize,
    /// The largest fraction of its tolerance that a passing sample uses.
    pub used: f64,
    /// The number of samples that exceed their tolerance.
    pub outliers: usize,
    /// The largest absolute difference.
    pub max_abs: f64,
    /// Whether samples differ by more than rounding errors explain, but not more than the runs do.
    pub ill_conditioned: bool,
    /// Why the output fails; `None` if it passes.
    pub fault: Option<Fault>,
}

/// Why an output fails.
#[derive(Clone, PartialEq, Debug)]
pub enum Fault {
    /// The output has the wrong box or type.
    Shape(ShapeMismatch),
    /// Samples differ that no rounding difference can reach.
    Inexact(Mismatch),
    /// Samples are NaN or infinite where the reference is finite.
    NotFinite {
        /// The first such sample.
        first: Mismatch,
        /// Whether the runs that round differently are also not finite at every such sample.
        by_nature: bool,
    },
    /// Samples exceed their tolerance and are outside the range nearby.
    OutOfRange {
        /// The first such sample.
        first: Mismatch,
        /// The tolerance of that sample.
        tolerance: f64,
    },
    /// Too many samples exceed their tolerance; holds the first one.
    Outliers(Mismatch),
}

/// The numerical conditioning of one output, known before anything is compared with it.
#[derive(Clone, PartialEq, Debug)]
pub struct Conditioning {
    /// The name of the output: `out`, or `out.1` for one of several values.
    pub output: String,
    /// The type of its samples.
    pub ty: Type,
    /// The number of samples.
    pub samples: usize,
    /// Whether a rounding difference can reach the output.
    pub rounded: bool,
    /// The largest spread of a sample over the runs.
    pub spread: f64,
    /// The largest spread relative to the largest sample nearby.
    pub local_spread: f64,
    /// The largest spread relative to the largest sample of the output.
    pub global_spread: f64,
    /// The number of samples with a spread too large for a rounding error.
    pub ill_conditioned: usize,
    /// The number of samples where a run is NaN or infinite and the reference is finite.
    pub broken: usize,
}

impl Expected {
    /// Builds the expectation from the reference's outputs and those of runs that round
    /// differently, for outputs that may do so too. `stated` is a tolerance as a fraction of an output's
    /// largest sample; `None` derives it from the runs.
    ///
    /// # Errors
    /// The first error of a run.
    ///
    /// # Panics
    /// If a run's outputs do not match the reference's in number of samples.
    pub fn new<E>(
        pipeline: &Pipeline,
        reference: Vec<Buffer>,
        runs: impl IntoIterator<Item = Result<Vec<Buffer>, E>>,
        stated: Option<f64>,
        rounding: Rounding,
    ) -> Result<Expected, E> {
        let reached = rounding::reached(pipeline, rounding);
        let rounded = pipeline.outputs().iter().flat_map(|id| reached[*id].clone());
        let mut ranges: Vec<Option<Ranges>> = reference
            .iter()
            .zip(rounded)
            .map(|(buffer, rounded)| rounded.then(|| Ranges::of(buffer)))
            .collect();
        if ranges.iter().any(Option::is_some) {
            for run in runs {
                for (ranges, buffer) in ranges.iter_mut().zip(&run?) {
                    if let Some(ranges) = ranges {
                        ranges.include(buffer);
                    }
                }
            }
        }
        let made =
            pipeline.output_names().into_iter().zip(reference).zip(ranges).map(|((name, buffer), ranges)| {
                let envelope = ranges.map(|ranges| ranges.envelope(&buffer, stated));
                Output { name, buffer, envelope }
            });
        Ok(Expected { outputs: made.collect() })
    }

    /// Builds the expectation from the two builds of one schedule: the checking build and the
    /// timing build.
    pub fn of_builds(
        pipeline: &Pipeline,
        checking: Vec<Buffer>,
        timing: Vec<Buffer>,
        stated: Option<f64>,
    ) -> Expected {
        let Ok(mut expected) =
            Expected::new(pipeline, checking, [Ok::<_, Infallible>(timing)], stated, Rounding::Timing);
        if stated.is_none() {
            for envelope in expected.outputs.iter_mut().filter_map(|output| output.envelope.as_mut()) {
                envelope.outlying = WIDENED * envelope.spread;
            }
        }
        expected
    }

    /// The outputs of the reference.
    pub fn buffers(&self) -> impl ExactSizeIterator<Item = &Buffer> {
        self.outputs.iter().map(|output| &output.buffer)
    }

    /// Describes how outputs differ from the reference's in any bit; `None` if they are identical.
    /// NaNs may differ in their bits.
    pub fn difference(&self, actual: &[Buffer]) -> Option<String> {
        if actual.len() != self.outputs.len() {
            return Some(format!("there are {} outputs instead of {}", actual.len(), self.outputs.len()));
        }
        self.outputs.iter().zip(actual).find_map(|(output, actual)| {
            if is_identical(actual, &output.buffer) {
                return None;
            }
            match compare(actual, &output.buffer, &Tolerance::default()) {
                Ok(found) if found.identical => None,
                Ok(found) => Some(format!("`{}`: {found}", output.name)),
                Err(mismatch) => Some(format!("`{}`: {mismatch}", output.name)),
            }
        })
    }

    /// The distance of the outputs of kernels built for speed from the expected ones, one entry per output.
    pub fn closeness(&self, actual: &[Buffer]) -> Vec<Closeness> {
        self.outputs.iter().zip(actual).map(|(output, actual)| output.closeness(actual)).collect()
    }

    /// The conditioning of each output, from the runs.
    pub fn conditioning(&self) -> Vec<Conditioning> {
        self.outputs.iter().map(Output::conditioning).collect()
    }
}

struct Ranges {
    low: Vec<f32>,
    high: Vec<f32>,
    broken: Vec<bool>,
}

/// Samples as floats in the order of the buffer's box, first index fastest.
fn floats(buffer: &Buffer) -> Vec<f32> {
    fn of<T: Element>(buffer: &Buffer) -> Vec<f32> {
        let samples = buffer.as_slice::<T>().unwrap_or_default();
        buffer.offsets().map(|offset| Value::from(samples[offset]).as_f64() as f32).collect()
    }
    dispatch!(buffer.ty(), T => of::<T>(buffer))
}

/// The distance from 1 to the next float. Runs are stored as `f32`, so `f64` is no finer.
fn epsilon(ty: Type) -> f64 {
    match ty {
        Type::F16 => f16::EPSILON.to_f64(),
        Type::BF16 => bf16::EPSILON.to_f64(),
        _ => f64::from(f32::EPSILON),
    }
}

impl Ranges {
    fn of(reference: &Buffer) -> Ranges {
        let values = floats(reference);
        let finite =
            |empty: f32| values.iter().map(move |value| if value.is_finite() { *value } else { empty });
        let (low, high) = (finite(f32::INFINITY).collect(), finite(f32::NEG_INFINITY).collect());
        Ranges { low, high, broken: Vec::new() }
    }

    fn include(&mut self, run: &Buffer) {
        let values = floats(run);
        assert_eq!(values.len(), self.low.len(), "every run has the same outputs");
        for (position, value) in values.into_iter().enumerate() {
            if value.is_finite() {
                self.low[position] = self.low[position].min(value);
                self.high[position] = self.high[position].max(value);
            } else if self.low[position].is_finite() {
                if self.broken.is_empty() {
                    self.broken = vec![false; self.low.len()];
                }
                self.broken[position] = true;
            }
        }
    }

    fn envelope(self, reference: &Buffer, stated: Option<f64>) -> Envelope {
        let Ranges { low, high, broken } = self;
        let extents: Vec<usize> = reference.region().0.iter().map(|range| range.extent as usize).collect();
        let per_sample = |of: fn(f32, f32) -> f32| {
            let finite = |(low, high): (&f32, &f32)| if low <= high { of(*low, *high) } else { 0.0 };
            low.iter().zip(&high).map(finite).collect::<Vec<f32>>()
        };
        let mut spread = per_sample(|low, high| high - low);
        let mut magnitude = per_sample(|low, high| low.abs().max(high.abs()));
        let largest = magnitude.iter().copied().fold(0.0, f32::max);
        most_nearby(&mut magnitude, &extents);
        let relative = |(spread, magnitude): (&f32, &f32)| match *magnitude {
            0.0 => 0.0,
            magnitude => f64::from(*spread) / f64::from(magnitude),
        };
        let each = || spread.iter().zip(&magnitude).map(relative);
        let step = if reference.ty().is_float() { 0.0 } else { 1.0 };
        let wild =
            each().zip(&spread).filter(|(relative, spread)| *relative > ILL_CONDITIONED && **spread > step);
        let (wild, most) = (wild.count(), each().fold(0.0, f64::max));
        most_nearby(&mut spread, &extents);
        let usual = usual(spread.iter().zip(&magnitude).map(relative));
        let tolerance = |(spread, magnitude): (f32, &f32)| {
            let (spread, magnitude) = (f64::from(spread), f64::from(*magnitude));
            let allowed = match (reference.ty(), stated) {
                (Type::Bool, _) => 0.0,
                (ty, Some(stated)) if ty.is_float() => stated * f64::from(largest),
                (ty, None) if ty.is_float() => {
                    WIDENED * spread.max(usual * magnitude) + ULPS * epsilon(ty) * magnitude
                }
                _ => spread.max(1.0),
            };
            allowed.min(f64::from(f32::MAX)) as f32
        };
        let tolerance = spread.into_iter().zip(&magnitude).map(tolerance).collect();
        Envelope { low, high, tolerance, broken, spread: most, outlying: 0.0, wild }
    }
}

/// The median of a subset of the numbers.
fn usual(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let step = numbers.len().div_ceil(USUAL).max(1);
    let mut some: Vec<f64> = numbers.step_by(step).collect();
    some.sort_by(f64::total_cmp);
    some.get(some.len() / 2).copied().unwrap_or(0.0)
}

/// Replaces every number of a box by the largest one nearby.
fn most_nearby(values: &mut [f32], extents: &[usize]) {
    let mut stride = 1;
    for &extent in extents {
        if extent > 1 {
            let before = values.to_vec();
            for (block, from) in values.chunks_mut(stride * extent).zip(before.chunks(stride * extent)) {
                for at in 0..extent {
                    let to = &mut block[at * stride..(at + 1) * stride];
                    for near in at.saturating_sub(NEARBY)..(at + NEARBY + 1).min(extent) {
                        let from = &from[near * stride..(near + 1) * stride];
                        to.iter_mut().zip(from).for_each(|(to, from)| *to = to.max(*from));
                    }
                }
            }
        }
        stride *= extent;
    }
}

impl Output {
    fn conditioning(&self) -> Conditioning {
        let mut known = Conditioning {
            output: self.name.clone(),
            ty: self.buffer.ty(),
            samples: self.buffer.len(),
            rounded: self.envelope.is_some(),
            spread: 0.0,
            local_spread: 0.0,
            global_spread: 0.0,
            ill_conditioned: 0,
            broken: 0,
        };
        if let Some(Envelope { low, high, broken, spread, wild, .. }) = &self.envelope {
            let ranges = || low.iter().zip(high).filter(|(low, high)| low <= high);
            let largest = ranges().fold(0.0, |most: f32, (low, high)| most.max(low.abs()).max(high.abs()));
            known.spread = f64::from(ranges().map(|(low, high)| high - low).fold(0.0, f32::max));
            known.local_spread = *spread;
            known.global_spread = if largest > 0.0 { known.spread / f64::from(largest) } else { 0.0 };
            known.ill_conditioned = *wild;
            known.broken = broken.iter().filter(|broken| **broken).count();
        }
        known
    }
}

impl Closeness {
    /// The reason for failing, as a sentence; `None` if the output passes.
    pub fn sentence(&self) -> Option<String> {
        self.fault.as_ref().map(|_| self.to_string())
    }
}

impl fmt::Display for Closeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Closeness { output, samples, differing, used, outliers, max_abs, .. } = self;
        write!(f, "`{output}`: ")?;
        match &self.fault {
            None if *differing == 0 => write!(f, "all {samples} samples are equal"),
            None => {
                let percent = 100.0 * used;
                write!(
                    f,
                    "{differing} of {samples} samples differ, by at most {max_abs:.3e} and {percent:.0} % of "
                )?;
                write!(f, "the tolerance, {outliers} of them as outliers")
            }
            Some(Fault::Shape(mismatch)) => mismatch.fmt(f),
            Some(Fault::Inexact(first)) => {
                write!(
                    f,
                    "{differing} of {samples} samples differ although rounding cannot affect them, {first}"
                )
            }
            Some(Fault::NotFinite { first, .. }) => {
                write!(f, "samples are NaN or infinite where the reference is not, {first}")
            }
            Some(Fault::OutOfRange { first, tolerance }) => {
                write!(
                    f,
                    "{outliers} of {samples} samples are beyond the tolerance, some outside the nearby range, "
                )?;
                write!(f, "{first}, where {tolerance:.3e} is allowed")
            }
            Some(Fault::Outliers(first)) => {
                write!(f, "{outliers} of {samples} samples are beyond the tolerance, {first}; ")?;
                write!(f, "at most {} % may be", 100.0 * OUTLIERS)
            }
        }
    }
}
