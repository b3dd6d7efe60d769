//! Fits the ranges of predicted times to the samples that the weights were not trained on, and stores them in the file of
//! weights (`docs/model.md`):
//! `cargo run --release -p warploom-apps --example ranges -- training/data models/h200.bin H200`.
#![allow(clippy::print_stdout, reason = "a program whose output this is")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use warploom::cost::{Network, Ranges, Weights};
use warploom::target::Device;
use warploom::tune::picks::{Picks, SHORT_US, is_held_out, picks};
use warploom::tune::sample::Shard;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [samples, file, device] = arguments.as_slice() else {
        return Err("usage: ranges FOLDER WEIGHTS DEVICE".into());
    };
    let device = Device::preset(device)?;
    let weights = Weights::from_bytes(&fs::read(file)?)?;
    weights.check_device(&device)?;
    let shards = files(Path::new(samples))?.iter().map(Shard::read).collect::<Result<Vec<_>, _>>()?;
    let held_out = |pipeline: &warploom::lang::Pipeline| {
        warploom_apps::find(pipeline.name()).is_none() && is_held_out(pipeline.structural_hash())
    };
    let Picks { picks, unusable } = picks(&shards, &device, &Network::new(&weights, &device), &held_out);
    println!(
        "{} picks; {unusable} samples are of pipelines or schedules that are not accepted any more",
        picks.len()
    );
    let times: Vec<(f64, f64)> = picks.iter().map(|pick| (pick.predicted_us, pick.measured_us)).collect();
    let ranges = Ranges::fit(&times, &[SHORT_US]).ok_or("there are too few samples")?;
    for band in ranges.bands() {
        let (count, low, high) = (band.count, band.low, band.high);
        println!(
            "below {} us: {low:.3} to {high:.3} times the predicted time, {count} pipelines",
            band.below_us
        );
    }
    let (shortest, longest) = ranges.known_us();
    println!("known from {shortest:.2} us to {longest:.0} us");
    fs::write(file, weights.with_ranges(ranges).to_bytes())?;
    Ok(())
}

/// The sample files of a folder, in order.
fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    let is_samples = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "samples");
    let mut files: Vec<PathBuf> = entries.into_iter().filter(is_samples).collect();
    files.sort();
    Ok(files)
}
