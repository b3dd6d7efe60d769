//! Two blurs of a picture that is on the GPU, on a stream of this program: `cargo run --release -p warploom --example on_gpu`.
//! Nothing waits before the result is copied back. Whoever has a video pipeline has the rest of it on the same stream.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program whose output this is")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use warploom::prelude::*;
use warploom::runtime::Gpu;
use warploom::runtime::cuda::{CudaContext, CudaSlice, CudaStream};

fn blur_twice() -> Result<(), Box<dyn Error>> {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let blur_x = func("blur_x", (x, y), (edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y))) / 3.0);
    let blur_y =
        func("blur_y", (x, y), (blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1))) / 3.0);
    let pipeline = Pipeline::new("blur", [blur_y])?;

    // Says what is missing where there is no driver; cudarc would panic.
    Gpu::devices()?;
    let stream = CudaContext::new(0)?.new_stream()?;
    let gpu = Arc::new(Gpu::on(&stream)?);
    let scheduled = pipeline.autoschedule(gpu.device(), size([1536, 2560]))?;
    let blur = scheduled.compile_for(Backend::Gpu(gpu))?;

    let picture: Vec<f32> = (0..1536 * 2560).map(|i| (i % 1536 % 7) as f32).collect();
    let sharp: CudaSlice<f32> = stream.clone_htod(&picture)?;
    let (mut soft, mut softer) = (stream.alloc_zeros(picture.len())?, stream.alloc_zeros(picture.len())?);
    launch(&blur, &stream, &sharp, &mut soft)?;
    launch(&blur, &stream, &soft, &mut softer)?;
    let blurred: Vec<f32> = stream.clone_dtoh(&softer)?;
    println!("the first pixels were {:?} and are {:?}", &picture[..4], &blurred[..4]);
    Ok(())
}

fn launch(
    blur: &Compiled,
    stream: &CudaStream,
    from: &CudaSlice<f32>,
    to: &mut CudaSlice<f32>,
) -> Result<(), RunError> {
    let whole = Region::of_extents(&[1536, 2560]);
    let input = DeviceInput::new(whole.clone(), from.as_view());
    blur.launch(stream, &[input], &mut [DeviceOutput::new(whole, to.as_view_mut())])
}

fn main() -> ExitCode {
    match blur_twice() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("nothing was blurred: {reason}");
            ExitCode::FAILURE
        }
    }
}
