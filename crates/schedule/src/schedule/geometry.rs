//! What does not change from one schedule of a realisation to the next.

use std::collections::BTreeSet;

use ahash::RandomState;
use dashmap::DashMap;
use smallvec::SmallVec;
use warploom_lang::ir::Stage;
use warploom_lang::{FuncId, Id, IdVec, Pipeline, Region, Regions};

use crate::dag::LoopKind;
use crate::ids::NodeId;
use crate::node_set::NodeSet;
use crate::schedule::dependence::{Dependence, Together};
use crate::schedule::flow::Read;
use crate::schedule::footprint::Footprints;
use crate::schedule::outline::{NestInfo, Outline};
use crate::schedule::program::Program;
use crate::schedule::trace::Tracer;
use crate::schedule::tree::{Item, RootItem, StageRef};

/// A few Funcs.
pub(crate) type FuncList = SmallVec<[FuncId; 8]>;

/// A reduction variable of a stage, and what runs together with it.
type Question = (StageRef, usize, SmallVec<[Together; 4]>);

/// A pipeline at the sizes of one realisation, prepared for looking at many schedules of it, or at many kernels.
///
/// ```
/// use warploom_lang::*;
/// use warploom_schedule::schedule::{Geometry, ScheduleBuilder};
/// let x = vars!(x);
/// let ramp = func("ramp", x, x * 2);
/// let blur = func("blur", x, ramp.at(x) + ramp.at(x + 2));
/// let pipeline = Pipeline::new("blur", [blur])?;
/// let request = Realisation::new(&pipeline).output("blur", Region::of_extents(&[64]));
/// let regions = infer(&pipeline, &request)?;
///
/// let geometry = Geometry::new(&pipeline, &regions);
/// for (size, extent) in [(16, 18), (32, 34)] {
///     let schedule = ScheduleBuilder::new(&pipeline)
///         .kernel("blur", format!("x {size}").as_str(), |block| block.flat("ramp").flat("blur"))
///         .build()?;
///     let footprints = geometry.footprints(&schedule.inlined, &schedule.root);
///     assert_eq!(footprints.kernels[0].allocations[0].extents, [extent]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Geometry<'a> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) regions: &'a Regions,
    funcs: IdVec<FuncId, FuncFacts>,
    /// Answers to [`Geometry::is_parallel`]. Few questions are asked, each of them often.
    parallel: DashMap<Question, bool, RandomState>,
}

/// What some stages read.
#[derive(Default)]
pub(crate) struct Through {
    /// What is read in the end, in order.
    pub outside: FuncList,
    /// What was looked through, in order.
    pub inside: FuncList,
}

/// What schedules need to know of a Func.
#[derive(Debug)]
pub(crate) struct FuncFacts {
    pub stages: Vec<StageFacts>,
    /// The Func, and all that it reads, directly or not.
    upstream: NodeSet,
    pub is_output: bool,
    /// Whether every stage writes its own point or a fixed one, so that registers can hold it: if not, the first
    /// stage that does not.
    pub moving_stage: Option<StageRef>,
}

/// What schedules need to know of a stage.
#[derive(Debug)]
pub(crate) struct StageFacts {
    pub program: Program,
    /// The other Funcs that it reads, in order.
    pub calls: Vec<FuncId>,
    /// Its loops: pure dimensions, then reduction variables.
    pub loops: Vec<LoopKind>,
}

