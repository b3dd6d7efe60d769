//! Nests that slide: a thread computes its points a row at a time, and what it has in registers just before the row that needs
//! it first. Fewer values are live at once than if all of them came before the first point.

use std::collections::BTreeMap;

use warploom_lang::FuncId;
use warploom_schedule::{LoopKind, Nest, Rational};

use crate::axes::is_pure;
use crate::footprint::{RegisterFootprint, Rows, StagedFootprint, ThreadLoop};
use crate::plan::NestPlan;
use crate::reach::Reach;
use crate::reach::symbol::Symbol;
use crate::trace::Tracer;

/// The dimension along which a nest slides, if it can: the first of its serial loops, unrolled, with nothing to reduce.
pub(super) fn row_loop(nest: &Nest, threads: &[ThreadLoop], domain: &[Reach]) -> Option<LoopKind> {
    let tiles = nest.mapping.tiles().filter(|tiles| nest.numbers.slide && tiles.unroll)?;
    let first = tiles.serial.first().map(|tile| tile.dim).filter(|dim| is_pure(*dim))?;
    let several = threads.iter().any(|own| own.dim == first && own.serial > 1);
    let reduces = domain.iter().any(|reach| reach.extent() > 1);
    (several && !reduces).then_some(first)
}

impl Tracer<'_> {
    /// Finds the Funcs in registers whose points move on with the rows of a thread's points, given what one row needs.
    pub(super) fn rows(
        &self,
        info: &NestPlan,
        row: LoopKind,
        registers: &mut BTreeMap<FuncId, RegisterFootprint>,
        at_row: &BTreeMap<FuncId, StagedFootprint>,
    ) {
        // Consumers first: what a Func reads must be complete where the Func is.
        for (position, func) in info.nest.registers.iter().enumerate().rev() {
            let later = &info.nest.registers[position + 1..];
            let complete = |other: &FuncId| registers.get(other).is_some_and(|own| own.rows.is_none());
            if later.iter().filter(|other| complete(other)).any(|other| self.reads_func(*other, *func)) {
                continue;
            }
            let (Some(own), Some(needed)) = (registers.get_mut(func), at_row.get(func)) else { continue };
            own.rows = rows_of(&own.thread, needed, Symbol::Thread(row));
        }
    }

    /// Whether a Func reads another one, directly or through inlined Funcs.
    fn reads_func(&self, reader: FuncId, func: FuncId) -> bool {
        let stages = self.problem.stages_of(reader);
        self.problem.reads_through(stages, |func| self.plan.inlined.contains(func)).outside.contains(&func)
    }
}

/// How the points of a thread's tile follow from those of its rows, if they do along one dimension by a constant step.
fn rows_of(thread: &StagedFootprint, row: &StagedFootprint, symbol: Symbol) -> Option<Rows> {
    let step_of = |reach: &Reach| {
        let term = reach.terms.iter().find(|(known, _)| *known == symbol);
        term.map(|(_, step)| *step)
    };
    let mut moving = row.points.dims.iter().enumerate().filter(|(_, reach)| step_of(reach).is_some());
    let ((dim, needed), None) = (moving.next()?, moving.next()) else { return None };
    let tile = &thread.points.dims[dim];
    let plain = |reach: &Reach| reach.bounded && reach.clamp.is_none() && !reach.has_fractions();
    let others = |reach: &Reach| -> Vec<(Symbol, Rational)> {
        reach.terms.iter().copied().filter(|(known, _)| *known != symbol).collect()
    };
    let alike = plain(needed) && plain(tile) && others(needed) == others(tile) && needed.low == tile.low;
    // Dimensions that stay where they are must not depend on the row in another way.
    let mut fixed = thread.points.dims.iter().zip(&row.points.dims).enumerate().filter(|(d, _)| *d != dim);
    let fixed = fixed.all(|(_, (own, of_row))| own == of_row);
    let whole = thread.stages.iter().all(|stage| stage.dims[dim] == *tile);
    let step = step_of(needed)?.as_integer().filter(|step| *step > 0)?;
    (alike && fixed && whole).then_some(Rows { dim, first: needed.extent(), step })
}
