//! Finds kernels that leave most of the device idle, and why.

use std::fmt;
use std::num::NonZeroU32;

use serde::Serialize;
use warploom_cost::RowSource;
use warploom_lang::ir::{NodeKind, Stage};
use warploom_lang::rewrite::{Rewrite, RewriteError, Side, StageName, VarName};
use warploom_lang::{ExprId, FuncId, Pipeline};
use warploom_plan::NestFootprint;
use warploom_schedule::LoopKind;
use warploom_target::Device;

use crate::explain::{Explainer, KernelExplanation, Open};

/// A kernel dominates if it takes at least this share of the predicted time.
const MOST: f64 = 0.5;

/// A device counts as idle if less than this share of the threads that it can hold have work. With
/// 128 of 2048 threads per SM, each of its schedulers has one warp and mostly no other warp to
/// switch to.
const BUSY: f64 = 1.0 / 16.0;

/// Fewer serial steps than this are not reported as the reason.
const STEPS: u64 = 256;

/// The kernel that takes most of the time and leaves most of the device idle.
/// [`Display`](fmt::Display) describes it in one line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Idle {
    /// The stage that the kernel is named after.
    pub kernel: String,
    /// Share of the predicted time, from 0 to 1.
    pub share: f64,
    /// Number of threads that have work.
    pub threads: u64,
    /// Number of threads that the device can hold at a time.
    pub capacity: u64,
    /// The serial work that limits parallelism.
    pub reason: Serial,
}

/// Serial work of one thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Serial {
    /// Name of the stage with the serial loop.
    pub stage: String,
    /// Why the steps are serial.
    pub kind: SerialKind,
    /// Number of serial steps per thread.
    pub steps: u64,
    /// Whether a schedule could divide the steps if the update were marked with `reassociate`.
    pub marked_would_divide: bool,
}

/// Why steps are serial.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SerialKind {
    /// All steps update the same points.
    Reduction,
    /// Each step needs the result of the previous one at another point.
    Scan,
}

impl Idle {
    /// The idle kernel among `kernels`, if there is one.
    pub(super) fn among(kernels: &[KernelExplanation], predicted_us: f64, device: &Device) -> Option<Idle> {
        let longest = kernels.iter().max_by(|a, b| a.predicted_us.total_cmp(&b.predicted_us))?;
        let share = longest.predicted_us / predicted_us;
        let capacity = u64::from(device.sms) * u64::from(device.threads.per_sm);
        let is_idle = (longest.working_threads as f64) < BUSY * capacity as f64;
        let reason = longest.serial.clone().filter(|serial| serial.steps >= STEPS)?;
        (share >= MOST && is_idle).then(|| Idle {
            kernel: longest.stage.clone(),
            share,
            threads: longest.working_threads,
            capacity,
            reason,
        })
    }
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Idle { kernel, threads, capacity, reason, .. } = self;
        let Serial { stage, kind, steps, marked_would_divide } = reason;
        let (percent, plural) = (100.0 * self.share, if *threads == 1 { "" } else { "s" });
        write!(
            f,
            "`{kernel}` takes {percent:.0} % of the time but uses only {threads} thread{plural} of the {capacity} that fit: "
        )?;
        match kind {
            SerialKind::Reduction => write!(f, "`{stage}` reduces {steps} values serially; ")?,
            SerialKind::Scan => write!(f, "`{stage}` is a serial scan of {steps} steps; ")?,
        }
        match (marked_would_divide, kind) {
            (true, _) => f.write_str(
                "mark the update with .reassociate(), or remove .in_order() from the sum, to make it parallel (the order of \
                 float operations is part of the algorithm, so no schedule changes it)",
            ),
            (false, SerialKind::Reduction) => f.write_str(
                "let one Func reduce pieces of the domain, with a dimension for the pieces, and another Func reduce the \
                 pieces",
            ),
            (false, SerialKind::Scan) => f.write_str(
                "scan more lines at once, or scan pieces of lines in a Func with a dimension for the pieces",
            ),
        }
    }
}

