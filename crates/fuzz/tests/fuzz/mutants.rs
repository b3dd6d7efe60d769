//! Kernels with a barrier or an atomic removed or altered: the checks notice, or there is nothing to notice.

use std::collections::BTreeMap;

use warploom_fuzz::{Fate, Options, Survival, mutate, random_schedules};

use crate::support::*;

/// If the simulator missed races, barriers would survive of which threads that run one after another notice that
/// they are gone, and few would be noticed.
#[test]
fn barriers_of_random_kernels_are_needed_or_explained() {
    let mut options = Options { seed: 4, ..Options::default() };
    options.random.stages = 2..=4;
    let mutated = mutate(8, &options, &device(), &random_schedules(2), &|_| ()).unwrap();
    assert!(mutated.failures.is_empty(), "{:?}", mutated.failures);
    assert_eq!(mutated.kernels.len(), 8);
    let mut fates: BTreeMap<&str, usize> = BTreeMap::new();
    for found in &mutated.kernels {
        for mutant in &found.mutated.mutants {
            let place = (found.case.seed, found.schedule_seed, &found.mutated.kernel.name);
            assert_ne!(mutant.fate, Fate::Survived(Survival::Unexplained), "{place:x?}: {mutant}");
            *fates.entry(mutant.fate.name()).or_default() += 1;
        }
    }
    let count = |fate| fates.get(fate).copied().unwrap_or(0);
    assert!(count("refused") + count("stopped") > 2 * count("survived"), "{fates:?}");
}
