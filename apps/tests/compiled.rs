//! NVRTC compiles the kernels of the suite: hand-written schedules without spills, every app's default, random
//! schedules, and what the search finds.
//!
//! Without NVRTC the tests are skipped, and say so; with `WARPLOOM_REQUIRE_NVRTC=1` they fail.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{hand_written, quick_search, unfilled};
use warploom::app::App;
use warploom::codegen::build::build;
use warploom::codegen::cuda::{Build, describe};
use warploom::prelude::*;
use warploom::runtime::{nvrtc, testing};
use warploom::schedule::schedule::Schedule;
use warploom::target::Device;

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

/// Compiles every app under a schedule of its own, two at a time.
fn all_compile(test: &str, choose: fn(&Pipeline, &Realisation) -> Schedule) {
    if !testing::has_nvrtc(test) {
        return;
    }
    let next = AtomicUsize::new(0);
    let compile = || {
        while let Some(app) = warploom_apps::APPS.get(next.fetch_add(1, Ordering::Relaxed)) {
            spilled(app, choose, Build::Timing);
        }
    };
    std::thread::scope(|scope| {
        [scope.spawn(compile), scope.spawn(compile)].map(|thread| thread.join().expect("it compiles"))
    });
}

fn random(pipeline: &Pipeline, request: &Realisation, seed: u64) -> Schedule {
    let device = Device::preset("h200").expect("it is a preset");
    Schedule::random(pipeline, &infer(pipeline, request).expect("the sizes fit"), &device, seed)
}

#[test]
fn hand_written_schedules_compile_without_spills() {
    if !testing::has_nvrtc("hand_written_schedules_compile_without_spills") {
        return;
    }
    for app in warploom_apps::APPS.iter().chain(&warploom_apps::BASICS) {
        let spilled = spilled(app, |pipeline, _| hand_written(pipeline), Build::Timing);
        assert_eq!(spilled, 0, "{}", app.name);
    }
}

#[test]
fn default_schedules_compile() {
    all_compile("default_schedules_compile", |pipeline, request| {
        Schedule::default_for(pipeline, &infer(pipeline, request).expect("the sizes fit"))
    });
}

#[test]
fn random_schedules_compile() {
    for choose in [
        |pipeline: &Pipeline, request: &Realisation| random(pipeline, request, 1),
        |pipeline: &Pipeline, request: &Realisation| random(pipeline, request, 2),
        |pipeline: &Pipeline, request: &Realisation| random(pipeline, request, 3),
    ] {
        all_compile("random_schedules_compile", choose);
    }
}

#[test]
fn searched_schedules_compile() {
    all_compile("searched_schedules_compile", |pipeline, request| {
        let device = Device::preset("h200").expect("it is a preset");
        let found = pipeline.autoschedule_with(&device, request, &quick_search());
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", pipeline.name()));
        assert!(!found.outcome().fallback, "{}", pipeline.name());
        found.schedule().clone()
    });
}
