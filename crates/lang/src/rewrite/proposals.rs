//! Rewrites that may apply to a pipeline.

use std::num::NonZeroU32;

use crate::pipeline::Pipeline;
use crate::rewrite::{Rewrite, Side, StageName, VarName};

impl Rewrite {
    /// All rewrites of single updates that may apply to a pipeline, with `by` for every number. Many do not apply: see
    /// [`Rewrite::apply`].
    pub fn proposals(pipeline: &Pipeline, by: NonZeroU32) -> Vec<Rewrite> {
        let mut proposals = Vec::new();
        for func in pipeline.funcs().values() {
            for (number, stage) in func.stages.iter().enumerate().skip(1) {
                let stage_name = StageName { func: func.name.clone(), stage: number };
                for var in &stage.domain {
                    let var = VarName { stage: stage_name.clone(), var: var.name.clone() };
                    proposals.extend([
                        Rewrite::Split { var: var.clone(), by },
                        Rewrite::Factor { var: var.clone(), side: Side::Inner, by },
                        Rewrite::Factor { var, side: Side::Outer, by },
                    ]);
                }
            }
        }
        proposals
    }
}
