//! The interface between a strategy and the search space: the options of a state, their costs, the
//! states found so far, and the deadline.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ahash::RandomState;
use dashmap::DashMap;
use rayon::prelude::*;
use smallvec::smallvec;
use warploom_lang::FuncId;
use warploom_schedule::{NodeSet, Schedule};

use crate::evaluate::Evaluator;
use crate::every_size::spelled_out;
use crate::expand::{Decision, Expander, Sampling};
use crate::fixed::holds_several;
use crate::options::Options;
use crate::refine::{refined, steps};
use crate::state::{Child, EvaluatedKernel, Sketch, State};
use crate::statistics::{Event, Refusal, Statistics};
use crate::{Candidate, Outcome};

/// A search in progress, as a strategy sees it. [`explore`](crate::explore) creates one.
///
/// A strategy moves from state to state: by options, which an [`Expander`] lists for a [`Decision`]
/// and [`Search::steps`] for every kernel, or by [`Search::evaluate`], with schedules of its own.
/// All of these check kernels against the rules and the [`Limits`](crate::Limits), and evaluate
/// each kernel once. Every method may be called from any thread of the search; the results do not
/// depend on the number of threads.
pub struct Search<'a> {
    pub(crate) evaluator: Evaluator<'a>,
    observer: &'a (dyn Fn(Event) + Sync),
    found: Mutex<Found>,
    /// The refined version of each kernel that was refined.
    refined: DashMap<u128, Arc<EvaluatedKernel>, RandomState>,
    statistics: Mutex<Statistics>,
}

/// The number of best candidates that are also offered with [`blocks`](Evaluator::with_blocks) set to the predicted
/// occupancy.
const WITH_BLOCKS: usize = 16;

/// States by identity, so that each counts once.
pub(crate) type Found = BTreeMap<u128, Arc<State>>;

