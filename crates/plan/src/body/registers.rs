//! The Funcs that a nest holds in registers.

use warploom_lang::FuncId;
use warploom_schedule::{Nest, Source, StageRef};

use crate::body::builder::Builder;
use crate::body::flatten::Flat;
use crate::body::walk::{RegisterStage, Walk};
use crate::body::{Part, Registers, SharedByLanes};
use crate::footprint::NestFootprint;

impl<'p> Builder<'_, 'p> {
    /// Adds the Funcs that a nest holds in registers.
    pub fn registers(
        &mut self,
        walk: &Walk,
        (nest, footprint): (&'p Nest, &'p NestFootprint),
        registers: &Registers<'p>,
    ) {
        let lowest = &self.plan.lowest;
        let of_lanes =
            |lanes| Walk::of_warps(self.around.clone(), (footprint, lanes), self.threads(), lowest);
        let warps = footprint.lanes.map(of_lanes);
        let threads = warps.as_ref().unwrap_or(walk);
        let rows = footprint.slides.map_or(1, |dim| footprint.share(dim).1);
        for (func, own) in registers {
            for number in 0..own.thread.stages.len() {
                let stage = StageRef { func: *func, stage: number };
                if self.problem.is_idle(stage) {
                    continue;
                }
                let ranges = &self.problem.regions().funcs[*func].stages[number].domain;
                let unrolled = |extent| footprint.unrolls_registers(extent);
                let domain = ranges.iter().map(|range| (range.min, range.extent, unrolled(range.extent)));
                let lanes = footprint.lanes.is_some();
                let stored = RegisterStage { own, number, domain: domain.collect(), rows, lanes };
                let everywhere = Box::new(threads.of_registers(&stored, lowest));
                let flat = self.flat(stage, &everywhere);
                let mut part = Part {
                    registers: registers.clone(),
                    ..self.part_of_stage(stage, nest, everywhere, flat)
                };
                if lanes {
                    let harmless = self.is_harmless(&part.flat, registers);
                    let needed = (!harmless).then(|| part.walk.needed(&stored, lowest)).flatten();
                    let everywhere = needed.map(|needed| std::mem::replace(&mut part.walk, Box::new(needed)));
                    let zeros = everywhere.is_some() && number == 0;
                    let taken = own.points_from_lanes();
                    part.lanes = Some(SharedByLanes { everywhere, harmless, zeros, taken });
                }
                self.add(part);
            }
        }
    }

    /// Whether a stage reads only registers, so that lanes compute it also at points that the block does not need.
    fn is_harmless(&self, flat: &Flat, registers: &Registers<'_>) -> bool {
        let nodes = self.problem.dag().nodes();
        let held = |func: FuncId| registers.iter().any(|(known, _)| *known == func);
        let is_held = |source: Source| matches!(source, Source::Func(func) if held(func));
        !flat.tables && flat.loads.iter().all(|group| is_held(nodes[group.node].source))
    }
}
