//! Rewrites that may apply to a pipeline.

use std::num::NonZeroU32;

use crate::ids::FuncId;
use crate::ir::Stage;
use crate::pipeline::Pipeline;
use crate::rewrite::{Rewrite, Side, StageName, VarName};

impl Rewrite {
    /// Rewrites of every kind that may apply to a pipeline, with `by` for every number. Many do not apply: see
    /// [`Rewrite::apply`].
    pub fn proposals(pipeline: &Pipeline, by: NonZeroU32) -> Vec<Rewrite> {
        let mut proposals = Vec::new();
        for (id, func) in pipeline.funcs().iter() {
            let name = || func.name.clone();
            proposals.push(Rewrite::Tabulate { func: name() });
            for (number, stage) in func.stages.iter().enumerate().skip(1) {
                let stage_name = StageName { func: name(), stage: number };
                for var in &stage.domain {
                    let var = || VarName { stage: stage_name.clone(), var: var.name.clone() };
                    proposals.extend([
                        Rewrite::Split { var: var(), by },
                        Rewrite::Factor { var: var(), side: Side::Inner, by },
                        Rewrite::Factor { var: var(), side: Side::Outer, by },
                        Rewrite::Chunk { var: var(), by },
                        Rewrite::Unroll { var: var() },
                    ]);
                }
                let vars = stage.domain.iter().rev().map(|var| var.name.clone()).collect();
                proposals.extend([
                    Rewrite::Tree { stage: stage_name.clone() },
                    Rewrite::Gather { stage: stage_name.clone() },
                    Rewrite::Expand { stage: stage_name.clone() },
                    Rewrite::Permute { stage: stage_name, vars },
                    Rewrite::Cut { func: name(), at: number },
                    Rewrite::Cut { func: name(), at: func.stages.len() },
                ]);
            }
            if func.dims.len() > 1 {
                let separate = |dim: &String| Rewrite::Separate { func: name(), dim: dim.clone() };
                proposals.extend(func.dims.iter().map(separate));
            }
            for (reader, other) in pipeline.funcs().iter().filter(|(reader, _)| *reader > id) {
                if func.stages.len() > 1 && other.stages.len() > 1 {
                    proposals.push(Rewrite::Join { one: name(), other: other.name.clone() });
                }
                if calls(pipeline, reader, id) {
                    proposals.push(Rewrite::Clone { func: name(), reader: other.name.clone() });
                }
            }
        }
        proposals
    }
}

fn calls(pipeline: &Pipeline, reader: FuncId, func: FuncId) -> bool {
    pipeline.exprs().reads(func, pipeline.funcs()[reader].stages.iter().flat_map(Stage::all_roots))
}
