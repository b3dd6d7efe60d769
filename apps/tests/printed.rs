//! The CUDA text of hand-written schedules, pinned.

use warploom::app::Settings;
use warploom::codegen::cuda::{Build, print};
use warploom::prelude::*;
use warploom::schedule::schedule::Schedule;
use warploom::target::Device;
use warploom::tune::build::build;

fn printed(name: &str, width: f64, height: f64) -> String {
    let app = warploom_apps::find(name).expect("it is an app");
    let mut settings = Settings::defaults(app);
    assert!(settings.set("W", width) && settings.set("H", height));
    let pipeline = (app.build)(&settings).expect("the pipeline is right");
    let path = format!("{}/schedules/{name}.schedule", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the schedule is there");
    let schedule = Schedule::parse(&text, &pipeline).expect("the schedule is right");
    let shapes = (app.shapes)(&settings);
    let mut request = Realisation::new(&pipeline);
    for (name, region) in shapes.inputs {
        request = request.input(name, region);
    }
    for (name, region) in shapes.outputs {
        request = request.output(name, region);
    }
    let device = Device::preset("h200").expect("it is a preset");
    let program = build(&pipeline, &schedule, &request, &device).expect("the schedule is legal");
    print(&program, Build::Timing)
}

/// Sizes that the tiles divide: no guards.
#[test]
fn unsharp() {
    insta::assert_snapshot!(printed("unsharp", 1536.0, 2560.0));
}

/// Sizes that they do not: blocks inside the image still run without guards.
#[test]
fn blur() {
    insta::assert_snapshot!(printed("blur", 1000.0, 700.0));
}
