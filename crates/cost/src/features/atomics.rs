//! Atomics of a stage: how many, and how many of them meet at one element.

use warploom_plan::body::{AccessKind, Memory, Moves, Part};

use crate::features::block::Block;
use crate::schema::StageFeatures;

impl Block<'_> {
    /// Fills in the atomics of a stage that updates its points by them. It has no stores.
    pub fn atomics(&self, part: &Part<'_>, features: &mut StageFeatures) {
        let (own, warp) = (part.own(), i64::from(self.problem.device().threads.warp));
        for access in part.accesses.iter().filter(|access| access.kind == AccessKind::Atomic) {
            let moves = Moves::new(&part.walk, part.group(access));
            let traffic = self.count(part, access, &moves).0;
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
