//! Beam search: at every decision, only the most promising states go on.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use rayon::prelude::*;

use crate::expand::{Decision, Manner, expand};
use crate::retile::retiled;
use crate::run::Run;
use crate::state::State;
use crate::statistics::{Event, Statistics};

/// What is added to the penalty of a structure that no good schedule of the last pass had.
const STRANGER: u32 = 10;

/// Finished states of a pass whose tiles are improved.
const RETILED: usize = 8;

/// The hashes of a state and of those it came from.
#[derive(Debug)]
struct Trail {
    hash: u64,
    before: Option<Arc<Trail>>,
}

/// A state in the queue.
#[derive(Clone, Debug)]
struct Entry {
    state: Arc<State>,
    identity: u128,
    trail: Option<Arc<Trail>>,
    /// Its cost, or more where many like it are in the beam already.
    rank: f64,
    penalised: bool,
}

impl Ord for Entry {
    /// The cheapest is the greatest; equal ones in a fixed order.
    fn cmp(&self, other: &Entry) -> Ordering {
        other.rank.total_cmp(&self.rank).then_with(|| other.identity.cmp(&self.identity))
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

/// One pass over all decisions.
pub(crate) struct Pass<'a> {
    pub decisions: &'a [Decision],
    /// The number of the pass, which is the depth of its buckets; `None` for the one that only knows root and inline.
    pub number: Option<usize>,
    pub seed: u64,
}

impl Pass<'_> {
    /// The finished states, the cheapest first. `blessed` holds the structures that this pass prefers, and gets those that
    /// the next one is to prefer.
    pub fn run(
        &self,
        run: &Run<'_>,
        start: &State,
        blessed: &mut BTreeSet<u64>,
        counts: &mut Statistics,
    ) -> Vec<State> {
        let manner = Manner { seed: self.seed, depth: self.number, coarse: self.number.is_none() };
        let mut beam = vec![self.entry(Arc::new(start.clone()), None)];
        for (position, decision) in self.decisions.iter().enumerate() {
            if run.is_over() {
                break;
            }
            let expanded: Vec<(Vec<State>, Statistics)> = beam
                .par_iter()
                .map(|entry| {
                    let mut counts = Statistics::default();
                    (expand(&run.evaluator, &entry.state, *decision, manner, &mut counts), counts)
                })
                .collect();
            let mut queue: BTreeMap<u128, Entry> = BTreeMap::new();
            for (entry, (children, more)) in beam.iter().zip(expanded) {
                counts.add(&more);
                for child in children {
                    let child = self.entry(Arc::new(child), entry.trail.clone());
                    queue.entry(child.identity).or_insert(child);
                }
            }
            beam = self.select(queue.into_values().collect(), run.evaluator.space.options.beam, blessed);
            let best = beam.iter().map(|entry| entry.state.cost).fold(f64::INFINITY, f64::min);
            (run.observer)(Event::Decided { decision: position + 1, of: self.decisions.len(), best });
        }
        beam.sort_by(|a, b| a.state.cost.total_cmp(&b.state.cost).then(a.identity.cmp(&b.identity)));
        self.bless(&beam, run.evaluator.space.options.limits.blessed, blessed);
        self.finished(run, &beam, counts)
    }

    fn entry(&self, state: Arc<State>, before: Option<Arc<Trail>>) -> Entry {
        let trail = self.number.map(|depth| Arc::new(Trail { hash: state.hash(depth), before }));
        Entry { identity: state.identity(), trail, rank: state.cost, penalised: false, state }
    }

    /// The states that go on. Each further one of a structure weighs more, so that the beam stays varied.
    fn select(&self, queue: BinaryHeap<Entry>, most: usize, blessed: &BTreeSet<u64>) -> Vec<Entry> {
        let mut queue = queue;
        let mut selected = Vec::with_capacity(most);
        let mut alike: BTreeMap<u64, u32> = BTreeMap::new();
        while selected.len() < most {
            let Some(mut entry) = queue.pop() else { break };
            let Some(pass) = self.number.filter(|_| !entry.penalised && most > 1) else {
                selected.push(entry);
                continue;
            };
            let count = alike.entry(entry.state.hash(pass + 1)).or_insert(0);
            *count += 1;
            let stranger = pass > 0 && !blessed.contains(&entry.state.hash(pass - 1));
            let penalty = *count + if stranger { STRANGER } else { 0 };
            entry.penalised = true;
            entry.rank *= f64::from(penalty);
            match queue.peek() {
                Some(next) if penalty > 1 && entry < *next => queue.push(entry),
                _ => selected.push(entry),
            }
        }
        selected
    }

    /// Notes the structures on the way to the best states.
    fn bless(&self, finished: &[Entry], factor: f64, blessed: &mut BTreeSet<u64>) {
        let Some(best) = finished.first().map(|entry| entry.state.cost) else { return };
        for entry in finished.iter().filter(|entry| entry.state.cost <= factor * best) {
            let mut trail = entry.trail.as_ref();
            while let Some(step) = trail {
                blessed.insert(step.hash);
                trail = step.before.as_ref();
            }
        }
    }

    /// The states of the last beam, the best of them with better tiles.
    fn finished(&self, run: &Run<'_>, beam: &[Entry], counts: &mut Statistics) -> Vec<State> {
        let finished: Vec<(State, Statistics)> = beam
            .par_iter()
            .enumerate()
            .map(|(position, entry)| {
                let mut counts = Statistics::default();
                let improve = position < RETILED && self.number.is_some() && !run.is_over();
                match improve {
                    true => (retiled(&run.evaluator, &entry.state, &mut counts), counts),
                    false => ((*entry.state).clone(), counts),
                }
            })
            .collect();
        let mut states = Vec::with_capacity(finished.len());
        for (state, more) in finished {
            counts.add(&more);
            states.push(state);
        }
        states.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        states
    }
}
