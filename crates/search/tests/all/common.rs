//! What the tests of the search share: apps at their sizes, searched for one device.

use warploom::app::{App, Settings};
use warploom_cost::Analytic;
use warploom_lang::Value;
use warploom_plan::Problem;
use warploom_search::{Options, Outcome, search};
use warploom_target::Device;

pub fn h200() -> Device {
    Device::preset("h200").expect("a known device")
}

/// An app at its benchmark size, with some of its settings changed.
pub fn of_app(app: &App, changed: &[(&str, f64)]) -> Problem {
    let mut settings = Settings::defaults(app);
    for (name, value) in changed {
        assert!(settings.set(name, *value), "{name}");
    }
    let pipeline = app.pipeline(&settings).expect("the pipeline is right");
    let mut request = app.shapes_at(&settings).realisation(&pipeline);
    for param in pipeline.params().values() {
        let value = Value::from_number(param.ty, settings.number(&param.name)).expect("it fits");
        request = request.param(&param.name, value);
    }
    Problem::new(&pipeline, &request, &h200()).expect("the sizes are right")
}

pub fn named(name: &str) -> Problem {
    of_app(warploom_apps::find(name).expect("a known app"), &[])
}

pub fn searched(problem: &Problem, options: &Options) -> Outcome {
    search(problem, &Analytic::new(problem.device()), options, &|_| {})
}