impl<'a> Search<'a> {
    pub(crate) fn new(evaluator: Evaluator<'a>, observer: &'a (dyn Fn(Event) + Sync)) -> Search<'a> {
        let (found, refined, statistics) = Default::default();
        Search { evaluator, observer, found, refined, statistics }
    }

    /// The options of the search. A strategy should use the seed. The search itself enforces the
    /// rest: limits, memo, threads and time.
    pub fn options(&self) -> &'a Options {
        self.evaluator.space.options
    }

    /// Whether the deadline has passed. From then on, options that are not memoised are refused as
    /// [`Refusal::OutOfTime`].
    pub fn is_over(&self) -> bool {
        self.evaluator.is_over()
    }

    /// Sends an event to the observer.
    pub fn say(&self, event: Event) {
        (self.observer)(event);
    }

    /// The statistics so far.
    pub fn statistics(&self) -> Statistics {
        lock(&self.statistics).clone()
    }

    /// Adds to the statistics. Options, evaluations and refinements are counted automatically.
    pub fn count(&self, more: &Statistics) {
        lock(&self.statistics).add(more);
    }

    pub(crate) fn counted<T>(&self, work: impl FnOnce(&mut Statistics) -> T) -> T {
        let mut own = Statistics::default();
        let result = work(&mut own);
        self.count(&own);
        result
    }

    /// The decisions on all Funcs except `frozen`, consumers first, and then on inputs. Decisions
    /// that [`Options::fixed`] makes are left out.
    pub fn decisions(&self, frozen: &BTreeSet<FuncId>) -> Vec<Decision> {
        let space = self.evaluator.space;
        let mut decisions = Vec::new();
        for func in space.funcs().filter(|func| !frozen.contains(func) && !space.is_decided(*func)) {
            if !space.is_output(func) {
                decisions.push(Decision::Place(func));
            }
            decisions.extend(space.stages_of(func).map(Decision::Tile));
        }
        decisions.push(Decision::Inputs);
        decisions
    }

    /// An expander that samples options in one way.
    pub fn expander(&self, sampling: Sampling) -> Expander<'_> {
        Expander::new(self, sampling)
    }

    /// The states that differ from `state` by one step of one kernel: one size, mapping, loop order
    /// or copy of an input.
    pub fn steps(&self, state: &Arc<State>) -> Vec<Child> {
        let step = |kernel| self.counted(|counts| steps(&self.evaluator, kernel, counts));
        let kernels: Vec<Vec<Arc<EvaluatedKernel>>> = state.kernels.par_iter().map(step).collect();
        kernels.into_iter().flatten().map(|kernel| Child::new(state, smallvec![kernel], None, None)).collect()
    }

    /// The states with each kernel improved by single steps until none helps, as far as time
    /// permits. Kernels that several states share are refined once.
    pub fn refined(&self, states: &[Arc<State>]) -> Vec<Arc<State>> {
        let kernels = states.iter().flat_map(|state| &state.kernels);
        let new: BTreeMap<u128, &Arc<EvaluatedKernel>> = kernels
            .map(|kernel| (kernel.totals.identity, kernel))
            .filter(|(identity, _)| !self.refined.contains_key(identity))
            .collect();
        new.into_par_iter().filter(|_| !self.is_over()).for_each(|(identity, kernel)| {
            let kernel = self.counted(|counts| refined(&self.evaluator, kernel, counts));
            self.refined.insert(identity, kernel);
        });
        let better = |kernel: &Arc<EvaluatedKernel>| match self.refined.get(&kernel.totals.identity) {
            Some(refined) => refined.clone(),
            None => kernel.clone(),
        };
        let state = |state: &Arc<State>| {
            Arc::new(State::new(state.kernels.iter().map(better).collect(), state.inlined.clone()))
        };
        states.iter().map(state).collect()
    }

    /// Evaluates a schedule of the strategy's own. Kernels that were evaluated before, in any
    /// schedule, are not evaluated again.
    ///
    /// # Errors
    /// Why it is refused: it is illegal, it has loops around several kernels, which no state has,
    /// or one of its kernels exceeds a limit.
    pub fn evaluate(&self, schedule: &Schedule) -> Result<Arc<State>, Refusal> {
        let space = self.evaluator.space;
        let evaluate = |counts: &mut Statistics| {
            if schedule.root.iter().any(holds_several) || !space.is_legal(schedule) {
                return Err(Refusal::Illegal);
            }
            let (sketches, inlined) = self.sketches(schedule).ok_or(Refusal::Illegal)?;
            let kernels = self.evaluator.judge(sketches, counts).into_iter().collect::<Result<_, _>>()?;
            Ok(Arc::new(State::new(kernels, inlined)))
        };
        self.counted(|counts| evaluate(counts).inspect_err(|reason| counts.refuse(*reason)))
    }

    /// Converts a state to a schedule.
    pub fn schedule(&self, state: &State) -> Schedule {
        state.schedule(self.evaluator.space)
    }

    /// Adds states to the results of the search.
    pub fn keep(&self, states: impl IntoIterator<Item = Arc<State>>) {
        lock(&self.found).extend(states.into_iter().map(|state| (state.identity(), state)));
    }

    /// The cheapest states found so far, including the start, at most `most`.
    pub fn cheapest(&self, most: usize) -> Vec<Arc<State>> {
        let mut states: Vec<Arc<State>> = lock(&self.found).values().cloned().collect();
        // The sort is stable.
        states.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
        states.truncate(most);
        states
    }

    /// Runs a strategy. The results always include the default schedule.
    pub(crate) fn outcome(&self, strategy: impl FnOnce(&Search<'_>, &Arc<State>)) -> Outcome {
        let space = self.evaluator.space;
        let default = match &space.options.fixed {
            Some(fixed) => fixed.baseline().clone(),
            None => space.problem.default_schedule(),
        };
        let candidates = match self.appraise(&default) {
            Some(start) => {
                self.keep([start.clone()]);
                strategy(self, &start);
                let found = std::mem::take(&mut *lock(&self.found));
                self.candidates(found, &[start.identity()])
            }
            None => Vec::new(),
        };
        let best = candidates.first().map(|best| best.schedule.clone());
        Outcome {
            fallback: best.is_none(),
            best: best.unwrap_or(default),
            candidates,
            statistics: self.statistics(),
            stop: self.evaluator.stop(),
        }
    }

    /// Evaluates a schedule without the limits of the search. `None` if the device cannot run it,
    /// or if the grace period after the deadline is over.
    pub(crate) fn appraise(&self, schedule: &Schedule) -> Option<Arc<State>> {
        let (sketches, inlined) = self.sketches(schedule)?;
        let appraise = |sketch| self.counted(|counts| self.evaluator.appraise(sketch, counts));
        let kernels: Option<Vec<Arc<EvaluatedKernel>>> = sketches.into_iter().map(appraise).collect();
        Some(Arc::new(State::new(kernels?, inlined)))
    }

    /// The kernels of a schedule, and the Funcs that it inlines.
    fn sketches(&self, schedule: &Schedule) -> Option<(Vec<Sketch>, NodeSet)> {
        let space = self.evaluator.space;
        let mut inlined = space.no_nodes();
        schedule.inlined.iter().for_each(|func| inlined.insert(space.dag.func_node(*func)));
        let sketches = schedule.root.iter().map(|item| Sketch::new(space, item.clone(), &inlined));
        Some((sketches.collect::<Option<_>>()?, inlined))
    }

    /// The results, cheapest first. Schedules that break a rule only as a whole are left out. After
    /// the deadline, all but the cheapest and those in `required` are left out.
    pub(crate) fn candidates(&self, found: Found, required: &[u128]) -> Vec<Candidate> {
        let space = self.evaluator.space;
        let mut states: Vec<(u128, Arc<State>)> = found.into_iter().collect();
        states.sort_by(|(a, x), (b, y)| x.cost().total_cmp(&y.cost()).then(a.cmp(b)));
        let cheapest = states.first().map(|(identity, _)| *identity);
        let looked_at =
            |identity: &u128| cheapest == Some(*identity) || required.contains(identity) || !self.is_over();
        let candidate = |state: &State| {
            let found = state.schedule(space);
            let choices = [spelled_out(&found, space.problem.regions()), found];
            let legal = choices.into_iter().find(|schedule| space.is_legal(schedule));
            legal.map(|schedule| Candidate { schedule, cost: state.cost() })
        };
        let checked: Vec<Option<Candidate>> = states
            .par_iter()
            .filter(|(identity, _)| looked_at(identity))
            .map(|(_, state)| candidate(state))
            .collect();
        let dropped = checked.iter().filter(|candidate| candidate.is_none()).count() as u64;
        self.count(&Statistics { dropped, ..Statistics::default() });
        let states = states.iter().map(|(_, state)| state).filter(|_| !self.is_over());
        let mut with_blocks = states.zip(&checked).take(WITH_BLOCKS).map(|(state, checked)| {
            checked.as_ref()?;
            candidate(&self.counted(|counts| self.evaluator.with_blocks(state, counts))?)
        });
        let both = checked.iter().flat_map(|candidate| [with_blocks.next().flatten(), candidate.clone()]);
        both.flatten().collect()
    }
}

/// Locks a mutex even if a thread panicked: the data is only ever added to, so it stays consistent.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
