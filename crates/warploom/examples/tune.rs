//! Measures the five best predicted schedules of a blur on the GPU of this machine, and prints the fastest:
//! `cargo run --release -p warploom --example tune`.
#![allow(clippy::print_stdout, reason = "a program whose output this is")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warploom::check;
use warploom::prelude::*;
use warploom::search::Options;
use warploom::tune::measure::Subject;
use warploom::tune::records::Records;
use warploom::tune::top::top;
use warploom::tune::tuning::{Event, Task};
use warploom::tune::worker::{BenchOptions, OpenBench};

fn main() -> Result<(), Box<dyn Error>> {
    // Kernels are compiled and run by other processes of this program, which may fail.
    warploom::worker_entry();

    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let blur_x = func("blur_x", (x, y), (edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y))) / 3.0);
    let blur_y =
        func("blur_y", (x, y), (blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1))) / 3.0);
    let pipeline = Pipeline::new("blur", [blur_y])?;
    let image = Region::of_extents(&[1536, 2560]);
    let request = Realisation::new(&pipeline).input("input", image.clone()).output("blur_y", image);

    let mut bench = OpenBench::open(&BenchOptions::default())?;
    let model = warploom::model_for(bench.device()).model;
    let task = Task {
        small: check::of_pipeline(&pipeline, &request, bench.device()).map(Arc::new),
        subject: Arc::new(Subject::noise(pipeline, request, 1)),
        tolerance: None,
        model: &*model,
        search: Options::default(),
        deadline: None,
        stop: &AtomicBool::new(false),
    };
    let mut records = Records::open("tuning.db")?;
    let mut observer = |event: &Event<'_>| {
        if let Event::Measured { trial, .. } = event {
            let (status, time) = (trial.sample.status.kind(), trial.time_us());
            println!("{status}: {:.1} us", time.unwrap_or(f64::NAN));
        }
    };
    let tuned = bench.with(|bench| top(&task, 5, bench, &mut records, &mut observer))?;
    let winner = tuned.winner.ok_or("no schedule could be measured")?;
    println!("{}", winner.trial.sample.schedule);
    Ok(())
}
