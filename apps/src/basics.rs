//! Small pipelines for first checks and for measuring memory bandwidth.

use std::sync::LazyLock;

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The small pipelines. They are not part of the suite.
pub static BASICS: LazyLock<[App; 3]> = LazyLock::new(|| {
    [
        basic("copy", "copies an image, to measure memory bandwidth", copy, |_| 1.0),
        basic("brighten", "a pointwise change of brightness and contrast", brighten, |s| pixels(s) * 4.0)
            .params([setting("gain", 1.5), setting("offset", -0.1)]),
        basic("blur", "a 3x3 box blur, separable", blur, |settings| pixels(settings) * 6.0),
    ]
});

fn basic(
    name: &str,
    about: &str,
    build: fn(&Settings) -> Result<Pipeline, PipelineError>,
    operations: fn(&Settings) -> f64,
) -> App {
    App::new(name, build)
        .about(about)
        .sizes([count("W", 8192), count("H", 8192)])
        .inputs(|request| natural::image(Type::F32, &request.region, request.seed))
        .operations(operations)
        .tolerance(1e-6)
}

fn copy(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    Pipeline::new("copy", [func("output", (x, y), input.at((x, y)))])
}

fn brighten(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let (gain, offset) = (Param::f32("gain"), Param::f32("offset"));
    let scaled = func("scaled", (x, y), input.at((x, y)) * &gain + &offset);
    Pipeline::new("brighten", [func("output", (x, y), clamp(scaled.at((x, y)), 0.0, 1.0))])
}

fn blur(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let edge = input.repeat_edge().named("edge");
    let row = edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y));
    let blur_x = func("blur_x", (x, y), row / 3.0);
    let column = blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1));
    Pipeline::new("blur", [func("output", (x, y), column / 3.0)])
}

fn pixels(settings: &Settings) -> f64 {
    settings.number("W") * settings.number("H")
}
