//! The walks of Funcs that a nest has in registers.

use smallvec::SmallVec;
use warploom_schedule::LoopKind;

use crate::body::walk::{Around, Axis, AxisId, AxisKind, Cases, Linear, Walk};
use crate::footprint::{Footprint, NestFootprint, RegisterFootprint};
use crate::reach::Reach;

/// A stage in registers.
pub struct RegisterStage<'f> {
    pub own: &'f RegisterFootprint,
    /// Its number.
    pub number: usize,
    /// The first value and the number of values of each reduction variable, and whether it is unrolled.
    pub domain: SmallVec<[(i64, i64, bool); 4]>,
    /// The rows of a thread's points, if the nest slides.
    pub rows: i64,
    /// Whether lanes share it.
    pub lanes: bool,
}

impl RegisterStage<'_> {
    fn points(&self) -> &Footprint {
        &self.own.thread.stages[self.number]
    }

    /// What the block needs of it.
    pub fn needed(&self) -> &Footprint {
        &self.own.block.stages[self.number]
    }
}

impl Walk {
    /// The walk of the threads of a nest, with all lanes of each warp along a dimension.
    pub fn of_warps(
        around: Around,
        (footprint, lanes): (&NestFootprint, LoopKind),
        threads: i64,
        lowest: &[Vec<Reach>],
    ) -> Walk {
        Walk::over(around, footprint, Some(lanes), threads, lowest)
    }

    /// The walk of what moves before the loops of the block.
    pub fn before_loops(&self) -> Walk {
        let mut walk = self.clone();
        for axis in walk.around.axes.iter_mut().filter(|axis| axis.kind == AxisKind::Over) {
            axis.count = 1;
        }
        walk
    }

    /// The walk of a stage in registers: the threads and rounds of the nest, and the points that each thread computes.
    pub fn of_registers(&self, stage: &RegisterStage<'_>, lowest: &[Vec<Reach>]) -> Walk {
        let (points, domain) = (stage.points(), &stage.domain);
        let mut walk = Walk { guarded: false, ..self.clone() };
        // The inner axes of the nest do not run here.
        let inner = |axis: &Axis| matches!(axis.kind, AxisKind::Serial { .. } | AxisKind::Reduce);
        for case in &mut walk.cases {
            case.limits.retain(|(axis, ..)| !inner(&self.around.axes[*axis as usize]));
        }
        // A tile at the end of the block may be cut anywhere, and clamped points are counted as if they were not.
        let clamped = points.dims.iter().any(|reach| reach.clamp.is_some());
        let whole = self.cases.len() == 1 && walk.cases.iter().all(|case| case.limits.is_empty());
        walk.exact = !clamped && (whole || stage.lanes);
        match stage.lanes {
            true => walk.take_tiles(&[]),
            false => walk.merge_cases(),
        }
        for axis in walk.around.axes.iter_mut().filter(|axis| inner(axis)) {
            (axis.start, axis.count) = (0, 1);
        }
        walk.vars = points.dims.iter().map(|reach| self.around.lowest(reach, lowest)).collect();
        walk.extents =
            points.extents().into_iter().chain(domain.iter().map(|(_, extent, _)| *extent)).collect();
        walk.ranges = points.dims.iter().map(|reach| (reach.min, reach.max)).collect();
        walk.ranges.extend(domain.iter().map(|(min, extent, _)| (*min, min + extent - 1)));
        for (min, extent, unrolled) in domain.iter().rev() {
            let mut var = Linear::constant(*min);
            let written_out = AxisKind::Serial { reduction: true, unrolled: true };
            let kind = if *unrolled { written_out } else { AxisKind::Reduce };
            var.move_by(walk.around.add(kind, 0, *extent), 1);
            walk.vars.insert(points.dims.len(), var);
        }
        for d in (0..points.dims.len()).rev() {
            walk.enter_points(d, stage);
        }
        walk
    }

    /// Enters the loops over a thread's points along a dimension. Rows may leave points out that none of them needs.
    fn enter_points(&mut self, d: usize, stage: &RegisterStage<'_>) {
        let kind = AxisKind::Serial { reduction: false, unrolled: true };
        let apart = stage.own.rows.filter(|rows| rows.dim == d && rows.first < rows.step);
        let adjacent = apart.map_or(self.extents[d], |rows| rows.first);
        if let Some(rows) = apart {
            let axis = self.around.add(kind, 0, stage.rows);
            self.vars[d].move_by(axis, rows.step);
        }
        let axis = self.around.add(kind, 0, adjacent);
        self.vars[d].move_by(axis, 1);
    }

    /// Of the cases that differ only in the number of active threads, keeps the one with the most.
    fn merge_cases(&mut self) {
        let lanes = |limits: &[(AxisId, i64, i64)], axes: &[Axis]| -> SmallVec<[(AxisId, i64, i64); 6]> {
            let is_lane = |axis: AxisId| axes[axis as usize].kind == AxisKind::Lane;
            limits.iter().filter(|(axis, ..)| !is_lane(*axis)).copied().collect()
        };
        let mut kept = Cases::new();
        for case in &self.cases {
            let rest = lanes(&case.limits, &self.around.axes);
            match kept
                .iter_mut()
                .find(|other| lanes(&other.limits, &self.around.axes) == rest && other.active != 0.0)
            {
                Some(other) if other.active < case.active => *other = case.clone(),
                Some(_) => {}
                None => kept.push(case.clone()),
            }
        }
        self.cases = kept;
    }
}
