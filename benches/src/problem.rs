//! Apps as problems to search.

use warploom::app::{App, Settings};
use warploom::plan::Problem;
use warploom::prelude::*;

/// An app at its benchmark size on a device, with some settings changed.
///
/// # Panics
/// If it cannot be built or has no such settings, which is a bug in the benchmark.
pub fn problem(app: &App, changed: &[(&str, f64)], device: &Device) -> Problem {
    let mut settings = Settings::defaults(app);
    for (name, value) in changed {
        assert!(settings.set(name, *value), "{} has no setting {name}", app.name);
    }
    let pipeline = match app.pipeline(&settings) {
        Ok(pipeline) => pipeline,
        Err(error) => panic!("{}: {error}", app.name),
    };
    let mut request = app.shapes_at(&settings).realisation(&pipeline);
    for param in pipeline.params().values() {
        if let Some(value) = Value::from_number(param.ty, settings.number(&param.name)) {
            request = request.param(&param.name, value);
        }
    }
    Problem::new(&pipeline, &request, device).unwrap_or_else(|error| panic!("{}: {error}", app.name))
}

/// The app with this name, at its benchmark size.
///
/// # Panics
/// If there is no such app.
pub fn named(name: &str, device: &Device) -> Problem {
    let Some(app) = warploom_apps::find(name) else { panic!("there is no app {name}") };
    problem(app, &[], device)
}
