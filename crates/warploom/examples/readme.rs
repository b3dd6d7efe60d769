//! The code of the README, as a program: `cargo run --release -p warploom --example readme`.
#![allow(clippy::print_stdout, reason = "a program whose output this is")]

use std::error::Error;

use warploom::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    warploom::worker_entry();
    let image = Buffer::from_fn(Region::of_extents(&[1536, 2560]), |at| (at[0] % 7) as f32)?;

    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let edge = input.repeat_edge();

    let blur_x = func("blur_x", (x, y), (edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y))) / 3.0);
    let blur_y =
        func("blur_y", (x, y), (blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1))) / 3.0);

    let blur = Pipeline::new("blur", [blur_y])?;
    let out = Evaluation::new(&blur).input("input", &image).output("blur_y", image.region().clone()).run()?;
    println!("{}", out[0].region());

    let fast = blur.autoschedule(&Device::detect_or("h200")?, size([1536, 2560]))?;
    println!("{}", fast.nest()); // what was decided, and what it is predicted to cost
    std::fs::write("blur.cu", fast.cuda())?;
    let out = fast.compile()?.run(&[&image])?; // on the GPU, or an error that says why not
    let faster = fast.tune(&Tuning::default())?; // the fastest of the five best predicted schedules, measured on the GPU
    faster.export("generated")?; // CUDA, machine code, and C that launches it
    println!("{}", out[0].region());
    Ok(())
}
