//! NVRTC compiles the kernels of the suite: hand-written schedules without spills, every app's default, random
//! schedules, and what the search finds.
//!
//! Without NVRTC the tests are skipped, and say so; with `WARPLOOM_REQUIRE_NVRTC=1` they fail.

use std::sync::atomic::{AtomicUsize, Ordering};

use warploom::app::{App, Setting, Settings};
use warploom::codegen::build::{build, build_with};
use warploom::codegen::lower;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::lang::dynamic::SizeRange;
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::runtime::cuda::nvrtc;
use warploom::runtime::testing;
use warploom::schedule::Schedule;

use crate::common::{hand_written, problem, quick_search};

/// Compiles an app at its own sizes; gives the bytes its kernels spill.
fn spilled(app: &App, choose: fn(&Problem) -> Schedule, kind: Build) -> u64 {
    let problem = problem(app, &[]);
    let arch = nvrtc::Arch::for_device(problem.device()).expect("NVRTC knows it");
    let program = build(&problem, &choose(&problem));
    let program = program.unwrap_or_else(|error| panic!("{}: {error}", app.name));
    let compiled = nvrtc::compile_program(&PRINTER.describe(&program, kind), arch);
    let (_, image) = compiled.unwrap_or_else(|error| panic!("{} {kind:?}: {error}", app.name));
    image.expect("it was compiled").spilled_bytes()
}

/// Compiles every app under a schedule of its own, two at a time.
fn all_compile(test: &str, choose: fn(&Problem) -> Schedule) {
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

#[test]
fn nvrtc_hand_written_schedules_compile_without_spills() {
    if !testing::has_nvrtc("nvrtc_hand_written_schedules_compile_without_spills") {
        return;
    }
    for app in warploom_apps::APPS.iter().chain(warploom_apps::BASICS.iter()) {
        let spilled = spilled(app, |problem| hand_written(problem.pipeline()), Build::Timing);
        assert_eq!(spilled, 0, "{}", app.name);
    }
}

#[test]
fn nvrtc_default_schedules_compile() {
    all_compile("nvrtc_default_schedules_compile", Problem::default_schedule);
}

#[test]
fn nvrtc_random_schedules_compile() {
    all_compile("nvrtc_random_schedules_compile", |problem| problem.random_schedule(1));
}

#[test]
fn nvrtc_searched_schedules_compile() {
    all_compile("nvrtc_searched_schedules_compile", |problem| {
        let pipeline = problem.pipeline();
        let found = pipeline.autoschedule_with(problem.device(), problem.request(), &quick_search());
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", pipeline.name()));
        assert!(!found.outcome().fallback, "{}", pipeline.name());
        found.schedule().clone()
    });
}

/// Kernels for any picture from 16 to 8192 points wide and high, under the default schedule.
#[test]
fn nvrtc_kernels_for_any_size_compile() {
    if !testing::has_nvrtc("nvrtc_kernels_for_any_size_compile") {
        return;
    }
    for app in warploom_apps::APPS.iter() {
        let settings = Settings::defaults(app);
        let pipeline = app.pipeline(&settings).expect("the pipeline is right");
        let pictures = app.sizes.iter().filter(|size| size.default >= 128.0 && size.name.len() == 1);
        let range = |size: &Setting| SizeRange { name: size.name.clone(), min: 16, max: 8192 };
        let request =
            app.dynamic(&pipeline, &settings, pictures.map(range).collect()).expect("the app is whole");
        let request = request.unwrap_or_else(|error| panic!("{}: {error}", app.name));
        let device = Device::preset("h200").expect("it is a preset");
        let problem = Problem::dynamic(&pipeline, &request, &device);
        let problem = problem.unwrap_or_else(|error| panic!("{}: {error}", app.name));
        let options = lower::Options { pitched: true, ..lower::Options::default() };
        let program = build_with(&problem, &problem.default_schedule(), options);
        let program = program.unwrap_or_else(|error| panic!("{}: {error}", app.name));
        let arch = nvrtc::Arch::for_device(&device).expect("NVRTC knows it");
        let compiled = nvrtc::compile_program(&PRINTER.describe(&program, Build::Timing), arch);
        compiled.unwrap_or_else(|error| panic!("{}: {error}", app.name));
    }
}
