//! What is tuned: a pipeline with data.

use std::sync::Arc;

use warploom::app::App;
use warploom::check;
use warploom::target::Device;
use warploom::tune::measure::{Check, Subject};

use crate::error::Error;
use crate::memory;
use crate::pipeline;

/// A pipeline with data, and a smaller version with known reference outputs.
pub(crate) struct Tunable {
    pub(crate) subject: Arc<Subject>,
    pub(crate) small: Option<Arc<Check>>,
    /// The tolerance that the app states; `None` for other pipelines.
    pub(crate) tolerance: Option<f64>,
}

impl Tunable {
    /// An app with its generated inputs, or a pipeline from a file with random inputs.
    pub(crate) fn new(asked: &pipeline::Subject, device: &Device, seed: u64) -> Result<Tunable, Error> {
        let (pipeline, request) = (&asked.pipeline, &asked.request);
        if let Some((app, settings)) = &asked.app {
            memory::check(app, pipeline, &(app.shapes)(settings), settings)?;
        }
        let workload = asked.app.as_ref().and_then(|(app, settings)| app.workload(settings, seed));
        let subject = match workload {
            Some(workload) => Subject::of(&workload)?,
            None => Subject::noise(pipeline.clone(), request.clone(), seed),
        };
        let of_app = |(app, _): &(App, _)| Some((check::of_app(app, pipeline)?, app.tolerance));
        let (small, tolerance) = match asked.app.as_ref().and_then(of_app) {
            Some((small, tolerance)) => (Some(small), tolerance),
            None => (check::of_pipeline(pipeline, request, device), None),
        };
        Ok(Tunable { subject: Arc::new(subject), small: small.map(Arc::new), tolerance })
    }
}
