//! The quickest mode: search for a schedule and build the best that can be built. Needs no GPU.

use std::time::Instant;

use thiserror::Error;
use warploom_codegen::ir::Program;
use warploom_cost::{CostModel, Subject};
use warploom_lang::{BoundsError, Pipeline, Realisation, Regions, infer};
use warploom_schedule::schedule::Schedule;
use warploom_search::{Candidate, Event, Options, Outcome, search};
use warploom_target::Device;

use warploom_codegen::build::{BuildError, build};

/// What a search found, and the kernels of the best schedule that can be built.
#[derive(Debug)]
pub struct OneShot {
    /// All that the search found, the best first.
    pub outcome: Outcome,
    /// The schedule that was built.
    pub schedule: Schedule,
    /// How long its kernels take, as the model predicts, in microseconds.
    pub predicted_us: f64,
    /// Its kernels.
    pub program: Program,
    /// Why each schedule before it could not be built.
    pub refused: Vec<BuildError>,
    /// How many schedules before it were passed over because they spill registers.
    pub spilling: usize,
}

/// How many bytes of registers the kernels of a program spill to memory, as the kernel compiler says; `None` if it cannot be
/// asked.
pub type Spills<'a> = &'a dyn Fn(&Program) -> Option<u64>;

/// How many schedules are compiled in search of one that does not spill. If there is none among them, the one that spills
/// least is taken.
const COMPILED: usize = 8;

/// Why nothing was built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OneShotError {
    /// The sizes or parameters don't fit the pipeline.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// None of the schedules could be built; this is why the best could not.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Searches for a schedule and builds the cheapest that can be built. `observer` hears how the search goes.
///
/// # Errors
///
/// If the sizes don't fit the pipeline, or none of the schedules can be built.
pub fn one_shot(
    pipeline: &Pipeline,
    request: &Realisation,
    device: &Device,
    model: &dyn CostModel,
    options: &Options,
    observer: &(dyn Fn(Event) + Sync),
) -> Result<OneShot, OneShotError> {
    one_shot_without_spills(pipeline, request, device, model, options, &|_| None, observer)
}

/// The same, but schedules whose kernels spill registers are passed over. Models know registers only roughly; the kernel
/// compiler knows them, and needs no GPU for that.
///
/// # Errors
///
/// As [`one_shot`].
pub fn one_shot_without_spills(
    pipeline: &Pipeline,
    request: &Realisation,
    device: &Device,
    model: &dyn CostModel,
    options: &Options,
    spills: Spills<'_>,
    observer: &(dyn Fn(Event) + Sync),
) -> Result<OneShot, OneShotError> {
    let started = Instant::now();
    let is_over = || options.time_limit.is_some_and(|limit| started.elapsed() >= limit);
    let regions = infer(pipeline, request)?;
    let outcome = search(pipeline, &regions, device, model, options, observer);
    let mut refused = Vec::new();
    let mut least: Option<(u64, &Candidate, Program)> = None;
    let mut spilling = 0;
    for candidate in &outcome.candidates {
        let program = match build(pipeline, &candidate.schedule, request, device) {
            Ok(program) => program,
            Err(error) => {
                tracing::debug!(predicted_us = candidate.cost, %error, "passed over, cannot be built");
                refused.push(error);
                continue;
            }
        };
        // When the time is up, the first that can be built is as good as any.
        let spilled = if is_over() { 0 } else { spills(&program).unwrap_or(0) };
        if least.as_ref().is_none_or(|(least, ..)| spilled < *least) {
            least = Some((spilled, candidate, program));
        }
        if spilled == 0 || spilling + 1 == COMPILED {
            break;
        }
        tracing::debug!(predicted_us = candidate.cost, spilled, "passed over, spills registers");
        spilling += 1;
    }
    if let Some((spilled, Candidate { schedule, cost }, program)) = least {
        let (schedule, predicted_us) = (schedule.clone(), *cost);
        let spilling = if spilled > 0 { 0 } else { spilling };
        return Ok(OneShot { outcome, schedule, predicted_us, program, refused, spilling });
    }
    if let Some(error) = refused.into_iter().next() {
        return Err(error.into());
    }
    // The search found nothing that is legal, and gives what it began with.
    let schedule = outcome.best.clone();
    let program = build(pipeline, &schedule, request, device)?;
    let predicted_us = predicted_us(pipeline, &regions, device, &schedule, model);
    Ok(OneShot { outcome, schedule, predicted_us, program, refused: Vec::new(), spilling: 0 })
}

