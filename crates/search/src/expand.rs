//! What becomes of a state by one decision.

use std::sync::Arc;

use warploom_lang::FuncId;
use warploom_schedule::schedule::StageRef;

use crate::evaluate::Evaluator;
use crate::hash::of_words;
use crate::places::{Change, Places};
use crate::staging::staged;
use crate::state::{Kern, Sketch, State, stage_word};
use crate::statistics::Statistics;

/// Children of one state that are kept, for each state of the beam.
const MAX_CHILDREN: usize = 4;

/// Something to decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// Where a Func is computed.
    Place(FuncId),
    /// The tiles of a stage, where it is a kernel of its own.
    Tile(StageRef),
    /// Which inputs are staged, in every kernel.
    Inputs,
}

/// How options are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Manner {
    /// Decides the order in which options of one bucket are tried.
    pub seed: u64,
    /// The depth at which options fall into buckets; all are in one without.
    pub depth: Option<usize>,
    /// Whether Funcs are only inlined or at root.
    pub coarse: bool,
}

/// The states that a decision leads to.
pub(crate) fn expand(
    evaluator: &Evaluator<'_>,
    state: &State,
    decision: Decision,
    manner: Manner,
    counts: &mut Statistics,
) -> Vec<State> {
    counts.decisions += 1;
    let children = match decision {
        Decision::Place(func) => place(evaluator, state, func, manner, counts),
        Decision::Tile(stage) => tile(evaluator, state, stage, manner, counts),
        Decision::Inputs if manner.coarse => vec![state.clone()],
        Decision::Inputs => vec![staged(evaluator, state, counts)],
    };
    counts.states += children.len() as u64;
    // Where every option is refused, things stay as they are: that is a schedule, too.
    if children.is_empty() { vec![state.clone()] } else { children }
}

fn place(
    evaluator: &Evaluator<'_>,
    state: &State,
    func: FuncId,
    manner: Manner,
    counts: &mut Statistics,
) -> Vec<State> {
    let places = Places::new(evaluator.space, state, func);
    let mut children = Vec::new();
    if let Some(inline) = places.inline() {
        counts.enumerated += 1;
        children.extend(accepted(evaluator, state, &inline, counts));
        if !children.is_empty() && places.must_inline() {
            return children;
        }
    }
    // Like inlining, the kernels of its own are one option that nothing else stands for.
    counts.enumerated += 1;
    children.extend(accepted(evaluator, state, &places.root(), counts));
    if !manner.coarse {
        let fused = places.fused(evaluator, counts);
        children.extend(sampled(evaluator, state, fused, manner, func_word(func), counts));
    }
    children
}

fn tile(
    evaluator: &Evaluator<'_>,
    state: &State,
    stage: StageRef,
    manner: Manner,
    counts: &mut Statistics,
) -> Vec<State> {
    let Some(current) = state.kernel_of(stage) else { return vec![state.clone()] };
    // A kernel that holds more than its stage was tiled before something was put into it.
    if current.sketch.nest_reads.len() > 1 {
        return vec![state.clone()];
    }
    let tilings = evaluator.space.tilings(stage).iter().map(|tiling| Change {
        kernels: vec![(tiling.item.clone(), tiling.hashes)],
        gone: None,
        inlined: state.inlined.clone(),
        secondary: tiling.secondary,
    });
    let mut children = sampled(evaluator, state, tilings.collect(), manner, stage_word(stage), counts);
    children.push(state.clone());
    children
}

fn func_word(func: FuncId) -> u64 {
    stage_word(StageRef { func, stage: 0 })
}

/// The states that some options lead to: of each bucket as many as the logarithm of its size, or all without sampling.
fn sampled(
    evaluator: &Evaluator<'_>,
    state: &State,
    changes: Vec<Change>,
    manner: Manner,
    salt: u64,
    counts: &mut Statistics,
) -> Vec<State> {
    counts.enumerated += changes.len() as u64;
    let (last_resort, first): (Vec<Change>, Vec<Change>) =
        changes.into_iter().partition(|change| change.secondary);
    let children = from_buckets(evaluator, state, first, manner, salt, counts);
    if !children.is_empty() {
        counts.sampled_away += last_resort.len() as u64;
        return children;
    }
    from_buckets(evaluator, state, last_resort, manner, salt, counts)
}

