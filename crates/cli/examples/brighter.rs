//! The `warploom` program over a pipeline of one's own: `cargo run --release -p warploom-cli --example brighter -- compile brighter`.

use std::process::ExitCode;

use warploom::app::{App, Settings, count};
use warploom::prelude::*;

fn brighter(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let by = Param::f32("by").range(-1.0, 1.0f32).default(0.1f32);
    Pipeline::new("brighter", [func("output", (x, y), input.at((x, y)) + &by)])
}

fn main() -> ExitCode {
    let app = App::new("brighter", brighter).sizes([count("W", 1536), count("H", 2560)]);
    warploom_cli::main_with(&[app])
}
