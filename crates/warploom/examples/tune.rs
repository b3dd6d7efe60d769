//! Measures the five best predicted schedules of a blur on the GPU of this machine, and prints the fastest:
//! `cargo run --release -p warploom --example tune`.
#![allow(clippy::print_stdout, reason = "a program whose output this is")]

use std::error::Error;

use warploom::prelude::*;
use warploom::tune::tuning::Event;

fn main() -> Result<(), Box<dyn Error>> {
    // Kernels are compiled and run by other processes of this program, which may fail.
    warploom::worker_entry();

    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let blur_x = func("blur_x", (x, y), (edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y))) / 3.0);
    let blur_y =
        func("blur_y", (x, y), (blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1))) / 3.0);
    let pipeline = Pipeline::new("blur", [blur_y])?;

    let fast = pipeline.autoschedule(&Device::detect_or("h200")?, size([1536, 2560]))?;
    let tuning = Tuning { records: Some("tuning.db".into()), ..Tuning::default() };
    let faster = fast.tune_with(&tuning, &mut |event| {
        if let Event::Measured { trial, .. } = event {
            let (status, time) = (trial.sample.status.kind(), trial.time_us());
            println!("{status}: {:.1} us", time.unwrap_or(f64::NAN));
        }
    })?;
    println!("{faster}");
    Ok(())
}
