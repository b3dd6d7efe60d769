//! Atomics of a stage: how many, and how many of them meet at one element.

use crate::features::arrays::Access;
use crate::features::block::Block;
use crate::features::row::{Work, all};
use crate::features::traffic::{Moves, Place};
use crate::kernel::Memory;
use crate::schema::StageFeatures;

impl Block<'_, '_> {
    /// Fills in the atomics of a stage that updates its points by them. It has no stores.
    pub fn atomics(&mut self, work: &Work<'_>, own: &Place, features: &mut StageFeatures) {
        let warp = i64::from(self.items.problem.device().threads.warp);
        for group in work.flat.stores.iter().filter(|_| work.is_atomic()) {
            let moves = Moves::new(work.walk, group);
            let traffic = self.count(work, group, &moves, own, all, Access::Atomic);
            features.atomic_requests_per_block += traffic.requests;
            if own.memory == Memory::Shared {
                let turns = traffic.requests * lanes_on_one_element(&moves, warp);
                features.shared_atomics_per_block += turns.max(traffic.wavefronts);
            } else {
                features.global_atomics_per_block += traffic.elements;
                features.global_atomic_targets = own.elements();
            }
        }
    }
}

/// How many threads of a warp access the same element for sure. Indices from data count as different.
fn lanes_on_one_element(moves: &Moves<'_>, warp: i64) -> f64 {
    let (mut below, mut same) = (1, 1);
    for (axis, count) in &moves.walk.digits {
        let inside = (*count).min((warp / below).max(1));
        below *= count;
        if !moves.moves(*axis as usize) {
            same *= inside;
        }
    }
    same as f64
}
