//! Generates random pipelines that are worth measuring.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use warploom::randpipe::{self, RandomPipeline, Scale, random_pipeline};
use warploom::schedule::schedule::{Problem, Schedule};
use warploom::tune::measure::{Candidate, Subject};

use super::schedules::{Choice, Predictor};
use super::unit::Made;
use super::{Collector, check, mixed};

/// Bounds on the predicted time of the best schedule found, in microseconds.
const FASTEST: f64 = 8.0;
const SLOWEST: f64 = 50_000.0;

/// If the default schedule is predicted to take longer than this (microseconds), no search is made.
const HOPELESS: f64 = 1e6;

/// Number of attempts to generate a pipeline that is neither too slow nor too fast.
const ATTEMPTS: u64 = 20;

const SEARCH_SECONDS: u64 = 3;

/// Maximum number of nodes in a schedule's kernels.
const MAX_NODES: f64 = 1_200.0;

/// Maximum size of all inputs together, in bytes.
const MAX_INPUT_BYTES: u64 = 1 << 30;

impl Collector<'_> {
    /// The candidates of a random pipeline.
    pub(super) fn random_pipeline(&self, number: u64) -> VecDeque<Candidate> {
        let attempts = (0..ATTEMPTS).map(|attempt| mixed(&[self.options.seed, number, attempt]));
        let made = attempts.map(|seed| {
            let made = self.attempt(seed);
            self.rejected.fetch_add(u64::from(made.is_none()), Ordering::Relaxed);
            made
        });
        made.into_iter().flatten().next().unwrap_or_default()
    }

    fn attempt(&self, seed: u64) -> Option<VecDeque<Candidate>> {
        let RandomPipeline { pipeline, request, .. } = random_pipeline(seed, &shape(seed));
        let bytes = pipeline.inputs().iter().map(|(id, decl)| {
            let points = request.inputs[id].as_ref().and_then(|region| region.points());
            points.unwrap_or(u64::MAX).saturating_mul(decl.ty.bytes() as u64)
        });
        if bytes.fold(0, u64::saturating_add) > MAX_INPUT_BYTES {
            return None;
        }
        let problem = Problem::new(&pipeline, &request, self.device).ok()?;
        let predictor = Predictor::new(&problem, self.model);
        let default = predictor.predict(&Schedule::default_for(&problem)).microseconds;
        if !(FASTEST..HOPELESS).contains(&default) {
            return None;
        }
        let choice = Choice {
            seed,
            samples: self.options.per_pipeline,
            with_default: true,
            search_seconds: SEARCH_SECONDS,
            max_nodes: MAX_NODES,
        };
        let chosen = predictor.choose(&choice);
        if !(FASTEST..SLOWEST).contains(&chosen.best) {
            return None;
        }
        self.skipped.fetch_add(chosen.too_slow, Ordering::Relaxed);
        drop(predictor);
        let small = || check::of_pipeline(&pipeline, &request, self.device);
        let checked = self.checked(&pipeline, chosen.schedules, small);
        Some(
            Made { subject: Arc::new(Subject::noise(pipeline, request, seed)), schedules: checked }
                .candidates(),
        )
    }
}

/// Length and size of a pipeline. Most are short, because most properties of a stage can be learned
/// in short pipelines.
fn shape(seed: u64) -> randpipe::Options {
    let stages = match mixed(&[seed, 1]) % 20 {
        0..7 => 1..=2,
        7..15 => 2..=4,
        15..19 => 4..=6,
        _ => 6..=10,
    };
    let scale = if mixed(&[seed, 2]) % 10 < 3 { Scale::Medium } else { Scale::Benchmark };
    randpipe::Options { stages, scale }
}
