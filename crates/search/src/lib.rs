//! The search for fast schedules.
//!
//! Every state of the search is a complete schedule, its kernels shared with the states it came from. The search starts
//! from the [default schedule](Schedule::default_for) and revises it Func by Func, consumers first: where a Func is
//! computed, then how its kernel is tiled; what is not decided yet stands where it was. So the cost of a state is the
//! predicted time of a schedule that could run, and there is an answer at any moment.
//!
//! | what | where |
//! | --- | --- |
//! | options of a decision | `places`, `kernels`, `reductions`, `shares`, `staging`, `tiles` |
//! | which of them are looked at | `expand`, `lift`, `menu` |
//! | what they are worth | `evaluate`, `memo` |
//! | which states go on | `beam`, `greedy`, `freeze`, `refine` |
//! | the whole | `run`, `neighbours` |
//!
//! The result depends on the pipeline, the sizes, the device, the model, the [`Options`] and their seed, and not on the
//! number of threads.

mod beam;
mod bits;
mod edit;
mod evaluate;
mod every_size;
mod expand;
mod fixed;
mod follow;
mod freeze;
mod greedy;
mod hash;
mod kernels;
mod lift;
mod memo;
mod menu;
mod neighbours;
mod options;
mod places;
mod reductions;
mod refine;
mod run;
mod shares;
mod space;
mod staging;
mod state;
mod statistics;
mod tiles;

use std::time::Instant;

use rayon::ThreadPoolBuilder;
use warploom_cost::{CostModel, Subject};
use warploom_lang::{Pipeline, Regions};
use warploom_schedule::schedule::Schedule;
use warploom_target::Device;

use crate::evaluate::Evaluator;
use crate::run::Run;
use crate::space::Space;

pub use fixed::{Fixed, FixedError};
pub use options::{Limits, Options};
pub use statistics::{Event, PassStatistics, Refusal, Statistics, StopReason};

/// A schedule that was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The schedule.
    pub schedule: Schedule,
    /// Its predicted time, microseconds.
    pub cost: f64,
}

/// The schedules near one.
#[derive(Clone, PartialEq, Debug)]
pub struct Neighbourhood {
    /// The predicted time of that one, microseconds.
    pub cost: f64,
    /// Those near it, the best first. Every one is legal.
    pub neighbours: Vec<Candidate>,
}

/// What a search found.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The schedule with the least predicted time.
    pub best: Schedule,
    /// All distinct schedules that were found, the best first. Every one is legal.
    pub candidates: Vec<Candidate>,
    /// What was done.
    pub statistics: Statistics,
    /// Why the search ended.
    pub stop: StopReason,
    /// Whether nothing was found but the default schedule, which may be more than the device can run.
    pub fallback: bool,
}

impl Outcome {
    /// The default schedule, for want of a better one.
    fn fallback(schedule: Schedule, statistics: Statistics) -> Outcome {
        let stop = StopReason::Finished;
        Outcome { best: schedule, candidates: Vec::new(), statistics, stop, fallback: true }
    }
}

/// Searches for a fast schedule of a pipeline at the sizes of a realisation on a device.
///
/// The observer hears of every step; it is called from several threads.
///
/// ```
/// use warploom_cost::Analytic;
/// use warploom_lang::*;
/// use warploom_schedule::schedule::check;
/// use warploom_search::{Options, search};
/// use warploom_target::Device;
/// let (x, y) = vars!(x, y);
/// let input = Input::f32("input", 2);
/// let row = func("row", (x, y), input.at((x, y)) + input.at((x + 1, y)));
/// let blur = func("blur", (x, y), row.at((x, y)) + row.at((x, y + 1)));
/// let pipeline = Pipeline::new("blur", [blur])?;
/// let request = Realisation::new(&pipeline)
///     .input("input", Region::of_extents(&[1001, 1001]))
///     .output("blur", Region::of_extents(&[1000, 1000]));
/// let regions = infer(&pipeline, &request)?;
/// let device = Device::preset("h200")?;
/// let options = Options { samples: 4, ..Options::default() };
/// let outcome = search(&pipeline, &regions, &device, &Analytic::new(&device), &options, &|_| {});
/// assert_eq!(check(&outcome.best, &pipeline, &regions, &device), Ok(()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If the regions are those of another pipeline.
pub fn search(
    pipeline: &Pipeline,
    regions: &Regions,
    device: &Device,
    model: &dyn CostModel,
    options: &Options,
    observer: &(dyn Fn(Event) + Sync),
) -> Outcome {
    let started = Instant::now();
    let mut outcome =
        with_run(pipeline, regions, device, model, options, observer, |run: &Run<'_>| run.search());
    outcome.statistics.elapsed = started.elapsed();
    tracing::debug!(
        pipeline = pipeline.name(),
        device = device.name,
        model = model.name(),
        best_us = outcome.candidates.first().map(|best| best.cost),
        candidates = outcome.candidates.len(),
        states = outcome.statistics.states,
        seconds = outcome.statistics.elapsed.as_secs_f64(),
        "searched"
    );
    outcome
}

/// What lies near some schedules: what one decision, or one step of one kernel, makes of each. There is nothing near a schedule
/// that no search would make.
///
/// # Panics
/// If the regions are those of another pipeline.
pub fn neighbourhoods(
    pipeline: &Pipeline,
    regions: &Regions,
    device: &Device,
    model: &dyn CostModel,
    options: &Options,
    schedules: &[Schedule],
) -> Vec<Option<Neighbourhood>> {
    let near = |run: &Run<'_>| schedules.iter().map(|schedule| run.neighbourhood(schedule)).collect();
    with_run(pipeline, regions, device, model, options, &|_| {}, near)
}

/// Searches on as many threads as the options say.
fn with_run<T: Send>(
    pipeline: &Pipeline,
    regions: &Regions,
    device: &Device,
    model: &dyn CostModel,
    options: &Options,
    observer: &(dyn Fn(Event) + Sync),
    search: impl FnOnce(&Run<'_>) -> T + Send,
) -> T {
    let started = Instant::now();
    let space = Space::new(pipeline, regions, device, options);
    let subject = Subject::new(pipeline, regions, device);
    let run = Run::new(Evaluator::new(&space, subject, model, started), observer);
    // Without threads of its own, the search runs on those that there are.
    match ThreadPoolBuilder::new().num_threads(options.threads).build() {
        Ok(pool) => pool.install(|| search(&run)),
        Err(_) => search(&run),
    }
}