impl<'a> Geometry<'a> {
    /// Prepares a pipeline.
    ///
    /// # Panics
    /// If the regions are those of another pipeline.
    pub fn new(pipeline: &'a Pipeline, regions: &'a Regions) -> Geometry<'a> {
        let mut geometry = Geometry { pipeline, regions, funcs: IdVec::new(), parallel: DashMap::default() };
        // Producers come before their consumers.
        for func in pipeline.funcs().keys() {
            let facts = geometry.func_facts(func);
            geometry.funcs.push(facts);
        }
        geometry
    }

    fn func_facts(&self, func: FuncId) -> FuncFacts {
        let stages = 0..self.pipeline.funcs()[func].stages.len();
        let stages: Vec<StageFacts> = stages
            .map(|stage| StageFacts::new(self.pipeline, self.regions, StageRef { func, stage }))
            .collect();
        let mut upstream = NodeSet::default();
        upstream.insert(self.node(Read::Func(func)));
        for access in stages.iter().flat_map(|stage| &stage.program.reads) {
            match access.read {
                Read::Func(func) => upstream.extend(&self.funcs[func].upstream),
                input => upstream.insert(self.node(input)),
            }
        }
        let decl = &self.pipeline.funcs()[func];
        let exprs = self.pipeline.exprs();
        let stays = |stage: &Stage| {
            (0..stage.indices.len()).all(|d| stage.is_pure(exprs, d) || stage.is_fixed(exprs, d))
        };
        let moving_stage = decl.stages.iter().position(|stage| !stays(stage));
        FuncFacts {
            stages,
            upstream,
            is_output: self.pipeline.outputs().contains(&func),
            moving_stage: moving_stage.map(|stage| StageRef { func, stage }),
        }
    }

    /// The footprints of kernels and loops around kernels, in the order they run. They need not be legal, nor be
    /// all of a schedule: Funcs that stand nowhere in them are read from global memory.
    ///
    /// # Panics
    /// If they name Funcs or inputs that the pipeline has not.
    pub fn footprints<'r>(
        &self,
        inlined: &BTreeSet<FuncId>,
        root: impl IntoIterator<Item = &'r RootItem>,
    ) -> Footprints {
        let outline = Outline::new(root);
        self.traced(inlined, &outline)
    }

    pub(crate) fn traced(&self, inlined: &BTreeSet<FuncId>, outline: &Outline<'_>) -> Footprints {
        Tracer::new(self, inlined, outline).footprints()
    }

    pub(crate) fn stage(&self, stage: StageRef) -> &StageFacts {
        &self.funcs[stage.func].stages[stage.stage]
    }

    pub(crate) fn func(&self, func: FuncId) -> &FuncFacts {
        &self.funcs[func]
    }

    pub(crate) fn stages_of(&self, func: FuncId) -> impl Iterator<Item = StageRef> + use<> {
        (0..self.funcs[func].stages.len()).map(move |stage| StageRef { func, stage })
    }

    /// The Funcs that some stages read, those looked through that are `inside`.
    pub(crate) fn reads_through(
        &self,
        stages: impl IntoIterator<Item = StageRef>,
        inside: impl Fn(FuncId) -> bool,
    ) -> Through {
        let (mut through, mut seen) = (Through::default(), NodeSet::default());
        let mut visit = |stage: &StageFacts, through: &mut Through| {
            for &func in &stage.calls {
                let node = self.node(Read::Func(func));
                if !seen.contains(node) {
                    seen.insert(node);
                    let list = if inside(func) { &mut through.inside } else { &mut through.outside };
                    list.push(func);
                }
            }
        };
        for stage in stages {
            visit(self.stage(stage), &mut through);
        }
        let mut looked = 0;
        while let Some(&func) = through.inside.get(looked) {
            self.funcs[func].stages.iter().for_each(|stage| visit(stage, &mut through));
            looked += 1;
        }
        through.inside.sort_unstable();
        through.outside.sort_unstable();
        through
    }

    /// The inlined Funcs that a kernel, or the kernels inside some loops, really compute, in order: with the
    /// kernel itself, all that its footprints depend on.
    pub fn inlined_in(&self, inlined: &BTreeSet<FuncId>, item: &RootItem) -> Vec<FuncId> {
        let outline = Outline::new([item]);
        let own = outline.nests.iter().filter_map(NestInfo::stage);
        let registers = outline.nests.iter().flat_map(|nest| &nest.nest.registers);
        let stages = own.chain(registers.flat_map(|func| self.stages_of(*func)));
        self.reads_through(stages, |func| inlined.contains(&func)).inside.to_vec()
    }

    /// Whether the values of a stage's reduction variable may run in any order, `together` with those of all
    /// its variables.
    pub(crate) fn is_parallel(&self, stage: StageRef, var: usize, together: &[Together]) -> bool {
        let question: Question = (stage, var, SmallVec::from_slice(together));
        let known = self.parallel.get(&question).map(|answer| *answer);
        known.unwrap_or_else(|| {
            let answer =
                Dependence::of(self.pipeline, self.regions, stage, |stage| stage.is_parallel(var, together));
            self.parallel.insert(question, answer);
            answer
        })
    }

    /// Whether a stage computes nothing at these sizes.
    pub(crate) fn is_idle(&self, stage: StageRef) -> bool {
        self.regions.is_idle(self.pipeline, stage.func, stage.stage)
    }

    /// Whether a stage or copy has a loop.
    pub(crate) fn has_loop(&self, item: Item, kind: LoopKind) -> bool {
        match (item, kind) {
            (Item::Stage(stage), kind) => self.stage(stage).loops.contains(&kind),
            (Item::Input(input), LoopKind::Pure(d)) => d < self.pipeline.inputs()[input].dimensions,
            (Item::Input(_), LoopKind::Reduction(_)) => false,
        }
    }

    /// The number of a Func or input in sets of nodes, which is the one of the graph.
    pub(crate) fn node(&self, read: Read) -> NodeId {
        match read {
            Read::Input(input) => NodeId::new(input.index()),
            Read::Func(func) => NodeId::new(self.pipeline.inputs().len() + func.index()),
        }
    }

    /// All that there is of a Func, or all that is read of an input.
    pub(crate) fn root(&self, read: Read) -> &'a Region {
        match read {
            Read::Func(func) => &self.regions.funcs[func].region,
            Read::Input(input) => &self.regions.inputs[input],
        }
    }
}

impl FuncFacts {
    /// Whether the Func can be computed wherever it is used.
    pub fn can_be_inlined(&self) -> bool {
        !self.is_output && self.stages.len() == 1
    }

    /// Adds the Func, and all that it reads, directly or not.
    pub fn add_upstream(&self, nodes: &mut NodeSet) {
        nodes.extend(&self.upstream);
    }

    /// Whether the Func is one of some nodes, or reads one, directly or not.
    pub fn leads_to(&self, nodes: &NodeSet) -> bool {
        self.upstream.intersects(nodes)
    }
}

impl StageFacts {
    fn new(pipeline: &Pipeline, regions: &Regions, stage: StageRef) -> StageFacts {
        let decl = &pipeline.funcs()[stage.func].stages[stage.stage];
        let program = Program::new(pipeline, regions, stage);
        let mut calls: Vec<FuncId> = program.reads.iter().filter_map(|access| access.read.func()).collect();
        calls.sort_unstable();
        let pure = (0..decl.indices.len()).filter(|d| decl.is_pure(pipeline.exprs(), *d));
        let reductions = (0..decl.domain.len()).map(LoopKind::Reduction);
        StageFacts { program, calls, loops: pure.map(LoopKind::Pure).chain(reductions).collect() }
    }
}
