//! One thing to check: a pipeline, its sizes and Params, a schedule, and the seed of its inputs.

use warploom_interp::buffer::{Buffer, BufferError};
use warploom_interp::{EvalError, Evaluation};
use warploom_lang::{Pipeline, Realisation};
use warploom_schedule::schedule::Schedule;

use crate::data::samples;

/// A pipeline under a schedule with everything it needs to run.
///
/// A case is complete in itself: it can be [saved](Case::save), sent to somebody and [checked](Case::check)
/// there, whatever the generators of pipelines and schedules have become.
#[derive(Clone, Debug)]
pub struct Case {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The boxes of its inputs and outputs, and the values of its Params; everything is given.
    pub request: Realisation,
    /// The schedule.
    pub schedule: Schedule,
    /// Where the inputs' samples come from.
    pub seed: u64,
}

impl Case {
    /// The inputs in the pipeline's order.
    ///
    /// A sample depends on the seed, the input's name and the sample's point alone: it stays the same when boxes
    /// shrink and other inputs vanish.
    pub fn inputs(&self) -> Result<Vec<Buffer>, BufferError> {
        let given = self.pipeline.inputs().values().zip(self.request.inputs.values());
        given.map(|(decl, region)| samples(self.seed, decl, region.as_ref())).collect()
    }

    /// The outputs as the reference evaluator computes them; a tuple gives one buffer a value.
    pub fn reference(&self, inputs: &[Buffer]) -> Result<Vec<Buffer>, EvalError> {
        self.evaluation(inputs).run()
    }

    /// An evaluation by the reference that is still to be run.
    pub fn evaluation<'a>(&'a self, inputs: &'a [Buffer]) -> Evaluation<'a> {
        let mut evaluation = Evaluation::new(&self.pipeline);
        for (decl, buffer) in self.pipeline.inputs().values().zip(inputs) {
            evaluation = evaluation.input(&decl.name, buffer);
        }
        for (decl, value) in self.pipeline.params().values().zip(self.request.params.values()) {
            if let Some(value) = value {
                evaluation = evaluation.param(&decl.name, *value);
            }
        }
        for (id, region) in self.pipeline.outputs().iter().zip(&self.request.outputs) {
            if let Some(region) = region {
                evaluation = evaluation.output(&self.pipeline.funcs()[*id].name, region.clone());
            }
        }
        evaluation
    }
}
