//! The neighbours of a schedule that is known to be fast.
//!
//! The cost model is more accurate about the difference between two almost equal schedules than about either. So it
//! pays to measure around the best measured schedule: changes of one decision of the search, single steps of its
//! kernels, and kernels whose lanes share registers.

use std::sync::Arc;

use rayon::prelude::*;
use warploom_schedule::Schedule;

use crate::Neighbourhood;
use crate::expand::{Decision, Sampling};
use crate::fixed::holds_several;
use crate::lanes::in_lanes;
use crate::search::{Found, Search};
use crate::state::{Child, State};

/// The depth at which the options of a decision are grouped into buckets. At this depth, tiles of
/// different sizes differ.
const DEPTH: usize = 3;

/// The most states per decision.
const PER_DECISION: usize = 8;

/// The neighbours of a schedule, if a search could make it.
pub(crate) fn neighbourhood(search: &Search<'_>, schedule: &Schedule) -> Option<Neighbourhood> {
    if schedule.root.iter().any(holds_several) {
        return None;
    }
    let state = search.appraise(schedule)?;
    let stepped = search.steps(&state).into_iter().map(|child| child.state());
    let near = stepped.chain(in_lanes(search, &state)).chain(decided(search, &state));
    let mut found: Found = near.map(|state| (state.identity(), state)).collect();
    found.remove(&state.identity());
    let mut neighbours = search.candidates(found, &[]);
    // Its kernels may have been reached as another state.
    neighbours.retain(|candidate| candidate.schedule != *schedule);
    Some(Neighbourhood { cost: state.cost(), neighbours })
}

/// The states in which one decision is made again, with refined kernels.
fn decided(search: &Search<'_>, state: &Arc<State>) -> Vec<Arc<State>> {
    let sampling = Sampling { seed: search.options().seed, depth: DEPTH, coarse: false };
    let decide = |decision: &Decision| {
        let mut children = search.expander(sampling).expand(state, *decision);
        children.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
        children.truncate(PER_DECISION);
        children
    };
    let decisions = search.decisions(&Default::default());
    let children: Vec<Vec<Child>> = decisions.par_iter().filter(|_| !search.is_over()).map(decide).collect();
    let mut states: Vec<Arc<State>> = children.iter().flatten().map(Child::state).collect();
    let refined = search.refined(&states);
    states.extend(refined);
    states
}
