//! Copies of inputs in shared memory. The costs of kernels add up, so each kernel chooses
//! separately.

use std::sync::Arc;

use warploom_lang::InputId;
use warploom_schedule::{Item, Nest, NodeSet, Source};

use crate::evaluate::Evaluator;
use crate::state::{Child, EvaluatedKernel, Sketch, State};
use crate::statistics::Statistics;

/// The state with the best copies in every kernel, as far as time permits.
pub(crate) fn staged(evaluator: &Evaluator<'_>, state: &Arc<State>, counts: &mut Statistics) -> Child {
    let in_time = state.kernels.iter().take_while(|_| !evaluator.is_over());
    let kernels = in_time.map(|kernel| best_copies(evaluator, kernel, &state.inlined, counts));
    let changed = kernels.zip(&state.kernels).filter(|(new, old)| !Arc::ptr_eq(new, old));
    Child::new(state, changed.map(|(new, _)| new).collect(), None, None)
}

/// The kernel with a copy of each input for which a copy reduces the cost.
pub(crate) fn best_copies(
    evaluator: &Evaluator<'_>,
    kernel: &Arc<EvaluatedKernel>,
    inlined: &NodeSet,
    counts: &mut Statistics,
) -> Arc<EvaluatedKernel> {
    let space = evaluator.space;
    let mut best = kernel.clone();
    if space.is_fixed(kernel.sketch.own) {
        return best;
    }
    let inputs = kernel.sketch.reads.iter().filter_map(|node| match space.dag.nodes()[node].source {
        Source::Input(input) => Some(input),
        Source::Func(_) => None,
    });
    for input in inputs.collect::<Vec<InputId>>() {
        let sketches = copies(evaluator, &best, input, inlined);
        counts.enumerated += sketches.len() as u64;
        for verdict in evaluator.judge(sketches, counts) {
            match verdict {
                Ok(staged) if staged.cost() < best.cost() => best = staged,
                Ok(_) => {}
                Err(reason) => counts.refuse(reason),
            }
        }
    }
    best
}

/// The kernel with a copy of an input, at each site that encloses all its readers.
fn copies(
    evaluator: &Evaluator<'_>,
    evaluated: &EvaluatedKernel,
    input: InputId,
    inlined: &NodeSet,
) -> Vec<Sketch> {
    let space = evaluator.space;
    let node = space.dag.input_node(input);
    let item = &*evaluated.sketch.item;
    let Some(kernel) = item.kernels().next() else { return Vec::new() };
    if kernel.nests().any(|nest| nest.item == Item::Input(input)) {
        return Vec::new();
    }
    let readers: Vec<bool> = evaluated.sketch.nest_reads.iter().map(|reads| reads.contains(node)).collect();
    let with_copy = kernel.sites(&readers).into_iter().filter_map(|site| {
        let item = item.with(|kernel| site.insert(kernel, vec![Nest::shared(input).into()]));
        Sketch::new(space, item, inlined)
    });
    with_copy.collect()
}
