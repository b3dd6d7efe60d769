//! Schedules near one that is known to be fast.
//!
//! A model that is somewhat wrong everywhere is less wrong about the difference between two schedules that are almost the
//! same. So whoever can measure does well to look around the best of what was measured: at what one decision of the search
//! makes of it, and at single steps of its kernels.

use std::sync::Arc;

use rayon::prelude::*;
use smallvec::smallvec;
use warploom_schedule::schedule::Schedule;

use crate::expand::{Decision, Manner, expand};
use crate::fixed::holds_several;
use crate::menu::Menus;
use crate::refine::steps;
use crate::run::{Finished, Run};
use crate::state::{Child, State};
use crate::statistics::Statistics;
use crate::{Candidate, Neighbourhood};

/// The depth at which the options of a decision fall into buckets: tiles of different sizes differ.
const DEPTH: usize = 3;

/// States that one decision contributes, at most.
const PER_DECISION: usize = 8;

impl Run<'_> {
    /// What is near a schedule, if it is one that a search could make.
    pub fn neighbourhood(&self, schedule: &Schedule) -> Option<Neighbourhood> {
        let mut counts = Statistics::default();
        if schedule.root.iter().any(holds_several) {
            return None;
        }
        let state = self.state(schedule, &mut counts)?;
        let mut found: Finished = self.stepped(&state).into_iter().collect();
        found.extend(self.decided(&state));
        found.remove(&state.totals.identity);
        let neighbours: Vec<Candidate> = self.candidates(found, &[], &mut counts);
        Some(Neighbourhood { cost: state.cost(), neighbours })
    }

    /// The state with one of its kernels one step away.
    fn stepped(&self, state: &Arc<State>) -> Vec<(u128, Arc<State>)> {
        let step = |kern| steps(&self.evaluator, kern, &mut Statistics::default());
        let kernels: Vec<_> = state.kernels.par_iter().map(step).collect();
        let children =
            kernels.into_iter().flatten().map(|kern| Child::new(state, smallvec![kern], None, None));
        children.map(|child| (child.totals.identity, child.state())).collect()
    }

    /// What becomes of the state if one thing is decided anew, with the kernels as they then want to be.
    fn decided(&self, state: &Arc<State>) -> Vec<(u128, Arc<State>)> {
        let manner = Manner { seed: self.evaluator.space.options.seed, depth: DEPTH, coarse: false };
        let decide = |decision: &Decision| {
            let (mut menus, mut counts) = (Menus::default(), Statistics::default());
            let evaluator = &self.evaluator;
            menus.prepare(evaluator, std::iter::once(&**state), *decision, manner, &mut counts);
            let mut children = expand(evaluator, state, *decision, manner, &menus, &mut counts);
            children.sort_by(|a, b| a.totals.cost.total_cmp(&b.totals.cost));
            children.truncate(PER_DECISION);
            children
        };
        let decisions = self.decisions(&Default::default());
        let children: Vec<Vec<Child>> =
            decisions.par_iter().filter(|_| !self.is_over()).map(decide).collect();
        let states: Vec<Arc<State>> = children.iter().flatten().map(Child::state).collect();
        let refined = self.refined(&states, &mut Statistics::default());
        states.into_iter().chain(refined).map(|state| (state.totals.identity, state)).collect()
    }
}
