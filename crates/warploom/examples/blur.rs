//! From an idea to a kernel: `cargo run --release -p warploom --example blur`. Runs the kernel where there is a GPU.
#![allow(clippy::print_stdout, reason = "a program whose output this is")]

use warploom::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let blur_x = func("blur_x", (x, y), (edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y))) / 3.0);
    let blur_y =
        func("blur_y", (x, y), (blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1))) / 3.0);
    let pipeline = Pipeline::new("blur", [blur_y])?;

    let image = Buffer::from_fn(Region::of_extents(&[1536, 2560]), |at| (at[0] % 7 + at[1] % 5) as f32)?;
    let blur = pipeline.autoschedule(&Device::detect_or("h200")?, [&image])?;
    println!("{}", blur.nest());
    match blur.compile() {
        Ok(kernel) => println!("the first pixel is {:?}", kernel.run(&[&image])?[0].get(&[0, 0])),
        Err(reason) => println!("nothing was run: {reason}"),
    }
    Ok(())
}
