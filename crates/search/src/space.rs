//! The constants of a search.

use std::sync::OnceLock;

use warploom_lang::{FuncId, IdVec, Range};
use warploom_plan::Problem;
use warploom_schedule::{
    Dag, FuncSet, Item, LoopKind, Nest, NodeId, NodeSet, ReductionTile, RootItem, Schedule, Size, StageId,
    StageRef, Tile,
};

use crate::kernels::{Tiling, tilings};
use crate::options::Options;

/// A loop of a stage and its extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub dim: LoopKind,
    pub extent: i64,
}

/// When the values of a reduction variable may run in parallel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Freedom {
    /// Regardless of the other variables.
    pub always: bool,
    /// If loops around the kernel fix the variables outside it.
    pub under_outer: bool,
}

/// Facts about a stage at the sizes of the search.
#[derive(Clone, Debug)]
pub(crate) struct StageFacts {
    pub at: StageRef,
    /// Whether it computes anything.
    pub defined: bool,
    /// Its pure loops, the fastest in memory first.
    pub pure: Vec<Span>,
    /// Its reduction variables, the fastest first.
    pub reductions: Vec<Span>,
    pub freedom: Vec<Freedom>,
    /// The nodes that it reads directly.
    pub reads: NodeSet,
    tilings: OnceLock<Vec<Tiling>>,
}

/// A problem and the options of its search.
pub(crate) struct SearchSpace<'a> {
    pub problem: &'a Problem,
    pub dag: &'a Dag,
    pub options: &'a Options,
    /// The same problem for all sizes at which schedules must be legal.
    pub any_size: Option<Problem>,
    stages: IdVec<StageId, StageFacts>,
}

