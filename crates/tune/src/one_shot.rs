//! The fastest tuning mode: searches for a schedule and builds the best one that can be built.
//! Needs no GPU.

use std::time::Instant;

use warploom_codegen::build::{BuildError, build_planned};
use warploom_codegen::ir::Program;
use warploom_codegen::lower::Options as Lowering;
use warploom_cost::{Basis, CostModel, Featurizer};
use warploom_plan::{Planned, Problem, RewrittenError};
use warploom_schedule::Schedule;
use warploom_search::{Candidate, Event, Options, Outcome, search};

/// The result of a search, with the kernels of the best schedule that can be built.
#[derive(Debug)]
pub struct OneShot {
    /// The outcome of the search; its candidates are ordered by predicted time.
    pub outcome: Outcome,
    /// The schedule that was built, with its plan.
    pub planned: Planned,
    /// Predicted time of its kernels, in microseconds.
    pub predicted_us: f64,
    /// The lowered kernels of the schedule.
    pub program: Program,
    /// Errors of the better-ranked schedules that could not be built.
    pub refused: Vec<BuildError>,
    /// Number of better-ranked schedules that were skipped because they spill registers; 0 if the
    /// chosen schedule spills too.
    pub spilling: usize,
}

/// Returns how many bytes of registers the kernels of a program spill, as reported by the kernel
/// compiler; `None` if the compiler is not available.
pub type Spills<'a> = &'a dyn Fn(&Program) -> Option<u64>;

/// Maximum number of schedules compiled to find one without spills. If all of them spill, the one
/// with the fewest spilled bytes is used.
const COMPILED: usize = 8;

/// Searches for a schedule and builds the one with the shortest predicted time that can be built.
/// `observer` receives the progress of the search.
///
/// # Errors
///
/// If no schedule can be built: the error of the best-ranked one.
pub fn one_shot(
    problem: &Problem,
    model: &dyn CostModel,
    options: &Options,
    observer: &(dyn Fn(Event) + Sync),
) -> Result<OneShot, BuildError> {
    one_shot_without_spills(problem, model, options, &|_| None, observer)
}

/// Like `one_shot`, but skips schedules whose kernels spill registers. Cost models only estimate
/// register pressure; the kernel compiler knows it exactly, and needs no GPU.
///
/// # Errors
///
/// As [`one_shot`].
pub fn one_shot_without_spills(
    problem: &Problem,
    model: &dyn CostModel,
    options: &Options,
    spills: Spills<'_>,
    observer: &(dyn Fn(Event) + Sync),
) -> Result<OneShot, BuildError> {
    let started = Instant::now();
    let is_over = || options.time_limit.is_some_and(|limit| started.elapsed() >= limit);
    let outcome = search(problem, model, options, observer);
    let mut refused = Vec::new();
    let mut least: Option<(u64, f64, Planned, Program)> = None;
    let mut spilling = 0;
    for candidate in &outcome.candidates {
        let (planned, program) = match built(problem, &candidate.schedule, Lowering::default()) {
            Ok(built) => built,
            Err(error) => {
                tracing::debug!(predicted_us = candidate.cost, %error, "skipped, cannot be built");
                refused.push(error);
                continue;
            }
        };
        // After the time limit, takes the first schedule that builds.
        let spilled = if is_over() { 0 } else { spills(&program).unwrap_or(0) };
        if least.as_ref().is_none_or(|(least, ..)| spilled < *least) {
            least = Some((spilled, candidate.cost, planned, program));
        }
        if spilled == 0 || spilling + 1 == COMPILED {
            break;
        }
        tracing::debug!(predicted_us = candidate.cost, spilled, "skipped, spills registers");
        spilling += 1;
    }
    if let Some((spilled, predicted_us, planned, program)) = least {
        let spilling = if spilled > 0 { 0 } else { spilling };
        return Ok(OneShot { outcome, planned, predicted_us, program, refused, spilling });
    }
    if let Some(error) = refused.into_iter().next() {
        return Err(error);
    }
    // The search found no legal schedule and returned its starting point.
    let (planned, program) = built(problem, &outcome.best, Lowering::default())?;
    let predicted_us = Featurizer::new(&planned.problem).cost_of(&planned.plan, model);
    Ok(OneShot { outcome, planned, predicted_us, program, refused: Vec::new(), spilling: 0 })
}

/// Plans a schedule and builds its kernels.
fn built(
    problem: &Problem,
    schedule: &Schedule,
    options: Lowering,
) -> Result<(Planned, Program), BuildError> {
    let planned = problem.planned(schedule.clone())?;
    let program = build_planned(&planned, options)?;
    Ok((planned, program))
}

