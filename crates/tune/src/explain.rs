//! Describes the kernels of a schedule and their predicted cost.

mod idle;
mod text;

use serde::Serialize;
use warploom_cost::{CostModel, Featurizer, KernelFeatures, Range, RowSource, StageRow, Term};
use warploom_lang::{FuncId, Id};
use warploom_schedule::schedule::{
    Allocation, Body, Item, KernelPlan, LoopPlan, Nest, NestFootprint, NestPlan, Plan, Problem,
    RewrittenError, Schedule, Size, Stepped, Tile,
};
use warploom_schedule::{Dag, KernelId, LoopKind, NestId};

pub use idle::{Idle, Serial, SerialKind};

/// A human-readable description of a schedule's kernels at one size on one device.
/// [`Display`](std::fmt::Display) draws them as loop nests.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explanation {
    /// Name of the cost model.
    pub model: String,
    /// Predicted time of all kernels together, in microseconds.
    pub predicted_us: f64,
    /// The measured time lies above this for all but one of twenty pipelines; `None` if the errors of the model are not
    /// known.
    pub predicted_us_low: Option<f64>,
    /// The measured time lies below this for all but one of twenty pipelines.
    pub predicted_us_high: Option<f64>,
    /// The kernel that takes most of that time and leaves most of the device idle, if there is one.
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
    /// Numbers that the schedule gives for the kernel, by their words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
    /// The serial work of each such thread in that stage; `None` if the stage has no reduction.
    pub serial: Option<Serial>,
    /// Predicted time of all launches, in microseconds.
    pub predicted_us: f64,
    /// Parts of the predicted time of the whole kernel; they overlap.
    pub terms: Vec<TimeOf>,
    /// What a block executes, in order.
    pub lines: Vec<Line>,
}

/// A stage, a staged copy of an input, or a loop around them within the block.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// Nesting depth within the kernel, from 0.
    pub depth: usize,
    /// Name of the stage, input or loop.
    pub name: String,
    /// How threads are mapped: `threads x 64, y 4`, `flat`, `in each thread`, `inline`; for a loop,
    /// its iteration count.
    pub how: String,
    /// Where its points are stored; `None` for loops and inlined stages.
    pub memory: Option<Memory>,
    /// Ratio of points computed to points required; `None` where no points are computed.
    pub redundancy: Option<f64>,
    /// Parts of the predicted time; they overlap.
    pub terms: Vec<TimeOf>,
}

/// Where the points of a stage are stored.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Memory {
    /// `global`, `shared`, `private`, `registers`, or `lanes` for registers that the threads of a warp exchange.
    pub kind: &'static str,
    /// The extents of the array, or of each thread's own array if it has one; empty in global
    /// memory.
    pub extents: Vec<i64>,
    /// Size of that array in bytes; 0 in global memory.
    pub bytes: u64,
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
    /// Describes a legal schedule of a problem.
    ///
    /// # Errors
    /// If the problem cannot be rewritten as the schedule says.
    pub fn new(
        problem: &Problem,
        schedule: &Schedule,
        model: &dyn CostModel,
    ) -> Result<Explanation, RewrittenError> {
        let problem = &problem.rewritten(&schedule.rewrites)?;
        let explainer = Explainer {
            problem,
            dag: problem.dag(),
            model,
            plan: problem.plan(schedule),
            features: Featurizer::new(problem).of_schedule(schedule),
        };
        let kernels: Vec<KernelExplanation> =
            explainer.plan.kernels.keys().map(|id| explainer.kernel(id)).collect();
        let predicted_us = kernels.iter().map(|kernel| kernel.predicted_us).sum();
        let idle = Idle::among(&kernels, predicted_us, problem.device());
        let range = model.range(predicted_us);
        Ok(Explanation {
            model: model.name().to_owned(),
            predicted_us,
            predicted_us_low: range.map(|range| range.low_us),
            predicted_us_high: range.map(|range| range.high_us),
            idle,
            kernels,
        })
    }

    /// The times between which the measured time lies for nine of ten pipelines; `None` if the errors of the model are not
    /// known.
    pub fn range(&self) -> Option<Range> {
        Some(Range { low_us: self.predicted_us_low?, high_us: self.predicted_us_high? })
    }
}

