//! The default schedule of every app: legal, it reads back as it prints, and what its kernels compute in the
//! simulator is what the evaluator computes, bit for bit.

use warploom::codegen::lower::{self, lower};
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::schedule::Schedule;
use warploom::tune::workload::Workload;

use crate::common::{check_simulated, h200, problem, workload};

/// The default schedule of a workload, which is legal and reads back.
fn default_of(workload: &Workload, label: &str) -> Schedule {
    let pipeline = &workload.pipeline;
    let problem = Problem::new(pipeline, &workload.realisation(), &h200()).expect("the sizes fit");
    let schedule = problem.default_schedule();
    let text = schedule.to_text(pipeline);
    if let Err(violations) = problem.check(&schedule) {
        panic!("{label}: {}\n{text}", violations[0]);
    }
    let read = Schedule::parse(&text, pipeline).unwrap_or_else(|errors| panic!("{label}: {errors}\n{text}"));
    assert_eq!(read, schedule, "{label}\n{text}");
    schedule
}

fn check_app(name: &str, changes: &[(&str, f64)]) {
    let app = warploom_apps::find(name).expect("the app is in the suite");
    let workload = workload(app, changes);
    let label = format!("{name} {changes:?}");
    check_simulated(&workload, &default_of(&workload, &label), &label);
}

/// At the sizes that are benchmarked, without the data.
#[test]
fn every_app_at_its_own_sizes_is_legal() {
    for app in warploom_apps::APPS.iter() {
        let problem = problem(app, &[]);
        let schedule = problem.default_schedule();
        let plan = problem.check(&schedule);
        let plan = plan.unwrap_or_else(|violations| panic!("{}: {}", app.name, violations[0]));
        lower(&problem, &plan, lower::Options::default())
            .unwrap_or_else(|error| panic!("{}: {error}", app.name));
    }
}

