//! The filters that the app `learned_demosaic` ships: what they are worth, and that they fit any mosaic.

use warploom::app::Settings;
use warploom::interp::compare::{Tolerance, compare};
use warploom::prelude::*;
use warploom::tune::workload::Workload;
use warploom_apps::learned_demosaic;
use warploom_apps::learned_demosaic::quality::{Filters, bilinear, demosaicked, mosaic_of, psnr};
use warploom_apps::natural;

/// The filters that the app brings for so many candidates.
fn shipped(candidates: u32) -> Filters {
    let app = learned_demosaic::app();
    let mut settings = Settings::defaults(&app);
    assert!(settings.set("K", f64::from(candidates)));
    let Workload { pipeline, inputs, .. } = app.workload(&settings, 1).expect("the pipeline is right");
    let names = pipeline.inputs().values().map(|input| input.name.clone());
    names.zip(inputs).filter(|(name, _)| name != "mosaic").collect()
}

fn app() -> Pipeline {
    let app = learned_demosaic::app();
    app.pipeline(&Settings::defaults(&app)).expect("the pipeline is right")
}

/// A picture that the filters were not learned on: those have small seeds.
fn unseen(seed: u64) -> Buffer {
    natural::image(Type::F32, &Region::of_extents(&[96, 96, 3]), 1_000_000 + seed)
}

#[test]
fn learned_filters_beat_bilinear_interpolation_by_3_db() {
    let (app, bilinear, filters) = (app(), bilinear().unwrap(), shipped(8));
    for seed in 0..6 {
        let picture = unseen(seed);
        let mosaic = mosaic_of(&picture);
        let plain = psnr(&demosaicked(&bilinear, &mosaic, &vec![]).unwrap(), &picture);
        let learned = psnr(&demosaicked(&app, &mosaic, &filters).unwrap(), &picture);
        assert!(
            plain > 15.0 && learned >= plain + 3.0,
            "picture {seed}: {plain:.2} dB, learned {learned:.2} dB"
        );
    }
}

/// Twice the same candidates have twice the weight, and so has the sum that they are divided by.
#[test]
fn repeated_candidates_change_nothing() {
    let mosaic = mosaic_of(&unseen(7));
    let [once, twice] = [8, 16].map(|count| demosaicked(&app(), &mosaic, &shipped(count)).unwrap());
    let found = compare(&once, &twice, &Tolerance { abs: 5e-6, ..Tolerance::default() }).unwrap();
    assert!(found.passed, "{found:?}");
}

/// No mosaic of samples from 0 to 1 can make the exponential of a score overflow, or all of them vanish.
#[test]
fn scores_stay_moderate() {
    let filters = shipped(8);
    let sel: &[f32] = filters[0].1.as_slice().unwrap();
    assert_eq!(filters[0].0, "sel");
    for (candidate, taps) in sel.chunks(25).enumerate() {
        let (high, low) = (
            taps.iter().map(|tap| tap.max(0.0)).sum::<f32>(),
            taps.iter().map(|tap| tap.min(0.0)).sum::<f32>(),
        );
        assert!(low > -60.0 && high < 60.0, "scores of candidate {candidate} reach from {low} to {high}");
    }
}