/// A schedule with its plan and features.
struct Explainer<'a> {
    problem: &'a Problem,
    dag: &'a Dag,
    model: &'a dyn CostModel,
    plan: Plan<'a>,
    /// Those of each kernel, in order.
    features: Vec<KernelFeatures>,
}

/// A kernel whose lines are being generated.
struct Open<'a> {
    plan: &'a KernelPlan<'a>,
    features: &'a KernelFeatures,
    /// Cost terms of each feature row.
    rows: Vec<Vec<Term>>,
    lines: Vec<Line>,
}

impl Explainer<'_> {
    fn kernel(&self, id: KernelId) -> KernelExplanation {
        let (plan, features) = (&self.plan.kernels[id], &self.features[id.index()]);
        let (kernel, device) = (plan.kernel, self.problem.device());
        let terms = self.model.explain(self.dag, features);
        let mut open = Open { plan, features, rows: terms.rows, lines: Vec::new() };
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
            numbers: kernel.numbers.given().map(|(word, number)| (word, number.get())).collect(),
            threads: plan.threads,
            shared_bytes,
            registers,
            blocks_per_sm: occupancy.blocks_per_sm,
            working_threads,
            serial,
            predicted_us: terms.total,
            terms: times(&terms.kernel),
            lines: open.lines,
        }
    }

    fn body(&self, body: Body<'_, NestId>, depth: usize, open: &mut Open<'_>) {
        for item in body {
            match item {
                Stepped::Run(nest) => self.nest(nest, depth, open),
                Stepped::Loop(id, body) => {
                    open.lines.push(self.loop_line(&self.plan.loops[id], depth));
                    self.body(body, depth + 1, open);
                }
            }
        }
    }

    fn loop_line(&self, LoopPlan { tile, count, .. }: &LoopPlan<'_>, depth: usize) -> Line {
        let item = Item::Stage(tile.stage);
        let variable = self.loop_name(item, LoopKind::Reduction(tile.var));
        Line {
            depth,
            name: format!("over {}.{variable} {}", self.name(item), size(tile.size)),
            how: format!("{count} {}", if *count == 1 { "iteration" } else { "iterations" }),
            memory: None,
            redundancy: None,
            terms: Vec::new(),
        }
    }

    /// Adds the line of a nest, followed by the lines of the stages inside it.
    fn nest(&self, id: NestId, depth: usize, open: &mut Open<'_>) {
        let NestPlan { nest, footprint: Some(footprint), .. } = &self.plan.nests[id] else { return };
        let number = id.index() - open.plan.nests.start.index();
        let own = match nest.item {
            Item::Stage(stage) => RowSource::Stage(self.problem.stage_id(stage)),
            Item::Input(input) => RowSource::Staged(self.dag.input_node(input)),
        };
        let (name, how) = (self.name(nest.item), self.mapping(nest, footprint));
        let memory = Some(memory(nest, open.plan));
        let mut lines = vec![Line { depth, name, how, memory, redundancy: None, terms: Vec::new() }];
        for (row, terms) in open.features.rows.iter().zip(&open.rows) {
            if row.nest != number {
                continue;
            }
            if row.source != own {
                let (name, how, memory) = self.inside(row, footprint);
                lines.push(Line { depth: depth + 1, name, how, memory, redundancy: None, terms: Vec::new() });
            }
            let described = if row.source == own { lines.first_mut() } else { lines.last_mut() };
            if let Some(line) = described {
                line.redundancy = redundancy(row);
                line.terms = times(terms);
            }
        }
        open.lines.extend(lines);
    }

    /// Name, mapping and memory of a stage that runs inside another stage's nest.
    fn inside(&self, row: &StageRow, nest: &NestFootprint) -> (String, String, Option<Memory>) {
        let name = match row.source {
            RowSource::Stage(stage) | RowSource::Inlined(stage) => self.dag.stages()[stage].name.clone(),
            RowSource::Staged(node) => self.dag.nodes()[node].name.clone(),
        };
        let RowSource::Stage(stage) = row.source else { return (name, "inline".to_owned(), None) };
        let memory = nest.registers.get(&self.dag.stages()[stage].func).map(|registers| {
            let points = &registers.thread.points;
            let bytes = self.dag.nodes()[self.dag.stages()[stage].node].bytes_per_point as u64;
            let bytes = points.points().saturating_mul(bytes);
            Memory { kind: "registers", extents: points.extents(), bytes }
        });
        (name, "in each thread".to_owned(), memory)
    }

    /// `blur`, `blur.1`, `input.stage`
    fn name(&self, item: Item) -> String {
        match item {
            Item::Stage(stage) => self.dag.stages()[self.problem.stage_id(stage)].name.clone(),
            Item::Input(input) => format!("{}.stage", self.dag.nodes()[self.dag.input_node(input)].name),
        }
    }

    fn loop_name(&self, item: Item, kind: LoopKind) -> String {
        let found = match item {
            Item::Stage(stage) => {
                let loops = &self.dag.stages()[self.problem.stage_id(stage)].loops;
                loops.iter().find(|of| of.kind == kind).map(|of| of.name.clone())
            }
            Item::Input(_) => None,
        };
        found.unwrap_or_else(|| match kind {
            LoopKind::Pure(d) => format!("d{d}"),
            LoopKind::Reduction(r) => format!("r{r}"),
        })
    }

    /// `x 64, y 16`
    fn tiles(&self, item: Item, tiles: &[Tile]) -> String {
        let tile = |tile: &Tile| format!("{} {}", self.loop_name(item, tile.dim), size(tile.size));
        tiles.iter().map(tile).collect::<Vec<_>>().join(", ")
    }

    /// `threads x 64, y 4, each serial y 4, unrolled`
    fn mapping(&self, nest: &Nest, footprint: &NestFootprint) -> String {
        let mut text = self.threads(nest, footprint);
        for said in nest.numbers.texts() {
            text += &format!(", {said}");
        }
        text
    }

    fn threads(&self, nest: &Nest, footprint: &NestFootprint) -> String {
        let Some(loops) = &footprint.threads else { return "flat".to_owned() };
        let several = |of: fn(&warploom_schedule::schedule::ThreadLoop) -> i64| {
            let named = loops.iter().filter(|each| of(each) > 1);
            let named = named.map(|each| format!("{} {}", self.loop_name(nest.item, each.dim), of(each)));
            named.collect::<Vec<_>>().join(", ")
        };
        let (threads, serial) = (several(|each| each.threads), several(|each| each.serial));
        let mut text =
            if threads.is_empty() { "one thread".to_owned() } else { format!("threads {threads}") };
        if !serial.is_empty() {
            text += &format!(", serial {serial}");
        }
        if nest.mapping.unrolls() {
            text += ", unrolled";
        }
        text
    }
}