macro_rules! apps {
    ($($name:ident : $([$($setting:literal = $value:literal),*])+;)*) => {
        $(#[test]
        fn $name() {
            $(check_app(stringify!($name), &[$(($setting, f64::from($value))),*]);)+
        })*

        /// The apps that are tested here.
        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

apps! {
    unsharp: ["W" = 45, "H" = 37] ["W" = 1, "H" = 1];
    harris: ["W" = 45, "H" = 37] ["W" = 7, "H" = 7];
    stencil_chain: ["W" = 45, "H" = 37] ["W" = 9, "H" = 5, "stencils" = 4];
    max_filter: ["W" = 45, "H" = 37] ["W" = 11, "H" = 9, "radius" = 3];
    learned_demosaic: ["W" = 34, "H" = 18, "K" = 3];
    camera_pipe: ["W" = 45, "H" = 37];
    hist: ["W" = 45, "H" = 37];
    bilateral_grid: ["W" = 45, "H" = 37] ["W" = 11, "H" = 9, "s_sigma" = 5];
    iir_blur: ["W" = 45, "H" = 37];
    bgu: ["W" = 23, "H" = 17, "w" = 7, "h" = 5, "s_sigma" = 3, "r_sigma" = 0.4];
    local_laplacian: ["W" = 45, "H" = 37, "pyramid_levels" = 3, "levels" = 4];
    interpolate: ["W" = 45, "H" = 37, "levels" = 5];
    lens_blur: ["W" = 129, "H" = 130, "slices" = 2, "focus_depth" = 1, "aperture_samples" = 3];
    nl_means: ["W" = 29, "H" = 17, "patch_size" = 3, "search_area" = 3];
    conv_layer: ["N" = 1, "CI" = 3, "CO" = 5, "W" = 11, "H" = 9];
    cuda_mat_mul: ["size" = 37];
    depthwise_separable_conv: ["N" = 2, "CI" = 3, "CO" = 5, "W" = 11, "H" = 9, "FW" = 5, "FH" = 3];
}

#[test]
fn all_apps_are_tested() {
    for app in warploom_apps::APPS.iter() {
        assert!(TESTED.contains(&app.name.as_str()), "{} is not tested", app.name);
    }
}

/// A pipeline without Params on inputs of small numbers.
fn check_small(pipeline: Pipeline, inputs: Vec<Buffer>, outputs: &[&[i64]]) {
    let label = pipeline.name().to_string();
    let outputs = outputs.iter().map(|extents| Region::of_extents(extents)).collect();
    let workload = Workload { pipeline, inputs, params: Vec::new(), outputs };
    check_simulated(&workload, &default_of(&workload, &label), &label);
}

fn image(extents: &[i64]) -> Buffer {
    let sample = |at: &[i64]| at.iter().fold(7, |sum, index| (sum * 31 + index * 17) % 13) as f32;
    Buffer::from_fn::<f32>(Region::of_extents(extents), sample).expect("it fits")
}

/// halide/Halide#8000
#[test]
fn several_outputs_with_reductions() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let r = rdom!(r: (0, 5));
    let [i] = r.vars();
    let rows = func("rows", (x, y), 0.0).over(&r, |f| f.add((x, y), input.at((x + i, y))));
    let total = func("total", y, 0.0).over(&r, |f| f.add(y, rows.at((i, y))));
    let scaled = func("scaled", (x, y), rows.at((x, y)) * total.at(y));
    let pipeline = Pipeline::new("several", [rows, total, scaled]).expect("it is right");
    check_small(pipeline, vec![image(&[41, 19])], &[&[37, 19], &[19], &[33, 19]]);
}

/// halide/Halide#8246
#[test]
fn one_element() {
    let x = vars!(x);
    let input = Input::f32("input", 1);
    let one = func("one", x, input.at(x) + 1.0);
    let two = func("two", x, sqrt(one.at(x)) * one.at(x));
    let pipeline = Pipeline::new("one_element", [two]).expect("it is right");
    check_small(pipeline, vec![image(&[1])], &[&[1]]);
}

/// halide/Halide#8256
#[test]
fn scalar_reduction() {
    let input = Input::f32("input", 2);
    let r = rdom!(rx: (0, input.extent(0)), ry: (0, input.extent(1)));
    let [rx, ry] = r.vars();
    let sum = func("sum", (), 0.0).over(&r, |f| f.add((), input.at((rx, ry))));
    let mean = func("mean", (), sum.at(()) / 703.0);
    let pipeline = Pipeline::new("scalar", [sum, mean]).expect("it is right");
    check_small(pipeline, vec![image(&[37, 19])], &[&[], &[]]);
}

/// halide/Halide#8261
#[test]
fn indirect_loads() {
    let x = vars!(x);
    let (input, indices) = (Input::f32("input", 1), Input::f32("indices", 1));
    let table = func("table", x, input.at(x) * input.at(x) + exp(input.at(x)));
    let index = func("index", x, clamp(indices.at(x).i32(), 0, 9));
    let output = func("output", x, table.at(index.at(x)) + table.at(9 - index.at(x)));
    let pipeline = Pipeline::new("indirect", [output]).expect("it is right");
    let inputs = pipeline.inputs().values().map(|input| match input.name.as_str() {
        "input" => image(&[10]),
        _ => image(&[301]),
    });
    let inputs = inputs.collect();
    check_small(pipeline, inputs, &[&[301]]);
}

/// Of an output, another one needs more than was asked for; and a scan computes all in between.
#[test]
fn outputs_of_which_more_is_computed() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let base = func("base", (x, y), sqrt(input.at((x, y))));
    let sum = func("sum", (x, y), base.at((x, y)) + base.at((x + 3, y + 1)));
    let pipeline = Pipeline::new("more", [base, sum]).expect("it is right");
    check_small(pipeline, vec![image(&[40, 20])], &[&[5, 7], &[37, 19]]);

    let r = rdom!(r: (1, 29));
    let [i] = r.vars();
    let scan = func("scan", x, x.f32()).over(&r, |f| f.add(i, f.at(i - 1)));
    let pipeline = Pipeline::new("scan", [scan]).expect("it is right");
    check_small(pipeline, Vec::new(), &[&[7]]);
}

/// A reduction over nothing, and what only it would read.
#[test]
fn empty_reductions() {
    let x = vars!(x);
    let input = Input::f32("input", 1);
    let unread = func("unread", x, sqrt(input.at(x)) + exp(input.at(x)));
    let r = rdom!(r: (0, input.extent(0) - 10));
    let [i] = r.vars();
    let sum = func("sum", x, 1.0).over(&r, |f| f.add(x, unread.at(i) * unread.at(i + 1)));
    let pipeline = Pipeline::new("empty", [sum]).expect("it is right");
    check_small(pipeline, vec![image(&[10])], &[&[17]]);
}

/// A tuple of which more is computed than was asked for.
#[test]
fn tuples() {
    let x = vars!(x);
    let input = Input::f32("input", 1);
    let r = rdom!(r: (1, 29));
    let [i] = r.vars();
    let pair = func("pair", x, (input.at(x), x.f32()))
        .over(&r, |f| f.set(i, (f.get(1, i - 1) + input.at(i), f.get(0, i - 1))));
    let pipeline = Pipeline::new("tuples", [pair]).expect("it is right");
    check_small(pipeline, vec![image(&[40])], &[&[7]]);
}

#[test]
fn many_dimensions() {
    let (a, b, c, d, e) = vars!(a, b, c, d, e);
    let input = Input::f32("input", 5);
    let wide = func("wide", (a, b, c, d, e), exp(input.at((a, b, c, d, e)) * 0.1));
    let narrow = func("narrow", (a, b, c, d, e), wide.at((a, b, c, d, e)) + wide.at((0, b, c, d, 0)));
    let pipeline = Pipeline::new("five", [narrow]).expect("it is right");
    check_small(pipeline, vec![image(&[5, 4, 7, 6, 3])], &[&[5, 4, 7, 6, 3]]);
}
