//! Beam search: only the most promising states survive each decision.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use crate::expand::{Decision, Sampling};
use crate::hash::of_words;
use crate::search::Search;
use crate::state::{Child, State};
use crate::statistics::{Event, PassStatistics, Statistics};

/// The number of final passes that start from the states found so far.
const REVISING: usize = 2;

/// The number of states from which those passes start.
const STARTS: usize = 8;

/// The extra penalty of a structure that no good schedule of the last pass had.
const STRANGER: u32 = 10;

/// The number of finished states per pass whose kernels are refined.
const REFINED: usize = 3;

/// Runs all passes from a start. Returns the best state of the pass that only decides between root
/// and inline, unless the start is cheaper, and the decisions that remain after freezing.
pub(crate) fn beam(search: &Search<'_>, start: &Arc<State>) -> (Arc<State>, Vec<Decision>) {
    let options = search.options();
    let passes = options.passes.max(1);
    let mut blessed = BTreeSet::new();
    let all = search.decisions(&BTreeSet::new());
    let coarse = Pass { decisions: &all, number: None, seed: options.seed, revises: false };
    let found = coarse.run(search, std::slice::from_ref(start), &mut blessed);
    let start = found.first().filter(|best| best.cost() <= start.cost()).unwrap_or(start).clone();
    search.keep(found);
    let decisions = search.decisions(&search.frozen(&start));
    for number in 0..passes - 1 {
        if search.is_over() {
            break;
        }
        let seed = of_words(&[options.seed, number as u64]);
        let revises = number > 0 && number + REVISING + 1 >= passes;
        let starts = if revises { search.cheapest(STARTS) } else { vec![start.clone()] };
        let pass = Pass { decisions: &decisions, number: Some(number), seed, revises };
        search.keep(pass.run(search, &starts, &mut blessed));
    }
    let best = search.cheapest(1).first().map_or(f64::INFINITY, |best| best.cost());
    search.say(Event::SampleFinished { sample: 0, best });
    (start, decisions)
}

/// The hashes of a state and its ancestors.
#[derive(Debug)]
struct Trail {
    hash: u64,
    before: Option<Arc<Trail>>,
}

/// A state in the queue, not materialised yet.
#[derive(Clone, Debug)]
struct Entry {
    child: Child,
    /// The hashes of its ancestors.
    before: Option<Arc<Trail>>,
    /// Its cost, times a penalty if the beam already has many similar states.
    rank: f64,
    penalised: bool,
}

impl Ord for Entry {
    /// The cheapest is the greatest. Ties are broken in a fixed order.
    fn cmp(&self, other: &Entry) -> Ordering {
        let identities = || other.child.identity().cmp(&self.child.identity());
        other.rank.total_cmp(&self.rank).then_with(identities)
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

/// A state in the beam.
#[derive(Debug)]
struct BeamState {
    state: Arc<State>,
    trail: Option<Arc<Trail>>,
}

/// One pass over all decisions.
struct Pass<'a> {
    decisions: &'a [Decision],
    /// The number of the pass, which sets the depth of its buckets; `None` for the pass that only
    /// decides between root and inline.
    number: Option<usize>,
    seed: u64,
    /// Whether it starts from the states that earlier passes found and so ignores the blessed
    /// structures.
    revises: bool,
}

impl Pass<'_> {
    /// Returns the finished states, cheapest first. `blessed` holds the structures that this pass
    /// prefers; the structures that the next pass should prefer are added to it.
    fn run(
        &self,
        search: &Search<'_>,
        starts: &[Arc<State>],
        blessed: &mut BTreeSet<u64>,
    ) -> Vec<Arc<State>> {
        let (pass, of) = (self.depth(), search.options().passes.max(1));
        search.say(Event::PassStarted { pass, of });
        let before = search.statistics();
        let beam = self.beam(search, starts, blessed);
        self.bless(&beam, search.options().limits.blessed, blessed);
        let found = self.finished(search, &beam);
        let best = found.first().map_or(f64::INFINITY, |state| state.cost());
        search.say(Event::PassFinished { pass, best });
        let after = search.statistics();
        let (decisions, states) = (after.decisions - before.decisions, after.states - before.states);
        tracing::debug!(pass = pass + 1, of, best_us = best, states, "finished a pass");
        let passes = vec![PassStatistics { best, decisions, states }];
        search.count(&Statistics { passes, ..Statistics::default() });
        found
    }

