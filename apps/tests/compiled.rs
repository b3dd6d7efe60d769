//! NVRTC compiles the kernels of the suite: hand-written schedules without spills, and every app's default.
//!
//! Without NVRTC the tests are skipped, and say so; with `WARPLOOM_REQUIRE_NVRTC=1` they fail.

mod common;

use common::{hand_written, unfilled};
use warploom::app::App;
use warploom::codegen::cuda::{Build, describe};
use warploom::prelude::*;
use warploom::runtime::{nvrtc, testing};
use warploom::schedule::schedule::Schedule;
use warploom::target::Device;
use warploom::tune::build::build;

/// Compiles an app at its own sizes; gives the bytes its kernels spill.
fn spilled(app: &App, choose: fn(&Pipeline, &Realisation) -> Schedule, kind: Build) -> u64 {
    let device = Device::preset("h200").expect("it is a preset");
    let arch = nvrtc::Arch::for_device(&device).expect("NVRTC knows it");
    let (pipeline, request) = unfilled(app, &[]);
    let schedule = choose(&pipeline, &request);
    let program = build(&pipeline, &schedule, &request, &device);
    let program = program.unwrap_or_else(|error| panic!("{}: {error}", app.name));
    let compiled = nvrtc::compile_program(&describe(&program, kind), arch);
    let (_, image) = compiled.unwrap_or_else(|error| panic!("{} {kind:?}: {error}", app.name));
    image.expect("it was compiled").spilled_bytes()
}

#[test]
fn hand_written_schedules_compile_without_spills() {
    if !testing::has_nvrtc("hand_written_schedules_compile_without_spills") {
        return;
    }
    for name in ["copy", "brighten", "blur", "unsharp", "harris"] {
        let app = warploom_apps::find(name).expect("it is an app");
        for kind in [Build::Checking, Build::Timing] {
            assert_eq!(spilled(app, |pipeline, _| hand_written(pipeline), kind), 0, "{name} {kind:?}");
        }
    }
}

#[test]
fn default_schedules_compile() {
    if !testing::has_nvrtc("default_schedules_compile") {
        return;
    }
    for app in &warploom_apps::APPS {
        let default = |pipeline: &Pipeline, request: &Realisation| {
            Schedule::default_for(pipeline, &infer(pipeline, request).expect("the sizes fit"))
        };
        spilled(app, default, Build::Timing);
    }
}
