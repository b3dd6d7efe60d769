//! Learns the filters of the app `learned_demosaic`, and shows how good they are on pictures not learned from:
//!
//! ```text
//! cargo run --release -p warploom-training --example demosaic -- --out apps/data/learned_demosaic
//! ```
//!
//! Without `--out` nothing is written. `--steps N`, `--rate R` and `--seed N` change the recipe.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use burn::prelude::*;
use warploom::app::Settings;
use warploom::interp::buffer::Buffer;
use warploom::lang::{Pipeline, Region, Type};
use warploom_apps::learned_demosaic::quality::{Filters, bilinear, demosaicked, mosaic_of, psnr};
use warploom_apps::{learned_demosaic, natural};
use warploom_training::demosaic::{Recipe, pictures, train, write};

fn main() -> Result<(), Box<dyn Error>> {
    let mut recipe = Recipe::default();
    let mut out = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--out" => out = Some(PathBuf::from(value)),
            "--steps" => recipe.steps = value.parse()?,
            "--rate" => recipe.rate = value.parse()?,
            "--seed" => recipe.seed = value.parse()?,
            _ => {
                return Err(
                    format!("unknown option {name}; there are --out, --steps, --rate and --seed").into()
                );
            }
        }
    }

    let start = Instant::now();
    let mut recent = 0.0;
    let trained = train(&recipe, &Device::flex(), |step, loss| {
        recent += loss / 100.0;
        if step % 100 == 99 {
            println!("step {:5}: mean squared error {recent:.6}", step + 1);
            recent = 0.0;
        }
    });
    println!("{} steps in {:.0} s", recipe.steps, start.elapsed().as_secs_f32());
    report(&trained.filters, recipe.pictures)?;
    if let Some(folder) = out {
        std::fs::create_dir_all(&folder)?;
        write(&trained.filters, &folder)?;
    }
    Ok(())
}

/// The quality on the first pictures that no training with so many pictures has seen.
fn report(filters: &Filters, trained_on: u64) -> Result<(), Box<dyn Error>> {
    let app = learned_demosaic::app();
    let pipeline = app.pipeline(&Settings::defaults(&app))?;
    let bilinear = bilinear()?;
    let size = Region::of_extents(&[128, 96, 3]);
    println!("| picture | bilinear | learned | gain in dB |\n| --- | --- | --- | --- |");
    for seed in trained_on..trained_on + 6 {
        let kinds =
            [("natural", natural::image(Type::F32, &size, seed)), ("scene", pictures::scene(128, 96, seed))];
        for (kind, picture) in kinds {
            let quality = |pipeline: &Pipeline, filters: &Filters| -> Result<f64, Box<dyn Error>> {
                let made: Buffer = demosaicked(pipeline, &mosaic_of(&picture), filters)?;
                Ok(psnr(&made, &picture))
            };
            let (plain, learned) = (quality(&bilinear, &Filters::new())?, quality(&pipeline, filters)?);
            println!("| {kind} {seed} | {plain:.2} | {learned:.2} | {:.2} |", learned - plain);
        }
    }
    Ok(())
}
