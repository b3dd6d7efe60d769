//! Shared code of the benchmarks: apps with data and their hand-written schedules.

pub mod problem;

use warploom::app::{InputRequest, Settings};
use warploom::prelude::*;
use warploom::schedule::Schedule;
use warploom::tune::workload::Workload;

/// An app at a size, with generated inputs.
///
/// # Panics
/// If there is no such app or it cannot be built, which is a bug in the benchmark.
pub fn workload(name: &str, width: u32, height: u32) -> Workload {
    let Some(app) = warploom_apps::find(name) else { panic!("there is no app {name}") };
    let mut settings = Settings::defaults(app);
    assert!(settings.set("W", width.into()) && settings.set("H", height.into()), "{name} has no W and H");
    let pipeline = match app.pipeline(&settings) {
        Ok(pipeline) => pipeline,
        Err(error) => panic!("{name}: {error}"),
    };
    let shapes = app.shapes_at(&settings);
    let input = |decl: &ir::InputDecl| {
        let (_, region) = shapes.inputs.iter().find(|(known, _)| *known == decl.name)?;
        let request = InputRequest {
            name: &decl.name,
            ty: decl.ty,
            region: region.clone(),
            seed: 1,
            settings: &settings,
        };
        app.input(&request).ok()
    };
    let inputs = pipeline.inputs().values().filter_map(input).collect();
    let param = |decl: &ir::ParamDecl| Value::from_number(decl.ty, settings.number(&decl.name));
    let params = pipeline.params().values().filter_map(param).collect();
    let outputs = shapes.outputs.iter().map(|(_, region)| region.clone()).collect();
    Workload { pipeline, inputs, params, outputs }
}

/// The hand-written schedule of an app.
///
/// # Panics
/// If there is no such schedule, or if it does not fit the pipeline.
pub fn schedule(pipeline: &Pipeline) -> Schedule {
    let path = format!("{}/../apps/schedules/{}.schedule", env!("CARGO_MANIFEST_DIR"), pipeline.name());
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Schedule::parse(&text, pipeline).unwrap_or_else(|errors| panic!("{errors}"))
}
