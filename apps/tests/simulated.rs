//! Hand-written schedules: what the kernels compute in the simulator is what the evaluator computes, bit for
//! bit, at sizes that divide the tiles and at sizes that do not.

mod common;

use common::{check_simulated, workload};
use warploom::app::App;
use warploom::codegen::lower::{LowerError, lower};
use warploom::schedule::schedule::Schedule;
use warploom::target::Device;

fn check(app: &App, text: &str, sizes: &[(&str, f64)]) {
    let workload = workload(app, sizes);
    let schedule = Schedule::parse(text, &workload.pipeline).unwrap_or_else(|errors| panic!("{errors}"));
    check_simulated(&workload, &schedule, &format!("{} {sizes:?}", app.name));
}

/// The schedule file of an app at tile-sized, partial, tiny and odd sizes.
fn check_file(name: &str) {
    let app = warploom_apps::find(name).expect("it is an app");
    let path = format!("{}/schedules/{name}.schedule", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the schedule is there");
    for (width, height) in [(128.0, 96.0), (129.0, 67.0), (77.0, 131.0), (9.0, 8.0)] {
        check(app, &text, &[("W", width), ("H", height)]);
    }
}

#[test]
fn pointwise() {
    check_file("copy");
    check_file("brighten");
}

#[test]
fn stencils() {
    check_file("blur");
    check_file("unsharp");
    check_file("harris");
}

/// Awkward tiles: threads that do not divide the tile, rounds, whole extents, staged inputs.
#[test]
fn tiles_of_every_shape() {
    let blur = warploom_apps::find("blur").expect("it is there");
    let sizes = [("W", 45.0), ("H", 37.0)];
    for text in [
        "blur inline edge, blur_x\n  kernel output block x 7, y 5 threads x 3, y 2 serial x 2, y 1\n",
        "blur inline edge\n  kernel output block x 10, y all\n    blur_x threads x 4, y 3 serial y 2 shared\n    output threads x 5 serial x 3 unroll\n",
        "blur inline edge\n  kernel output block x 16, y 16\n    input.stage flat shared\n    blur_x flat shared\n    output flat\n",
        "blur inline edge\n  kernel blur_x block x 32, y 3\n    blur_x flat\n  kernel output block x 8, y 8 threads x 8, y 8\n",
        "blur inline edge\n  kernel output block x 16, y 12\n    output threads x 16, y 3 serial y 5 unroll\n      blur_x registers\n",
    ] {
        check(blur, text, &sizes);
    }
}

/// What is legal but not lowered yet is refused, never computed wrongly.
#[test]
fn decisions_that_are_not_lowered_are_refused() {
    let device = Device::preset("h200").expect("it is a preset");
    let refused = |name: &str, text: &str, changes: &[(&str, f64)]| {
        let app = warploom_apps::find(name).expect("it is an app");
        let workload = workload(app, changes);
        let schedule = Schedule::parse(text, &workload.pipeline).unwrap_or_else(|errors| panic!("{errors}"));
        let lowered = lower(&workload.pipeline, &schedule, &workload.realisation(), &device);
        assert!(matches!(lowered, Err(LowerError::Unsupported { .. })), "{text}");
    };
    let sizes = [("W", 64.0), ("H", 32.0)];
    refused("blur", "blur inline edge, blur_x\n  kernel output block x 32, y 1 threads x all\n", &sizes);
    refused(
        "cuda_mat_mul",
        "cuda_mat_mul\n  kernel out block x 16, y 16\n    prod.0 flat shared\n    prod.1 flat shared\n    out flat\n",
        &[("size", 32.0)],
    );
    refused("cuda_mat_mul", include_str!("../schedules/cuda_mat_mul.schedule"), &[("size", 64.0)]);
}
