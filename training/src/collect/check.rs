//! Sizes at which the reference evaluator is quick.

use std::sync::Arc;

use warploom::app::{App, Settings};
use warploom::fuzz::Case;
use warploom::interp::compare::{Outliers, Tolerance};
use warploom::lang::{BoundsError, Pipeline, Range, Realisation, Region, Regions, infer};
use warploom::randpipe::visited_points;
use warploom::schedule::schedule::Schedule;
use warploom::tune::measure::{Check, Subject};
use warploom::tune::workload::Workload;

use super::app::workload;

/// Seed of the inputs of random pipelines.
pub(super) const SEED: u64 = 1;

/// Points a side that are tried in turn: odd, so that tiles do not fit. Some pipelines need larger images, and some
/// do so much that only the smallest are quick.
const SIDES: [i64; 6] = [67, 131, 259, 517, 37, 19];

/// Points that the reference evaluator may visit.
const MAX_WORK: u64 = 32_000_000;

/// How often an input is made larger because more of it is read.
const GROWTHS: usize = 64;

/// How far kernels built for speed may be off. Random pipelines amplify the smallest difference: a comparison
/// or a rounding goes the other way, so some samples may be anything.
const TOLERANCE: Tolerance = Tolerance {
    abs: 1e-3,
    rel: 1e-3,
    ulp: 4,
    outliers: Some(Outliers { abs: f64::INFINITY, fraction: 0.1 }),
};

/// A smaller realisation of a pipeline, and what comes out of it. `None` if there is none.
pub(super) fn of_pipeline(pipeline: &Pipeline, request: &Realisation) -> Option<Check> {
    let (small, regions) = SIDES.iter().find_map(|side| smaller(pipeline, request, *side))?;
    let schedule = Schedule::default_for(pipeline, &regions);
    let case = Case { pipeline: pipeline.clone(), request: small, schedule, seed: SEED };
    let inputs = case.inputs().ok()?;
    let params = case.request.params.values().flatten().copied().collect();
    let outputs = case.request.outputs.iter().flatten().cloned().collect();
    let Case { pipeline, .. } = case;
    of_workload(&Workload { pipeline, inputs, params, outputs })
}

/// The same for an app.
pub(super) fn of_app(app: &App, pipeline: &Pipeline) -> Option<Check> {
    let largest = app.sizes.iter().map(|size| size.default).fold(1.0, f64::max);
    SIDES.iter().find_map(|side| {
        let mut settings = Settings::defaults(app);
        for size in app.sizes.iter().filter(|size| size.default > 64.0) {
            let value = (size.default * *side as f64 / largest).ceil().max(8.0).min(size.default);
            let _ = settings.set(size.name, value);
        }
        let workload = workload(app, &settings)?;
        let regions = infer(&workload.pipeline, &workload.realisation()).ok()?;
        let same = workload.pipeline.structural_hash() == pipeline.structural_hash();
        (same && visited_points(pipeline, &regions) <= MAX_WORK).then(|| of_workload(&workload))?
    })
}

fn of_workload(workload: &Workload) -> Option<Check> {
    let expected = workload.reference().ok()?;
    let subject = Arc::new(Subject::of(workload).ok()?);
    Some(Check { subject, expected, tolerance: TOLERANCE })
}

/// Outputs cut to at most so many points a side, and inputs as large as that needs.
fn smaller(pipeline: &Pipeline, request: &Realisation, side: i64) -> Option<(Realisation, Regions)> {
    let cut = |region: &Region| {
        Region(region.0.iter().map(|range| Range::new(range.min, range.extent.min(side))).collect())
    };
    let mut small = request.clone();
    small.outputs = request.outputs.iter().map(|region| region.as_ref().map(cut)).collect();
    for id in pipeline.inputs().keys() {
        small.inputs[id] = request.inputs[id].as_ref().map(cut);
    }
    for _ in 0..GROWTHS {
        match infer(pipeline, &small) {
            Ok(regions) => {
                return (visited_points(pipeline, &regions) <= MAX_WORK).then_some((small, regions));
            }
            Err(BoundsError::LeavesInput { input, dimension, needed, available, .. }) => {
                let region = small.inputs[pipeline.input_named(&input)?].as_mut()?;
                let (min, end) = (needed.min.min(available.min), needed.end().max(available.end()));
                *region.0.get_mut(dimension)? = Range::new(min, end - min);
            }
            Err(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use warploom::randpipe::{self, Scale, random_pipeline};

    use super::*;

    #[test]
    fn most_random_pipelines_have_a_small_size() {
        let options = randpipe::Options { stages: 2..=8, scale: Scale::Benchmark };
        let found = (0..20).filter(|seed| {
            let random = random_pipeline(*seed, &options);
            SIDES.iter().any(|side| smaller(&random.pipeline, &random.request, *side).is_some())
        });
        let found = found.count();
        assert!(found >= 14, "{found} of 20");
    }

    #[test]
    fn apps_have_small_sizes() {
        let without = warploom_apps::APPS.iter().filter(|app| {
            let pipeline = (app.build)(&Settings::defaults(app)).expect("it is right");
            of_app(app, &pipeline).is_none()
        });
        let without: Vec<&str> = without.map(|app| app.name).collect();
        assert!(without.is_empty(), "{without:?}");
    }
}
