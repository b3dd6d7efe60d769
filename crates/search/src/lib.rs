//! The search for fast schedules.
//!
//! Every state of the search is a complete schedule that shares kernels with the states it came
//! from. The search starts from the [default schedule](Problem::default_schedule) and revises it Func
//! by Func, consumers first: it decides where a Func is computed, then how its kernel is tiled.
//! Funcs without a decision keep their previous place. So the cost of a state is always the
//! predicted time of a runnable schedule, and there is a result at any moment.
//!
//! | task | modules |
//! | --- | --- |
//! | list the options of a decision | `places`, `kernels`, `reductions`, `cooperative`, `propagate`, `staging`, `tiles`, `choices` |
//! | select the options to evaluate | `expand`, `sampling`, `unfuse` |
//! | evaluate options | `evaluate`, `memo`, `hash` |
//! | offer all of the above to a strategy | `search` ([`Search`]), `space`, `state`, `options`, `fixed`, `statistics` |
//! | select the states to continue with | `beam` and `greedy`, the strategy of [`search`](fn@search); `freeze`, `refine` |
//! | start from whole kernels that no single decision reaches | `contractions`, `rows` |
//! | share the registers of a whole kernel by lanes | `lanes` |
//! | list the neighbours of a schedule | `neighbours` |
//! | view schedules as points of a space, for strategies that know nothing of schedules | [`points`] |
//! | rewrite the pipeline | `rewrites` |
//! | make a schedule legal at all sizes | `every_size` |
//!
//! [`explore`] takes any other strategy.
//!
//! The result depends on the pipeline, the sizes, the device, the model, the [`Options`] and their
//! seed, but not on the number of threads.

mod beam;
mod choices;
mod contractions;
mod cooperative;
mod evaluate;
mod every_size;
mod expand;
mod fixed;
mod freeze;
mod greedy;
mod hash;
mod kernels;
mod lanes;
mod memo;
mod neighbours;
mod options;
mod places;
pub mod points;
mod propagate;
mod reductions;
mod refine;
mod rewrites;
mod rows;
mod sampling;
mod search;
mod space;
mod staging;
mod state;
mod statistics;
mod tiles;
mod unfuse;

use std::sync::Arc;
use std::time::Instant;

use rayon::ThreadPoolBuilder;
use warploom_cost::CostModel;
use warploom_plan::Problem;
use warploom_schedule::Schedule;

use crate::beam::beam;
use crate::contractions::with_contractions;
use crate::evaluate::Evaluator;
use crate::greedy::greedy;
use crate::neighbours::neighbourhood;
use crate::rewrites::promising;
use crate::rows::with_whole_rows;
use crate::space::SearchSpace;

pub use expand::{Decision, Expander, Sampling};
pub use fixed::{Fixed, FixedError};
pub use options::{Limits, Options};
pub use search::Search;
pub use state::{Child, State};
pub use statistics::{Event, PassStatistics, Refusal, Statistics, StopReason};

/// Rewritten pipelines get one of this many samples: they are larger, and start closer to the result.
const REWRITTEN: usize = 5;

/// A schedule that a search found, with its predicted time.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// A complete, legal schedule.
    pub schedule: Schedule,
    /// Its predicted time in microseconds.
    pub cost: f64,
}

/// A schedule's predicted time and its neighbours.
#[derive(Clone, PartialEq, Debug)]
pub struct Neighbourhood {
    /// The predicted time of the schedule itself, in microseconds.
    pub cost: f64,
    /// The neighbours, best first. All are legal.
    pub neighbours: Vec<Candidate>,
}

/// The result of a search.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The schedule with the lowest predicted time.
    pub best: Schedule,
    /// All distinct schedules that were found, best first. All are legal.
    pub candidates: Vec<Candidate>,
    /// Counters and timings of the search.
    pub statistics: Statistics,
    /// Why the search ended.
    pub stop: StopReason,
    /// Whether no legal schedule was found. `best` is then the default schedule, which may exceed
    /// what the device can run.
    pub fallback: bool,
}

