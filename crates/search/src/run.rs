//! A whole search: passes of the beam, samples, and what comes out of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use warploom_lang::FuncId;
use warploom_schedule::Node;
use warploom_schedule::schedule::Schedule;

use crate::beam::Pass;
use crate::evaluate::Evaluator;
use crate::every_size::spelled_out;
use crate::expand::Decision;
use crate::freeze::frozen;
use crate::greedy::Group;
use crate::hash::of_words;
use crate::refine::refined;
use crate::state::{Kern, Sketch, State};
use crate::statistics::{Event, PassStatistics, Statistics};
use crate::{Candidate, Outcome};

/// The last passes start from what the others found, so many of them.
const REVISING: usize = 2;

/// States from which they start.
const STARTS: usize = 8;

/// Groups of greedy samples that look at the same tiles.
const SAMPLE_GROUPS: usize = 8;

/// A search that runs.
pub(crate) struct Run<'a> {
    pub evaluator: Evaluator<'a>,
    pub observer: &'a (dyn Fn(Event) + Sync),
    /// What has become of kernels that were refined.
    refined: Mutex<BTreeMap<u128, Arc<Kern>>>,
}

/// Finished states by what they are, so that each counts once.
pub(crate) type Finished = BTreeMap<u128, Arc<State>>;

