//! Rules on nests that slide.

use crate::schedule::axes::is_pure;
use crate::schedule::legality::Checker;
use crate::schedule::plan::NestPlan;
use crate::schedule::rule::Rule;

impl Checker<'_> {
    /// Checks a nest that slides.
    pub(super) fn slide(&mut self, nest: &NestPlan<'_>) {
        let item = self.names.of_item(nest.nest.item);
        let tiles = nest.nest.mapping.tiles().filter(|tiles| tiles.unroll);
        let first = tiles.and_then(|tiles| tiles.serial.first());
        let domain = nest.footprint.iter().flat_map(|footprint| &footprint.domain);
        if nest.nest.registers.is_empty() {
            self.report(&nest.path, Rule::SlideFuncs { item });
        } else if first.is_none_or(|tile| !is_pure(tile.dim)) {
            self.report(&nest.path, Rule::SlideLoops { item });
        } else if domain.into_iter().any(|reach| reach.extent() > 1) {
            self.report(&nest.path, Rule::SlideReduction { item });
        }
    }
}
