//! What is tuned: a pipeline with data.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use warploom::check;
use warploom::cost::CostModel;
use warploom::search::Options;
use warploom::target::Device;
use warploom::tune::measure::{Check, Subject};
use warploom::tune::tuning::Task;

use crate::error::Error;
use crate::pipeline;

/// A pipeline with data, and a smaller version with known reference outputs.
pub(crate) struct Tunable {
    pub(crate) subject: Arc<Subject>,
    pub(crate) small: Option<Arc<Check>>,
    /// The tolerance that the app states; `None` if it is derived from the pipeline.
    pub(crate) tolerance: Option<f64>,
}

impl Tunable {
    /// A pipeline with its generated inputs.
    pub(crate) fn new(asked: &pipeline::Subject, device: &Device, seed: u64) -> Result<Tunable, Error> {
        let subject = Subject::of(&asked.workload(&[], seed)?)?;
        let small = match asked.app.sizes.is_empty() {
            true => None,
            false => check::of_app(&asked.app, &asked.pipeline),
        };
        let small = small.or_else(|| check::of_pipeline(&asked.pipeline, &asked.request, device));
        let tolerance = asked.app.tolerance;
        Ok(Tunable { subject: Arc::new(subject), small: small.map(Arc::new), tolerance })
    }

    /// The task of tuning it.
    pub(crate) fn task<'t>(
        &self,
        model: &'t dyn CostModel,
        search: Options,
        deadline: Option<Instant>,
        stop: &'t AtomicBool,
    ) -> Task<'t> {
        let (subject, small, tolerance) = (self.subject.clone(), self.small.clone(), self.tolerance);
        Task { subject, small, tolerance, model, search, deadline, stop }
    }
}
