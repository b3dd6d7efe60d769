//! Correctness checks of kernels at sizes small enough for the reference evaluator.

use warploom_codegen::build::build;
use warploom_codegen::ir::Program;
use warploom_codegen::printer::Build;
use warploom_fuzz::Case;
use warploom_interp::buffer::Buffer;
use warploom_interp::expected::{Closeness, Expected};
use warploom_lang::ir::FuncDecl;
use warploom_lang::{BoundsError, Pipeline, Range, Realisation, Region, infer};
use warploom_plan::Problem;
use warploom_randpipe::visited_points;
use warploom_runtime::Gpu;
use warploom_schedule::Schedule;
use warploom_target::Device;
use warploom_tune::measure::Check;
use warploom_tune::workload::{GpuError, Loaded, Workload};

use crate::app::{App, CHECK_POINTS, Settings};

/// The seed of all inputs generated for a check.
pub const SEED: u64 = 1;

/// The side lengths to try, in order. Some pipelines need the larger images; others do so much work that only the
/// smallest sides are fast enough. Sizes that cannot be halved down to a side become the side itself, which is odd.
const SIDES: [i64; 6] = [67, 131, 259, 517, 37, 19];

/// The most points that the reference evaluator may visit in one check.
const MAX_WORK: u64 = CHECK_POINTS;

/// The most times that `grown` enlarges an input.
const GROWTHS: usize = 64;

/// A realisation of the pipeline at a smaller size, with its expected outputs. `None` if no small
/// size works.
pub fn of_pipeline(pipeline: &Pipeline, request: &Realisation, device: &Device) -> Option<Check> {
    let small = SIDES.iter().find_map(|side| smaller(pipeline, request, *side))?;
    let problem = Problem::new(pipeline, &small, device).ok()?;
    let schedule = problem.default_schedule();
    let case = Case { pipeline: pipeline.clone(), request: small, schedule, seed: SEED };
    let inputs = case.inputs().ok()?;
    let workload = Workload::new(&case.pipeline, &case.request, inputs);
    is_defined(&workload, &problem, &case.schedule).then(|| Check::of_workload(workload, None))?
}

/// Whether every point that is requested or read is defined. A scan over an undefined initial value may not cover all
/// of a smaller output; uncovered points have no expected value.
fn is_defined(workload: &Workload, problem: &Problem, schedule: &Schedule) -> bool {
    let starts_undefined = |func: &FuncDecl| func.stages[0].values.is_empty();
    if !workload.pipeline.funcs().values().any(starts_undefined) {
        return true;
    }
    let built = build(problem, schedule);
    built.is_ok_and(|program| workload.simulate(&program, problem.device(), SEED).is_ok())
}

/// A check of an app at a smaller size. `None` if no small size works, or if the pipeline is not
/// the one that the app builds with its default structure parameters.
pub fn of_app(app: &App, pipeline: &Pipeline) -> Option<Check> {
    let workload = app.workload(&small_settings(app)?, SEED)?;
    let same = workload.pipeline.structural_hash() == pipeline.structural_hash();
    same.then(|| Check::of_workload(workload, app.tolerance))?
}

/// The app's default settings with its sizes scaled down until the reference evaluator is fast enough: only the large
/// sizes, unless that does not suffice. `None` if even the smallest is too slow.
pub fn small_settings(app: &App) -> Option<Settings> {
    // Sizes that cannot be as small as the app asks are as small as possible.
    [app.check_points, MAX_WORK].into_iter().find_map(|most| {
        scaled_down(app, &SIDES, 64.0, most).or_else(|| scaled_down(app, &[19, 11, 7], 8.0, most))
    })
}

/// As [`small_settings`]: sizes above `most` are scaled so that the largest becomes one of the sides, with at most
/// `points` points.
fn scaled_down(app: &App, sides: &[i64], most: f64, points: u64) -> Option<Settings> {
    let largest = app.sizes.iter().map(|size| size.default).fold(1.0, f64::max);
    sides.iter().find_map(|side| {
        let mut settings = Settings::defaults(app);
        let halvings = halvings(largest as i64, *side);
        for size in app.sizes.iter().filter(|size| size.default > most) {
            let scaled = || (size.default * *side as f64 / largest).ceil();
            let value = halved(size.default as i64, halvings).map_or_else(scaled, |value| value as f64);
            let value = value.max(8.0).min(size.default);
            let _ = settings.set(&size.name, value);
        }
        let workload = app.workload(&settings, SEED)?;
        let regions = infer(&workload.pipeline, &workload.realisation()).ok()?;
        (visited_points(&workload.pipeline, &regions) <= points).then_some(settings)
    })
}

