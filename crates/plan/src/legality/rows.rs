//! Rules on nests that slide.

use warploom_schedule::Tile;

use crate::axes::is_pure;
use crate::legality::Checker;
use crate::legality::rule::Rule;
use crate::plan::NestPlan;

impl Checker<'_> {
    /// Checks a nest that slides.
    pub(super) fn slide(&mut self, nest: &NestPlan) {
        let item = self.names.of_item(nest.nest.item);
        let tiles = nest.nest.mapping.tiles().filter(|tiles| tiles.unroll);
        let first = tiles.and_then(|tiles| tiles.serial.first());
        // Lanes share what a whole row of threads computes, not what is left of it along the lanes.
        let lane = tiles.filter(|_| nest.nest.numbers.lanes).and_then(|tiles| tiles.threads.first());
        let is_row = |tile: &Tile| is_pure(tile.dim) && lane.is_none_or(|lane| lane.dim != tile.dim);
        let domain = nest.footprint.iter().flat_map(|footprint| &footprint.domain);
        if nest.nest.registers.is_empty() {
            self.report(&nest.path, Rule::SlideFuncs { item });
        } else if !first.is_some_and(is_row) {
            self.report(&nest.path, Rule::SlideLoops { item });
        } else if domain.into_iter().any(|reach| reach.extent() > 1) {
            self.report(&nest.path, Rule::SlideReduction { item });
        }
    }
}
