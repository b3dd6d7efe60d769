//! What is tuned: a pipeline with data.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use warploom_cost::CostModel;
use warploom_search::Options;
use warploom_target::Device;
use warploom_tune::measure::{self, Check};
use warploom_tune::tuning::Task;

use super::{AppError, Subject};
use crate::check;

/// A pipeline with data, and a smaller version with known reference outputs.
pub struct Tunable {
    /// The pipeline and its inputs.
    pub subject: Arc<measure::Subject>,
    /// The smaller version; `None` if there is none.
    pub small: Option<Arc<Check>>,
    /// The tolerance that the app states; `None` if it is derived from the pipeline.
    pub tolerance: Option<f64>,
}

impl Tunable {
    /// A pipeline with its generated inputs.
    ///
    /// # Errors
    /// If the inputs do not fit in memory, or cannot be generated.
    pub fn new(asked: &Subject, device: &Device, seed: u64) -> Result<Tunable, AppError> {
        let subject = measure::Subject::of(&asked.workload(|_| None, seed)?)?;
        let small = match asked.app.sizes.is_empty() {
            true => None,
            false => check::of_app(&asked.app, &asked.pipeline),
        };
        let small = small.or_else(|| check::of_pipeline(&asked.pipeline, &asked.request, device));
        let tolerance = asked.app.tolerance;
        Ok(Tunable { subject: Arc::new(subject), small: small.map(Arc::new), tolerance })
    }

    /// The task of tuning it.
    pub fn task<'t>(
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
