//! Expands a state by one decision.

use std::sync::Arc;

use rayon::prelude::*;
use smallvec::{SmallVec, smallvec};
use warploom_lang::FuncId;
use warploom_schedule::StageRef;

use crate::evaluate::Evaluator;
use crate::places::{Change, Places};
use crate::sampling::{TilingCache, cheapest_of};
use crate::search::Search;
use crate::staging::staged;
use crate::state::{Child, EvaluatedKernel, Sketch, State, stage_word};
use crate::statistics::Statistics;
use crate::unfuse::unfused;

/// A decision of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Where a Func is computed.
    Place(FuncId),
    /// The tiles of a stage that has its own kernel.
    Tile(StageRef),
    /// The inputs to stage in shared memory, in every kernel.
    Inputs,
}

/// Which of the many options of a decision are evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// Seeds the order in which the options of a bucket are tried.
    pub seed: u64,
    /// Options whose trees are equal down to this depth are in the same bucket, and only some
    /// options of each bucket are evaluated. A larger depth evaluates more options.
    pub depth: usize,
    /// Whether Funcs can only be inlined or at root.
    pub coarse: bool,
}

/// Lists and evaluates the options of decisions under one [`Sampling`]. It caches the tiles of kernels,
/// so a walk over many states should reuse one expander.
pub struct Expander<'a> {
    search: &'a Search<'a>,
    sampling: Sampling,
    tilings: TilingCache,
}

impl<'a> Expander<'a> {
    pub(crate) fn new(search: &'a Search<'a>, sampling: Sampling) -> Expander<'a> {
        Expander { search, sampling, tilings: TilingCache::default() }
    }

    /// The states to which a decision leads from one state. There is at least one, which may be
    /// that state itself.
    pub fn expand(&mut self, state: &Arc<State>, decision: Decision) -> Vec<Child> {
        self.expand_all(std::slice::from_ref(state), decision).pop().unwrap_or_default()
    }

    /// Expands several states in parallel: the states to which a decision leads from each.
    pub fn expand_all(&mut self, states: &[Arc<State>], decision: Decision) -> Vec<Vec<Child>> {
        self.tilings.fill(self.search, states, decision, self.sampling);
        let expand = |state| self.search.counted(|counts| self.children(state, decision, counts));
        states.par_iter().map(expand).collect()
    }

    fn children(&self, state: &Arc<State>, decision: Decision, counts: &mut Statistics) -> Vec<Child> {
        let evaluator = &self.search.evaluator;
        counts.decisions += 1;
        let children = match decision {
            Decision::Place(func) => place(evaluator, state, func, self.sampling, counts),
            Decision::Tile(stage) => tile(state, stage, &self.tilings),
            Decision::Inputs if self.sampling.coarse => vec![Child::same(state)],
            Decision::Inputs => vec![staged(evaluator, state, counts)],
        };
        counts.states += children.len() as u64;
        children
    }
}

fn place(
    evaluator: &Evaluator<'_>,
    state: &Arc<State>,
    func: FuncId,
    sampling: Sampling,
    counts: &mut Statistics,
) -> Vec<Child> {
    // First unfuse whatever prevents moving the Func. If that is impossible, the state does not
    // change.
    let Some(base) = unfused(evaluator, state, func, counts) else { return vec![Child::same(state)] };
    let places = Places::new(evaluator.space, &base, func);
    let mut children = Vec::new();
    if let Some(inline) = places.inline() {
        counts.enumerated += 1;
        children.extend(accepted(evaluator, &base, &inline, counts));
        if !children.is_empty() && places.must_inline() {
            return children;
        }
    }
    // Like inlining, a kernel of its own is a distinct option that is never sampled away.
    counts.enumerated += 1;
    children.extend(accepted(evaluator, &base, &places.root(), counts));
    if !sampling.coarse {
        let options = places.fused(evaluator, counts);
        let salt = stage_word(StageRef { func, stage: 0 });
        for kernel in cheapest_of(evaluator, options, sampling, salt, counts) {
            children.push(Child::new(&base, smallvec![kernel], Some(func), Some(places.inlined.clone())));
        }
    }
    // If Funcs were unfused, keeping the old state is an option too. It is the only one if every
    // option is refused.
    if children.is_empty() || !Arc::ptr_eq(&base, state) {
        children.push(Child::same(state));
    }
    children
}

fn tile(state: &Arc<State>, stage: StageRef, tilings: &TilingCache) -> Vec<Child> {
    let mut children = vec![Child::same(state)];
    // A kernel with more than its own stage was tiled before the rest was added.
    if let Some(kernel) = state.kernel_of(stage).filter(|kernel| kernel.is_lone()) {
        let changed = |option: &&Arc<EvaluatedKernel>| option.totals.identity != kernel.totals.identity;
        let options = tilings.of(&kernel.sketch).iter().filter(changed);
        children.extend(options.map(|option| Child::new(state, smallvec![option.clone()], None, None)));
    }
    children
}

/// The state after a change, if every affected kernel is accepted.
pub(crate) fn accepted(
    evaluator: &Evaluator<'_>,
    base: &Arc<State>,
    change: &Change,
    counts: &mut Statistics,
) -> Option<Child> {
    let space = evaluator.space;
    let new = change.kernels.iter();
    let mut sketches: Vec<Sketch> =
        new.filter_map(|item| Sketch::new(space, item.clone(), &change.inlined)).collect();
    if change.inlined != base.inlined {
        let (more, less) = (change.inlined.without(&base.inlined), base.inlined.without(&change.inlined));
        let others = base.kernels.iter().filter(|kernel| kernel.sketch.own.func != change.func);
        // Kernels that read newly inlined Funcs, and kernels into which a Func is no longer inlined.
        let touched = others.filter(|kernel| {
            more.intersects(&kernel.sketch.reads) || less.intersects(&kernel.sketch.inlined)
        });
        sketches.extend(
            touched.filter_map(|kernel| Sketch::new(space, kernel.sketch.item.clone(), &change.inlined)),
        );
    }
    let mut kernels: SmallVec<[Arc<EvaluatedKernel>; 1]> = SmallVec::new();
    for verdict in evaluator.judge(sketches, counts) {
        match verdict {
            Ok(kernel) => kernels.push(kernel),
            Err(reason) => {
                counts.refuse(reason);
                return None;
            }
        }
    }
    let gone = change.goes.then_some(change.func);
    Some(Child::new(base, kernels, gone, Some(change.inlined.clone())))
}
