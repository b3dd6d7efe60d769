//! NVRTC compiles the kernels of the hand-written schedules, in both builds and without spills.
//!
//! Without NVRTC the test is skipped, and says so; with `WARPLOOM_REQUIRE_NVRTC=1` it fails.

use warploom::app::Settings;
use warploom::codegen::cuda::{Build, describe};
use warploom::prelude::*;
use warploom::runtime::{nvrtc, testing};
use warploom::schedule::schedule::Schedule;
use warploom::target::Device;
use warploom::tune::build::build;

#[test]
fn hand_written_schedules_compile() {
    if !testing::has_nvrtc("hand_written_schedules_compile") {
        return;
    }
    let device = Device::preset("h200").expect("it is a preset");
    let arch = nvrtc::Arch::for_device(&device).expect("NVRTC knows it");
    for name in ["copy", "brighten", "blur", "unsharp", "harris"] {
        let app = warploom_apps::find(name).expect("it is an app");
        let settings = Settings::defaults(app);
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
        for param in pipeline.params().values() {
            let value = Value::from_number(param.ty, settings.number(&param.name)).expect("it fits");
            request = request.param(&param.name, value);
        }
        let program = build(&pipeline, &schedule, &request, &device).expect("the schedule is legal");
        for kind in [Build::Checking, Build::Timing] {
            let (_, image) = nvrtc::compile_program(&describe(&program, kind), arch).expect("it is CUDA");
            let image = image.expect("it was compiled");
            assert_eq!(image.spilled_bytes(), 0, "{name} {kind:?}: {}", image.log);
        }
    }
}
