//! Selects which of many options for one kernel are evaluated, and which of those are kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use warploom_schedule::{FULL_DEPTH, RootItem, StageRef, item_hash};

use crate::evaluate::Evaluator;
use crate::expand::{Decision, Sampling};
use crate::hash::of_words;
use crate::search::Search;
use crate::state::{EvaluatedKernel, Sketch, State, stage_word};
use crate::statistics::Statistics;

/// The fewest options per state that are kept, if there are as many.
const MIN_KEPT: usize = 16;

/// An option of a decision: a kernel that may replace another.
#[derive(Debug)]
pub(crate) struct KernelOption {
    pub sketch: Sketch,
    /// Options of different groups are sampled separately.
    pub group: u64,
    /// Whether it is a last resort.
    pub secondary: bool,
}

/// The cheapest options, in order of cost. In each bucket, twice the logarithm of its size are
/// evaluated, or all without sampling.
pub(crate) fn cheapest_of(
    evaluator: &Evaluator<'_>,
    kernels: Vec<KernelOption>,
    sampling: Sampling,
    salt: u64,
    counts: &mut Statistics,
) -> Vec<Arc<EvaluatedKernel>> {
    counts.enumerated += kernels.len() as u64;
    let (last_resort, first): (Vec<KernelOption>, Vec<KernelOption>) =
        kernels.into_iter().partition(|option| option.secondary);
    let found = from_buckets(evaluator, &first, sampling, salt, counts);
    if !found.is_empty() {
        counts.sampled_away += last_resort.len() as u64;
        return found;
    }
    from_buckets(evaluator, &last_resort, sampling, salt, counts)
}

fn from_buckets(
    evaluator: &Evaluator<'_>,
    kernels: &[KernelOption],
    sampling: Sampling,
    salt: u64,
    counts: &mut Statistics,
) -> Vec<Arc<EvaluatedKernel>> {
    let options = evaluator.space.options;
    let key = |(index, option): (usize, &KernelOption)| {
        let item: &RootItem = &option.sketch.item;
        let bucket = if options.sampling { item_hash(item, sampling.depth as i32) } else { 0 };
        let order = of_words(&[sampling.seed, salt, item_hash(item, FULL_DEPTH)]);
        (option.group, bucket, order, index)
    };
    let mut keys: Vec<(u64, u64, u64, usize)> = kernels.iter().enumerate().map(key).collect();
    keys.sort_unstable();
    // Each bucket with its remaining quota.
    let buckets = keys.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    let mut buckets: Vec<_> = buckets
        .map(|bucket| (bucket, if options.sampling { quota(bucket.len()) } else { bucket.len() }))
        .collect();
    let mut found: Vec<Arc<EvaluatedKernel>> = Vec::new();
    // Refused options do not use up the quota: others are tried instead.
    while !buckets.is_empty() && !evaluator.is_over() {
        let mut asked = Vec::new();
        for (number, (bucket, wanted)) in buckets.iter_mut().enumerate() {
            let (now, later) = bucket.split_at(bucket.len().min(*wanted));
            asked.extend(now.iter().map(|(.., index)| (number, kernels[*index].sketch.clone())));
            *bucket = later;
        }
        let (numbers, sketches): (Vec<usize>, Vec<Sketch>) = asked.into_iter().unzip();
        for (number, verdict) in numbers.into_iter().zip(evaluator.judge(sketches, counts)) {
            match verdict {
                Ok(kernel) => {
                    buckets[number].1 -= 1;
                    found.push(kernel);
                }
                Err(reason) => counts.refuse(reason),
            }
        }
        counts.sampled_away +=
            buckets.iter().filter(|(_, wanted)| *wanted == 0).map(|(left, _)| left.len() as u64).sum::<u64>();
        buckets.retain(|(left, wanted)| *wanted > 0 && !left.is_empty());
    }
    found.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
    found.truncate(options.beam.max(MIN_KEPT));
    found
}

/// The number of options per bucket to evaluate: twice the logarithm. With one times the logarithm,
/// some results are a tenth slower than those of an exhaustive search.
fn quota(options: usize) -> usize {
    2 * options.checked_ilog2().unwrap_or(0).max(1) as usize
}

/// The tilings of single-stage kernels, evaluated. They depend on the Funcs inlined there but not on the rest of
/// a state, so many states share them.
#[derive(Debug, Default)]
pub(crate) struct TilingCache(BTreeMap<(StageRef, Vec<u64>), Vec<Arc<EvaluatedKernel>>>);

impl TilingCache {
    /// The tiled kernels for a sketch, cheapest first.
    pub fn of(&self, sketch: &Sketch) -> &[Arc<EvaluatedKernel>] {
        self.0.get(&key(sketch)).map_or(&[], Vec::as_slice)
    }

    /// Computes the tilings that a decision on these states needs.
    pub fn fill(
        &mut self,
        search: &Search<'_>,
        states: &[Arc<State>],
        decision: Decision,
        sampling: Sampling,
    ) {
        let Decision::Tile(stage) = decision else { return };
        let mut missing: BTreeMap<(StageRef, Vec<u64>), &Sketch> = BTreeMap::new();
        let kernels = states.iter().filter_map(|state| state.kernel_of(stage));
        for kernel in kernels.filter(|kernel| kernel.is_lone()) {
            let key = key(&kernel.sketch);
            if !self.0.contains_key(&key) {
                missing.insert(key, &kernel.sketch);
            }
        }
        let tilings = |(key, sketch)| {
            (key, search.counted(|counts| tiles(&search.evaluator, sketch, sampling, counts)))
        };
        self.0.par_extend(missing.into_par_iter().map(tilings));
    }
}

fn key(sketch: &Sketch) -> (StageRef, Vec<u64>) {
    (sketch.own, sketch.inlined.words().to_vec())
}

fn tiles(
    evaluator: &Evaluator<'_>,
    sketch: &Sketch,
    sampling: Sampling,
    counts: &mut Statistics,
) -> Vec<Arc<EvaluatedKernel>> {
    let tilings = evaluator.space.tilings(sketch.own).iter();
    let kernels = tilings.map(|tiling| KernelOption {
        sketch: sketch.with_tiles(tiling.item.clone()),
        group: 0,
        secondary: tiling.secondary,
    });
    cheapest_of(evaluator, kernels.collect(), sampling, stage_word(sketch.own), counts)
}

#[cfg(test)]
mod tests {
    use super::quota;

    #[test]
    fn quotas_grow_with_the_logarithm() {
        assert_eq!([1, 2, 3, 4, 7, 8, 300].map(quota), [2, 2, 2, 4, 4, 6, 16]);
    }
}
