//! Checks of kernels at sizes at which the reference evaluator is quick.

use std::sync::Arc;

use warploom_codegen::build::build;
use warploom_fuzz::Case;
use warploom_lang::ir::FuncDecl;
use warploom_lang::{BoundsError, Pipeline, Range, Realisation, Region, Regions, infer};
use warploom_randpipe::visited_points;
use warploom_schedule::schedule::Schedule;
use warploom_target::Device;
use warploom_tune::measure::{Check, Subject};
use warploom_tune::workload::{PERTURBED_RUNS, Workload};

use crate::app::{App, Settings};

/// Seed of the inputs.
pub const SEED: u64 = 1;

/// Points a side that are tried in turn: odd, so that tiles do not fit. Some pipelines need larger images, and some
/// do so much that only the smallest are quick.
const SIDES: [i64; 6] = [67, 131, 259, 517, 37, 19];

/// Points that the reference evaluator may visit.
const MAX_WORK: u64 = 32_000_000;

/// How often an input is made larger because more of it is read.
const GROWTHS: usize = 64;

/// A smaller realisation of a pipeline, and what comes out of it. `None` if there is none.
pub fn of_pipeline(pipeline: &Pipeline, request: &Realisation, device: &Device) -> Option<Check> {
    let (small, regions) = SIDES.iter().find_map(|side| smaller(pipeline, request, *side))?;
    let schedule = Schedule::default_for(pipeline, &regions);
    let case = Case { pipeline: pipeline.clone(), request: small, schedule, seed: SEED };
    let inputs = case.inputs().ok()?;
    let params = case.request.params.values().flatten().copied().collect();
    let outputs = case.request.outputs.iter().flatten().cloned().collect();
    let Case { pipeline, schedule, .. } = case;
    let workload = Workload { pipeline, inputs, params, outputs };
    is_defined(&workload, &schedule, device).then(|| of_workload(&workload, None))?
}

/// Whether every point that is asked for or read is defined. A scan that starts undefined covers what it did at the full
/// size, and may not cover a smaller one; what is beyond has no right value.
fn is_defined(workload: &Workload, schedule: &Schedule, device: &Device) -> bool {
    let starts_undefined = |func: &FuncDecl| func.stages[0].values.is_empty();
    if !workload.pipeline.funcs().values().any(starts_undefined) {
        return true;
    }
    let built = build(&workload.pipeline, schedule, &workload.realisation(), device);
    built.is_ok_and(|program| workload.simulate(&program, device, SEED).is_ok())
}

/// The same for an app whose structure is the usual; `None` also if the pipeline has another.
pub fn of_app(app: &App, pipeline: &Pipeline) -> Option<Check> {
    let workload = app.workload(&small_settings(app)?, SEED)?;
    let same = workload.pipeline.structural_hash() == pipeline.structural_hash();
    same.then(|| of_workload(&workload, app.tolerance))?
}

/// The settings of an app with its sizes scaled down as far as the reference evaluator is quick.
pub fn small_settings(app: &App) -> Option<Settings> {
    let largest = app.sizes.iter().map(|size| size.default).fold(1.0, f64::max);
    SIDES.iter().find_map(|side| {
        let mut settings = Settings::defaults(app);
        for size in app.sizes.iter().filter(|size| size.default > 64.0) {
            let value = (size.default * *side as f64 / largest).ceil().max(8.0).min(size.default);
            let _ = settings.set(size.name, value);
        }
        let workload = app.workload(&settings, SEED)?;
        let regions = infer(&workload.pipeline, &workload.realisation()).ok()?;
        (visited_points(&workload.pipeline, &regions) <= MAX_WORK).then_some(settings)
    })
}

/// What has to come out of a workload. Kernels built for speed may be off by a tolerance that is stated, as a fraction of an
/// output's largest sample, or by one that follows from the pipeline.
pub fn of_workload(workload: &Workload, stated: Option<f64>) -> Option<Check> {
    let expected = workload.expected(stated, PERTURBED_RUNS).ok()?;
    let subject = Arc::new(Subject::of(workload).ok()?);
    Some(Check { subject, expected })
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
    grown(pipeline, small)
}

/// Inputs as large as the outputs need, and the boxes of everything then. `None` if there are none, or if the reference
/// evaluator would not be quick.
pub fn grown(pipeline: &Pipeline, mut request: Realisation) -> Option<(Realisation, Regions)> {
    for _ in 0..GROWTHS {
        match infer(pipeline, &request) {
            Ok(regions) => {
                return (visited_points(pipeline, &regions) <= MAX_WORK).then_some((request, regions));
            }
            Err(BoundsError::LeavesInput { input, dimension, needed, available, .. }) => {
                let region = request.inputs[pipeline.input_named(&input)?].as_mut()?;
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
    use warploom_randpipe::{self as randpipe, Scale, random_pipeline};

    use super::*;
    use crate::prelude::*;

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
    fn a_scan_that_does_not_cover_the_smaller_output_is_not_checked() {
        let (x, y) = vars!(x, y);
        let input = Input::f32("input", 2);
        let rows = rdom!(r: (1, input.extent(1) / 3 - 1));
        let scan = func("scan", (x, y), undef(Type::F32))
            .update(|f| f.set((x, 0), input.at((x, 0))))
            .over(&rows, |f| f.set((x, rows.x), f.at((x, rows.x - 1)) + input.at((x, rows.x))));
        let pipeline = Pipeline::new("scan", [scan]).expect("it is right");
        let of = |extent: i64| {
            let whole = Realisation::new(&pipeline)
                .input("input", Region::of_extents(&[300, 300]))
                .output("scan", Region::of_extents(&[300, extent]));
            of_pipeline(&pipeline, &whole, &Device::preset("h200").expect("it is known"))
        };
        // At 67 points a side it covers 22 rows.
        assert!(of(100).is_none() && of(20).is_some());
    }
}