impl Explainer<'_> {
    /// The number of threads that work on the longest-running stage of a kernel, and the serial
    /// work of each.
    pub(super) fn longest(&self, open: &Open<'_>) -> (u64, Option<Serial>) {
        let longest =
            |terms: &[warploom_cost::Term]| terms.iter().map(|term| term.microseconds).fold(0.0, f64::max);
        let rows = open.features.rows.iter().zip(&open.rows);
        let rows = rows.map(|(row, terms)| (row, longest(terms)));
        let Some((row, _)) = rows.max_by(|(_, a), (_, b)| a.total_cmp(b)) else { return (0, None) };
        let Some(id) = open.nests.get(row.nest) else { return (0, None) };
        let Some(nest) = &self.plan.nests[*id].footprint else { return (0, None) };
        let blocks: u64 = open.plan.blocks.iter().map(|blocks| *blocks as u64).product();
        let threads = blocks.saturating_mul(working(nest, open.plan.threads));
        let (RowSource::Stage(stage) | RowSource::Inlined(stage)) = row.source else {
            return (threads, None);
        };
        let stage = &self.dag.stages()[stage];
        let decl = &self.problem.pipeline().funcs()[stage.func].stages[stage.number];
        let domain = &self.problem.regions().funcs[stage.func].stages[stage.number].domain;
        let points = domain.iter().map(|range| range.extent.max(0) as u64).product::<u64>();
        let serial = Serial {
            stage: stage.name.clone(),
            kind: kind_of(self.problem.pipeline(), stage.func, decl),
            steps: points / shared_reductions(nest, open),
            marked_would_divide: order_matters(self.problem.pipeline(), stage.func, stage.number),
        };
        (threads, (!domain.is_empty()).then_some(serial))
    }
}

/// Whether an update could be divided but for the order of its operations.
fn order_matters(pipeline: &Pipeline, func: FuncId, number: usize) -> bool {
    let decl = &pipeline.funcs()[func];
    let stage = StageName { func: decl.name.clone(), stage: number };
    let Some(var) = decl.stages[number].domain.first() else { return false };
    let (var, by) = (VarName { stage, var: var.name.clone() }, NonZeroU32::MIN);
    let divided = [Rewrite::Factor { var: var.clone(), side: Side::Outer, by }, Rewrite::Chunk { var, by }];
    let refused =
        |rewrite: &Rewrite| matches!(rewrite.apply(pipeline), Err(RewriteError::OrderMatters { .. }));
    divided.iter().any(refused)
}

/// Number of threads per block that have points of a nest to compute.
fn working(nest: &NestFootprint, threads: u64) -> u64 {
    let Some(loops) = &nest.threads else { return threads.min(nest.points.points()) };
    let tiles =
        loops.iter().map(|each| each.threads.min((each.extent + each.serial - 1) / each.serial).max(1));
    tiles.map(|tiles| tiles as u64).product()
}

/// Number of threads and blocks among which the reduction variables of a kernel's last stage are
/// divided.
fn shared_reductions(nest: &NestFootprint, open: &Open<'_>) -> u64 {
    let is_reduction = |kind: LoopKind| matches!(kind, LoopKind::Reduction(_));
    let loops = nest.threads.iter().flatten().filter(|each| is_reduction(each.dim));
    let threads = loops.map(|each| each.threads.min(each.extent).max(1) as u64);
    let tiles =
        open.plan.kernel.block.iter().zip(&open.plan.blocks).filter(|(tile, _)| is_reduction(tile.dim));
    threads.chain(tiles.map(|(_, blocks)| *blocks as u64)).product()
}

/// A stage is a scan if it reads itself at points other than those it writes, along a dimension that its reduction
/// moves through.
fn kind_of(pipeline: &Pipeline, func: FuncId, stage: &Stage) -> SerialKind {
    let exprs = pipeline.exprs();
    let moves = |id: ExprId| {
        let nodes = exprs.reachable([id]);
        nodes.into_iter().any(|id| matches!(exprs[id].kind, NodeKind::RVar(_)))
    };
    let elsewhere = |args: &[ExprId]| {
        let mut pairs = args.iter().zip(&stage.indices);
        pairs.any(|(read, written)| read != written && moves(*read) && moves(*written))
    };
    let mut nodes = exprs.reachable(stage.roots()).into_iter().map(|id| &exprs[id]);
    let scans = nodes.any(|node| {
        matches!(node.kind, NodeKind::Call(callee, _) if callee == func) && elsewhere(&node.args)
    });
    if scans { SerialKind::Scan } else { SerialKind::Reduction }
}
