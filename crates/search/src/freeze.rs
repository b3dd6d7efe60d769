//! Freezes Funcs that are not worth a decision.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use warploom_lang::FuncId;
use warploom_schedule::{Dag, Node};

use crate::search::Search;
use crate::state::State;
use crate::statistics::Statistics;

impl Search<'_> {
    /// The Funcs whose placement in a state is not worth a decision: their total cost is at most
    /// [`Limits::frozen_share`](crate::Limits::frozen_share) of the state's cost, and the placement
    /// of an unfrozen Func does not depend on them. Empty without
    /// [`Options::freezing`](crate::Options::freezing), or after the deadline.
    pub fn frozen(&self, state: &State) -> BTreeSet<FuncId> {
        let space = self.evaluator.space;
        if !space.options.freezing || self.is_over() {
            return BTreeSet::new();
        }
        let funcs: Vec<FuncId> = space.funcs().collect();
        let costs = self.evaluator.func_costs(state);
        let dag = space.dag;
        let ways: [&Way<'_>; 2] =
            [&|func| readers(dag, state, func), &|func| repeated_inside(dag, state, func)];
        let frozen = frozen(&funcs, &costs, space.options.limits.frozen_share, ways);
        self.count(&Statistics { frozen: frozen.len() as u64, ..Statistics::default() });
        frozen
    }
}

/// The readers of a Func, and whether each is inlined in a state.
fn readers(dag: &Dag, state: &State, func: FuncId) -> Vec<(FuncId, bool)> {
    let readers = dag.nodes()[dag.func_node(func)].consumers.iter();
    let readers = readers.map(|edge| &dag.stages()[dag.edges()[*edge].consumer]);
    readers.map(|reader| (reader.func, state.inlined.contains(reader.node))).collect()
}

/// The Funcs that a state inlines into a Func although they are not pointwise, a wrapper or a
/// boundary condition. The search for such Funcs continues inside each of them.
fn repeated_inside(dag: &Dag, state: &State, func: FuncId) -> Vec<(FuncId, bool)> {
    let stages = dag.nodes()[dag.func_node(func)].stages.iter();
    let read = stages.flat_map(|stage| &dag.stages()[*stage].producers);
    let read = read.map(|edge| dag.edges()[*edge].producer).filter(|read| state.inlined.contains(*read));
    let nodes = read.map(|read| &dag.nodes()[read]);
    let is_step = |node: &Node| node.is_wrapper || node.is_boundary_condition || node.is_pointwise;
    let stages = nodes.filter(|node| !is_step(node)).filter_map(|node| node.stages.first());
    stages.map(|stage| (dag.stages()[*stage].func, true)).collect()
}

/// The neighbours of a Func, and whether the path continues at each.
type Way<'a> = dyn Fn(FuncId) -> Vec<(FuncId, bool)> + 'a;

/// The Funcs to freeze: the cheapest ones, as long as their total cost is at most `share` of the
/// whole cost, and never the most expensive ones, as many as the logarithm of the number of Funcs.
///
/// An unfrozen Func can only be computed in a kernel that reads it, and the Funcs inlined in
/// between decide which kernels these are. The Funcs inlined into it decide its code size. Each of
/// `ways` gives the neighbours of a Func on such paths, and whether the path continues there. Funcs
/// on the paths from unfrozen Funcs are unfrozen too, starting with the most expensive Funcs. The
/// limit per kind of path is again that logarithm.
fn frozen(
    funcs: &[FuncId],
    costs: &BTreeMap<FuncId, f64>,
    share: f64,
    ways: [&Way<'_>; 2],
) -> BTreeSet<FuncId> {
    let cost = |func: &FuncId| costs.get(func).copied().unwrap_or(0.0);
    let total: f64 = funcs.iter().map(cost).sum();
    let free = funcs.len().max(1).next_power_of_two().ilog2() as usize;
    let mut order = funcs.to_vec();
    // The sort is stable.
    order.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    let mut left = share * total;
    let affordable = order.iter().rev().take_while(|func| {
        left -= cost(func);
        left >= 0.0
    });
    let cheap = affordable.count().min(order.len().saturating_sub(free));
    let mut frozen: BTreeSet<FuncId> = order.drain(order.len() - cheap..).collect();
    for way in ways {
        let mut queue: VecDeque<FuncId> = order.iter().copied().collect();
        let mut more = free;
        while let Some(func) = queue.pop_front() {
            for (next, goes_on) in way(func) {
                if more > 0 && frozen.remove(&next) {
                    more -= 1;
                    queue.extend(goes_on.then_some(next));
                }
            }
        }
    }
    frozen
}

#[cfg(test)]
mod tests {
    use warploom_lang::Id;

    use super::*;

    #[test]
    fn the_cheap_ones_are_frozen() {
        let funcs: Vec<FuncId> = (0..8).map(FuncId::new).collect();
        let costs = [0.1, 50.0, 0.2, 9.0, 0.3, 8.0, 7.0, 6.0];
        let costs: BTreeMap<FuncId, f64> = funcs.iter().copied().zip(costs).collect();
        let frozen = |share| {
            frozen(&funcs, &costs, share, [&|_| Vec::new(), &|_| Vec::new()])
                .into_iter()
                .map(Id::index)
                .collect::<Vec<_>>()
        };
        assert_eq!(frozen(0.02), [0, 2, 4]);
        // The next one would add 6 of 80.6.
        assert_eq!(frozen(0.08), [0, 2, 4]);
        assert_eq!(frozen(0.09), [0, 2, 4, 7]);
        // The three most expensive ones stay unfrozen whatever they cost.
        assert_eq!(frozen(1.0), [0, 2, 4, 6, 7]);
        assert!(frozen(0.0).is_empty());
    }

    #[test]
    fn what_is_inlined_on_the_way_to_a_kernel_is_free() {
        let funcs: Vec<FuncId> = (0..16).map(FuncId::new).collect();
        let costs: BTreeMap<FuncId, f64> = [(funcs[0], 100.0)].into();
        // A chain: each Func is read by the next one. Those from the second up to `last` are
        // inlined.
        let frozen = |last: usize| {
            let next = |func: FuncId| {
                let next = func.index() + 1;
                funcs.get(next).map(|func| (*func, next < last)).into_iter().collect()
            };
            frozen(&funcs, &costs, 0.02, [&next, &|_| Vec::new()]).into_iter().collect::<Vec<_>>()
        };
        // Four are unfrozen by rank, and four more on the path.
        assert_eq!(frozen(16), funcs[8..]);
        // The path ends at a kernel.
        assert_eq!(frozen(3), funcs[5..]);
    }

    #[test]
    fn each_kind_of_ways_has_its_own_number() {
        let funcs: Vec<FuncId> = (0..16).map(FuncId::new).collect();
        let costs: BTreeMap<FuncId, f64> = [(funcs[8], 100.0)].into();
        let neighbour = |func: FuncId, step: usize| {
            let next = func.index().wrapping_add(step);
            funcs.get(next).map(|func| (*func, true)).into_iter().collect()
        };
        let (up, down) = (|func| neighbour(func, 1), |func| neighbour(func, usize::MAX));
        let frozen = |ways: [&Way<'_>; 2]| {
            frozen(&funcs, &costs, 0.02, ways).into_iter().map(Id::index).collect::<Vec<_>>()
        };
        // By rank, the expensive one and the first three are unfrozen. Two paths start at 8 and 2.
        assert_eq!(frozen([&up, &|_| Vec::new()]), [5, 6, 7, 11, 12, 13, 14, 15]);
        assert_eq!(frozen([&up, &down]), [11, 12, 13, 14, 15]);
    }
}