/// Builds kernels for all sizes of a problem, under the best schedule of a search that is legal at all of them, or
/// under the default schedule if there is none. Inputs and outputs may have any strides.
///
/// # Errors
/// If the default schedule cannot be built either.
pub fn for_any_size(dynamic: &Problem, found: &Outcome) -> Result<(Planned, Program), BuildError> {
    let options = Lowering { pitched: true, ..Lowering::default() };
    for Candidate { schedule, .. } in &found.candidates {
        match built(dynamic, schedule, options) {
            Ok(built) => return Ok(built),
            Err(error) => tracing::debug!(%error, "skipped, cannot be built for all sizes"),
        }
    }
    built(dynamic, &dynamic.default_schedule(), options)
}

/// Predicted time of a schedule's kernels, in microseconds.
///
/// # Errors
/// If the problem cannot be rewritten as the schedule says.
pub fn predicted_us(
    problem: &Problem,
    schedule: &Schedule,
    model: &dyn CostModel,
) -> Result<f64, RewrittenError> {
    let problem = problem.rewritten(&schedule.rewrites)?;
    Ok(Featurizer::new(&problem).cost(schedule, model))
}

/// The basis of a schedule's predicted time.
///
/// # Errors
/// If the problem cannot be rewritten as the schedule says.
pub fn basis(problem: &Problem, schedule: &Schedule, model: &dyn CostModel) -> Result<Basis, RewrittenError> {
    let problem = problem.rewritten(&schedule.rewrites)?;
    Ok(Basis::of(model, &Featurizer::new(&problem).of_schedule(schedule)))
}

#[cfg(test)]
mod tests {
    use warploom_cost::Analytic;
    use warploom_lang::{Input, Pipeline, Realisation, Region, func, vars};
    use warploom_target::Device;

    use super::*;

    fn blur() -> Problem {
        let (x, y) = vars!(x, y);
        let input = Input::f32("input", 2).repeat_edge();
        let row = func("row", (x, y), input.at((x - 1, y)) + input.at((x, y)) + input.at((x + 1, y)));
        let blur = func("blur", (x, y), row.at((x, y - 1)) + row.at((x, y)) + row.at((x, y + 1)));
        let pipeline = Pipeline::new("blur", [blur]).expect("it is right");
        let image = Region::of_extents(&[640, 480]);
        let request = Realisation::new(&pipeline).input("input", image.clone()).output("blur", image);
        let device = Device::preset("h200").expect("it is known");
        Problem::new(&pipeline, &request, &device).expect("the sizes fit")
    }

    #[test]
    fn the_best_schedule_is_built() {
        let problem = blur();
        let model = Analytic::new(problem.device());
        let options = Options { samples: 2, beam: 4, passes: 2, ..Options::default() };
        let shot = one_shot(&problem, &model, &options, &|_| {}).expect("it is legal");
        assert!(shot.refused.is_empty() && !shot.program.kernels.is_empty());
        assert_eq!(shot.planned.schedule, shot.outcome.candidates[0].schedule);
        let predict =
            |schedule: &Schedule| predicted_us(&problem, schedule, &model).expect("it is not rewritten");
        let anew = predict(&shot.planned.schedule);
        assert!((anew - shot.predicted_us).abs() < 1e-9 * anew, "{anew} {}", shot.predicted_us);
        let default = problem.default_schedule();
        assert!(shot.predicted_us <= predict(&default));
    }

    #[test]
    fn what_spills_is_passed_over() {
        let problem = blur();
        let model = Analytic::new(problem.device());
        let options = Options { samples: 8, beam: 4, passes: 2, ..Options::default() };
        let shot = |spills: Spills<'_>| {
            one_shot_without_spills(&problem, &model, &options, spills, &|_| {}).expect("it is legal")
        };
        let count = std::cell::Cell::new(0);
        let third = shot(&|_| {
            count.set(count.get() + 1);
            Some(if count.get() < 3 { 8 } else { 0 })
        });
        assert_eq!(third.planned.schedule, third.outcome.candidates[2].schedule);
        assert_eq!((third.spilling, third.predicted_us), (2, third.outcome.candidates[2].cost));
        // If all spill, the schedule with the fewest spills is used.
        count.set(0);
        let least = shot(&|_| {
            count.set(count.get() + 1);
            Some(if count.get() == 2 { 4 } else { 8 })
        });
        assert!(count.get() <= COMPILED && least.spilling == 0);
        assert_eq!(least.planned.schedule, least.outcome.candidates[1].schedule);
    }
}
