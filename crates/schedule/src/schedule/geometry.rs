//! What does not change from one schedule of a realisation to the next.

use std::collections::BTreeSet;

use warploom_lang::{FuncId, Id, IdVec, Pipeline, Region, Regions};

use crate::dag::LoopKind;
use crate::ids::NodeId;
use crate::node_set::NodeSet;
use crate::schedule::flow::Read;
use crate::schedule::footprint::Footprints;
use crate::schedule::outline::Outline;
use crate::schedule::program::Program;
use crate::schedule::trace::Tracer;
use crate::schedule::tree::{RootItem, StageRef};

/// A pipeline at the sizes of one realisation, prepared for looking at many schedules of it, or at many kernels.
///
/// ```
/// use warploom_lang::*;
/// use warploom_schedule::schedule::{Geometry, ScheduleBuilder};
/// let x = vars!(x);
/// let ramp = func("ramp", x, x.cast::<f32>());
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
}

/// What schedules need to know of a Func.
#[derive(Debug)]
pub(crate) struct FuncFacts {
    pub stages: Vec<StageFacts>,
    /// The Func, and all that it reads, directly or not.
    upstream: NodeSet,
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
        let mut geometry = Geometry { pipeline, regions, funcs: IdVec::new() };
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
        FuncFacts { stages, upstream }
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