/// Searches for a fast schedule of a problem.
///
/// The observer receives an event for every step. It is called from several threads.
///
/// ```
/// use warploom_cost::Analytic;
/// use warploom_lang::*;
/// use warploom_plan::Problem;
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
/// let device = Device::preset("h200")?;
/// let problem = Problem::new(&pipeline, &request, &device)?;
/// let options = Options { samples: 4, ..Options::default() };
/// let outcome = search(&problem, &Analytic::new(&device), &options, &|_| {});
/// assert!(problem.check(&outcome.best).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn search(
    problem: &Problem,
    model: &dyn CostModel,
    options: &Options,
    observer: &(dyn Fn(Event) + Sync),
) -> Outcome {
    let started = Instant::now();
    let within_time = |effort: &Options| {
        let left = options.time_limit.map(|limit| limit.saturating_sub(started.elapsed()));
        Options { time_limit: left, ..effort.clone() }
    };
    let one = |problem: &Problem, effort: &Options| {
        let options = within_time(effort);
        explore(problem, model, &options, observer, |search, start| {
            let (first, mut others) = started_from(search, start);
            if first.identity() != start.identity() {
                others.push(first.clone());
            }
            search.keep(search.refined(&others));
            // Refinement makes states alike, and the state with the best prediction may not be the fastest.
            search.keep(others);
            let (start, decisions) = beam(search, &first);
            greedy(search, &start, &decisions);
        })
    };
    let is_possible = |problem: &Problem| {
        options.any_size.as_ref().is_none_or(|any| any.rewritten(problem.pipeline().rewrites()).is_ok())
    };
    let start_cost = |problem: &Problem| {
        if !is_possible(problem) {
            return f64::INFINITY;
        }
        with_search(problem, model, &within_time(options), &|_| {}, |search| {
            let default = search.appraise(&problem.default_schedule());
            default.map_or(f64::INFINITY, |default| {
                let (first, others) = started_from(search, &default);
                others.iter().map(|other| other.cost()).fold(first.cost(), f64::min)
            })
        })
    };
    let most = if options.fixed.is_none() { options.rewrites } else { 0 };
    // The search of the original pipeline needs time too.
    let is_over = || options.time_limit.is_some_and(|limit| started.elapsed() >= limit / 2);
    let promising = promising(problem, most, start_cost, is_over);
    let few = Options { samples: options.samples.div_ceil(REWRITTEN), ..options.clone() };
    let first = match problem.pipeline().rewrites() {
        // Fallback in case none of the rewritten pipelines can be built.
        [] if promising.outdone => {
            Options { passes: options.passes.min(1), beam: 1, samples: 1, ..options.clone() }
        }
        [] => options.clone(),
        _ => few.clone(),
    };
    let (steps, more) = (steps(&first), steps(&few));
    let of = steps + more * promising.rewritten.len();
    observer(Event::SearchStarted { before: 0, steps, of });
    let mut outcome = one(problem, &first);
    for (number, rewritten) in promising.rewritten.into_iter().enumerate() {
        if outcome.stop == StopReason::TimeLimit {
            break;
        }
        observer(Event::SearchStarted { before: steps + more * number, steps: more, of });
        let before = outcome.best_cost();
        outcome.merge(one(&rewritten, &few));
        // The next one is less promising.
        if outcome.best_cost() >= before {
            break;
        }
    }
    if promising.cut_short {
        outcome.stop = StopReason::TimeLimit;
    }
    outcome
}

/// The steps of a search, as events count them.
fn steps(options: &Options) -> usize {
    options.beam * options.passes.max(1) + options.samples.max(1) - 1
}

/// The state from which the beam starts: the default schedule or, for a rewritten pipeline, one whose kernels own whole
/// rows. Also returns states with tiled contractions, from which its last passes may start.
fn started_from(search: &Search<'_>, default: &Arc<State>) -> (Arc<State>, Vec<Arc<State>>) {
    let tiled = with_contractions(search, default);
    match search.evaluator.space.problem.pipeline().rewrites().is_empty() {
        true => (default.clone(), tiled),
        false => (with_whole_rows(search, default), tiled),
    }
}

impl Outcome {
    fn best_cost(&self) -> f64 {
        self.candidates.first().map_or(f64::INFINITY, |best| best.cost)
    }

    /// Adds the results of the search of a rewritten pipeline.
    fn merge(&mut self, other: Outcome) {
        self.candidates.extend(other.candidates);
        self.candidates.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        self.statistics.add(&other.statistics);
        self.statistics.elapsed += other.statistics.elapsed;
        self.stop = other.stop;
        self.fallback &= other.fallback;
        if let Some(best) = self.candidates.first() {
            self.best = best.schedule.clone();
        }
    }
}