fn size(size: Size) -> String {
    match size {
        Size::Of(size) => size.to_string(),
        Size::All => "all".to_owned(),
    }
}

fn times(terms: &[Term]) -> Vec<TimeOf> {
    terms.iter().map(|term| TimeOf { what: term.name, us: term.microseconds }).collect()
}

/// Where a nest stores its points.
fn memory(nest: &Nest, kernel: &KernelPlan<'_>) -> Memory {
    let kind = nest.storage.name();
    if nest.storage.is_global() {
        return Memory { kind, extents: Vec::new(), bytes: 0 };
    }
    let found = kernel.allocations.iter().find(|allocation| is_of(allocation, nest.item));
    let Some(found) = found else { return Memory { kind, extents: Vec::new(), bytes: 0 } };
    let kind = if found.in_warps { "lanes" } else { kind };
    Memory { kind, extents: found.extents.clone(), bytes: found.bytes }
}

/// Whether an array belongs to an item. The stages of a Func share one array.
fn is_of(allocation: &Allocation, item: Item) -> bool {
    let func = |item: Item| -> Option<FuncId> {
        match item {
            Item::Stage(stage) => Some(stage.func),
            Item::Input(_) => None,
        }
    };
    match func(item) {
        Some(of) => func(allocation.item) == Some(of),
        None => allocation.item == item,
    }
}

/// Ratio of points computed to points required.
fn redundancy(row: &StageRow) -> Option<f64> {
    let features = &row.features;
    let computed = match row.source {
        RowSource::Inlined(_) => features.inlined_calls,
        _ => features.points_computed_total,
    };
    (features.points_computed_minimum > 0.0).then(|| computed / features.points_computed_minimum)
}