    /// The states that remain after the last decision, cheapest first.
    fn beam(&self, search: &Search<'_>, starts: &[Arc<State>], blessed: &BTreeSet<u64>) -> Vec<BeamState> {
        let sampling = Sampling { seed: self.seed, depth: self.depth(), coarse: self.number.is_none() };
        let mut expander = search.expander(sampling);
        let mut beam: Vec<BeamState> =
            starts.iter().map(|state| BeamState { state: state.clone(), trail: None }).collect();
        for (position, decision) in self.decisions.iter().enumerate() {
            if search.is_over() {
                break;
            }
            let states: Vec<Arc<State>> = beam.iter().map(|of| of.state.clone()).collect();
            let mut queue: BTreeMap<u128, Entry> = BTreeMap::new();
            for (of, children) in beam.iter().zip(expander.expand_all(&states, *decision)) {
                for child in children {
                    let (rank, before) = (child.cost(), of.trail.clone());
                    let identity = child.identity();
                    queue.entry(identity).or_insert(Entry { child, before, rank, penalised: false });
                }
            }
            beam = self.select(queue.into_values().collect(), search.options().beam, blessed);
            let best = beam.iter().map(|of| of.state.cost()).fold(f64::INFINITY, f64::min);
            search.say(Event::Decided { decision: position + 1, of: self.decisions.len(), best });
            tracing::trace!(decision = position + 1, of = self.decisions.len(), best_us = best, "decided");
        }
        let order = |of: &BeamState| of.state.identity();
        beam.sort_by(|a, b| a.state.cost().total_cmp(&b.state.cost()).then(order(a).cmp(&order(b))));
        beam
    }

    /// The number of the pass, which is also the depth of its buckets.
    fn depth(&self) -> usize {
        self.number.map_or(0, |number| number + 1)
    }

    /// Selects the states that survive. Every further state with the same structure gets a larger
    /// penalty, so that the beam stays diverse.
    fn select(&self, queue: BinaryHeap<Entry>, most: usize, blessed: &BTreeSet<u64>) -> Vec<BeamState> {
        let mut queue = queue;
        let mut selected = Vec::with_capacity(most);
        let mut alike: BTreeMap<u64, u32> = BTreeMap::new();
        while selected.len() < most {
            let Some(mut entry) = queue.pop() else { break };
            let Some(pass) = self.number.filter(|_| !entry.penalised && most > 1) else {
                selected.push(self.in_beam(entry));
                continue;
            };
            let count = alike.entry(entry.child.structure(self.depth() + 1)).or_insert(0);
            *count += 1;
            let stranger =
                pass > 0 && !self.revises && !blessed.contains(&entry.child.structure(self.depth() - 1));
            let penalty = *count + if stranger { STRANGER } else { 0 };
            entry.penalised = true;
            entry.rank *= f64::from(penalty);
            match queue.peek() {
                Some(next) if penalty > 1 && entry < *next => queue.push(entry),
                _ => selected.push(self.in_beam(entry)),
            }
        }
        selected
    }

    fn in_beam(&self, entry: Entry) -> BeamState {
        let hash = entry.child.structure(self.depth());
        let trail = self.number.map(|_| Arc::new(Trail { hash, before: entry.before }));
        BeamState { state: entry.child.state(), trail }
    }

    /// Records the structures on the path to the best states.
    fn bless(&self, finished: &[BeamState], factor: f64, blessed: &mut BTreeSet<u64>) {
        let Some(best) = finished.first().map(|of| of.state.cost()) else { return };
        for of in finished.iter().filter(|of| of.state.cost() <= factor * best) {
            let mut trail = of.trail.as_ref();
            while let Some(step) = trail {
                blessed.insert(step.hash);
                trail = step.before.as_ref();
            }
        }
    }

    /// The states of the last beam, and refined versions of the best ones.
    fn finished(&self, search: &Search<'_>, beam: &[BeamState]) -> Vec<Arc<State>> {
        let mut states: Vec<Arc<State>> = beam.iter().map(|of| of.state.clone()).collect();
        if self.number.is_some() {
            let best = states.len().min(REFINED);
            let better = search.refined(&states[..best]);
            states.extend(better);
        }
        states.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
        states
    }
}
