//! A pipeline at the sizes of a request on a device, and everything that follows from these alone.

pub(crate) mod dependence;
pub(crate) mod flow;
pub(crate) mod program;

use std::sync::{Arc, OnceLock};

use ahash::RandomState;
use dashmap::DashMap;
use smallvec::SmallVec;
use thiserror::Error;
use warploom_lang::dynamic::{DynamicRegions, DynamicRequest, FormulaRange, infer_dynamic};
use warploom_lang::ir::{NodeKind, Stage};
use warploom_lang::op::BinaryOp;
use warploom_lang::rewrite::{Reduction, Rewrite, RewriteLineError};
use warploom_lang::{
    BoundsError, ExprId, FuncId, Id, IdVec, Pipeline, Range, Realisation, Region, Regions, Type, Warning,
    cores, infer, warnings,
};
use warploom_schedule::{Dag, Item, LoopKind, NodeId, NodeSet, Source, StageId, StageRef};
use warploom_target::Device;

use crate::problem::dependence::{Dependence, Together};
use crate::problem::program::Program;

pub(crate) type FuncList = SmallVec<[FuncId; 8]>;

/// A reduction variable of a stage, and the values that run together with it.
type Question = (StageRef, usize, SmallVec<[Together; 4]>);

/// What is scheduled: a pipeline, the sizes and Params of one request, and a device.
///
/// Region inference runs once, here. Schedules, searches, kernels and features all use the result. A clone is
/// another handle to the same problem.
///
/// A schedule that is passed to a problem must belong to its pipeline, because schedules hold ids, not names. A schedule with
/// rewrites belongs to the [rewritten](Problem::rewritten) problem.
///
/// ```
/// use warploom_lang::*;
/// use warploom_plan::Problem;
/// use warploom_schedule::ScheduleBuilder;
/// use warploom_target::Device;
/// let x = vars!(x);
/// let ramp = func("ramp", x, x * 2);
/// let blur = func("blur", x, ramp.at(x) + ramp.at(x + 2));
/// let pipeline = Pipeline::new("blur", [blur])?;
/// let request = Realisation::new(&pipeline).output("blur", Region::of_extents(&[64]));
///
/// let problem = Problem::new(&pipeline, &request, &Device::preset("h200")?)?;
/// for (size, extent) in [(16, 18), (32, 34)] {
///     let schedule = ScheduleBuilder::new(&pipeline)
///         .kernel("blur", format!("x {size}").as_str(), |block| block.flat("ramp").flat("blur"))
///         .build()?;
///     let plan = problem.check(&schedule).map_err(|broken| broken[0].clone())?;
///     assert_eq!(plan.kernels.values().next().unwrap().allocations[0].extents, [extent]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Problem(Arc<Parts>);

