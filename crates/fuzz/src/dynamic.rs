//! Checks cases as kernels for any size: built once for ranges of sizes, run at several sizes and pitches.

use warploom_codegen::build::{BuildError, build_with};
use warploom_codegen::instance::Strides;
use warploom_codegen::ir::{Program, Role};
use warploom_codegen::lower;
use warploom_lang::dynamic::{DynamicRequest, SizeRange};
use warploom_lang::{Pipeline, Range, Realisation, Region, infer};
use warploom_plan::{PlanError, Problem};
use warploom_target::Device;

use crate::case::Case;
use crate::check::{Failure, Verdict};
use crate::data::mixed;
use crate::skip::{Reason, Skip};

/// The distance from the case's own size to the end of the range.
const ROOM: i64 = 11;

/// The points by which inputs grow for each point of the outputs, for pipelines that shrink their inputs.
const GROWTHS: [i64; 5] = [1, 2, 3, 4, 8];

/// Number of sizes at which the kernels run, the smallest and the largest among them.
const RUNS: u64 = 3;

impl Case {
    /// Like [`Case::check`], with kernels for a range of sizes and for any strides of inputs and outputs. The case is skipped
    /// if its schedule is not legal at all these sizes, or if there is nothing to check at any of the sizes that are tried.
    ///
    /// `also` sees the kernels before they run.
    ///
    /// # Errors
    /// The first failure found, or the one that `also` returns.
    pub fn check_dynamic(
        &self,
        device: &Device,
        also: &dyn Fn(&Program) -> Result<(), Failure>,
    ) -> Result<Verdict, Failure> {
        let request = match self.dynamic_request() {
            Ok(request) => request,
            Err(skip) => return Ok(Verdict::Skipped(skip)),
        };
        // A panic is a failure, as in the static check.
        self.check_with(|_| {
            let program = match self.dynamic_program(&request, device) {
                Ok(program) => program,
                Err(error) => return skipped_build(error).map(Verdict::Skipped),
            };
            also(&program)?;
            let mut skips = Vec::new();
            for number in 0..RUNS {
                skips.extend(self.check_at(&request, &program, number, device)?);
            }
            let all = skips.len() as u64 == RUNS;
            Ok(match skips.pop() {
                None => Verdict::Passed,
                Some(skip) if all => Verdict::Skipped(skip),
                Some(skip) => Verdict::PassedPartly([skips, vec![skip]].concat()),
            })
        })
    }

    fn dynamic_program(&self, request: &DynamicRequest, device: &Device) -> Result<Program, BuildError> {
        let device = if mixed(self.seed ^ 11).is_multiple_of(2) { device.clone() } else { crowded(device) };
        let problem = Problem::dynamic(&self.pipeline, request, &device)?;
        let pitched = mixed(self.seed ^ 7).is_multiple_of(2);
        build_with(&problem, &self.schedule, lower::Options { pitched, ..lower::Options::default() })
    }

    /// Runs the kernels at one choice of sizes and strides, or says why they cannot run there.
    fn check_at(
        &self,
        request: &DynamicRequest,
        program: &Program,
        number: u64,
        device: &Device,
    ) -> Result<Option<Skip>, Failure> {
        let sizes =
            request.formulas.sizes().iter().enumerate().map(|(i, SizeRange { min, max, .. })| match number {
                0 => *min,
                1 => *max,
                _ => min + (mixed(self.seed ^ (number << 8) ^ i as u64) % (max - min + 1) as u64) as i64,
            });
        let sizes: Vec<i64> = sizes.collect();
        let at = match request.at(&sizes) {
            Ok(at) => at,
            Err(error) => return Ok(Some(Reason::Unusable.because(error))),
        };
        let dense = match program.at(&sizes, &Strides::default()) {
            Ok(dense) => dense,
            Err(error) => return Ok(Some(Reason::Unusable.because(error))),
        };
        let strides = strides(program, &dense, self.seed ^ number);
        let program =
            program.at(&sizes, &strides).map_err(|error| Failure::Unlowered(Box::new(error.into())))?;
        let case = Case { request: at, ..self.clone() };
        // Some pipelines define their outputs only at their own size.
        if case.reads_undefined() && !self.reads_undefined() {
            let why = "the pipeline reads undefined values";
            return Ok(Some(Reason::Undefined.because(format!("{why} at {sizes:?}"))));
        }
        let case = match case.rewritten() {
            Ok(case) => case,
            Err(error) => return Ok(Some(Reason::Rewrites.because(error))),
        };
        match case.prepared()? {
            Ok(run) => run.simulate(&program, device).map(|()| None),
            Err(skip) => Ok(Some(skip)),
        }
    }

