//! Takes Funcs out of the kernels that they are fused into, so that they can be placed elsewhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use smallvec::SmallVec;
use warploom_lang::FuncId;
use warploom_schedule::{BlockItem, Item, Nest, NodeId, NodeMut, NodeSet, StageRef};

use crate::evaluate::Evaluator;
use crate::space::SearchSpace;
use crate::state::{Child, EvaluatedKernel, Sketch, State};
use crate::statistics::Statistics;

/// The state in which a Func is inlined or in kernels that compute nothing else. Funcs fused into
/// its kernels get their own kernels too, as do Funcs of its current kernel that it reads.
/// `None` if this is refused.
pub(crate) fn unfused(
    evaluator: &Evaluator<'_>,
    state: &Arc<State>,
    func: FuncId,
    counts: &mut Statistics,
) -> Option<Arc<State>> {
    let space = evaluator.space;
    let own = state.kernels_of(func);
    let mut out: BTreeSet<FuncId> = own.iter().flat_map(|kernel| fused(kernel)).collect();
    let mut sketches = Vec::new();
    if !out.is_empty() {
        let own = own.iter().map(|kernel| space.default_kernel(kernel.sketch.own));
        sketches.extend(own.filter_map(|item| Sketch::new(space, item, &state.inlined)));
    }
    // A Func has one place: with kernels of its own, it is in no other kernel.
    let homes = if own.is_empty() { &state.kernels[..] } else { &[] };
    for home in homes {
        let leaving = leaving(space, home, func, &state.inlined);
        if leaving.is_empty() {
            continue;
        }
        if space.is_fixed(home.sketch.own) {
            return None;
        }
        let (rest, gone) =
            without(space, home, with_read(space, home, leaving, &state.inlined), &state.inlined)?;
        sketches.push(rest);
        out.extend(gone);
    }
    if out.is_empty() {
        return Some(state.clone());
    }
    let stages = out.iter().flat_map(|func| space.stages_of(*func));
    let kernels = stages.map(|stage| space.default_kernel(stage));
    sketches.extend(kernels.filter_map(|item| Sketch::new(space, item, &state.inlined)));
    let kernels = evaluator.judge(sketches, counts).into_iter();
    let kernels: Option<SmallVec<[Arc<EvaluatedKernel>; 1]>> = kernels.map(Result::ok).collect();
    Some(Child::new(state, kernels?, None, None).state())
}

/// The Funcs that must leave a kernel before `func` can be placed anywhere: the Func itself or, if
/// it is inlined, the Funcs that it reads there, because other kernels could not read those.
fn leaving(
    space: &SearchSpace<'_>,
    home: &EvaluatedKernel,
    func: FuncId,
    inlined: &NodeSet,
) -> BTreeSet<FuncId> {
    if !home.sketch.inlined.contains(space.dag.func_node(func)) {
        return computed(home).find(|of| *of == func).into_iter().collect();
    }
    let alone = Nest::global(StageRef { func, stage: 0 });
    let reads = space.reads(&alone, inlined).0;
    let mut funcs = fused(home);
    funcs.retain(|of| reads.contains(space.dag.func_node(*of)));
    funcs
}

/// Some Funcs of a kernel, and the Funcs that they read there: kernels of their own could not read those.
fn with_read(
    space: &SearchSpace<'_>,
    home: &EvaluatedKernel,
    leaving: BTreeSet<FuncId>,
    inlined: &NodeSet,
) -> BTreeSet<FuncId> {
    let inside = fused(home);
    let mut left: Vec<FuncId> = leaving.iter().copied().collect();
    let mut leaving = leaving;
    while let Some(func) = left.pop() {
        for stage in space.stages_of(func) {
            let reads = space.reads(&Nest::global(stage), inlined).0;
            let read = inside.iter().filter(|of| reads.contains(space.dag.func_node(**of)));
            left.extend(read.filter(|of| leaving.insert(**of)));
        }
    }
    leaving
}

/// The Funcs that a kernel computes besides its own.
fn fused(kernel: &EvaluatedKernel) -> BTreeSet<FuncId> {
    computed(kernel).filter(|func| *func != kernel.sketch.own.func).collect()
}

/// The Funcs that a kernel computes, some more than once.
fn computed(kernel: &EvaluatedKernel) -> impl Iterator<Item = FuncId> {
    let own = |nest: &Nest| nest.item.stage().map(|stage| stage.func);
    kernel.sketch.item.nests().flat_map(move |nest| nest.registers.iter().copied().chain(own(nest)))
}

/// A kernel without some Funcs and without Funcs that only these need. Also returns all Funcs that were removed.
fn without(
    space: &SearchSpace<'_>,
    evaluated: &EvaluatedKernel,
    mut gone: BTreeSet<FuncId>,
    inlined: &NodeSet,
) -> Option<(Sketch, BTreeSet<FuncId>)> {
    let own = evaluated.sketch.own.func;
    let mut idle = BTreeSet::new();
    let mut item = evaluated.sketch.item.clone();
    loop {
        let remaining = item.with(|kernel| {
            kernel.edit(|node, _| match node {
                NodeMut::Nest(nest) => {
                    nest.registers.retain(|of| !gone.contains(of));
                    match nest.item {
                        Item::Stage(stage) => !gone.contains(&stage.func),
                        Item::Input(input) => !idle.contains(&space.dag.input_node(input)),
                    }
                }
                NodeMut::Over(over) => {
                    let stays = !over.loops.iter().any(|tile| gone.contains(&tile.stage.func));
                    // Copies of inputs belong to the loops that contain them.
                    over.body.retain(|item| stays || !is_copy(item));
                    stays
                }
                NodeMut::Around(_) | NodeMut::Kernel(_) => true,
            });
        });
        let sketch = Sketch::new(space, remaining, inlined)?;
        item = sketch.item.clone();
        let unread = |node: &NodeId| !sketch.nest_reads.iter().any(|reads| reads.contains(*node));
        let (mut funcs, mut inputs) = (BTreeSet::new(), BTreeSet::new());
        for nest in sketch.item.nests() {
            funcs.extend(nest.registers.iter().filter(|func| !is_read(space, nest, **func, inlined)));
            match nest.item {
                Item::Stage(stage) if stage.func != own => {
                    funcs.extend(Some(stage.func).filter(|func| unread(&space.dag.func_node(*func))));
                }
                Item::Stage(_) => {}
                Item::Input(input) => inputs.extend(Some(space.dag.input_node(input)).filter(unread)),
            }
        }
        if funcs.is_empty() && inputs.is_empty() {
            return Some((sketch, gone));
        }
        gone.extend(funcs);
        idle.extend(inputs);
    }
}

/// Whether a nest reads a Func that is in its registers.
fn is_read(space: &SearchSpace<'_>, nest: &Nest, func: FuncId, inlined: &NodeSet) -> bool {
    let mut others = nest.clone();
    others.registers.retain(|of| *of != func);
    space.reads(&others, inlined).0.contains(space.dag.func_node(func))
}

fn is_copy(item: &BlockItem) -> bool {
    item.nest().is_some_and(|nest| nest.item.stage().is_none())
}