/// Searches with a custom strategy: a function that gets the search and the state of the default
/// schedule, and [keeps](Search::keep) the states that it finds. The observer, the options and the
/// result are as in [`search`](fn@search), whose beam search and greedy samples use the same interface.
///
/// The result does not depend on the number of threads if the states that the strategy keeps do not.
///
/// ```
/// use std::collections::BTreeSet;
/// use std::sync::Arc;
/// use warploom_cost::Analytic;
/// use warploom_lang::*;
/// use warploom_plan::Problem;
/// use warploom_search::{Sampling, Options, Search, State, explore};
/// use warploom_target::Device;
/// # let (x, y) = vars!(x, y);
/// # let input = Input::f32("input", 2);
/// # let row = func("row", (x, y), input.at((x, y)) + input.at((x + 1, y)));
/// # let blur = func("blur", (x, y), row.at((x, y)) + row.at((x, y + 1)));
/// # let pipeline = Pipeline::new("blur", [blur])?;
/// # let request = Realisation::new(&pipeline)
/// #     .input("input", Region::of_extents(&[1001, 1001]))
/// #     .output("blur", Region::of_extents(&[1000, 1000]));
/// /// A random walk: every decision takes any of its options.
/// fn walk(search: &Search<'_>, start: &Arc<State>) {
///     let mut random = search.options().seed;
///     let mut expander = search.expander(Sampling { seed: random, depth: 1, coarse: false });
///     let mut state = start.clone();
///     for decision in search.decisions(&BTreeSet::new()) {
///         if search.is_over() {
///             return;
///         }
///         let children = expander.expand(&state, decision);
///         random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
///         state = children[(random >> 32) as usize % children.len()].state();
///         search.keep([state.clone()]);
///     }
/// }
///
/// let device = Device::preset("h200")?;
/// let outcome = explore(
///     &Problem::new(&pipeline, &request, &device)?,
///     &Analytic::new(&device),
///     &Options { seed: 1, ..Options::default() },
///     &|_| {},
///     walk,
/// );
/// // The default schedule, and what the walk came by.
/// assert!(outcome.candidates.len() > 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn explore(
    problem: &Problem,
    model: &dyn CostModel,
    options: &Options,
    observer: &(dyn Fn(Event) + Sync),
    strategy: impl FnOnce(&Search<'_>, &Arc<State>) + Send,
) -> Outcome {
    let started = Instant::now();
    let mut outcome = with_search(problem, model, options, observer, |search| search.outcome(strategy));
    outcome.statistics.elapsed = started.elapsed();
    tracing::debug!(
        pipeline = problem.pipeline().name(),
        device = problem.device().name,
        model = model.name(),
        best_us = outcome.candidates.first().map(|best| best.cost),
        candidates = outcome.candidates.len(),
        states = outcome.statistics.states,
        seconds = outcome.statistics.elapsed.as_secs_f64(),
        "searched"
    );
    outcome
}

/// The neighbours of some schedules: the results of changing one decision, or one property of one
/// kernel. A schedule that no search could make has no neighbours.
pub fn neighbourhoods(
    problem: &Problem,
    model: &dyn CostModel,
    options: &Options,
    schedules: &[Schedule],
) -> Vec<Option<Neighbourhood>> {
    with_search(problem, model, options, &|_| {}, |search| {
        schedules.iter().map(|schedule| neighbourhood(search, schedule)).collect()
    })
}

/// Runs a search on as many threads as the options say.
fn with_search<T: Send>(
    problem: &Problem,
    model: &dyn CostModel,
    options: &Options,
    observer: &(dyn Fn(Event) + Sync),
    work: impl FnOnce(&Search<'_>) -> T + Send,
) -> T {
    let started = Instant::now();
    let space = SearchSpace::new(problem, options);
    let search = Search::new(Evaluator::new(&space, model, started), observer);
    // If no thread pool can be made, the search runs on the existing threads.
    match ThreadPoolBuilder::new().num_threads(options.threads).build() {
        Ok(pool) => pool.install(|| work(&search)),
        Err(_) => work(&search),
    }
}