    /// A request around the sizes of this case, or why there is none.
    fn dynamic_request(&self) -> Result<DynamicRequest, Skip> {
        let mut last = String::new();
        for growth in GROWTHS {
            match self.grown(growth) {
                Ok(request) => return Ok(request),
                Err(why) => last = why,
            }
        }
        Err(Reason::Range.because(last))
    }

    fn grown(&self, growth: i64) -> Result<DynamicRequest, String> {
        let typical = [64, 64];
        let at = |sizes: &[i64]| grown(&self.pipeline, &self.request, growth, [sizes[0] - 64, sizes[1] - 64]);
        let least = |d: usize| {
            let shrunk = |by: i64| {
                let mut sizes = typical;
                sizes[d] -= by;
                fits(&self.pipeline, &at(&sizes))
            };
            (1..60).take_while(|by| shrunk(*by)).last().unwrap_or(0)
        };
        let room = if fits(&self.pipeline, &at(&[64 + ROOM, 64 + ROOM])) { ROOM } else { 0 };
        let size = |name: &str, d: usize| SizeRange { name: name.into(), min: 64 - least(d), max: 64 + room };
        DynamicRequest::fit(&self.pipeline, vec![size("n", 0), size("m", 1)], &typical, at)
            .map_err(|error| error.to_string())
    }
}

/// The reason to skip kernels for a range of sizes, if the error is not a failure.
fn skipped_build(error: BuildError) -> Result<Skip, Failure> {
    match error {
        BuildError::Bounds(error) => Ok(Reason::Range.because(error)),
        BuildError::Plan(PlanError::Rewritten(error)) => Ok(Reason::Rewrites.because(error)),
        BuildError::Plan(PlanError::Illegal(violations)) => {
            let rules = violations.first().map(|first| first.to_string());
            Ok(Reason::Illegal.because(rules.unwrap_or_default()))
        }
        error => Err(error.into()),
    }
}

/// A device whose SMs have so little shared memory that a few bytes decide how many blocks fit. Even small arrays then
/// have the length that a launch needs.
fn crowded(device: &Device) -> Device {
    let mut crowded = device.clone();
    (crowded.shared.per_sm, crowded.shared.reserved_per_block, crowded.shared.granularity) = (8192, 0, 16);
    (crowded.threads.blocks_per_sm, crowded.threads.warps_per_sm) = (1024, 1024);
    crowded.registers.per_sm = u32::MAX;
    crowded
}

/// A request whose boxes are larger along their first two dimensions: outputs by `by` points, inputs by `growth` times
/// as many.
fn grown(pipeline: &Pipeline, request: &Realisation, growth: i64, by: [i64; 2]) -> Realisation {
    let larger = |region: &Region, factor: i64| {
        let range = |(d, range): (usize, &Range)| Range {
            min: range.min,
            extent: range.extent + factor * by.get(d).unwrap_or(&0),
        };
        Region(region.0.iter().enumerate().map(range).collect())
    };
    let mut larger_request = request.clone();
    for id in pipeline.inputs().keys() {
        larger_request.inputs[id] = request.inputs[id].as_ref().map(|region| larger(region, growth));
    }
    for (to, from) in larger_request.outputs.iter_mut().zip(&request.outputs) {
        *to = from.as_ref().map(|region| larger(region, 1));
    }
    larger_request
}

fn fits(pipeline: &Pipeline, request: &Realisation) -> bool {
    let boxes = request.inputs.values().chain(&request.outputs).flatten();
    boxes.into_iter().all(|region| region.0.iter().all(|range| range.extent >= 1))
        && infer(pipeline, request).is_ok()
}

/// Random strides for inputs and outputs that need not be dense.
fn strides(program: &Program, dense: &Program, seed: u64) -> Strides {
    let Some(sizes) = &program.sizes else { return Strides::default() };
    let buffers = dense.buffers.iter().map(|(id, decl)| {
        let layout = &sizes.buffers[id];
        if !layout.pitched || decl.role == Role::Temporary {
            return None;
        }
        let (mut strides, mut least) = (vec![0; layout.order.len()], 1);
        for (position, &d) in layout.order.iter().enumerate() {
            let pad = mixed(seed ^ ((position as u64) << 32) ^ u64::from(decl.name.len() as u32)) % 5;
            strides[d] = least + if position == 0 { 0 } else { pad as i64 };
            least = strides[d] * decl.region[d].extent;
        }
        Some(strides)
    });
    buffers.collect()
}
