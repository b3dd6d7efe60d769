//! The `warploom` program over a pipeline of one's own: `cargo run --release -p warploom-cli --example brighter -- compile brighter`.

use std::process::ExitCode;
use warploom::app::{App, InputRequest, Settings, Shapes, setting};
use warploom::lang::Type;
use warploom::prelude::*;

const BRIGHTER: App = App {
    name: "brighter",
    about: "every sample a little brighter",
    sizes: &[setting("W", 1536.0), setting("H", 2560.0)],
    structure: &[],
    params: &[setting("by", 0.1)],
    build,
    shapes,
    input,
    operations: |settings| settings.number("W") * settings.number("H"),
    tolerance: Some(1e-6),
};

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let (input, by) = (Input::f32("input", 2), Param::f32("by"));
    Pipeline::new("brighter", [func("output", (x, y), input.at((x, y)) + &by)])
}

fn shapes(settings: &Settings) -> Shapes {
    let image = Region::of_extents(&[settings.int("W"), settings.int("H")]);
    Shapes { inputs: vec![("input", image.clone())], outputs: vec![("output", image)] }
}

fn input(request: &InputRequest<'_>) -> Buffer {
    Buffer::zeros(Type::F32, request.region.clone()).expect("the region was checked")
}

fn main() -> ExitCode {
    warploom_cli::main_with(&[BRIGHTER])
}
