//! A whole search: passes of the beam, samples, and what comes out of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rayon::prelude::*;
use warploom_lang::FuncId;
use warploom_schedule::schedule::{Schedule, check};

use crate::beam::Pass;
use crate::evaluate::Evaluator;
use crate::expand::Decision;
use crate::freeze::frozen;
use crate::greedy::sample;
use crate::hash::{Hashes, of_words};
use crate::state::{Sketch, State};
use crate::statistics::{Event, PassStatistics, Statistics, StopReason};
use crate::{Candidate, Outcome};

/// A search that runs.
pub(crate) struct Run<'a> {
    pub evaluator: Evaluator<'a>,
    pub observer: &'a (dyn Fn(Event) + Sync),
    deadline: Option<Instant>,
    cut_short: AtomicBool,
}

/// Finished states by what they are, so that each counts once.
type Finished = BTreeMap<u128, State>;

impl<'a> Run<'a> {
    pub fn new(evaluator: Evaluator<'a>, observer: &'a (dyn Fn(Event) + Sync), started: Instant) -> Run<'a> {
        let deadline = evaluator.space.options.time_limit.map(|limit| started + limit);
        Run { evaluator, observer, deadline, cut_short: AtomicBool::new(false) }
    }

    /// Whether the time is up.
    pub fn is_over(&self) -> bool {
        let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if over {
            self.cut_short.store(true, Ordering::Relaxed);
        }
        over
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
            return Outcome::fallback(default, counts);
        };
        let mut finished = Finished::new();
        finished.insert(baseline.identity(), baseline.clone());
        let (start, decisions) = self.beam(&baseline, &mut finished, &mut counts);
        self.greedy(&start, &decisions, &mut finished, &mut counts);
        let candidates = self.candidates(finished, &mut counts);
        let stop = match self.cut_short.load(Ordering::Relaxed) {
            true => StopReason::TimeLimit,
            false => StopReason::Finished,
        };
        match candidates.first() {
            None => Outcome { stop, ..Outcome::fallback(default, counts) },
            Some(best) => {
                Outcome { best: best.schedule.clone(), candidates, statistics: counts, stop, fallback: false }
            }
        }
    }

    /// A schedule as a state. `None` if the device cannot run it.
    fn state(&self, schedule: &Schedule, counts: &mut Statistics) -> Option<State> {
        let space = self.evaluator.space;
        let mut inlined = space.no_nodes();
        for func in &schedule.inlined {
            inlined.insert(space.dag.func_node(*func));
        }
        let kernels = schedule.root.iter().map(|item| {
            let sketch = Sketch::new(space, item.clone().into(), Hashes::of(item), &inlined)?;
            self.evaluator.appraise(sketch, counts)
        });
        let mut kernels: Vec<_> = kernels.collect::<Option<_>>()?;
        kernels.sort_by_key(|kern| kern.sketch.own);
        Some(State::new(kernels, inlined))
    }

    /// The decisions on all Funcs but some, consumers first, and then on inputs.
    fn decisions(&self, kept: &BTreeSet<FuncId>) -> Vec<Decision> {
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
        baseline: &State,
        finished: &mut Finished,
        counts: &mut Statistics,
    ) -> (State, Vec<Decision>) {
        let options = self.evaluator.space.options;
        let passes = options.passes.max(1);
        let mut blessed = BTreeSet::new();
        let all = self.decisions(&BTreeSet::new());
        let coarse = Pass { decisions: &all, number: None, seed: options.seed };
        let found = self.pass(&coarse, 0, baseline, &mut blessed, counts);
        let start = found.first().filter(|best| best.cost <= baseline.cost).unwrap_or(baseline).clone();
        finished.extend(found.into_iter().map(|state| (state.identity(), state)));
        let kept = self.frozen(&start, counts);
        let decisions = self.decisions(&kept);
        for number in 0..passes - 1 {
            if self.is_over() {
                break;
            }
            let seed = of_words(&[options.seed, number as u64]);
            let pass = Pass { decisions: &decisions, number: Some(number), seed };
            let found = self.pass(&pass, number + 1, &start, &mut blessed, counts);
            finished.extend(found.into_iter().map(|state| (state.identity(), state)));
        }
        let best = finished.values().map(|state| state.cost).fold(f64::INFINITY, f64::min);
        (self.observer)(Event::SampleFinished { sample: 0, best });
        (start, decisions)
    }

    fn pass(
        &self,
        pass: &Pass<'_>,
        position: usize,
        start: &State,
        blessed: &mut BTreeSet<u64>,
        counts: &mut Statistics,
    ) -> Vec<State> {
        let of = self.evaluator.space.options.passes.max(1);
        (self.observer)(Event::PassStarted { pass: position, of });
        let mut own = Statistics::default();
        let found = pass.run(self, start, blessed, &mut own);
        let best = found.first().map_or(f64::INFINITY, |state| state.cost);
        (self.observer)(Event::PassFinished { pass: position, best });
        counts.add(&own);
        counts.passes.push(PassStatistics { best, decisions: own.decisions, states: own.states });
        found
    }

    /// The Funcs that keep the place they have in a state.
    fn frozen(&self, state: &State, counts: &mut Statistics) -> BTreeSet<FuncId> {
        let space = self.evaluator.space;
        if !space.options.freezing {
            return BTreeSet::new();
        }
        let funcs: Vec<FuncId> = space.funcs().collect();
        let costs = self.evaluator.func_costs(state);
        let frozen = frozen(&funcs, &costs, space.options.limits.frozen_share);
        counts.frozen = frozen.len() as u64;
        frozen
    }

    /// The samples beside the beam search.
    fn greedy(
        &self,
        start: &State,
        decisions: &[Decision],
        finished: &mut Finished,
        counts: &mut Statistics,
    ) {
        let options = self.evaluator.space.options;
        let samples: Vec<(State, Statistics)> = (1..options.samples.max(1))
            .into_par_iter()
            .map(|number| {
                let mut counts = Statistics::default();
                let seed = of_words(&[options.seed, u64::MAX, number as u64]);
                let state = sample(self, start, decisions, seed, &mut counts);
                (self.observer)(Event::SampleFinished { sample: number, best: state.cost });
                (state, counts)
            })
            .collect();
        for (state, more) in samples {
            counts.add(&more);
            finished.insert(state.identity(), state);
        }
    }

    /// What was found, the cheapest first. What breaks a rule only as a whole is left out.
    fn candidates(&self, finished: Finished, counts: &mut Statistics) -> Vec<Candidate> {
        let space = self.evaluator.space;
        let mut states: Vec<(u128, State)> = finished.into_iter().collect();
        states.sort_by(|(a, x), (b, y)| x.cost.total_cmp(&y.cost).then(a.cmp(b)));
        let checked: Vec<Option<Candidate>> = states
            .par_iter()
            .map(|(_, state)| {
                let schedule = state.schedule(space);
                let legal = check(&schedule, space.pipeline, space.regions, space.device).is_ok();
                legal.then_some(Candidate { schedule, cost: state.cost })
            })
            .collect();
        counts.dropped += checked.iter().filter(|candidate| candidate.is_none()).count() as u64;
        checked.into_iter().flatten().collect()
    }
}
