//! Register tiles: Funcs that a thread keeps in registers for its own tile.

use std::ops::Range;

use warploom_plan::{NestFootprint, RegisterFootprint};
use warploom_schedule::{Item, LoopKind, StageRef};

use crate::ir::{NodeId, Stmt};
use crate::lower::boxes::Box;
use crate::lower::error::LowerError;
use crate::lower::nest::Placed;
use crate::lower::nesting::Nesting;
use crate::lower::stage::Subject;
use crate::lower::state::KernelLowering;
use crate::lower::value::Point;

/// The points of a box that are computed at once: all of them, or a range along one dimension.
#[derive(Default)]
pub(crate) struct Part(Option<(usize, Range<i64>)>);

impl Part {
    /// The range along a dimension, from the start of the box; `None` if it is all of it.
    fn along(&self, dim: usize) -> Option<Range<i64>> {
        self.0.as_ref().filter(|(known, _)| *known == dim).map(|(_, range)| range.clone())
    }
}

impl KernelLowering<'_> {
    /// Computes the Funcs that a thread keeps in registers for its own tile; with a row, only the points that this row
    /// is the first to need.
    pub fn registers(&mut self, placed: &Placed<'_>, row: Option<i64>) -> Result<Vec<Stmt>, LowerError> {
        let mut body = Vec::new();
        for &func in &placed.nest.registers {
            let Some(own) = placed.footprint.registers.get(&func) else { continue };
            let Some(part) = self.part(own, row) else { continue };
            self.allocate_registers(func, &own.thread);
            for stage in 0..own.thread.stages.len() {
                let stage = StageRef { func, stage };
                if !self.context.problem.is_idle(stage) {
                    body.extend(self.register_stage(stage, own, placed.footprint, &part)?);
                }
            }
            body.extend(self.exchange(func, own, placed.footprint.lanes, &part)?);
        }
        Ok(body)
    }

    /// The points of a Func in registers to compute for a row, or for all rows at once; `None` if there are none.
    fn part(&self, own: &RegisterFootprint, row: Option<i64>) -> Option<Part> {
        match (row, own.rows) {
            (None, _) => Some(Part::default()),
            // Funcs that do not move with the rows are computed before the first row.
            (Some(row), None) => (row == 0).then(Part::default),
            (Some(row), Some(rows)) => {
                let range = rows.of(row, own.thread.points.dims[rows.dim].extent());
                (!range.is_empty()).then_some(Part(Some((rows.dim, range))))
            }
        }
    }

    /// A stage of a Func in registers. Its reduction loops enclose the loops over points.
    fn register_stage(
        &mut self,
        stage: StageRef,
        footprint: &RegisterFootprint,
        nest: &NestFootprint,
        part: &Part,
    ) -> Result<Vec<Stmt>, LowerError> {
        let subject = self.subject(Item::Stage(stage));
        let mut nesting = Nesting::default();
        let rvars = self.register_reductions(&mut nesting, stage, &subject, nest);
        let own = self.placed(&footprint.thread.stages[stage.stage]);
        let mut vars = own.lower.clone();
        let looped = self.context.problem.loops(subject.item).into_iter().filter_map(|kind| match kind {
            LoopKind::Pure(d) => Some(d),
            LoopKind::Reduction(_) => None,
        });
        let looped: Vec<usize> = looped.collect();
        for &d in looped.iter().rev() {
            let name = format!("{}_register", subject.name(LoopKind::Pure(d)));
            vars[d] = self.part_loop(&mut nesting, name, &own, d, part);
        }
        let block = self.placed(&footprint.block.stages[stage.stage]);
        let guards = self.register_guards(&subject, &looped, &vars, (&own, &block));
        if nest.lanes.is_some() {
            return self.stage_in_lanes(nesting, &subject, Point { vars, rvars }, guards);
        }
        guards.into_iter().for_each(|guard| nesting.require(guard));
        self.stores(nesting, &subject, vars, rvars)
    }

    /// Opens the loop over a part of a box along a dimension, and returns the coordinate.
    pub fn part_loop(
        &mut self,
        nesting: &mut Nesting,
        name: String,
        own: &Box,
        dim: usize,
        part: &Part,
    ) -> NodeId {
        let range = part.along(dim).unwrap_or(0..own.extent[dim]);
        let step = nesting.repeat(&mut self.builder, name, range.end - range.start, true);
        let offset = self.builder.offset(step, range.start);
        self.builder.add(own.lower[dim], offset)
    }

    /// Opens the loops over the reduction variables of a stage in registers, and returns their values.
    fn register_reductions(
        &mut self,
        nesting: &mut Nesting,
        stage: StageRef,
        subject: &Subject,
        nest: &NestFootprint,
    ) -> Vec<NodeId> {
        let domain = &self.context.problem.regions().funcs[stage.func].stages[stage.stage].domain;
        let mut rvars = vec![self.builder.int(0); domain.len()];
        for (r, range) in domain.iter().enumerate().rev() {
            let kind = LoopKind::Reduction(r);
            let name = subject.name(kind).to_owned();
            let steps = self.context.loop_range(subject.item, kind);
            let limit = self.counted(&steps, range.min, 1);
            let unrolled = limit.is_none() && nest.unrolls_registers(range.extent);
            let step = nesting.repeat_up_to(&mut self.builder, name, range.extent, limit, unrolled);
            rvars[r] = self.builder.offset(step, range.min);
            if !steps.is_constant() {
                let (first, last) = self.loop_ends(subject.item, kind);
                nesting.require(self.builder.guard(first, rvars[r]));
                nesting.require(self.builder.guard(rvars[r], last));
            }
        }
        rvars
    }

    /// The conditions under which a point of a stage in registers is computed. A thread's tile may extend beyond the part of
    /// other Funcs that the block holds.
    fn register_guards(
        &mut self,
        subject: &Subject,
        looped: &[usize],
        vars: &[NodeId],
        (own, block): (&Box, &Box),
    ) -> Vec<NodeId> {
        let mut guards = Vec::new();
        for &d in looped {
            let end = self.builder.offset(block.lower[d], block.extent[d] - 1);
            let (first, last) = self.box_ends(subject.item, LoopKind::Pure(d), block.range[d]);
            for first in [block.lower[d], first] {
                guards.push(self.builder.guard(first, vars[d]));
            }
            for last in [Some(end), block.upper[d], own.upper[d], Some(last)].into_iter().flatten() {
                guards.push(self.builder.guard(vars[d], last));
            }
        }
        guards
    }
}
