//! States: complete schedules that share the kernels they have in common.

use std::collections::BTreeSet;
use std::sync::Arc;

use warploom_lang::{FuncId, Id};
use warploom_schedule::schedule::{Item, RootItem, Schedule, StageRef};

use crate::bits::Bits;
use crate::edit::{kernel, nests};
use crate::hash::{Hashes, of_words, wide};
use crate::space::Space;

/// A kernel with what is inlined into it, not evaluated yet.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    pub item: Arc<RootItem>,
    /// The stage whose kernel it is.
    pub own: StageRef,
    pub hashes: Hashes,
    /// What each nest reads from elsewhere, in the order they run.
    pub nest_reads: Vec<Bits>,
    /// What the kernel reads of other kernels and of inputs.
    pub reads: Bits,
    /// The Funcs that are inlined into it.
    pub inlined: Bits,
}

impl Sketch {
    /// A kernel where all of `inlined` are inlined.
    pub fn new(space: &Space<'_>, item: Arc<RootItem>, hashes: Hashes, inlined: &Bits) -> Option<Sketch> {
        let kernel = kernel(&item)?;
        let own = kernel.stage;
        let (mut reads, mut through, mut made) = (space.no_nodes(), space.no_nodes(), space.no_nodes());
        let mut nest_reads = Vec::new();
        for nest in nests(&kernel.body) {
            let (read, looked_through) = space.reads(nest, inlined);
            reads.extend(&read);
            through.extend(&looked_through);
            nest_reads.push(read);
            if let Item::Stage(stage) = nest.item {
                made.insert(space.dag.func_node(stage.func));
            }
        }
        reads.subtract(&made);
        Some(Sketch { item, own, hashes, nest_reads, reads, inlined: through })
    }

    /// What its evaluation depends on.
    pub fn key(&self) -> u128 {
        let identity = self.hashes.identity;
        let mut words = vec![identity as u64, (identity >> 64) as u64];
        words.extend(self.inlined.words());
        wide(&words)
    }
}

/// An evaluated kernel.
#[derive(Debug)]
pub(crate) struct Kern {
    pub sketch: Sketch,
    /// The extents of the points of each nest at its place, in the order they run.
    pub extents: Vec<Vec<i64>>,
    /// The predicted time, microseconds.
    pub cost: f64,
}

/// A complete schedule.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Its kernels, by their own stages, which is an order they can run in.
    pub kernels: Vec<Arc<Kern>>,
    pub inlined: Bits,
    /// The predicted time, microseconds.
    pub cost: f64,
}

impl State {
    pub fn new(kernels: Vec<Arc<Kern>>, inlined: Bits) -> State {
        // Summed in order, so that equal states have equal costs.
        let cost = kernels.iter().map(|kernel| kernel.cost).sum();
        State { kernels, inlined, cost }
    }

    /// The kernel whose own stage this is.
    pub fn kernel_of(&self, stage: StageRef) -> Option<&Arc<Kern>> {
        let position = self.kernels.binary_search_by_key(&stage, |kernel| kernel.sketch.own).ok()?;
        Some(&self.kernels[position])
    }

    /// Its hash at a depth. What is inlined counts at every depth: it is no matter of sizes.
    pub fn hash(&self, depth: usize) -> u64 {
        let kernels = self.kernels.iter().map(|kernel| kernel.sketch.hashes.at(depth));
        let words: Vec<u64> = kernels.chain(self.inlined.words().iter().copied()).collect();
        of_words(&words)
    }

    /// A hash that stands for the whole schedule.
    pub fn identity(&self) -> u128 {
        let kernels = self.kernels.iter().map(|kernel| kernel.sketch.hashes.identity);
        let words = kernels.flat_map(|hash| [hash as u64, (hash >> 64) as u64]);
        let words: Vec<u64> = words.chain(self.inlined.words().iter().copied()).collect();
        wide(&words)
    }

    /// The schedule that it is.
    pub fn schedule(&self, space: &Space<'_>) -> Schedule {
        let root = self.kernels.iter().map(|kernel| RootItem::clone(&kernel.sketch.item)).collect();
        Schedule { inlined: funcs(space, &self.inlined), root }
    }
}

/// The Funcs of a set.
pub(crate) fn funcs(space: &Space<'_>, set: &Bits) -> BTreeSet<FuncId> {
    set.iter().filter_map(|node| space.func_of(node)).collect()
}

/// A number for a stage, for hashes.
pub(crate) fn stage_word(stage: StageRef) -> u64 {
    (stage.func.index() as u64) << 32 | stage.stage as u64
}
