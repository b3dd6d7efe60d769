//! Generates random pipelines that are worth measuring.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use warploom::lang::{Pipeline, Realisation};
use warploom::plan::Problem;
use warploom::randpipe::{self, RandomPipeline, Scale, random_pipeline};
use warploom::tune::measure::{Candidate, Subject};

use super::schedules::{Choice, Predictor};
use super::unit::{Recipe, Selection, candidates};
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

/// A random pipeline at its sizes.
pub struct Generated {
    /// Its seed.
    pub seed: u64,
    /// The pipeline.
    pub pipeline: Pipeline,
    /// Its sizes.
    pub request: Realisation,
}

impl Generated {
    /// The random pipeline of a seed.
    pub fn new(seed: u64) -> Generated {
        let RandomPipeline { pipeline, request, .. } = random_pipeline(seed, &shape(seed));
        Generated { seed, pipeline, request }
    }

    /// The pipeline with its data.
    pub fn subject(self) -> Subject {
        Subject::noise(self.pipeline, self.request, self.seed)
    }

    fn is_too_large(&self) -> bool {
        let bytes = self.pipeline.inputs().iter().map(|(id, decl)| {
            let points = self.request.inputs[id].as_ref().and_then(|region| region.points());
            points.unwrap_or(u64::MAX).saturating_mul(decl.ty.bytes() as u64)
        });
        bytes.fold(0, u64::saturating_add) > MAX_INPUT_BYTES
    }
}

impl Recipe<'_> {
    /// The seeds of a random pipeline, by its number: the first one worth measuring is measured.
    pub fn seeds(&self, number: u64) -> impl Iterator<Item = u64> + use<> {
        let seed = self.seed;
        (0..ATTEMPTS).map(move |attempt| mixed(&[seed, number, attempt]))
    }

    /// The schedules of a random pipeline; `None` if it is too fast, too slow or too large.
    pub fn of_random(&self, generated: &Generated, samples: usize) -> Option<Selection> {
        let Generated { seed, pipeline, request } = generated;
        if generated.is_too_large() {
            return None;
        }
        let problem = Problem::new(pipeline, request, self.device).ok()?;
        let predictor = Predictor::new(&problem, self.model);
        let default = predictor.predict(&problem.default_schedule()).microseconds;
        if !(FASTEST..HOPELESS).contains(&default) {
            return None;
        }
        let choice = Choice {
            seed: *seed,
            samples,
            with_default: true,
            search_seconds: SEARCH_SECONDS,
            max_nodes: MAX_NODES,
        };
        let chosen = predictor.choose(&choice);
        if !(FASTEST..SLOWEST).contains(&chosen.best) {
            return None;
        }
        Some(Selection { schedules: self.selected(pipeline, chosen.schedules), skipped: chosen.too_slow })
    }
}

impl Collector<'_> {
    /// The candidates of a random pipeline.
    pub(super) fn random_pipeline(&self, number: u64) -> VecDeque<Candidate> {
        let recipe = self.recipe();
        let found = recipe.seeds(number).find_map(|seed| {
            let generated = Generated::new(seed);
            let selection = recipe.of_random(&generated, self.options.per_pipeline);
            self.rejected.fetch_add(u64::from(selection.is_none()), Ordering::Relaxed);
            Some((generated, selection?))
        });
        let Some((generated, Selection { schedules, skipped })) = found else { return VecDeque::new() };
        self.skipped.fetch_add(skipped, Ordering::Relaxed);
        let subject = Arc::new(generated.subject());
        let small = || check::of_pipeline(subject.pipeline(), subject.request(), self.device);
        candidates(&subject, schedules, small)
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