fn from_buckets(
    evaluator: &Evaluator<'_>,
    state: &State,
    changes: Vec<Change>,
    manner: Manner,
    salt: u64,
    counts: &mut Statistics,
) -> Vec<State> {
    let options = evaluator.space.options;
    let seeds = [manner.seed, state.hash(usize::MAX), salt];
    let key = |(index, change): (usize, &Change)| {
        let bucket = manner.depth.map_or(0, |depth| change.hash(depth));
        let order = of_words(&[seeds[0], seeds[1], seeds[2], change.hash(usize::MAX)]);
        (bucket, order, index)
    };
    let mut keys: Vec<(u64, u64, usize)> = changes.iter().enumerate().map(key).collect();
    keys.sort_unstable();
    let mut children = Vec::new();
    for bucket in keys.chunk_by(|a, b| a.0 == b.0) {
        let mut left = if options.sampling { quota(bucket.len()) } else { bucket.len() };
        let mut looked_at = 0;
        for (_, _, index) in bucket {
            if left == 0 {
                break;
            }
            looked_at += 1;
            // Those that are refused take nothing from the others.
            if let Some(child) = accepted(evaluator, state, &changes[*index], counts) {
                children.push(child);
                left -= 1;
            }
        }
        counts.sampled_away += (bucket.len() - looked_at) as u64;
    }
    // Of one state's children, no more than these can make a difference in a beam.
    children.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    children.truncate(MAX_CHILDREN * options.beam.max(1));
    children
}

/// How many options of a bucket are looked at.
pub(crate) fn quota(options: usize) -> usize {
    options.checked_ilog2().unwrap_or(0).max(1) as usize
}

/// The state after a change, if every kernel that it touches is accepted.
pub(crate) fn accepted(
    evaluator: &Evaluator<'_>,
    state: &State,
    change: &Change,
    counts: &mut Statistics,
) -> Option<State> {
    let space = evaluator.space;
    let inlining = change.inlined != state.inlined;
    let new: Vec<Sketch> = change
        .kernels
        .iter()
        .filter_map(|(item, hashes)| Sketch::new(space, item.clone(), *hashes, &change.inlined))
        .collect();
    let mut kept: Vec<Arc<Kern>> = Vec::with_capacity(state.kernels.len() + new.len());
    let mut sketches = new;
    let replaced: Vec<StageRef> = sketches.iter().map(|sketch| sketch.own).collect();
    for kern in &state.kernels {
        let own = kern.sketch.own;
        if change.gone == Some(own.func) || replaced.contains(&own) {
            continue;
        }
        if inlining && touches(kern, state, change) {
            let (item, hashes) = (kern.sketch.item.clone(), kern.sketch.hashes);
            sketches.extend(Sketch::new(space, item, hashes, &change.inlined));
        } else {
            kept.push(kern.clone());
        }
    }
    for verdict in evaluator.judge(sketches, counts) {
        match verdict {
            Ok(kern) => kept.push(kern),
            Err(reason) => {
                counts.refuse(reason);
                return None;
            }
        }
    }
    kept.sort_by_key(|kern| kern.sketch.own);
    Some(State::new(kept, change.inlined.clone()))
}

/// Whether something that a kernel reads, or has inlined, becomes inlined or stops being so.
fn touches(kern: &Kern, state: &State, change: &Change) -> bool {
    let mut more = change.inlined.clone();
    more.subtract(&state.inlined);
    let mut less = state.inlined.clone();
    less.subtract(&change.inlined);
    more.iter().any(|node| kern.sketch.reads.contains(node))
        || less.iter().any(|node| kern.sketch.inlined.contains(node))
}

#[cfg(test)]
mod tests {
    use super::quota;

    #[test]
    fn quotas_grow_with_the_logarithm() {
        assert_eq!([1, 2, 3, 4, 7, 8, 300].map(quota), [1, 1, 1, 2, 2, 3, 8]);
    }
}