/// How often an extent is halved until it is at most `side`.
fn halvings(extent: i64, side: i64) -> u32 {
    (0..).find(|times| extent >> times <= side).unwrap_or_default()
}

/// An extent halved `times` times, if it divides evenly. Tiles that divide the whole extent then divide this one too,
/// if they are not larger: kernels are checked with the same guards as at full size, and no others. Guards of large
/// unrolled tiles take the CUDA compiler ten times as long as the rest.
fn halved(extent: i64, times: u32) -> Option<i64> {
    (extent.trailing_zeros() >= times).then_some(extent >> times)
}

/// Cuts outputs and inputs to at most `side` points per dimension, then grows the inputs as needed.
fn smaller(pipeline: &Pipeline, request: &Realisation, side: i64) -> Option<Realisation> {
    let at_most = |extent: i64| halved(extent, halvings(extent, side)).unwrap_or(side);
    let cut = |region: &Region| {
        Region(region.0.iter().map(|range| Range::new(range.min, at_most(range.extent))).collect())
    };
    let mut small = request.clone();
    small.outputs = request.outputs.iter().map(|region| region.as_ref().map(cut)).collect();
    for id in pipeline.inputs().keys() {
        small.inputs[id] = request.inputs[id].as_ref().map(cut);
    }
    grown(pipeline, small)
}

/// Grows the inputs until they cover the reads of the outputs.
/// `None` if that fails, or if the reference evaluator would take too long.
pub fn grown(pipeline: &Pipeline, mut request: Realisation) -> Option<Realisation> {
    for _ in 0..GROWTHS {
        match infer(pipeline, &request) {
            Ok(regions) => {
                return (visited_points(pipeline, &regions) <= MAX_WORK).then_some(request);
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

/// Compiles one build of the kernels, runs it and returns the outputs.
///
/// # Errors
/// If the kernels cannot be compiled or run.
pub fn run_build(
    gpu: &Gpu,
    workload: &Workload,
    program: &Program,
    build: Build,
) -> Result<Vec<Buffer>, GpuError> {
    run(workload.load(gpu, program, build))
}

/// Runs loaded kernels and returns the outputs.
fn run(loaded: Result<Loaded, GpuError>) -> Result<Vec<Buffer>, GpuError> {
    loaded?.run()
}

/// The results of both builds of the kernels.
pub struct Builds {
    /// The outputs of the timing build, which is the one that users run.
    pub outputs: Vec<Buffer>,
    /// How close they are to the expected outputs.
    pub closeness: Vec<Closeness>,
    /// The first difference between the checking build, which must be exact, and the reference
    /// evaluator.
    pub inexact: Option<String>,
}

impl Builds {
    /// Loads the kernels in both builds, and runs them.
    ///
    /// # Errors
    /// If they cannot be compiled or run.
    pub fn run(
        expected: &Expected,
        load: impl Fn(Build) -> Result<Loaded, GpuError>,
    ) -> Result<Builds, GpuError> {
        let inexact = expected.difference(&run(load(Build::Checking))?);
        let outputs = run(load(Build::Timing))?;
        Ok(Builds { closeness: expected.closeness(&outputs), outputs, inexact })
    }

    /// What is wrong with either build, as a sentence.
    pub fn fault(&self) -> Option<String> {
        if let Some(difference) = &self.inexact {
            return Some(format!("the checking build differs from the reference evaluator: {difference}"));
        }
        let far = self.closeness.iter().find_map(Closeness::sentence)?;
        Some(format!("the timing build differs too much from the reference evaluator: {far}"))
    }
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
    fn tiles_that_divide_a_size_divide_the_smaller_one() {
        let (x, y) = vars!(x, y);
        let input = Input::f32("input", 2);
        let twice = func("twice", (x, y), input.at((x, y)) * 2.0);
        let pipeline = Pipeline::new("twice", [twice]).expect("it is right");
        let sizes = |extents: [i64; 2]| {
            let whole = Realisation::new(&pipeline)
                .input("input", Region::of_extents(&extents))
                .output("twice", Region::of_extents(&extents));
            let small = smaller(&pipeline, &whole, 67).expect("it is small");
            small.outputs.iter().flatten().next().expect("an output").extents()
        };
        assert_eq!(sizes([1024, 1536]), [64, 48]);
        assert_eq!(sizes([64, 14]), [64, 14]);
        assert_eq!(sizes([1000, 77]), [67, 67], "125 is odd");
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
        // At 67 points per side the scan covers 22 rows.
        assert!(of(100).is_none() && of(20).is_some());
    }
}
