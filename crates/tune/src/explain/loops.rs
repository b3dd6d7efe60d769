//! The loops of kernels and nests, with their partial last iterations.

use serde::Serialize;
use warploom_plan::{Axis, AxisKind, KernelPlan, LoopId, LoopPlan, NestFootprint, StagedFootprint};
use warploom_schedule::{Item, LoopKind, Stage};

use crate::explain::Explainer;

/// A loop of a kernel or nest. [`Display`](std::fmt::Display) describes it in a few words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Loop {
    /// The executor of its iterations.
    pub kind: LoopUse,
    /// The variable that it runs along; several for a flat loop, fastest first: `x, y`.
    pub variable: String,
    /// The number of iterations, threads or blocks.
    pub count: i64,
    /// The number of points or values along the variable per iteration; for a flat loop, the threads of a round.
    pub step: i64,
    /// The last iteration, if it is partial: its points are guarded.
    pub leftover: Option<Leftover>,
}

/// The executor of a loop's iterations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoopUse {
    /// One launch of the kernel per iteration.
    Launches,
    /// One block per iteration.
    Blocks,
    /// Each block, one iteration after the other, around several nests.
    Over,
    /// One thread per iteration.
    Threads,
    /// All threads of the block, in rounds, over all points of the nest in order.
    Flat,
    /// All threads of the block, in rounds, along one variable.
    Rounds,
    /// Each thread, one iteration after the other.
    Serial,
    /// Each thread, unrolled.
    Unrolled,
    /// Each thread, unrolled, interleaved with the points of other threads.
    Interleaved,
}

/// The partial last iteration of a loop whose range is not a multiple of its step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Leftover {
    /// The points or values of the last iteration.
    pub points: i64,
    /// The points or values of a full iteration.
    pub of: i64,
}

impl Loop {
    /// A loop over `extent` points in steps of `step`.
    fn over(kind: LoopUse, variable: String, extent: i64, step: i64) -> Loop {
        let step = step.max(1);
        let count = (extent.max(1) + step - 1) / step;
        let last = extent.max(1) - (count - 1) * step;
        let leftover = (last < step).then_some(Leftover { points: last, of: step });
        Loop { kind, variable, count, step, leftover }
    }

    /// A loop with this number of iterations, one point each.
    fn of(kind: LoopUse, variable: String, count: i64) -> Loop {
        Loop { kind, variable, count, step: 1, leftover: None }
    }

    /// Whether the loop repeats or guards anything.
    fn is_worth_saying(&self) -> bool {
        self.count > 1 || self.leftover.is_some()
    }
}

