//! States: complete schedules that share common kernels.

use std::sync::Arc;

use smallvec::SmallVec;
use warploom_lang::{FuncId, Id};
use warploom_schedule::{FULL_DEPTH, FuncSet, NodeSet, RootItem, Schedule, StageRef, item_hash};

use crate::hash::{of_words, wide};
use crate::space::SearchSpace;

/// The number of depths at which the hashes of kernels differ.
const DEPTHS: usize = FULL_DEPTH as usize;

/// A kernel and the Funcs inlined into it, not evaluated yet.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    pub item: Arc<RootItem>,
    /// The stage whose kernel it is.
    pub own: StageRef,
    /// The nodes that each nest reads from elsewhere, in execution order.
    pub nest_reads: Vec<NodeSet>,
    /// The nodes of other kernels and inputs that the kernel reads.
    pub reads: NodeSet,
    /// The Funcs that are inlined into it.
    pub inlined: NodeSet,
}

impl Sketch {
    /// A kernel in which all of `inlined` are inlined.
    pub fn new(space: &SearchSpace<'_>, item: impl Into<Arc<RootItem>>, inlined: &NodeSet) -> Option<Sketch> {
        let item = item.into();
        let kernel = item.kernels().next()?;
        let own = kernel.stage;
        let (mut reads, mut through, mut made) = (space.no_nodes(), space.no_nodes(), space.no_nodes());
        let mut nest_reads = Vec::new();
        for nest in kernel.nests() {
            let (read, looked_through) = space.reads(nest, inlined);
            reads.extend(&read);
            through.extend(&looked_through);
            nest_reads.push(read);
            if let Some(stage) = nest.item.stage() {
                made.insert(space.dag.func_node(stage.func));
            }
        }
        reads.subtract(&made);
        Some(Sketch { item, own, nest_reads, reads, inlined: through })
    }

    /// The kernel with other tiles: the same nests with the same reads.
    pub fn with_tiles(&self, item: impl Into<Arc<RootItem>>) -> Sketch {
        Sketch { item: item.into(), ..self.clone() }
    }

    /// A hash of everything that its evaluation depends on, wide enough to identify it.
    pub fn key(&self) -> u128 {
        wide(&self.words(FULL_DEPTH))
    }

    /// The words to hash at a depth. The inlined Funcs count at every depth, because they are not
    /// sizes.
    fn words(&self, depth: i32) -> SmallVec<[u64; 8]> {
        let mut words = SmallVec::from_slice(self.inlined.words());
        words.push(item_hash(&self.item, depth));
        words
    }
}

/// An evaluated kernel.
#[derive(Debug)]
pub(crate) struct EvaluatedKernel {
    pub sketch: Sketch,
    /// The extents of the points of each nest, in execution order.
    pub extents: Vec<Vec<i64>>,
    /// Its contribution to the totals of a state.
    pub totals: Totals,
}

impl EvaluatedKernel {
    pub fn new(sketch: Sketch, key: u128, extents: Vec<Vec<i64>>, cost: f64) -> EvaluatedKernel {
        let hash = |depth: usize| of_words(&sketch.words(depth as i32));
        let totals = Totals { cost, identity: key, depths: std::array::from_fn(hash) };
        EvaluatedKernel { sketch, extents, totals }
    }

    /// The predicted time in microseconds.
    pub fn cost(&self) -> f64 {
        self.totals.cost
    }

    /// Whether it computes only its own stage.
    pub fn is_lone(&self) -> bool {
        let mut nests = self.sketch.item.nests();
        nests.next().is_some_and(|own| own.registers.is_empty()) && nests.next().is_none()
    }
}

/// Sums over kernels. They do not depend on the order in which kernels are added and removed,
/// except for the rounding of the cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// The predicted time in microseconds.
    pub cost: f64,
    /// A hash of all decisions.
    pub identity: u128,
    depths: [u64; DEPTHS],
}

impl Totals {
    /// The hash of the decisions down to a depth.
    pub fn hash(&self, depth: usize) -> u64 {
        self.depths.get(depth).copied().unwrap_or(self.identity as u64)
    }

    fn add(&mut self, more: &Totals) {
        self.cost += more.cost;
        self.identity = self.identity.wrapping_add(more.identity);
        for (sum, hash) in self.depths.iter_mut().zip(more.depths) {
            *sum = sum.wrapping_add(hash);
        }
    }

    fn subtract(&mut self, less: &Totals) {
        self.cost -= less.cost;
        self.identity = self.identity.wrapping_sub(less.identity);
        for (sum, hash) in self.depths.iter_mut().zip(less.depths) {
            *sum = sum.wrapping_sub(hash);
        }
    }
}

/// A complete schedule with evaluated kernels. States share the kernels that they have in common.
#[derive(Clone, Debug)]
pub struct State {
    /// Its kernels, sorted by their own stages, which is a valid execution order.
    pub(crate) kernels: Vec<Arc<EvaluatedKernel>>,
    pub(crate) inlined: NodeSet,
    totals: Totals,
}

