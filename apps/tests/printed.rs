//! The CUDA text of hand-written schedules, pinned.

mod common;

use common::{hand_written, unfilled};
use warploom::codegen::build::build;
use warploom::codegen::cuda::{Build, print};
use warploom::target::Device;

fn printed(name: &str, width: f64, height: f64) -> String {
    let app = warploom_apps::find(name).expect("it is an app");
    let (pipeline, request) = unfilled(app, &[("W", width), ("H", height)]);
    let device = Device::preset("h200").expect("it is a preset");
    let program = build(&pipeline, &hand_written(&pipeline), &request, &device);
    print(&program.expect("the schedule is legal"), Build::Timing)
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