impl Explainer<'_> {
    /// The loops around the blocks of a kernel, and the blocks.
    pub(super) fn around(&self, plan: &KernelPlan) -> Vec<Loop> {
        let item = Item::Stage(plan.kernel.stage);
        let launches = plan.around.iter().map(|id| self.over(*id, LoopUse::Launches));
        let blocks = plan.kernel.block.iter().map(|tile| {
            let extent = self.problem.loop_range(item, tile.dim).extent;
            let variable = self.loop_name(item, tile.dim);
            Loop::over(LoopUse::Blocks, variable, extent, tile.size.of(extent))
        });
        launches.chain(blocks).filter(Loop::is_worth_saying).collect()
    }

    /// A loop over a reduction variable, around kernels or within a block.
    pub(super) fn over(&self, id: LoopId, kind: LoopUse) -> Loop {
        let LoopPlan { tile, .. } = &self.plan.loops[id];
        let extent = self.problem.domain(tile.stage, tile.var).extent;
        let variable = self.loop_name(Item::Stage(tile.stage), LoopKind::Reduction(tile.var));
        Loop::over(kind, variable, extent, tile.size.of(extent))
    }

    /// The loops of a nest in a block of `threads`.
    pub(super) fn loops(&self, item: Item, nest: &NestFootprint, threads: u64) -> Vec<Loop> {
        let flat = nest.threads.is_none().then(|| self.flat(item, nest, threads));
        let axes = nest.axes.iter().filter(|axis| flat.is_none() || axis.kind != AxisKind::Lane);
        let axes = axes.map(|axis| self.axis(item, axis));
        flat.clone().into_iter().chain(axes).filter(Loop::is_worth_saying).collect()
    }

    /// One loop over all points of a nest, which the threads take in turns.
    fn flat(&self, item: Item, nest: &NestFootprint, threads: u64) -> Loop {
        let lanes = || nest.axes_of(AxisKind::Lane).filter(|axis| axis.count > 1);
        let names: Vec<String> = lanes().map(|axis| self.loop_name(item, axis.dim)).collect();
        let points = lanes().map(|axis| axis.count).fold(1, i64::saturating_mul);
        Loop::over(LoopUse::Flat, names.join(", "), points, i64::try_from(threads).unwrap_or(i64::MAX))
    }

    fn axis(&self, item: Item, axis: &Axis) -> Loop {
        let variable = self.loop_name(item, axis.dim);
        match axis.kind {
            AxisKind::Lane => Loop::of(LoopUse::Threads, variable, axis.count),
            AxisKind::Round if axis.is_interleaved() => {
                Loop::over(LoopUse::Interleaved, variable, axis.extent, axis.step)
            }
            AxisKind::Round => Loop::over(LoopUse::Rounds, variable, axis.extent, axis.step),
            AxisKind::Reduce => Loop::over(LoopUse::Serial, variable, axis.extent, axis.step),
            AxisKind::Serial if axis.unrolled => Loop::of(LoopUse::Unrolled, variable, axis.count),
            AxisKind::Serial => Loop::of(LoopUse::Serial, variable, axis.count),
        }
    }

    /// The loops of a stage that each thread computes into its registers: reductions around unrolled points.
    pub(super) fn register_loops(&self, stage: &Stage, thread: &StagedFootprint) -> Vec<Loop> {
        let regions = &self.problem.regions().funcs[stage.func].stages[stage.number];
        let extents = thread.stages.get(stage.number).map(|points| points.extents()).unwrap_or_default();
        let each = stage.loops.iter().rev().map(|own| match own.kind {
            LoopKind::Reduction(r) => {
                let extent = regions.domain.get(r).map_or(1, |range| range.extent);
                Loop::of(LoopUse::Serial, own.name.clone(), extent)
            }
            LoopKind::Pure(d) => {
                Loop::of(LoopUse::Unrolled, own.name.clone(), extents.get(d).copied().unwrap_or(1))
            }
        });
        let (serial, unrolled): (Vec<Loop>, Vec<Loop>) = each.partition(|each| each.kind == LoopUse::Serial);
        serial.into_iter().chain(unrolled).filter(Loop::is_worth_saying).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: LoopUse, extent: i64, step: i64) -> String {
        Loop::over(kind, "x".to_owned(), extent, step).to_string()
    }

    #[test]
    fn a_last_round_that_is_not_full_is_left_over() {
        let flat = Loop::over(LoopUse::Flat, "x, y".to_owned(), 1152, 256);
        assert_eq!((flat.count, flat.leftover), (5, Some(Leftover { points: 128, of: 256 })));
        assert_eq!(flat.to_string(), "5 rounds of 256 threads over x, y; the last has 128 points");
        let whole = Loop::over(LoopUse::Rounds, "y".to_owned(), 64, 16);
        assert_eq!((whole.count, whole.leftover), (4, None));
        // Fewer points than one step are one guarded round.
        let part = Loop::over(LoopUse::Rounds, "y".to_owned(), 10, 16);
        assert_eq!((part.count, part.leftover), (1, Some(Leftover { points: 10, of: 16 })));
        assert!(part.is_worth_saying() && !Loop::of(LoopUse::Threads, "x".to_owned(), 1).is_worth_saying());
    }

    #[test]
    fn loops_are_described() {
        assert_eq!(said(LoopUse::Blocks, 100, 32), "4 blocks along x, 32 points each; the last has 4");
        assert_eq!(said(LoopUse::Over, 64, 32), "2 iterations over x, 32 values each");
        assert_eq!(said(LoopUse::Rounds, 40, 16), "3 rounds along x, 16 points each; the last has 8");
        assert_eq!(said(LoopUse::Rounds, 10, 16), "1 round along x, 16 points each; the last has 10");
        assert_eq!(said(LoopUse::Launches, 3, 1), "3 launches along x");
        assert_eq!(Loop::of(LoopUse::Threads, "x".to_owned(), 64).to_string(), "64 threads along x");
        assert_eq!(Loop::of(LoopUse::Unrolled, "c".to_owned(), 3).to_string(), "for c: 3 times, unrolled");
        assert_eq!(said(LoopUse::Serial, 9, 1), "for x: 9 times");
    }
}
