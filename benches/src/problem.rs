//! Apps as search problems: a pipeline with the boxes of all its Funcs.

use warploom::app::{App, Settings};
use warploom::prelude::*;

/// A pipeline at the sizes of a realisation.
pub struct Problem {
    /// The pipeline to search a schedule for.
    pub pipeline: Pipeline,
    /// The boxes of all Funcs and inputs at these sizes.
    pub regions: Regions,
}

impl Problem {
    /// An app at its benchmark size, with some settings changed.
    ///
    /// # Panics
    /// If it cannot be built or has no such settings, which is a bug in the benchmark.
    pub fn new(app: &App, changed: &[(&str, f64)]) -> Problem {
        let mut settings = Settings::defaults(app);
        for (name, value) in changed {
            assert!(settings.set(name, *value), "{} has no setting {name}", app.name);
        }
        let pipeline = match (app.build)(&settings) {
            Ok(pipeline) => pipeline,
            Err(error) => panic!("{}: {error}", app.name),
        };
        let mut request = (app.shapes)(&settings).realisation(&pipeline);
        for param in pipeline.params().values() {
            if let Some(value) = Value::from_number(param.ty, settings.number(&param.name)) {
                request = request.param(&param.name, value);
            }
        }
        let regions = infer(&pipeline, &request).unwrap_or_else(|error| panic!("{}: {error}", app.name));
        Problem { pipeline, regions }
    }

    /// The app with this name, at its benchmark size.
    ///
    /// # Panics
    /// If there is no such app.
    pub fn named(name: &str) -> Problem {
        let Some(app) = warploom_apps::find(name) else { panic!("there is no app {name}") };
        Problem::new(app, &[])
    }
}