impl State {
    pub(crate) fn new(mut kernels: Vec<Arc<EvaluatedKernel>>, inlined: NodeSet) -> State {
        kernels.sort_by_key(|kernel| kernel.sketch.own);
        let mut totals = Totals::default();
        kernels.iter().for_each(|kernel| totals.add(&kernel.totals));
        State { kernels, inlined, totals }
    }

    /// The predicted time in microseconds.
    pub fn cost(&self) -> f64 {
        self.totals.cost
    }

    /// A hash of all decisions: states that differ in any decision have different hashes.
    pub fn identity(&self) -> u128 {
        self.totals.identity
    }

    /// The kernel whose own stage this is.
    pub(crate) fn kernel_of(&self, stage: StageRef) -> Option<&Arc<EvaluatedKernel>> {
        let position = self.kernels.binary_search_by_key(&stage, |kernel| kernel.sketch.own).ok()?;
        Some(&self.kernels[position])
    }

    /// The kernels of the stages of a Func.
    pub(crate) fn kernels_of(&self, func: FuncId) -> &[Arc<EvaluatedKernel>] {
        let first = self.kernels.partition_point(|kernel| kernel.sketch.own.func < func);
        let end = self.kernels.partition_point(|kernel| kernel.sketch.own.func <= func);
        &self.kernels[first..end]
    }

    /// Converts the state to a schedule.
    pub(crate) fn schedule(&self, space: &SearchSpace<'_>) -> Schedule {
        let root = self.kernels.iter().map(|kernel| RootItem::clone(&kernel.sketch.item)).collect();
        let rewrites = space.problem.pipeline().rewrites().to_vec();
        Schedule { rewrites, inlined: funcs(space, &self.inlined).iter().collect(), root }
    }
}

/// The result of a decision on a state. Few of its kernels differ, and most children are never used
/// again, so the state is materialised only on demand.
#[derive(Clone, Debug)]
pub struct Child {
    base: Arc<State>,
    /// Kernels that are new, or replace those of the same stages.
    kernels: SmallVec<[Arc<EvaluatedKernel>; 1]>,
    /// The Func whose old kernels are removed, unless they are among the new ones.
    gone: Option<FuncId>,
    inlined: Option<NodeSet>,
    totals: Totals,
}

impl Child {
    /// The unchanged state.
    pub(crate) fn same(base: &Arc<State>) -> Child {
        let totals = base.totals;
        Child { base: base.clone(), kernels: SmallVec::new(), gone: None, inlined: None, totals }
    }

    pub(crate) fn new(
        base: &Arc<State>,
        kernels: SmallVec<[Arc<EvaluatedKernel>; 1]>,
        gone: Option<FuncId>,
        inlined: Option<NodeSet>,
    ) -> Child {
        let mut totals = base.totals;
        if let Some(func) = gone {
            base.kernels_of(func).iter().for_each(|kernel| totals.subtract(&kernel.totals));
        }
        for kernel in &kernels {
            let own = kernel.sketch.own;
            let before = base.kernel_of(own).filter(|_| gone != Some(own.func));
            before.into_iter().for_each(|before| totals.subtract(&before.totals));
            totals.add(&kernel.totals);
        }
        Child { base: base.clone(), kernels, gone, inlined, totals }
    }

    /// The predicted time in microseconds.
    pub fn cost(&self) -> f64 {
        self.totals.cost
    }

    /// The identity of the state; see [`State::identity`].
    pub fn identity(&self) -> u128 {
        self.totals.identity
    }

    /// A hash of the kernels' trees down to a depth. States whose kernels are equal down to that
    /// depth have the same hash.
    pub fn structure(&self, depth: usize) -> u64 {
        self.totals.hash(depth)
    }

    /// Materialises the state.
    pub fn state(&self) -> Arc<State> {
        if self.kernels.is_empty() && self.gone.is_none() && self.inlined.is_none() {
            return self.base.clone();
        }
        let replaced = |own: StageRef| self.kernels.iter().any(|kernel| kernel.sketch.own == own);
        let stays = |kernel: &&Arc<EvaluatedKernel>| {
            self.gone != Some(kernel.sketch.own.func) && !replaced(kernel.sketch.own)
        };
        let kernels = self.base.kernels.iter().filter(stays).chain(&self.kernels).cloned().collect();
        let inlined = self.inlined.clone().unwrap_or_else(|| self.base.inlined.clone());
        Arc::new(State::new(kernels, inlined))
    }
}

/// The Funcs of a set.
pub(crate) fn funcs(space: &SearchSpace<'_>, set: &NodeSet) -> FuncSet {
    set.iter().filter_map(|node| space.func_of(node)).collect()
}

/// A number for a stage, for hashing.
pub(crate) fn stage_word(stage: StageRef) -> u64 {
    (stage.func.index() as u64) << 32 | stage.stage as u64
}
