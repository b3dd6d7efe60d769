//! Measures how many trials a second a server takes: claimed, and recorded with all that a trial has.
//!
//! ```sh
//! cargo run --release -p warploom-farm --example rate -- farm/farm.json 16 10
//! ```
//!
//! The arguments are the place of the records, the number of connections, and a time in seconds. The
//! trials are made up, of a device that does not exist.

#![allow(clippy::print_stdout, reason = "the result of the program")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use warploom_farm::{address_of, store};
use warploom_lang::{Input, Pipeline, Realisation, Region, func, vars};
use warploom_target::Device;
use warploom_tune::records::{Records, RecordsError, Trial};
use warploom_tune::sample::{KernelUse, Origin, Sample, Sizes, Status, Times};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [place, writers, seconds] = arguments.as_slice() else {
        return Err("usage: rate PLACE CONNECTIONS SECONDS".into());
    };
    let (place, writers) = (PathBuf::from(place), writers.parse::<usize>()?);
    let time = Duration::from_secs(seconds.parse()?);
    drop(open(&place)?);
    for problems in [1, writers] {
        let begin = Instant::now();
        let written = thread::scope(|scope| {
            let write = |writer| {
                let place = &place;
                scope.spawn(move || write(place, writer, writer % problems, begin + time))
            };
            let started: Vec<_> = (0..writers).map(write).collect();
            let written = started.into_iter().map(|writer| writer.join().map_err(|_| "a writer failed"));
            written.sum::<Result<usize, _>>()
        })?;
        let rate = written as f64 / begin.elapsed().as_secs_f64();
        println!("{writers} connections, {problems} problems: {rate:.0} claimed and recorded a second");
    }
    Ok(())
}

fn open(place: &Path) -> Result<Records, RecordsError> {
    match address_of(place)? {
        Some(address) => store::open(&address),
        None => Records::open(place),
    }
}

/// Claims and records trials of a problem until the time is over; returns how many.
fn write(place: &Path, writer: usize, problem: usize, until: Instant) -> usize {
    let run = || -> Result<usize, Box<dyn Error>> {
        let mut records = open(place)?;
        let mut device = Device::preset("h200")?;
        device.name = format!("made up {problem}");
        device.sms = 100 + problem as u32;
        let x = vars!(x);
        let input = Input::f32("input", 1);
        let pipeline = Pipeline::new("rate", [func("rate", x, input.at(x) * 2.0)])?;
        let region = Region::of_extents(&[1 << 20]);
        let request = Realisation::new(&pipeline).input("input", region.clone()).output("rate", region);
        let versions = vec!["rate 1".to_owned()];
        let id = records.problem(&pipeline, &request, &device, &versions)?;
        let begin = std::process::id();
        let mut written = 0;
        while Instant::now() < until {
            let schedule = format!("rate\n  kernel rate  {begin} {writer} {written}\n").repeat(10);
            records.claim(id, &schedule)?;
            let sample = sample(&pipeline, &request, &device, schedule);
            records.record(id, &Trial::new(sample, Some(10.0), 0.01))?;
            written += 1;
        }
        Ok(written)
    };
    run().unwrap_or_else(|error| panic!("{error}"))
}

fn sample(pipeline: &Pipeline, request: &Realisation, device: &Device, schedule: String) -> Sample {
    let kernel =
        KernelUse { name: "rate".to_owned(), registers: 32, spill_stores: 0, spill_loads: 0, shared: 0 };
    Sample {
        pipeline: pipeline.structural_hash(),
        sizes: Sizes::of(request),
        schedule,
        origin: Origin::Search,
        device: device.name.clone(),
        fingerprint: device.fingerprint(),
        versions: vec!["rate 1".to_owned()],
        status: Status::Measured,
        verified: true,
        times: Some(Times { min: 10.0, median: 10.1, runs: 20 }),
        kernels: vec![kernel; 4],
        compile_ms: 200.0,
    }
}
