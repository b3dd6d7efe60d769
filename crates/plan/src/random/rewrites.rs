//! Random rewrites of a pipeline.

use std::num::NonZeroU32;

use warploom_lang::rewrite::Rewrite;

use crate::problem::Problem;
use crate::random::draw::Draw;

/// The most rewrites, and how many are tried to find as many.
const MOST: i64 = 3;
const TRIED: usize = 12;

/// The largest factor. Random pipelines are small.
const LARGEST: i64 = 9;

impl Problem {
    /// A problem that some random rewrites lead to, the same on every machine; the problem itself if none applies.
    pub fn randomly_rewritten(&self, seed: u64) -> Problem {
        let mut draw = Draw::new(seed ^ self.pipeline().structural_hash() as u64);
        let wanted = draw.between(1, MOST) as usize;
        let mut problem = self.clone();
        let mut done = Vec::new();
        for _ in 0..TRIED {
            let by = NonZeroU32::new(draw.between(1, LARGEST) as u32).unwrap_or(NonZeroU32::MIN);
            let proposals = Rewrite::proposals(problem.pipeline(), by);
            let Some(rewrite) = proposals.get(draw.position(proposals.len())) else { break };
            done.push(rewrite.clone());
            match problem.rewritten(&done) {
                Ok(next) if !next.is_too_large(self) => problem = next,
                _ => _ = done.pop(),
            }
            if done.len() == wanted {
                break;
            }
        }
        problem
    }

    /// Whether rewrites have multiplied the work, so that evaluating takes too long.
    fn is_too_large(&self, original: &Problem) -> bool {
        self.evaluations() > 8 * original.evaluations() + 100_000
    }

    /// How many points all stages compute.
    fn evaluations(&self) -> u64 {
        let stages = self.pipeline().funcs().keys().flat_map(|func| self.defined_stages(func));
        let points = stages.map(|stage| {
            let loops = self.loops(stage.into());
            let extents = loops.iter().map(|kind| self.loop_range(stage.into(), *kind).extent.max(0) as u64);
            extents.fold(1, u64::saturating_mul)
        });
        points.fold(0, u64::saturating_add)
    }
}