impl<'a> Run<'a> {
    pub fn new(evaluator: Evaluator<'a>, observer: &'a (dyn Fn(Event) + Sync)) -> Run<'a> {
        Run { evaluator, observer, refined: Mutex::default() }
    }

    /// Whether the time is up.
    pub fn is_over(&self) -> bool {
        self.evaluator.is_over()
    }

    /// Searches; the default schedule is always among what is found.
    pub fn search(&self) -> Outcome {
        let mut counts = Statistics::default();
        let space = self.evaluator.space;
        let default = match &space.options.fixed {
            Some(fixed) => fixed.baseline().clone(),
            None => Schedule::default_for(space.pipeline, space.regions),
        };
        let Some(baseline) = self.state(&default, &mut counts) else {
            return Outcome { stop: self.evaluator.stop(), ..Outcome::fallback(default, counts) };
        };
        let mut finished = Finished::new();
        finished.insert(baseline.totals.identity, baseline.clone());
        let (start, decisions) = self.beam(&baseline, &mut finished, &mut counts);
        self.greedy(&start, &decisions, &mut finished, &mut counts);
        let candidates = self.candidates(finished, &[baseline.totals.identity], &mut counts);
        let stop = self.evaluator.stop();
        match candidates.first() {
            None => Outcome { stop, ..Outcome::fallback(default, counts) },
            Some(best) => {
                Outcome { best: best.schedule.clone(), candidates, statistics: counts, stop, fallback: false }
            }
        }
    }

    /// A schedule as a state. `None` if the device cannot run it, or the time was up a while ago.
    pub fn state(&self, schedule: &Schedule, counts: &mut Statistics) -> Option<Arc<State>> {
        let space = self.evaluator.space;
        let mut inlined = space.no_nodes();
        for func in &schedule.inlined {
            inlined.insert(space.dag.func_node(*func));
        }
        let kernels = schedule.root.iter().map(|item| {
            let sketch = Sketch::new(space, item.clone(), &inlined)?;
            self.evaluator.appraise(sketch, counts)
        });
        Some(Arc::new(State::new(kernels.collect::<Option<_>>()?, inlined)))
    }

    /// The decisions on all Funcs but some, consumers first, and then on inputs.
    pub fn decisions(&self, kept: &BTreeSet<FuncId>) -> Vec<Decision> {
        let space = self.evaluator.space;
        let mut decisions = Vec::new();
        let fixed =
            |func: &FuncId| space.options.fixed.as_ref().is_some_and(|fixed| fixed.funcs().contains(func));
        for func in space.funcs().filter(|func| !kept.contains(func) && !fixed(func)) {
            if !space.is_output(func) {
                decisions.push(Decision::Place(func));
            }
            decisions.extend(space.stages_of(func).map(Decision::Tile));
        }
        decisions.push(Decision::Inputs);
        decisions
    }

    /// The passes of the beam search. Returns where samples start and what they decide.
    fn beam(
        &self,
        baseline: &Arc<State>,
        finished: &mut Finished,
        counts: &mut Statistics,
    ) -> (Arc<State>, Vec<Decision>) {
        let options = self.evaluator.space.options;
        let passes = options.passes.max(1);
        let mut blessed = BTreeSet::new();
        let all = self.decisions(&BTreeSet::new());
        let coarse = Pass { decisions: &all, number: None, seed: options.seed, revises: false };
        let found = self.pass(&coarse, 0, std::slice::from_ref(baseline), &mut blessed, counts);
        let start = found.first().filter(|best| best.cost() <= baseline.cost()).unwrap_or(baseline).clone();
        finished.extend(found.into_iter().map(|state| (state.totals.identity, state)));
        let kept = self.frozen(&start, counts);
        let decisions = self.decisions(&kept);
        for number in 0..passes - 1 {
            if self.is_over() {
                break;
            }
            let seed = of_words(&[options.seed, number as u64]);
            let revises = number > 0 && number + REVISING + 1 >= passes;
            let starts = if revises { cheapest(finished, STARTS) } else { vec![start.clone()] };
            let pass = Pass { decisions: &decisions, number: Some(number), seed, revises };
            let found = self.pass(&pass, number + 1, &starts, &mut blessed, counts);
            finished.extend(found.into_iter().map(|state| (state.totals.identity, state)));
        }
        let best = finished.values().map(|state| state.cost()).fold(f64::INFINITY, f64::min);
        (self.observer)(Event::SampleFinished { sample: 0, best });
        (start, decisions)
    }

    fn pass(
        &self,
        pass: &Pass<'_>,
        position: usize,
        starts: &[Arc<State>],
        blessed: &mut BTreeSet<u64>,
        counts: &mut Statistics,
    ) -> Vec<Arc<State>> {
        let of = self.evaluator.space.options.passes.max(1);
        (self.observer)(Event::PassStarted { pass: position, of });
        let mut own = Statistics::default();
        let found = pass.run(self, starts, blessed, &mut own);
        let best = found.first().map_or(f64::INFINITY, |state| state.cost());
        (self.observer)(Event::PassFinished { pass: position, best });
        tracing::debug!(pass = position + 1, of, best_us = best, states = own.states, "finished a pass");
        counts.add(&own);
        counts.passes.push(PassStatistics { best, decisions: own.decisions, states: own.states });
        found
    }

    /// States with each of their kernels refined. Kernels that they have in common are so once.
    pub fn refined(&self, states: &[Arc<State>], counts: &mut Statistics) -> Vec<Arc<State>> {
        let mut known = self.refined.lock().unwrap_or_else(PoisonError::into_inner);
        let kernels = states.iter().flat_map(|state| &state.kernels);
        let new: BTreeMap<u128, &Arc<Kern>> = kernels
            .map(|kern| (kern.totals.identity, kern))
            .filter(|(identity, _)| !known.contains_key(identity))
            .collect();
        let refined: Vec<(u128, Arc<Kern>, Statistics)> = new
            .into_par_iter()
            .filter(|_| !self.is_over())
            .map(|(identity, kern)| {
                let mut counts = Statistics::default();
                (identity, refined(&self.evaluator, kern, &mut counts), counts)
            })
            .collect();
        for (identity, kern, more) in refined {
            counts.add(&more);
            known.insert(identity, kern);
        }
        let state = |state: &Arc<State>| {
            let kernels = state.kernels.iter();
            let kernels = kernels.map(|kern| known.get(&kern.totals.identity).unwrap_or(kern).clone());
            Arc::new(State::new(kernels.collect(), state.inlined.clone()))
        };
        states.iter().map(state).collect()
    }

    /// The Funcs that keep the place they have in a state.
    fn frozen(&self, state: &State, counts: &mut Statistics) -> BTreeSet<FuncId> {
        let space = self.evaluator.space;
        if !space.options.freezing || self.is_over() {
            return BTreeSet::new();
        }
        let funcs: Vec<FuncId> = space.funcs().collect();
        let costs = self.evaluator.func_costs(state);
        let (readers, inner) = (|func| self.readers(state, func), |func| self.repeated_inside(state, func));
        let frozen = frozen(&funcs, &costs, space.options.limits.frozen_share, [&readers, &inner]);
        counts.frozen = frozen.len() as u64;
        frozen
    }

    /// The Funcs that read a Func, and whether they are inlined in a state.
    fn readers(&self, state: &State, func: FuncId) -> Vec<(FuncId, bool)> {
        let dag = &self.evaluator.space.dag;
        let readers = dag.nodes()[dag.func_node(func)].consumers.iter();
        let readers = readers.map(|edge| &dag.stages()[dag.edges()[*edge].consumer]);
        readers.map(|reader| (reader.func, state.inlined.contains(reader.node))).collect()
    }

    /// The Funcs that a state has inlined in a Func although they are more than a pointwise step; each has such ones inside.
    fn repeated_inside(&self, state: &State, func: FuncId) -> Vec<(FuncId, bool)> {
        let dag = &self.evaluator.space.dag;
        let stages = dag.nodes()[dag.func_node(func)].stages.iter();
        let read = stages.flat_map(|stage| &dag.stages()[*stage].producers);
        let read = read.map(|edge| dag.edges()[*edge].producer).filter(|read| state.inlined.contains(*read));
        let nodes = read.map(|read| &dag.nodes()[read]);
        let is_step = |node: &Node| node.is_wrapper || node.is_boundary_condition || node.is_pointwise;
        let stages = nodes.filter(|node| !is_step(node)).filter_map(|node| node.stages.first());
        stages.map(|stage| (dag.stages()[*stage].func, true)).collect()
    }

    /// The samples beside the beam search.
    fn greedy(
        &self,
        start: &Arc<State>,
        decisions: &[Decision],
        finished: &mut Finished,
        counts: &mut Statistics,
    ) {
        let options = self.evaluator.space.options;
        let seed = |word: u64, number: usize| of_words(&[options.seed, word, number as u64]);
        let samples: Vec<Vec<(Arc<State>, Statistics)>> = (0..SAMPLE_GROUPS)
            .into_par_iter()
            .map(|group| {
                let mut samples = Group::new(decisions, seed(u64::MAX - 1, group));
                let numbers = (1..options.samples.max(1)).filter(|number| number % SAMPLE_GROUPS == group);
                let numbers = numbers.take_while(|_| !self.is_over());
                let sample = |number| {
                    let mut counts = Statistics::default();
                    let state = samples.sample(self, start, seed(u64::MAX, number), &mut counts);
                    (self.observer)(Event::SampleFinished { sample: number, best: state.cost() });
                    (state, counts)
                };
                numbers.map(sample).collect()
            })
            .collect();
        let mut states = Vec::new();
        for (state, more) in samples.into_iter().flatten() {
            counts.add(&more);
            states.push(state);
        }
        let states = self.refined(&states, counts);
        finished.extend(states.into_iter().map(|state| (state.totals.identity, state)));
    }

    /// What was found, the cheapest first. What breaks a rule only as a whole is left out; and when the time is up,
    /// all but the cheapest and some that are `kept`.
    pub fn candidates(&self, finished: Finished, kept: &[u128], counts: &mut Statistics) -> Vec<Candidate> {
        let space = self.evaluator.space;
        let mut states: Vec<(u128, Arc<State>)> = finished.into_iter().collect();
        states.sort_by(|(a, x), (b, y)| x.cost().total_cmp(&y.cost()).then(a.cmp(b)));
        let cheapest = states.first().map(|(identity, _)| *identity);
        let looked_at =
            |identity: &u128| cheapest == Some(*identity) || kept.contains(identity) || !self.is_over();
        let checked: Vec<Option<Candidate>> = states
            .par_iter()
            .filter(|(identity, _)| looked_at(identity))
            .map(|(_, state)| {
                let found = state.schedule(space);
                let choices = [spelled_out(&found, space.regions), found];
                let is_legal = |schedule: &Schedule| space.geometry.check(schedule, space.device).is_ok();
                let legal = choices.into_iter().find(is_legal);
                legal.map(|schedule| Candidate { schedule, cost: state.cost() })
            })
            .collect();
        counts.dropped += checked.iter().filter(|candidate| candidate.is_none()).count() as u64;
        checked.into_iter().flatten().collect()
    }
}

/// The cheapest of some states.
fn cheapest(finished: &Finished, most: usize) -> Vec<Arc<State>> {
    let mut states: Vec<&Arc<State>> = finished.values().collect();
    // Equal ones stay in their order.
    states.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
    states.into_iter().take(most).cloned().collect()
}
