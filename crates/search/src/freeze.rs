//! Funcs that are not worth a search of their own.

use std::collections::{BTreeMap, BTreeSet};

use warploom_lang::FuncId;

/// The Funcs whose place is kept: the cheapest ones, all but as many as the logarithm of their number, and all but those
/// that have at least `share` of the whole cost.
pub(crate) fn frozen(funcs: &[FuncId], costs: &BTreeMap<FuncId, f64>, share: f64) -> BTreeSet<FuncId> {
    let cost = |func: &FuncId| costs.get(func).copied().unwrap_or(0.0);
    let total: f64 = funcs.iter().map(cost).sum();
    let free = funcs.len().max(1).next_power_of_two().ilog2() as usize;
    let mut order = funcs.to_vec();
    // Equal ones stay in their order.
    order.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    let cheap = order.into_iter().enumerate();
    let cheap = cheap.filter(|(rank, func)| *rank >= free && cost(func) < share * total);
    cheap.map(|(_, func)| func).collect()
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
        let frozen = |share| frozen(&funcs, &costs, share).into_iter().map(Id::index).collect::<Vec<_>>();
        assert_eq!(frozen(0.02), [0, 2, 4]);
        // The three most expensive are free whatever they cost.
        assert_eq!(frozen(1.0), [0, 2, 4, 6, 7]);
        assert!(frozen(0.0).is_empty());
    }
}