impl<'a> SearchSpace<'a> {
    pub fn new(problem: &'a Problem, options: &'a Options) -> SearchSpace<'a> {
        let any_size =
            options.any_size.as_ref().and_then(|any| any.rewritten(problem.pipeline().rewrites()).ok());
        let mut space = SearchSpace { problem, dag: problem.dag(), options, any_size, stages: IdVec::new() };
        let ids: Vec<StageId> = space.dag.stages().keys().collect();
        for id in ids {
            let facts = space.facts(id);
            space.stages.push(facts);
        }
        space
    }

    /// Whether a schedule is legal at all sizes that were asked for.
    pub fn is_legal(&self, schedule: &Schedule) -> bool {
        let mut problems = self.any_size.iter().chain([self.problem]);
        problems.all(|problem| problem.check(schedule).is_ok())
    }

    fn facts(&self, id: StageId) -> StageFacts {
        let stage = &self.dag.stages()[id];
        let at = StageRef { func: stage.func, stage: stage.number };
        let regions = &self.problem.regions().funcs[at.func].stages[at.stage];
        let pure = stage.loops.iter().filter_map(|of| match of.kind {
            LoopKind::Pure(_) => {
                Some(Span { dim: of.kind, extent: self.problem.loop_range(at.into(), of.kind).extent.max(1) })
            }
            LoopKind::Reduction(_) => None,
        });
        let reduction =
            |(r, range): (usize, &Range)| Span { dim: LoopKind::Reduction(r), extent: range.extent.max(1) };
        let reductions: Vec<Span> = regions.domain.iter().enumerate().map(reduction).collect();
        let mut reads = self.no_nodes();
        for edge in &stage.producers {
            reads.insert(self.dag.edges()[*edge].producer);
        }
        StageFacts {
            at,
            defined: stage.values > 0,
            pure: pure.collect(),
            freedom: (0..reductions.len()).map(|var| self.freedom(at, var, &reductions)).collect(),
            reductions,
            reads,
            tilings: OnceLock::new(),
        }
    }

    /// Determines from the rules of schedules whether a variable may run in parallel.
    fn freedom(&self, stage: StageRef, var: usize, reductions: &[Span]) -> Freedom {
        if reductions[var].extent <= 1 {
            return Freedom::default();
        }
        let outer = (var + 1..reductions.len()).filter(|outer| reductions[*outer].extent > 1);
        let fixed = outer.rev().map(|var| ReductionTile { stage, var, size: Size::Of(1) });
        let parallel = |loops: Vec<ReductionTile>| {
            let block = vec![Tile { dim: LoopKind::Reduction(var), size: Size::Of(1) }];
            let kernel = RootItem::lone(stage, loops, block, Vec::new(), None);
            self.problem.examine(&FuncSet::default(), [&kernel]).is_ok()
        };
        let always = parallel(Vec::new());
        Freedom { always, under_outer: always || parallel(fixed.collect()) }
    }

    pub fn no_nodes(&self) -> NodeSet {
        NodeSet::none(self.dag.nodes().len())
    }

    pub fn stage_id(&self, stage: StageRef) -> StageId {
        self.problem.stage_id(stage)
    }

    pub fn stage(&self, stage: StageRef) -> &StageFacts {
        &self.stages[self.stage_id(stage)]
    }

    /// The stages of a Func that compute something.
    pub fn stages_of(&self, func: FuncId) -> impl Iterator<Item = StageRef> + '_ {
        let stages = &self.dag.nodes()[self.dag.func_node(func)].stages;
        stages.iter().map(|id| &self.stages[*id]).filter(|stage| stage.defined).map(|stage| stage.at)
    }

    /// The tilings of a stage that has its own kernel.
    pub fn tilings(&self, stage: StageRef) -> &[Tiling] {
        let facts = self.stage(stage);
        facts.tilings.get_or_init(|| tilings(self, facts))
    }

    /// The kernel of a stage before any decision on it.
    pub fn default_kernel(&self, stage: StageRef) -> RootItem {
        self.problem.default_kernel(stage)
    }

    /// The nodes that a nest reads from elsewhere, possibly through `inlined` Funcs and those in
    /// its registers. Also returns the inlined Funcs on the way.
    pub fn reads(&self, nest: &Nest, inlined: &NodeSet) -> (NodeSet, NodeSet) {
        let (mut reads, mut through) = (self.no_nodes(), self.no_nodes());
        let Item::Stage(stage) = nest.item else {
            return (reads, through);
        };
        let mut seen = self.no_nodes();
        seen.insert(self.dag.func_node(stage.func));
        let mut stack = vec![self.stage_id(stage)];
        while let Some(id) = stack.pop() {
            for node in self.stages[id].reads.iter() {
                if seen.contains(node) {
                    continue;
                }
                seen.insert(node);
                if inlined.contains(node) {
                    through.insert(node);
                } else if !self.func_of(node).is_some_and(|func| nest.registers.contains(&func)) {
                    reads.insert(node);
                    continue;
                }
                stack.extend(&self.dag.nodes()[node].stages);
            }
        }
        (reads, through)
    }

    pub fn func_of(&self, node: NodeId) -> Option<FuncId> {
        self.dag.nodes()[node].source.func()
    }

    /// Whether the search must not change the kernel of a stage, except for adding other Funcs to
    /// it.
    pub fn is_fixed(&self, stage: StageRef) -> bool {
        self.options.fixed.as_ref().is_some_and(|fixed| fixed.keeps(stage))
    }

    /// Whether the decisions on a Func are already made.
    pub fn is_decided(&self, func: FuncId) -> bool {
        self.options.fixed.as_ref().is_some_and(|fixed| fixed.funcs().contains(&func))
    }

    /// Whether a Func is an output of the pipeline.
    pub fn is_output(&self, func: FuncId) -> bool {
        self.problem.is_output(func)
    }

    /// The Funcs, consumers before their producers.
    pub fn funcs(&self) -> impl Iterator<Item = FuncId> + '_ {
        self.problem.pipeline().funcs().keys().rev()
    }
}
