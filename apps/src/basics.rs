//! Small pipelines for first checks and for measuring memory bandwidth.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The small pipelines. They are not part of the suite.
pub static BASICS: [App; 3] = [COPY, BRIGHTEN, BLUR];

const IMAGE: &[Setting] = &[count("W", 8192), count("H", 8192)];

const COPY: App = App {
    name: "copy",
    about: "copies an image, to measure memory bandwidth",
    sizes: IMAGE,
    structure: &[],
    params: &[],
    build: copy,
    shapes,
    input,
    operations: |_| 1.0,
    tolerance: Some(1e-6),
};

const BRIGHTEN: App = App {
    name: "brighten",
    about: "a pointwise change of brightness and contrast",
    params: &[setting("gain", 1.5), setting("offset", -0.1)],
    build: brighten,
    operations: |settings| pixels(settings) * 4.0,
    ..COPY
};

const BLUR: App = App {
    name: "blur",
    about: "a 3x3 box blur, separable",
    build: blur,
    operations: |settings| pixels(settings) * 6.0,
    ..COPY
};

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

fn shapes(settings: &Settings) -> Shapes {
    let image = Region::of_extents(&[settings.int("W"), settings.int("H")]);
    Shapes { inputs: vec![("input", image.clone())], outputs: vec![("output", image)] }
}

fn input(request: &InputRequest<'_>) -> Buffer {
    natural::image(Type::F32, &request.region, request.seed)
}

fn pixels(settings: &Settings) -> f64 {
    settings.number("W") * settings.number("H")
}
