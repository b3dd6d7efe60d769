//! Describes the kernels of a schedule and their predicted cost.

mod bottleneck;
mod idle;
mod loops;
mod nests;
mod text;

use serde::{Serialize, Serializer};
use warploom_codegen::ir::PlanPart;
use warploom_cost::{Basis, CostModel, Featurizer, KernelFeatures, Term, TimeRange};
use warploom_lang::Id;
use warploom_plan::{KernelId, KernelPlan, NestId, Plan, Planned, Problem};
use warploom_schedule::{Dag, Item};

pub use bottleneck::{Bottleneck, Limit};
pub use idle::{Idle, Serial, SerialKind};
pub use loops::{Leftover, Loop, LoopUse};
pub use text::{amount, microseconds};

/// A human-readable description of a schedule's kernels at one size on one device.
/// [`Display`](std::fmt::Display) draws them as loop nests.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explanation {
    /// The model that predicted the times.
    #[serde(flatten)]
    pub basis: Basis,
    /// Predicted time of all kernels together, in microseconds.
    pub predicted_us: f64,
    /// The lower end of the range: the measured time lies above it for all but one of twenty pipelines. `None` if the
    /// errors of the model are not known.
    pub predicted_us_low: Option<f64>,
    /// The upper end: the measured time lies below it for all but one of twenty pipelines.
    pub predicted_us_high: Option<f64>,
    /// The kernel that dominates the time and leaves most of the device idle, if there is one.
    pub idle: Option<Idle>,
    /// The kernels in launch order.
    pub kernels: Vec<KernelExplanation>,
}

/// Description of one kernel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KernelExplanation {
    /// The stage whose points are divided among the blocks.
    pub stage: String,
    /// Number of launches.
    pub launches: f64,
    /// Grid size: blocks along x, y and z.
    pub grid: [u64; 3],
    /// The tile of the stage that one block computes: `x 64, y 16`. Dimensions that are not listed
    /// are not tiled.
    pub block: String,
    /// The loops around the blocks: those over launches, then the blocks along each tile.
    pub loops: Vec<Loop>,
    /// Numbers that the schedule sets for the kernel, by keyword.
    #[serde(serialize_with = "as_map")]
    pub numbers: Vec<(&'static str, u32)>,
    /// Threads per block.
    pub threads: u64,
    /// Shared memory per block, in bytes.
    pub shared_bytes: u64,
    /// Estimated registers per thread.
    pub registers: u32,
    /// Occupancy: resident blocks per SM.
    pub blocks_per_sm: u32,
    /// Number of threads, over all blocks, that have work in the longest-running stage.
    pub working_threads: u64,
    /// The serial work of each of these threads in that stage; `None` if the stage has no reduction.
    pub serial: Option<Serial>,
    /// Predicted time of all launches, in microseconds.
    pub predicted_us: f64,
    /// Parts of the predicted time of the whole kernel; they overlap.
    pub terms: Vec<TimeOf>,
    /// Distinct bytes of global memory that each launch reads, over all launches.
    pub read_bytes: f64,
    /// Distinct bytes of global memory that each launch writes, over all launches.
    pub written_bytes: f64,
    /// The bottleneck of the kernel; `None` if it computes nothing or the model does not say.
    pub bottleneck: Option<Bottleneck>,
    /// The lines of a block, in execution order.
    pub lines: Vec<Line>,
}

/// A stage, a staged copy of an input, or a loop around them within the block.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Line {
    /// Nesting depth within the kernel, from 0.
    pub depth: usize,
    /// Name of the stage, input or loop.
    pub name: String,
    /// How threads are mapped: `threads x 64, y 4`, `flat`, `in each thread`, `inline`; for a loop,
    /// its iteration count.
    pub how: String,
    /// Every loop of the line, outermost first: the threads, then the loops inside each thread.
    pub loops: Vec<Loop>,
    /// Where its points are stored; `None` for loops and inlined stages.
    pub memory: Option<StageMemory>,
    /// Ratio of points computed to points required; `None` for loops, and for stages that `per_point` describes.
    pub redundancy: Option<f64>,
    /// How many times one point of the consumer computes it, for a stage that is inlined or in registers of the
    /// consumer's threads. Unrolled points may share some of them.
    pub per_point: Option<f64>,
    /// The stage whose points compute it, for the same stages.
    pub consumer: Option<String>,
    /// The bytes that it moves; `None` for loops and inlined stages, whose accesses belong to the consumer.
    pub traffic: Option<Traffic>,
    /// Parts of the predicted time; they overlap.
    pub terms: Vec<TimeOf>,
    /// The statements of the kernel that the line is lowered to.
    #[serde(skip)]
    pub place: Option<PlanPart>,
}

/// The bytes that all blocks move for one stage.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Traffic {
    /// Read from global memory; each block counts a byte once.
    pub global_read_bytes: f64,
    /// Written to global memory, in whole sectors.
    pub global_written_bytes: f64,
    /// Read from shared memory, in whole wavefronts.
    pub shared_read_bytes: f64,
    /// Written to shared memory, in whole wavefronts.
    pub shared_written_bytes: f64,
}

