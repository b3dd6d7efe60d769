//! A test case: a pipeline, its sizes and Params, a schedule, and the seed of its inputs.

use warploom_interp::buffer::{Buffer, BufferError};
use warploom_interp::{EvalError, Evaluation};
use warploom_lang::rewrite::RewriteLineError;
use warploom_lang::{Pipeline, Realisation};
use warploom_schedule::Schedule;

use crate::data::samples;

/// A pipeline and a schedule, with everything needed to run them.
///
/// A case is self-contained: it can be [saved](Case::save) and [checked](Case::check) elsewhere,
/// even if the generators of pipelines and schedules have changed.
#[derive(Clone, Debug)]
pub struct Case {
    /// The pipeline to compile.
    pub pipeline: Pipeline,
    /// The boxes of the inputs and outputs, and the values of the Params; none may be missing.
    pub request: Realisation,
    /// The schedule to compile it with.
    pub schedule: Schedule,
    /// Seed of the input samples. It also selects index widths to test.
    pub seed: u64,
}

impl Case {
    /// Generates the inputs, in the pipeline's order.
    ///
    /// A sample depends only on the seed, the input's name and the sample's point. It stays the
    /// same when boxes shrink and other inputs disappear.
    pub fn inputs(&self) -> Result<Vec<Buffer>, BufferError> {
        let given = self.pipeline.inputs().values().zip(self.request.inputs.values());
        given.map(|(decl, region)| samples(self.seed, decl, region.as_ref())).collect()
    }

    /// The case with the pipeline that its schedule describes.
    ///
    /// # Errors
    /// If a rewrite cannot be applied.
    pub fn rewritten(&self) -> Result<Case, RewriteLineError> {
        let pipeline = self.pipeline.rewritten(&self.schedule.rewrites)?.into_owned();
        Ok(Case { pipeline, ..self.clone() })
    }

    /// The outputs computed by the reference evaluator; a tuple yields one buffer per value.
    pub fn reference(&self, inputs: &[Buffer]) -> Result<Vec<Buffer>, EvalError> {
        self.evaluation(inputs).run()
    }

    /// A reference evaluation, prepared but not yet run.
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