/// Problems are equal if they are one and the same.
impl PartialEq for Problem {
    fn eq(&self, other: &Problem) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[derive(Debug)]
struct Parts {
    pipeline: Pipeline,
    request: Realisation,
    device: Device,
    regions: Regions,
    /// The box of each Func that a kernel of its own computes and stores.
    stored: IdVec<FuncId, Region>,
    /// The boxes as formulas of the sizes, if these are given at each launch.
    dynamic: Option<DynamicRegions>,
    /// Built on first use; building kernels does not need it.
    dag: OnceLock<Dag>,
    funcs: IdVec<FuncId, FuncFacts>,
    /// Cache of [`Problem::is_parallel`]. There are few distinct queries, each repeated often.
    parallel: DashMap<Question, bool, RandomState>,
    /// Cache of [`Problem::rewritten`].
    rewritten: DashMap<Vec<Rewrite>, Problem, RandomState>,
}

/// Why there is no rewritten problem.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum RewrittenError {
    /// A rewrite cannot be applied to the pipeline.
    #[error(transparent)]
    Rewrite(#[from] RewriteLineError),
    /// The rewritten pipeline cannot have these sizes.
    #[error("the rewritten pipeline does not work at these sizes: {0}")]
    Bounds(#[from] BoundsError),
    /// The rewritten pipeline reads points without a value at these sizes, which the original one does not.
    #[error("the rewritten pipeline does not work at these sizes: {0}")]
    Undefined(Warning),
}

impl Problem {
    /// Infers the regions of a pipeline.
    ///
    /// # Errors
    /// If the sizes or Params do not fit the pipeline.
    pub fn new(pipeline: &Pipeline, request: &Realisation, device: &Device) -> Result<Problem, BoundsError> {
        let regions = tracing::debug_span!("regions").in_scope(|| infer(pipeline, request))?;
        Ok(Problem::of_regions(pipeline, request, device, regions, None))
    }

    /// The problem of a pipeline whose sizes are given at each launch. A schedule is legal if it is so at all sizes; the
    /// regions cover all sizes.
    ///
    /// # Errors
    /// If the sizes or Params do not fit the pipeline, or if a region cannot be computed at launch.
    pub fn dynamic(
        pipeline: &Pipeline,
        request: &DynamicRequest,
        device: &Device,
    ) -> Result<Problem, BoundsError> {
        let (dynamic, regions) = infer_dynamic(pipeline, request)?;
        Ok(Problem::of_regions(pipeline, &request.typical, device, regions, Some(dynamic)))
    }

    fn of_regions(
        pipeline: &Pipeline,
        request: &Realisation,
        device: &Device,
        regions: Regions,
        mut dynamic: Option<DynamicRegions>,
    ) -> Problem {
        let stored = stored(pipeline, &regions, dynamic.is_some());
        let mut funcs = IdVec::new();
        // Producers come before their consumers.
        for func in pipeline.funcs().keys() {
            funcs.push(FuncFacts::new(pipeline, &regions, dynamic.as_mut(), func, &funcs));
        }
        Problem(Arc::new(Parts {
            pipeline: pipeline.clone(),
            request: request.clone(),
            device: device.clone(),
            regions,
            stored,
            dynamic,
            dag: OnceLock::new(),
            funcs,
            parallel: DashMap::default(),
            rewritten: DashMap::default(),
        }))
    }

    /// The same pipeline and sizes on another device.
    ///
    /// # Errors
    /// As [`Problem::new`] or [`Problem::dynamic`].
    pub fn on(&self, device: &Device) -> Result<Problem, BoundsError> {
        match self.sizes() {
            Some(sizes) => Problem::dynamic(self.pipeline(), &sizes.request, device),
            None => Problem::new(self.pipeline(), self.request(), device),
        }
    }

    /// The problem of the pipeline after some rewrites: what a schedule with these rewrites is a schedule of.
    ///
    /// # Errors
    /// If a rewrite cannot be applied, or its result does not work at these sizes.
    pub fn rewritten(&self, rewrites: &[Rewrite]) -> Result<Problem, RewrittenError> {
        if rewrites == self.pipeline().rewrites() {
            return Ok(self.clone());
        }
        if let Some(known) = self.0.rewritten.get(rewrites) {
            return Ok(known.clone());
        }
        self.of_rewritten(&*self.pipeline().rewritten(rewrites)?)
    }

    /// As [`rewritten`](Problem::rewritten), for a pipeline that was rewritten from this problem's already.
    ///
    /// # Errors
    /// If it does not work at these sizes.
    pub fn of_rewritten(&self, pipeline: &Pipeline) -> Result<Problem, RewrittenError> {
        let rewrites = pipeline.rewrites();
        if let Some(known) = self.0.rewritten.get(rewrites) {
            return Ok(known.clone());
        }
        if let Some(dynamic) = self.sizes() {
            return Ok(Problem::dynamic(pipeline, &dynamic.request, self.device())?);
        }
        let problem = Problem::new(pipeline, self.request(), self.device())?;
        if let (Some(read), None) = (problem.undefined_read(), self.undefined_read()) {
            return Err(RewrittenError::Undefined(read));
        }
        self.0.rewritten.insert(rewrites.to_vec(), problem.clone());
        Ok(problem)
    }

    /// The first read of a point that no stage defines.
    fn undefined_read(&self) -> Option<Warning> {
        let mut found = warnings(self.pipeline(), self.regions()).into_iter();
        found.find(|warning| matches!(warning, Warning::Undefined { .. }))
    }

    /// The pipeline that was passed to `Problem::new`.
    pub fn pipeline(&self) -> &Pipeline {
        &self.0.pipeline
    }

    /// The sizes and Params that were passed to `Problem::new`.
    pub fn request(&self) -> &Realisation {
        &self.0.request
    }

    /// The device whose limits schedules must respect.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The region of every Func and input, inferred from the request.
    pub fn regions(&self) -> &Regions {
        &self.0.regions
    }

    /// The box of a Func that a kernel of its own computes and stores. A point of the Func's region that is not in
    /// this box has the value of the nearest point that is.
    pub fn stored(&self, func: FuncId) -> &Region {
        &self.0.stored[func]
    }

    /// The regions as formulas of the sizes; `None` if the sizes are fixed.
    pub fn sizes(&self) -> Option<&DynamicRegions> {
        self.0.dynamic.as_ref()
    }

    /// The pipeline as a graph of nodes, stages and accesses, built on first use.
    pub fn dag(&self) -> &Dag {
        self.0.dag.get_or_init(|| Dag::new(&self.0.pipeline))
    }

    /// The id of a stage in the graph.
    pub fn stage_id(&self, stage: StageRef) -> StageId {
        let dag = self.dag();
        dag.nodes()[dag.func_node(stage.func)].stages[stage.stage]
    }

    /// The stages of a Func that define values: all except an undefined initial stage.
    pub fn defined_stages(&self, func: FuncId) -> impl Iterator<Item = StageRef> + '_ {
        let stages = self.pipeline().funcs()[func].stages.iter().enumerate();
        let defined = stages.filter(|(_, decl)| !decl.values.is_empty());
        defined.map(move |(stage, _)| StageRef { func, stage })
    }

    /// Whether a Func is an output of the pipeline.
    pub fn is_output(&self, func: FuncId) -> bool {
        self.func(func).is_output
    }

    /// Whether a stage computes nothing at these sizes.
    pub fn is_idle(&self, stage: StageRef) -> bool {
        self.regions().is_idle(self.pipeline(), stage.func, stage.stage)
    }

    /// The loops of a stage or staged input: pure dimensions, then reduction variables.
    pub fn loops(&self, item: Item) -> SmallVec<[LoopKind; 8]> {
        match item {
            Item::Stage(stage) => SmallVec::from_slice(&self.stage(stage).loops),
            Item::Input(input) => {
                (0..self.pipeline().inputs()[input].dimensions).map(LoopKind::Pure).collect()
            }
        }
    }

    /// The values of a loop of a stage in a kernel of its own, or of a staged input, over the whole pipeline; a single
    /// value if there is no such loop.
    pub fn loop_range(&self, item: Item, kind: LoopKind) -> Range {
        let whole = self.nested_range(item, kind);
        match (item, kind) {
            (Item::Stage(stage), LoopKind::Pure(d)) => {
                let stored = self.stored(stage.func).0.get(d);
                // A stage may need less than its Func stores.
                stored.filter(|stored| whole.covers(**stored)).copied().unwrap_or(whole)
            }
            _ => whole,
        }
    }

    /// Like [`Problem::loop_range`], for a stage inside a block: it runs over all points that are required, because the
    /// nearest stored point may belong to another block.
    pub fn nested_range(&self, item: Item, kind: LoopKind) -> Range {
        let regions = self.regions();
        let range = match (item, kind) {
            (Item::Stage(stage), LoopKind::Reduction(r)) => {
                regions.funcs[stage.func].stages[stage.stage].domain.get(r)
            }
            (Item::Stage(stage), LoopKind::Pure(d)) => {
                regions.funcs[stage.func].stages[stage.stage].needed.0.get(d)
            }
            (Item::Input(input), LoopKind::Pure(d)) => regions.inputs[input].0.get(d),
            (Item::Input(_), LoopKind::Reduction(_)) => None,
        };
        range.copied().unwrap_or(Range::new(0, 1))
    }

    /// The values of a reduction variable.
    pub fn domain(&self, stage: StageRef, var: usize) -> Range {
        self.loop_range(Item::Stage(stage), LoopKind::Reduction(var))
    }

    /// The types of the values of a stage or staged input.
    pub(crate) fn types(&self, item: Item) -> &[Type] {
        match item {
            Item::Stage(stage) => &self.pipeline().funcs()[stage.func].types,
            Item::Input(input) => std::slice::from_ref(&self.pipeline().inputs()[input].ty),
        }
    }

    pub(crate) fn stage(&self, stage: StageRef) -> &StageFacts {
        &self.0.funcs[stage.func].stages[stage.stage]
    }

    pub(crate) fn func(&self, func: FuncId) -> &FuncFacts {
        &self.0.funcs[func]
    }

    pub(crate) fn stages_of(&self, func: FuncId) -> impl Iterator<Item = StageRef> + use<> {
        (0..self.0.funcs[func].stages.len()).map(move |stage| StageRef { func, stage })
    }

    /// The Funcs that some stages read, directly or through Funcs that are `inside`.
    pub(crate) fn reads_through(
        &self,
        stages: impl IntoIterator<Item = StageRef>,
        inside: impl Fn(FuncId) -> bool,
    ) -> Through {
        let (mut through, mut seen) = (Through::default(), NodeSet::default());
        let mut visit = |stage: &StageFacts, through: &mut Through| {
            for &func in &stage.calls {
                let node = self.node(Source::Func(func));
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
            self.func(func).stages.iter().for_each(|stage| visit(stage, &mut through));
            looked += 1;
        }
        through.inside.sort_unstable();
        through.outside.sort_unstable();
        through
    }

    /// Whether the values of a stage's reduction variable may run in any order, given which values of
    /// all its variables run `together`.
    pub(crate) fn is_parallel(&self, stage: StageRef, var: usize, together: &[Together]) -> bool {
        let question: Question = (stage, var, SmallVec::from_slice(together));
        let known = self.0.parallel.get(&question).map(|answer| *answer);
        known.unwrap_or_else(|| {
            let answer = Dependence::of(self.pipeline(), self.regions(), stage, |stage| {
                stage.is_parallel(var, together)
            });
            self.0.parallel.insert(question, answer);
            answer
        })
    }

    /// The atomic operation that makes an update, if there is one and the order of updates does not matter.
    pub fn atomic_update(&self, stage: StageRef) -> Option<AtomicUpdate> {
        self.stage(stage).atomic
    }

    /// The reads by which a scan gets the value that it wrote just before, at the previous value of its only reduction
    /// variable.
    pub fn previous_reads(&self, stage: StageRef) -> &[ExprId] {
        &self.stage(stage).previous
    }

    /// Whether a stage or staged input has this loop.
    pub(crate) fn has_loop(&self, item: Item, kind: LoopKind) -> bool {
        match (item, kind) {
            (Item::Stage(stage), kind) => self.stage(stage).loops.contains(&kind),
            (Item::Input(input), LoopKind::Pure(d)) => d < self.pipeline().inputs()[input].dimensions,
            (Item::Input(_), LoopKind::Reduction(_)) => false,
        }
    }

    /// The number of a Func or input in node sets, which is its id in the graph.
    pub(crate) fn node(&self, read: Source) -> NodeId {
        node(self.pipeline(), read)
    }

    /// The whole region of a Func, or everything that is read of an input.
    pub(crate) fn root(&self, read: Source) -> &Region {
        match read {
            Source::Func(func) => &self.regions().funcs[func].region,
            Source::Input(input) => &self.regions().inputs[input],
        }
    }

    /// The same box at any sizes; `None` if the sizes are fixed.
    pub(crate) fn root_at_launch(&self, read: Source) -> Option<&[FormulaRange]> {
        let sizes = self.sizes()?;
        Some(match read {
            Source::Func(func) => &sizes.funcs[func].region,
            Source::Input(input) => &sizes.read[input],
        })
    }
}

/// The most of a Func that a kernel stores instead of all of it, in percent of its points. Clamped reads cost more than a few points
/// at the edges: with less to gain, a chain of 5x5 stencils took 360 us instead of 307 on an H200.
const WORTHWHILE: u64 = 75;

/// The box of each Func that a kernel of its own stores: all of its region for outputs, where sizes vary, and where the core is
/// hardly smaller.
fn stored(pipeline: &Pipeline, regions: &Regions, sizes_vary: bool) -> IdVec<FuncId, Region> {
    if sizes_vary {
        return regions.funcs.values().map(|func| func.region.clone()).collect();
    }
    let mut stored = tracing::debug_span!("edges").in_scope(|| cores(pipeline, regions));
    let hundredths = |region: &Region, of: u64| region.points().unwrap_or(u64::MAX).saturating_mul(of);
    for (func, regions) in regions.funcs.iter() {
        let is_smaller = hundredths(&stored[func], 100) <= hundredths(&regions.region, WORTHWHILE);
        if pipeline.outputs().contains(&func) || !is_smaller {
            stored[func] = regions.region.clone();
        }
    }
    stored
}

fn node(pipeline: &Pipeline, read: Source) -> NodeId {
    match read {
        Source::Input(input) => NodeId::new(input.index()),
        Source::Func(func) => NodeId::new(pipeline.inputs().len() + func.index()),
    }
}

/// The Funcs that some stages read.
#[derive(Default)]
pub(crate) struct Through {
    /// Funcs that are read and not looked through, in order.
    pub outside: FuncList,
    /// Funcs that were looked through, in order.
    pub inside: FuncList,
}

/// What schedules need to know about a Func.
#[derive(Debug)]
pub(crate) struct FuncFacts {
    pub stages: Vec<StageFacts>,
    /// The Func and everything it reads, directly or indirectly.
    upstream: NodeSet,
    pub is_output: bool,
    /// The first stage that writes neither its own point nor a fixed one. A Func with such a stage
    /// cannot be held in registers.
    pub moving_stage: Option<StageRef>,
}

impl FuncFacts {
    /// `producers` contains at least the Funcs that this one reads.
    fn new(
        pipeline: &Pipeline,
        regions: &Regions,
        mut sizes: Option<&mut DynamicRegions>,
        func: FuncId,
        producers: &IdVec<FuncId, FuncFacts>,
    ) -> FuncFacts {
        let decl = &pipeline.funcs()[func];
        let stages = (0..decl.stages.len())
            .map(|stage| StageFacts::new(pipeline, regions, sizes.as_deref_mut(), StageRef { func, stage }));
        let stages: Vec<StageFacts> = stages.collect();
        let mut upstream = NodeSet::default();
        upstream.insert(node(pipeline, Source::Func(func)));
        for access in stages.iter().flat_map(|stage| &stage.program.reads) {
            match access.read {
                Source::Func(func) => upstream.extend(&producers[func].upstream),
                input => upstream.insert(node(pipeline, input)),
            }
        }
        let exprs = pipeline.exprs();
        let stays = |stage: &Stage| {
            (0..stage.indices.len()).all(|d| stage.is_pure(exprs, d) || stage.is_fixed(exprs, d))
        };
        let moving_stage = decl.stages.iter().position(|stage| !stays(stage));
        FuncFacts {
            stages,
            upstream,
            is_output: pipeline.outputs().contains(&func),
            moving_stage: moving_stage.map(|stage| StageRef { func, stage }),
        }
    }

    /// Whether the Func can be inlined.
    pub fn can_be_inlined(&self) -> bool {
        !self.is_output && self.stages.len() == 1
    }

    /// Adds the Func and everything it reads, directly or indirectly.
    pub fn add_upstream(&self, nodes: &mut NodeSet) {
        nodes.extend(&self.upstream);
    }

    /// Whether the Func is in `nodes`, or reads one of them, directly or indirectly.
    pub fn leads_to(&self, nodes: &NodeSet) -> bool {
        self.upstream.intersects(nodes)
    }
}

/// What schedules need to know about a stage.
#[derive(Debug)]
pub(crate) struct StageFacts {
    pub program: Program,
    /// The other Funcs that the stage reads, in order.
    pub calls: Vec<FuncId>,
    /// The Funcs of all its reads: once for each point that it reads.
    pub points_read: Vec<FuncId>,
    /// Pure dimensions, then reduction variables.
    pub loops: Vec<LoopKind>,
    atomic: Option<AtomicUpdate>,
    previous: Vec<ExprId>,
}

/// An update of the form `f(..) = f(..) op term` that one atomic operation on a 32-bit integer makes, with
/// the same result in any order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicUpdate {
    /// One of `+`, `min`, `max`, `&`, `|` and `^`.
    pub op: BinaryOp,
    /// The value that is combined with the old one.
    pub term: ExprId,
}

impl AtomicUpdate {
    fn of(pipeline: &Pipeline, stage: StageRef) -> Option<AtomicUpdate> {
        let func = &pipeline.funcs()[stage.func];
        let words = matches!(func.types[..], [Type::I32 | Type::U32]);
        let decl = func.stages.get(stage.stage).filter(|_| words && stage.stage > 0)?;
        let Reduction { ops, terms } = Reduction::of(pipeline.exprs(), stage.func, decl)?;
        let op = ops.into_iter().find(|op| *op != BinaryOp::Mul)?;
        Some(AtomicUpdate { op, term: terms[0] })
    }
}

impl StageFacts {
    fn new(
        pipeline: &Pipeline,
        regions: &Regions,
        sizes: Option<&mut DynamicRegions>,
        stage: StageRef,
    ) -> StageFacts {
        let decl = &pipeline.funcs()[stage.func].stages[stage.stage];
        let program = Program::new(pipeline, regions, sizes, stage);
        let mut calls: Vec<FuncId> = program.reads.iter().filter_map(|access| access.read.func()).collect();
        calls.sort_unstable();
        let reads = pipeline.exprs().reachable(decl.roots()).into_iter();
        let points_read = reads.filter_map(|id| match pipeline.exprs()[id].kind {
            NodeKind::Call(func, _) => Some(func),
            _ => None,
        });
        let pure = (0..decl.indices.len()).filter(|d| decl.is_pure(pipeline.exprs(), *d));
        let reductions = (0..decl.domain.len()).map(LoopKind::Reduction);
        let scans = decl.domain.len() == 1 && pipeline.exprs().reads(stage.func, decl.values.iter().copied());
        let previous = match scans {
            true => Dependence::of(pipeline, regions, stage, |stage| stage.previous()),
            false => Vec::new(),
        };
        StageFacts {
            program,
            calls,
            points_read: points_read.collect(),
            loops: pure.map(LoopKind::Pure).chain(reductions).collect(),
            atomic: AtomicUpdate::of(pipeline, stage),
            previous,
        }
    }
}
