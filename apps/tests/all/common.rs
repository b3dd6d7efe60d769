//! What several tests need: a pipeline with data, and the simulator against the evaluator.

use warploom::app::{App, Settings};
use warploom::codegen::build::{BuildError, build};
use warploom::codegen::verify::verify;
use warploom::interp::compare::{Tolerance, compare};
use warploom::plan::{PlanError, Problem, RewrittenError};
use warploom::prelude::*;
use warploom::schedule::Schedule;
use warploom::search::Options;
use warploom::target::Device;
use warploom::tune::workload::Workload;

/// An app at `changes` of its default settings.
pub fn workload(app: &App, changes: &[(&str, f64)]) -> Workload {
    let mut settings = Settings::defaults(app);
    for (name, value) in changes {
        assert!(settings.set(name, *value), "{} has no setting {name}", app.name);
    }
    app.workload(&settings, 3).expect("the pipeline is right")
}

/// An app at `changes` of its default settings, without data.
pub fn unfilled(app: &App, changes: &[(&str, f64)]) -> (Pipeline, Realisation) {
    let mut settings = Settings::defaults(app);
    for (name, value) in changes {
        assert!(settings.set(name, *value), "{} has no setting {name}", app.name);
    }
    let pipeline = app.pipeline(&settings).expect("the pipeline is right");
    let mut request = app.shapes_at(&settings).realisation(&pipeline);
    for param in pipeline.params().values() {
        let value = Value::from_number(param.ty, settings.number(&param.name)).expect("it fits");
        request = request.param(&param.name, value);
    }
    (pipeline, request)
}

pub fn h200() -> Device {
    Device::preset("h200").expect("it is a preset")
}

/// An app at `changes` of its default settings, to be scheduled.
pub fn problem(app: &App, changes: &[(&str, f64)]) -> Problem {
    let (pipeline, request) = unfilled(app, changes);
    Problem::new(&pipeline, &request, &h200()).expect("the sizes fit")
}

/// An app at sizes as small as can be, or odd: by its settings, as far as its pipeline can run there, and a corner of the
/// outputs of another workload.
pub fn tiny(app: &App, structure: &[(&str, f64)], of: &Workload) -> Vec<(String, Workload)> {
    const EXTENTS: [&[i64]; 5] = [&[1, 1], &[133, 1, 1], &[1, 133, 1], &[2, 3], &[17, 5]];
    let mut found = Vec::new();
    for extents in EXTENTS {
        let extent = |d: usize| extents[d % extents.len()];
        // What is small in use, as a filter is, becomes no picture.
        let most = |default: f64| if default > 64.0 { f64::INFINITY } else { 5.0 };
        let sizes = app.sizes.iter().enumerate();
        let sizes = sizes.map(|(d, size)| (size.name.as_str(), (extent(d) as f64).min(most(size.default))));
        let settings: Vec<(&str, f64)> = structure.iter().copied().chain(sizes).collect();
        let (pipeline, request) = unfilled(app, &settings);
        assert_eq!(pipeline.to_json(), of.pipeline.to_json(), "{}", app.name);
        if infer(&pipeline, &request).is_ok() {
            found.push((format!("{settings:?}"), workload(app, &settings)));
        }
        let cut = |(d, range): (usize, &Range)| Range::new(range.min, range.extent.min(extent(d)));
        let corner = |region: &Region| Region(region.0.iter().enumerate().map(cut).collect());
        let outputs = of.outputs.iter().map(corner).collect();
        found.push((format!("a corner of {extents:?}"), Workload { outputs, ..of.clone() }));
    }
    found
}

/// The schedule that was written by hand for a pipeline.
pub fn hand_written(pipeline: &Pipeline) -> Schedule {
    let path = format!("{}/schedules/{}.schedule", env!("CARGO_MANIFEST_DIR"), pipeline.name());
    let text = std::fs::read_to_string(path).expect("the schedule is there");
    Schedule::parse(&text, pipeline).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A short search, for many apps.
pub fn quick_search() -> Options {
    Options { samples: 4, beam: 4, passes: 2, ..Options::default() }
}

/// Checks that what the kernels of a schedule compute in the simulator is what the evaluator computes, bit for bit.
pub fn check_simulated(workload: &Workload, schedule: &Schedule, label: &str) {
    assert!(is_simulated(workload, schedule, label), "{label}: the rewrites are impossible at these sizes");
}

/// The same at sizes at which a rewrite may be impossible; returns whether there was something to check.
pub fn is_simulated(workload: &Workload, schedule: &Schedule, label: &str) -> bool {
    let problem = Problem::new(&workload.pipeline, &workload.realisation(), &h200());
    let problem = problem.unwrap_or_else(|error| panic!("{label}: {error}"));
    let program = match build(&problem, schedule) {
        // At sizes at which a rewrite is impossible, the library uses the default schedule.
        Err(BuildError::Plan(PlanError::Rewritten(
            RewrittenError::Bounds(_) | RewrittenError::Undefined(_),
        ))) => return false,
        built => built.unwrap_or_else(|error| panic!("{label}: {error}")),
    };
    verify(&program).unwrap_or_else(|error| panic!("{label}: {error}"));
    let simulated = workload.simulate(&program, problem.device(), 5);
    let simulated = simulated.unwrap_or_else(|error| panic!("{label}: {error}"));
    let pipeline = workload.pipeline.rewritten(&schedule.rewrites).expect("it was built").into_owned();
    let expected = Workload { pipeline, ..workload.clone() }.reference().expect("the evaluator can do it");
    assert_eq!(simulated.outputs.len(), expected.len(), "{label}");
    for (got, expected) in simulated.outputs.iter().zip(&expected) {
        let found = compare(got, expected, &Tolerance::default()).expect("the sizes agree");
        assert!(found.identical, "{label} differs: {:?}", found.first);
    }
    true
}