/// How long the kernels of a schedule take, as a model predicts, in microseconds.
fn predicted_us(
    pipeline: &Pipeline,
    regions: &Regions,
    device: &Device,
    schedule: &Schedule,
    model: &dyn CostModel,
) -> f64 {
    let subject = Subject::new(pipeline, regions, device);
    let features = subject.of_schedule(schedule);
    let mut costs = Vec::new();
    model.costs(subject.dag(), &features.iter().collect::<Vec<_>>(), &mut costs);
    costs.iter().sum()
}

#[cfg(test)]
mod tests {
    use warploom_cost::Analytic;
    use warploom_lang::{Input, Region, func, vars};

    use super::*;

    fn blur() -> (Pipeline, Realisation) {
        let (x, y) = vars!(x, y);
        let input = Input::f32("input", 2).repeat_edge();
        let row = func("row", (x, y), input.at((x - 1, y)) + input.at((x, y)) + input.at((x + 1, y)));
        let blur = func("blur", (x, y), row.at((x, y - 1)) + row.at((x, y)) + row.at((x, y + 1)));
        let pipeline = Pipeline::new("blur", [blur]).expect("it is right");
        let image = Region::of_extents(&[640, 480]);
        let request = Realisation::new(&pipeline).input("input", image.clone()).output("blur", image);
        (pipeline, request)
    }

    #[test]
    fn the_best_schedule_is_built() {
        let (pipeline, request) = blur();
        let device = Device::preset("h200").expect("it is known");
        let model = Analytic::new(&device);
        let options = Options { samples: 2, beam: 4, passes: 2, ..Options::default() };
        let shot = one_shot(&pipeline, &request, &device, &model, &options, &|_| {}).expect("it is legal");
        assert!(shot.refused.is_empty() && !shot.program.kernels.is_empty());
        assert_eq!(shot.schedule, shot.outcome.candidates[0].schedule);
        let regions = infer(&pipeline, &request).expect("the sizes fit");
        let anew = predicted_us(&pipeline, &regions, &device, &shot.schedule, &model);
        assert!((anew - shot.predicted_us).abs() < 1e-9 * anew, "{anew} {}", shot.predicted_us);
        let default = Schedule::default_for(&pipeline, &regions);
        assert!(shot.predicted_us <= predicted_us(&pipeline, &regions, &device, &default, &model));
    }

    #[test]
    fn what_spills_is_passed_over() {
        let (pipeline, request) = blur();
        let device = Device::preset("h200").expect("it is known");
        let model = Analytic::new(&device);
        let options = Options { samples: 8, beam: 4, passes: 2, ..Options::default() };
        let shot = |spills: Spills<'_>| {
            one_shot_without_spills(&pipeline, &request, &device, &model, &options, spills, &|_| {})
                .expect("it is legal")
        };
        let count = std::cell::Cell::new(0);
        let third = shot(&|_| {
            count.set(count.get() + 1);
            Some(if count.get() < 3 { 8 } else { 0 })
        });
        assert_eq!(third.schedule, third.outcome.candidates[2].schedule);
        assert_eq!((third.spilling, third.predicted_us), (2, third.outcome.candidates[2].cost));
        // If all spill, the least.
        count.set(0);
        let least = shot(&|_| {
            count.set(count.get() + 1);
            Some(if count.get() == 2 { 4 } else { 8 })
        });
        assert!(count.get() <= COMPILED && least.spilling == 0);
        assert_eq!(least.schedule, least.outcome.candidates[1].schedule);
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let (pipeline, _) = blur();
        let device = Device::preset("h200").expect("it is known");
        let request = Realisation::new(&pipeline).output("blur", Region::of_extents(&[640, 480]));
        let shot =
            one_shot(&pipeline, &request, &device, &Analytic::new(&device), &Options::default(), &|_| {});
        assert!(matches!(shot, Err(OneShotError::Bounds(BoundsError::Missing { .. }))));
    }
}
