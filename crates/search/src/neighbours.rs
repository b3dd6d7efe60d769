//! Schedules near one that is known to be fast.
//!
//! A model that is somewhat wrong everywhere is less wrong about the difference between two schedules that are almost the
//! same. So whoever can measure does well to look around the best of what was measured: at what one decision of the search
//! makes of it, and at single steps of its kernels.

use std::sync::Arc;

use rayon::prelude::*;
use warploom_schedule::schedule::Schedule;

use crate::Neighbourhood;
use crate::expand::{Decision, Manner};
use crate::fixed::holds_several;
use crate::search::{Found, Search};
use crate::state::{Child, State};

/// The depth at which the options of a decision fall into buckets: tiles of different sizes differ.
const DEPTH: usize = 3;

/// States that one decision contributes, at most.
const PER_DECISION: usize = 8;

/// What is near a schedule, if it is one that a search could make.
pub(crate) fn neighbourhood(search: &Search<'_>, schedule: &Schedule) -> Option<Neighbourhood> {
    if schedule.root.iter().any(holds_several) {
        return None;
    }
    let state = search.appraise(schedule)?;
    let stepped = search.steps(&state).into_iter().map(|child| child.state());
    let near = stepped.chain(decided(search, &state));
    let mut found: Found = near.map(|state| (state.identity(), state)).collect();
    found.remove(&state.identity());
    Some(Neighbourhood { cost: state.cost(), neighbours: search.candidates(found, &[]) })
}

/// What becomes of the state if one thing is decided anew, with the kernels as they then want to be.
fn decided(search: &Search<'_>, state: &Arc<State>) -> Vec<Arc<State>> {
    let manner = Manner { seed: search.options().seed, depth: DEPTH, coarse: false };
    let decide = |decision: &Decision| {
        let mut children = search.expander(manner).expand(state, *decision);
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
