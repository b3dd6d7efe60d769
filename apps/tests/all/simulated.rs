//! Hand-written schedules: what the kernels compute in the simulator is what the evaluator computes, bit for
//! bit, at sizes that divide the tiles and at sizes that do not.

use warploom::app::App;
use warploom::schedule::Schedule;

use crate::common::{check_simulated, tiny, workload};

fn check(app: &App, text: &str, sizes: &[(&str, f64)]) {
    let workload = workload(app, sizes);
    let schedule = Schedule::parse(text, &workload.pipeline).unwrap_or_else(|errors| panic!("{errors}"));
    check_simulated(&workload, &schedule, &format!("{} {sizes:?}", app.name));
}

/// The schedule file of an app at tile-sized, partial, tiny and odd sizes.
fn check_file(name: &str) {
    check_file_with(name, &[]);
}

fn check_file_with(name: &str, others: &[(&str, f64)]) {
    let app = warploom_apps::find(name).expect("it is an app");
    let path = format!("{}/schedules/{name}.schedule", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the schedule is there");
    for (width, height) in [(128.0, 96.0), (129.0, 67.0), (77.0, 131.0), (9.0, 8.0)] {
        check(app, &text, &[&[("W", width), ("H", height)], others].concat());
    }
    let small = workload(app, &[&[("W", 29.0), ("H", 23.0)], others].concat());
    let schedule = Schedule::parse(&text, &small.pipeline).unwrap_or_else(|errors| panic!("{errors}"));
    for (sizes, tiny) in tiny(app, others, &small) {
        check_simulated(&tiny, &schedule, &format!("{name} at {sizes}"));
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

/// Loops over blocks, private accumulators, split reductions, staged inputs.
#[test]
fn matrix_multiplication() {
    let app = warploom_apps::find("cuda_mat_mul").expect("it is an app");
    let text = include_str!("../../schedules/cuda_mat_mul.schedule");
    for size in [16.0, 64.0, 77.0, 100.0] {
        check(app, text, &[("size", size)]);
    }
    for text in [
        "cuda_mat_mul\n  kernel out block x 16, y 16\n    prod.0 flat shared\n    prod.1 flat shared\n    out flat\n",
        "cuda_mat_mul\n  kernel out block x 12, y 9\n    prod.0 threads x 5, y 2 serial x 2 shared\n    over prod.1.r 7\n      A.stage threads d0 8, d1 4 shared\n      prod.1 flat shared\n    out threads x 3, y all\n",
        "cuda_mat_mul\n  kernel out block x 8, y 8\n    out threads x 4, y 4 serial x 2, y 2 unroll\n      prod registers\n",
        "cuda_mat_mul\n  kernel prod.0 block x 32, y 1 threads x all\n  around prod.1.r 5\n    kernel prod.1 block x 16, y 16 threads x 16, y 4 serial y 2, r 2, x 1\n  kernel out flat\n",
        "cuda_mat_mul\n  kernel prod.0 block x 32, y 4 flat\n  kernel prod.1 block x 32, y 4\n    over prod.1.r 8\n      B.stage flat shared\n      prod.1 threads x 32 serial y 4, r all unroll\n  kernel out block x 32 threads x 32\n",
    ] {
        check(app, text, &[("size", 30.0)]);
    }
}

/// Producers inside a loop over the block, accumulators that outlive it.
#[test]
fn loops_with_producers_inside() {
    check_file_with("nl_means", &[("patch_size", 3.0), ("search_area", 3.0)]);
}

/// Funcs of constants as tables, slices as Funcs, one expression for 53 columns.
#[test]
fn constants() {
    check_file("max_filter");
}

/// Launches in a loop, reduction variables on blocks and threads.
#[test]
fn loops_around_kernels() {
    let text = include_str!("../schedules/max_filter_launches.schedule");
    let app = warploom_apps::find("max_filter").expect("it is an app");
    for (width, height) in [(128.0, 96.0), (77.0, 131.0), (9.0, 8.0)] {
        check(app, text, &[("W", width), ("H", height)]);
    }
}

/// A Func with 76 stages, most of which write fixed places, in the registers of each thread.
#[test]
fn equations_solved_in_registers() {
    let text = include_str!("../../schedules/bgu.schedule");
    let in_block = |line: &&str| !line.trim_start().starts_with("solve.");
    let text: String = text.lines().filter(in_block).map(|line| format!("{line}\n")).collect();
    let line = text.lines().find(|line| line.starts_with("    line ")).expect("it is a kernel's stage");
    let text = text.replace(line, &format!("{line}\n      solve registers"));
    check(warploom_apps::find("bgu").expect("it is an app"), &text, &[("W", 192.0), ("H", 128.0)]);
}
