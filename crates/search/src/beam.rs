//! Beam search: at every decision, only the most promising states go on.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use rayon::prelude::*;

use crate::expand::{Decision, Manner, expand};
use crate::menu::Menus;
use crate::run::Run;
use crate::state::{Child, State};
use crate::statistics::{Event, Statistics};

/// What is added to the penalty of a structure that no good schedule of the last pass had.
const STRANGER: u32 = 10;

/// Finished states of a pass whose kernels are refined.
const REFINED: usize = 3;

/// The hashes of a state and of those it came from.
#[derive(Debug)]
struct Trail {
    hash: u64,
    before: Option<Arc<Trail>>,
}

/// A state in the queue, not put together yet.
#[derive(Clone, Debug)]
struct Entry {
    child: Child,
    /// What it came from.
    before: Option<Arc<Trail>>,
    /// Its cost, or more where many like it are in the beam already.
    rank: f64,
    penalised: bool,
}

impl Ord for Entry {
    /// The cheapest is the greatest; equal ones in a fixed order.
    fn cmp(&self, other: &Entry) -> Ordering {
        let identity = |entry: &Entry| entry.child.totals.identity;
        other.rank.total_cmp(&self.rank).then_with(|| identity(other).cmp(&identity(self)))
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
struct Chosen {
    state: Arc<State>,
    trail: Option<Arc<Trail>>,
}

/// One pass over all decisions.
pub(crate) struct Pass<'a> {
    pub decisions: &'a [Decision],
    /// The number of the pass, by which its buckets are the deeper; `None` for the one that only knows root and inline.
    pub number: Option<usize>,
    pub seed: u64,
    /// Whether it starts from what earlier passes found, and has no need of their blessings.
    pub revises: bool,
}

impl Pass<'_> {
    /// The finished states, the cheapest first. `blessed` holds the structures that this pass prefers, and gets those that
    /// the next one is to prefer.
    pub fn run(
        &self,
        run: &Run<'_>,
        starts: &[Arc<State>],
        blessed: &mut BTreeSet<u64>,
        counts: &mut Statistics,
    ) -> Vec<Arc<State>> {
        let manner = Manner { seed: self.seed, depth: self.depth(), coarse: self.number.is_none() };
        let mut beam: Vec<Chosen> =
            starts.iter().map(|state| Chosen { state: state.clone(), trail: None }).collect();
        let mut menus = Menus::default();
        for (position, decision) in self.decisions.iter().enumerate() {
            if run.is_over() {
                break;
            }
            menus.prepare(&run.evaluator, beam.iter().map(|of| &*of.state), *decision, manner, counts);
            let expanded: Vec<(Vec<Child>, Statistics)> = beam
                .par_iter()
                .map(|of| {
                    let mut counts = Statistics::default();
                    (expand(&run.evaluator, &of.state, *decision, manner, &menus, &mut counts), counts)
                })
                .collect();
            let mut queue: BTreeMap<u128, Entry> = BTreeMap::new();
            for (of, (children, more)) in beam.iter().zip(expanded) {
                counts.add(&more);
                for child in children {
                    let (rank, before) = (child.totals.cost, of.trail.clone());
                    let identity = child.totals.identity;
                    queue.entry(identity).or_insert(Entry { child, before, rank, penalised: false });
                }
            }
            beam = self.select(queue.into_values().collect(), run.evaluator.space.options.beam, blessed);
            let best = beam.iter().map(|of| of.state.cost()).fold(f64::INFINITY, f64::min);
            (run.observer)(Event::Decided { decision: position + 1, of: self.decisions.len(), best });
            tracing::trace!(decision = position + 1, of = self.decisions.len(), best_us = best, "decided");
        }
        let order = |of: &Chosen| of.state.totals.identity;
        beam.sort_by(|a, b| a.state.cost().total_cmp(&b.state.cost()).then(order(a).cmp(&order(b))));
        self.bless(&beam, run.evaluator.space.options.limits.blessed, blessed);
        self.finished(run, &beam, counts)
    }

    /// The depth of its buckets.
    fn depth(&self) -> usize {
        self.number.map_or(0, |number| number + 1)
    }

    /// The states that go on. Each further one of a structure weighs more, so that the beam stays varied.
    fn select(&self, queue: BinaryHeap<Entry>, most: usize, blessed: &BTreeSet<u64>) -> Vec<Chosen> {
        let mut queue = queue;
        let mut selected = Vec::with_capacity(most);
        let mut alike: BTreeMap<u64, u32> = BTreeMap::new();
        while selected.len() < most {
            let Some(mut entry) = queue.pop() else { break };
            let Some(pass) = self.number.filter(|_| !entry.penalised && most > 1) else {
                selected.push(self.chosen(entry));
                continue;
            };
            let totals = &entry.child.totals;
            let count = alike.entry(totals.hash(self.depth() + 1)).or_insert(0);
            *count += 1;
            let stranger = pass > 0 && !self.revises && !blessed.contains(&totals.hash(self.depth() - 1));
            let penalty = *count + if stranger { STRANGER } else { 0 };
            entry.penalised = true;
            entry.rank *= f64::from(penalty);
            match queue.peek() {
                Some(next) if penalty > 1 && entry < *next => queue.push(entry),
                _ => selected.push(self.chosen(entry)),
            }
        }
        selected
    }

    fn chosen(&self, entry: Entry) -> Chosen {
        let hash = entry.child.totals.hash(self.depth());
        let trail = self.number.map(|_| Arc::new(Trail { hash, before: entry.before }));
        Chosen { state: entry.child.state(), trail }
    }

    /// Notes the structures on the way to the best states.
    fn bless(&self, finished: &[Chosen], factor: f64, blessed: &mut BTreeSet<u64>) {
        let Some(best) = finished.first().map(|of| of.state.cost()) else { return };
        for of in finished.iter().filter(|of| of.state.cost() <= factor * best) {
            let mut trail = of.trail.as_ref();
            while let Some(step) = trail {
                blessed.insert(step.hash);
                trail = step.before.as_ref();
            }
        }
    }

    /// The states of the last beam, the best of them refined.
    fn finished(&self, run: &Run<'_>, beam: &[Chosen], counts: &mut Statistics) -> Vec<Arc<State>> {
        let mut states: Vec<Arc<State>> = beam.iter().map(|of| of.state.clone()).collect();
        if self.number.is_some() {
            let best = states.len().min(REFINED);
            let better = run.refined(&states[..best], counts);
            states.extend(better);
        }
        states.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
        states
    }
}
