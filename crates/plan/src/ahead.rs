//! Asynchronous copies: which loops over a block copy what their later iterations read.

use warploom_lang::FuncId;
use warploom_lang::ir::NodeKind;
use warploom_schedule::{Source, StageRef};

use crate::ids::{LoopId, NestId};
use crate::plan::{LoopIds, NestPlan, Plan, Sequence, Stepped};
use crate::problem::Problem;
use crate::reach::symbol::Symbol;
use crate::trace::Tracer;

impl Plan {
    /// The loops whose iterations copy ahead for a nest, outermost first: together they are one loop over slices. Empty if
    /// the nest does not copy asynchronously, or nothing around it runs more than once.
    pub fn ahead_of(&self, nest: &NestPlan) -> LoopIds {
        self.slice_loops(nest, |id| self.loops[id].count, self.limits.is_some())
    }

    /// The nests that copy ahead in the loops that start with this one.
    pub fn copied_ahead(&self, first: LoopId) -> Vec<NestId> {
        if self.loops[first].slices <= 1 {
            return Vec::new();
        }
        let of_loop = |(id, nest): (NestId, &NestPlan)| {
            let runs = nest.footprint.as_ref().is_some_and(|nest| nest.exchanged.is_some());
            (runs && self.ahead_of(nest).first() == Some(&first)).then_some(id)
        };
        self.nests.iter().filter_map(of_loop).collect()
    }

    /// How many slices the loops around a nest that copies ahead run over.
    pub fn slice_count(&self, nest: NestId) -> i64 {
        let counts = self.ahead_of(&self.nests[nest]).into_iter().map(|id| self.loops[id].count);
        counts.fold(1, i64::saturating_mul)
    }

    /// What each slice runs, if the loops that start with this one copy ahead.
    pub fn slice_body<'b, T: Copy>(&self, first: LoopId, mut body: Sequence<'b, T>) -> Sequence<'b, T> {
        let path = &self.loops[first].path;
        while let Some(Stepped::Loop(id, inner)) = body.into_iter().next()
            && self.loops[id].path == *path
        {
            body = inner;
        }
        body
    }

    /// The loops over the slices of a nest, given the number of iterations of each loop. Loops of one line that run more than
    /// once are taken together; if their counts follow from the sizes of a launch, only the innermost is taken.
    fn slice_loops(&self, nest: &NestPlan, count: impl Fn(LoopId) -> i64, at_launch: bool) -> LoopIds {
        if nest.nest.numbers.depth.is_none() || !nest.nest.storage.is_shared() {
            return LoopIds::new();
        }
        let over = &nest.loops[self.kernels[nest.kernel].around.len()..];
        let several = || over.iter().copied().filter(|id| count(*id) > 1);
        let Some(innermost) = several().last() else { return LoopIds::new() };
        let together = |id: &LoopId| {
            *id == innermost || (!at_launch && self.loops[*id].path == self.loops[innermost].path)
        };
        several().filter(together).collect()
    }
}

impl Tracer<'_> {
    /// The number of iterations of a loop.
    pub(super) fn count(&self, id: LoopId) -> i64 {
        self.symbols.count(Symbol::Loop(id))
    }

    /// How many slices the array of a nest has.
    pub(super) fn slices_of(&self, nest: &NestPlan) -> i64 {
        self.loops_of(nest).first().map_or(1, |first| self.slices(*first))
    }

    /// How many slices the loops that start with this one have at once.
    pub(super) fn slices(&self, first: LoopId) -> i64 {
        let depth = |nest: &NestPlan| {
            let loops = self.loops_of(nest);
            let depth = nest.nest.numbers.depth.filter(|_| loops.first() == Some(&first))?;
            let iterations = loops.iter().fold(1, |all: i64, id| all.saturating_mul(self.count(*id)));
            Some(i64::from(depth.get()).min(iterations))
        };
        self.plan.nests.values().filter_map(depth).min().unwrap_or(1)
    }

    fn loops_of(&self, nest: &NestPlan) -> LoopIds {
        self.plan.slice_loops(nest, |id| self.count(id), self.problem.sizes().is_some())
    }
}

impl Problem {
    /// What a stage copies point by point, through Funcs that are inlined: an input, or another Func. `None` if it computes
    /// something, or reads data to find the point.
    pub(crate) fn copied(&self, stage: StageRef, is_inlined: impl Fn(FuncId) -> bool) -> Option<Source> {
        let exprs = self.pipeline().exprs();
        let mut func = stage.func;
        loop {
            let [only] = self.pipeline().funcs()[func].stages.as_slice() else { return None };
            let [value] = only.values[..] else { return None };
            let mut below = exprs.reachable(exprs[value].args.iter().copied()).into_iter();
            let reads =
                |kind: &NodeKind| matches!(kind, NodeKind::Load(_) | NodeKind::Call(..) | NodeKind::Table(_));
            if only.predicate.is_some() || below.any(|id| reads(&exprs[id].kind)) {
                return None;
            }
            match exprs[value].kind {
                NodeKind::Load(input) => return Some(Source::Input(input)),
                NodeKind::Call(called, _) if is_inlined(called) => func = called,
                NodeKind::Call(called, _) => return Some(Source::Func(called)),
                _ => return None,
            }
        }
    }
}
