//! The Funcs that a nest has in registers.

use warploom_lang::FuncId;
use warploom_plan::{NestFootprint, RegisterFootprint};
use warploom_schedule::{Nest, Source, StageRef};

use crate::features::arrays::Access;
use crate::features::block::Block;
use crate::features::flatten::Flat;
use crate::features::row::{Totals, Work, all};
use crate::features::traffic::{Moves, Place};
use crate::features::walk::{RegisterStage, Walk};

/// Funcs in registers, in order.
pub(crate) type Registers<'f> = [(FuncId, &'f RegisterFootprint)];

/// A stage in registers that the lanes of a warp share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'w> {
    /// The walk of all lanes. They compute what they can at points that the block does not need, and exchange them.
    everywhere: &'w Walk,
    /// Whether some lanes do not compute their points.
    pub guarded: bool,
    /// Whether all lanes set their points to zero first, because some do not compute them.
    zeros: bool,
    /// The points that a lane gets from others, for each that it computes.
    taken: f64,
}

impl Block<'_, '_> {
    /// Analyses the Funcs that a nest has in registers.
    pub fn registers(
        &mut self,
        walk: &Walk,
        (nest, footprint): (&Nest, &NestFootprint),
        registers: &Registers<'_>,
        held: f64,
    ) {
        let lowest = &self.items.plan.lowest;
        let around = || self.items.around.clone();
        let warps = footprint
            .lanes
            .map(|lanes| Walk::of_warps(around(), (footprint, lanes), self.shape.threads, lowest));
        let threads = warps.as_ref().unwrap_or(walk);
        let rows = footprint.slides.map_or(1, |dim| footprint.share(dim).1);
        for (func, own) in registers {
            for number in 0..own.thread.stages.len() {
                let stage = StageRef { func: *func, stage: number };
                if self.items.problem.is_idle(stage) {
                    continue;
                }
                let ranges = &self.items.problem.regions().funcs[*func].stages[number].domain;
                let unrolled = |extent| footprint.unrolls_registers(extent);
                let domain = ranges.iter().map(|range| (range.min, range.extent, unrolled(range.extent)));
                let domain = domain.collect();
                let lanes = footprint.lanes.is_some();
                let part = RegisterStage { own, number, domain, rows, lanes };
                let mut everywhere = threads.of_registers(&part, lowest);
                let flat = self.flat(stage, &everywhere);
                if !lanes {
                    self.compute(&self.work((stage, nest), &everywhere, &flat, registers), held);
                    continue;
                }
                let harmless = self.is_harmless(&flat, registers);
                let needed = (!harmless).then(|| everywhere.needed(&part, lowest)).flatten();
                if self.items.chosen.is_some() && !harmless && needed.is_none() {
                    // Guards that remain at the edges would bring zeros with them.
                    everywhere.exact &=
                        self.is_inside_everywhere(&self.work((stage, nest), &everywhere, &flat, registers));
                }
                let guarded = needed.is_some();
                let (zeros, taken) = (guarded && number == 0, own.points_from_lanes());
                let shared = Shared { everywhere: &everywhere, guarded, zeros, taken };
                let walk = needed.as_ref().unwrap_or(&everywhere);
                let work = self.work((stage, nest), walk, &flat, registers);
                self.compute(&Work { lanes: Some(shared), ..work }, held);
            }
        }
    }

    /// Whether a stage reads only registers, so that lanes compute it also at points that the block does not need.
    fn is_harmless(&self, flat: &Flat, registers: &Registers<'_>) -> bool {
        let nodes = self.items.problem.dag().nodes();
        let held = |func: FuncId| registers.iter().any(|(known, _)| *known == func);
        let is_held = |source: Source| matches!(source, Source::Func(func) if held(func));
        !flat.tables && flat.loads.iter().all(|group| is_held(nodes[group.node].source))
    }

    /// Counts what lanes do to the points of a stage beside computing them: zeros, and points that they get from each other.
    pub fn exchanged(&mut self, work: &Work<'_>, own: &Place, totals: &mut Totals) {
        let Some(Shared { everywhere, zeros, taken, .. }) = work.lanes else { return };
        for group in &work.flat.stores {
            let each = Moves::new(everywhere, group).traffic(own, self.units, all, 1).0;
            let taken = each.times(taken);
            totals.add_shuffles(taken);
            if self.items.chosen.is_some() {
                let exact = everywhere.exact && self.is_inside(work);
                let zeros = each.times(f64::from(u8::from(zeros)));
                self.note_access(group, own.memory, zeros, exact, Access::Zero);
                self.note_access(group, own.memory, taken, exact, Access::Exchange);
            }
        }
    }
}
