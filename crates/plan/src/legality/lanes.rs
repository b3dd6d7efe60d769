//! Rules on Funcs in registers that the lanes of a warp share.

use warploom_lang::FuncId;
use warploom_schedule::{Item, LoopKind, StageRef};
use warploom_target::WARP;

use crate::footprint::{NestFootprint, RegisterFootprint};
use crate::lanes::Unshared;
use crate::legality::Checker;
use crate::legality::rule::Rule;
use crate::plan::NestPlan;

impl Checker<'_> {
    /// Checks a nest with `lanes`.
    pub(super) fn lanes(&mut self, nest: &NestPlan) {
        let item = self.names.of_item(nest.nest.item);
        if nest.nest.registers.is_empty() {
            return self.report(&nest.path, Rule::LanesFuncs { item });
        }
        let shuffled = self.problem.device().features().shuffle_lanes;
        if shuffled == 0 {
            return self.report(&nest.path, self.problem.no_feature(item, "lanes", "shuffles among threads"));
        }
        let Some(footprint) = &nest.footprint else { return };
        let Some(lane) = footprint.lanes.filter(|_| shuffled == WARP) else {
            return self.report(&nest.path, Rule::LanesThreads { item, warp: WARP });
        };
        let (points, most) = (footprint.extent(lane), i64::from(WARP) * footprint.share(lane).1);
        if points > most {
            let variable = self.names.of_loop(nest.nest.item, lane);
            return self.report(&nest.path, Rule::LanesRounds { item, variable, points, most, warp: WARP });
        }
        let threads = self.plan.kernels[nest.kernel].threads;
        if !threads.is_multiple_of(WARP.into()) {
            return self.report(&nest.path, Rule::LanesBlock { item, threads, warp: WARP });
        }
        for (i, func) in nest.nest.registers.iter().enumerate() {
            if let Some(rule) = self.shared_by_lanes(nest, footprint, lane, *func) {
                self.report(&nest.path.child(i), rule);
            }
        }
    }

    /// The rule that keeps lanes from sharing a Func.
    fn shared_by_lanes(
        &self,
        nest: &NestPlan,
        footprint: &NestFootprint,
        lane: LoopKind,
        func: FuncId,
    ) -> Option<Rule> {
        let RegisterFootprint { thread, block, .. } = footprint.registers.get(&func)?;
        let (item, name) = (self.names.of_item(nest.nest.item), self.func_name(func));
        if let Some(private) = self.private_read(func) {
            return Some(Rule::LanesPrivate { item, func: name, private: self.func_name(private) });
        }
        let spread = match self.problem.spread(func, lane, &thread.points.dims, &self.plan.lowest) {
            Err(Unshared::Index) => return Some(Rule::LanesIndex { item, func: name }),
            Err(Unshared::Stages) => return Some(Rule::LanesStages { item, func: name }),
            Err(Unshared::Bytes(bytes)) => return Some(Rule::LanesBytes { item, func: name, bytes }),
            Ok(spread) => spread?,
        };
        if !spread.starts_with_block(thread, &block.points) {
            return Some(Rule::LanesIndex { item, func: name });
        }
        let (extent, most) = (block.points.dims[spread.dim].extent(), i64::from(WARP) * spread.step);
        (extent > most).then(|| {
            let of = Item::Stage(StageRef { func, stage: 0 });
            let variable = self.names.of_loop(of, LoopKind::Pure(spread.dim));
            Rule::LanesExtent { item, func: name, variable, extent, most }
        })
    }

    /// A private Func that a Func in registers reads. Lanes without points have none of it.
    fn private_read(&self, func: FuncId) -> Option<FuncId> {
        let stages = self.problem.stages_of(func);
        let reads = self.problem.reads_through(stages, |func| self.is_inlined(func)).outside;
        let is_private = |read: &FuncId| self.nests_of(*read).any(|(_, nest)| nest.nest.storage.is_private());
        reads.into_iter().find(is_private)
    }
}
