//! Apps as problems for the search: a pipeline with the sizes of everything.

use warploom::app::{App, Settings};
use warploom::prelude::*;

/// A pipeline at the sizes of a realisation.
pub struct Problem {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The sizes of everything in it.
    pub regions: Regions,
}

impl Problem {
    /// An app at its benchmark size, with some of its settings changed.
    ///
    /// # Panics
    /// If it cannot be built or has no such settings: a mistake in the benchmark.
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

    /// The app of a name at its benchmark size.
    ///
    /// # Panics
    /// If there is no such app.
    pub fn named(name: &str) -> Problem {
        let Some(app) = warploom_apps::find(name) else { panic!("there is no app {name}") };
        Problem::new(app, &[])
    }
}