/// Where the points of a stage are stored.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StageMemory {
    /// `global`, `shared`, `private`, `registers`, or `lanes` for registers that the threads of a warp exchange.
    pub kind: &'static str,
    /// The extents of the array, or of each thread's own array if it has one; empty in global
    /// memory.
    pub extents: Vec<i64>,
    /// Size of that array in bytes; 0 in global memory.
    pub bytes: u64,
}

fn as_map<S: Serializer>(pairs: &[(&'static str, u32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().copied())
}

/// A part of a predicted time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TimeOf {
    /// Name of the cost term, such as `issue`.
    pub what: &'static str,
    /// Time of the term, in microseconds.
    pub us: f64,
}

impl Explanation {
    /// Describes a schedule.
    pub fn new(planned: &Planned, model: &dyn CostModel) -> Explanation {
        let Planned { problem, plan, .. } = planned;
        let features = Featurizer::new(problem).features(plan);
        let explainer = Explainer { problem, dag: problem.dag(), model, plan, features };
        let kernels: Vec<KernelExplanation> =
            explainer.plan.kernels.keys().map(|id| explainer.kernel(id)).collect();
        let predicted_us = kernels.iter().map(|kernel| kernel.predicted_us).sum();
        let idle = Idle::among(&kernels, predicted_us, problem.device());
        let range = model.range(predicted_us);
        Explanation {
            basis: Basis::of(model, &explainer.features),
            predicted_us,
            predicted_us_low: range.map(|range| range.low_us),
            predicted_us_high: range.map(|range| range.high_us),
            idle,
            kernels,
        }
    }

    /// The range in which the measured time lies for nine of ten pipelines; `None` if the errors of the model are not
    /// known.
    pub fn range(&self) -> Option<TimeRange> {
        Some(TimeRange { low_us: self.predicted_us_low?, high_us: self.predicted_us_high? })
    }
}

/// A schedule with its plan and features.
struct Explainer<'a> {
    problem: &'a Problem,
    dag: &'a Dag,
    model: &'a dyn CostModel,
    plan: &'a Plan,
    /// The features of each kernel, in order.
    features: Vec<KernelFeatures>,
}

/// A kernel whose lines are being generated.
struct Open<'a> {
    plan: &'a KernelPlan,
    features: &'a KernelFeatures,
    /// The nests that compute something, as the feature rows number them.
    nests: Vec<NestId>,
    /// Cost terms of each feature row.
    rows: Vec<Vec<Term>>,
    lines: Vec<Line>,
}

impl Explainer<'_> {
    fn kernel(&self, id: KernelId) -> KernelExplanation {
        let (plan, features) = (&self.plan.kernels[id], &self.features[id.index()]);
        let (kernel, device) = (&plan.kernel, self.problem.device());
        let terms = self.model.explain(self.dag, features);
        let nests = self.running(plan);
        let mut open = Open { plan, features, nests, rows: terms.rows, lines: Vec::new() };
        self.body(plan.body.body(), 0, &mut open);
        let (working_threads, serial) = self.longest(&open);
        let (registers, shared_bytes) = (features.registers, plan.shared_bytes());
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let occupancy = device.occupancy(small(plan.threads), registers, small(shared_bytes));
        KernelExplanation {
            stage: self.name(Item::Stage(kernel.stage)),
            launches: features.launches,
            grid: plan.grid(device),
            block: self.tiles(Item::Stage(kernel.stage), &kernel.block),
            loops: self.around(plan),
            numbers: kernel.numbers.given().map(|(word, number)| (word, number.get())).collect(),
            threads: plan.threads,
            shared_bytes,
            registers,
            blocks_per_sm: occupancy.blocks_per_sm,
            working_threads,
            serial,
            predicted_us: terms.total,
            terms: times(&terms.kernel),
            read_bytes: features.read_bytes * features.launches,
            written_bytes: features.written_bytes * features.launches,
            bottleneck: self.bottleneck(&open, &terms.kernel, terms.total, occupancy.blocks_per_sm),
            lines: open.lines,
        }
    }

    /// The nests of a kernel that compute something, in order.
    fn running(&self, plan: &KernelPlan) -> Vec<NestId> {
        let nests = self.plan.nests.slice(plan.nests.clone());
        let runs = |id: &NestId| {
            let nest = &nests[id.index() - plan.nests.start.index()];
            nest.footprint.is_some() && nest.stage().is_none_or(|stage| !self.problem.is_idle(stage))
        };
        (plan.nests.start.index()..plan.nests.end.index()).map(NestId::new).filter(runs).collect()
    }
}

fn times(terms: &[Term]) -> Vec<TimeOf> {
    terms.iter().map(|term| TimeOf { what: term.name, us: term.microseconds }).collect()
}
