// Compiles a pipeline to CUDA kernels, and the C code that launches them into this crate.

use std::error::Error;
use std::path::PathBuf;

use warploom::export::ExportOptions;
use warploom::prelude::*;

/// A blur whose strength is given with each run.
fn pipeline() -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let strength = Param::f32("strength").range(0.0, 1.0f32);
    let row = func("row", (x, y), (edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y))) / 3.0);
    let soft = (row.at((x, y - 1)) + row.at((x, y)) + row.at((x, y + 1))) / 3.0;
    let output = func("output", (x, y), edge.at((x, y)) + (soft - edge.at((x, y))) * &strength);
    Pipeline::new("soften", [output])
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CUDA_PATH");
    let folder = PathBuf::from(std::env::var("OUT_DIR")?);

    // One package for two GPUs. PTX serves all newer ones.
    let pipeline = pipeline()?;
    let request = size([640, 480]).realisation(&pipeline)?.param("strength", 0.5f32);
    let scheduled = pipeline.autoschedule(&Device::preset("h200")?, request)?;
    let options = ExportOptions { also_for: vec![Device::preset("a100")?], ..ExportOptions::default() };
    let package = scheduled.export_with(&folder, &options)?;
    for note in package.notes() {
        println!("cargo:warning={note}");
    }

    let cuda = PathBuf::from(std::env::var("CUDA_PATH").unwrap_or("/usr/local/cuda".to_owned()));
    cc::Build::new().file(folder.join("soften.c")).include(cuda.join("include")).try_compile("soften")?;
    println!("cargo:rustc-link-search=native={}", cuda.join("lib64/stubs").display());
    println!("cargo:rustc-link-lib=cuda");
    Ok(())
}
