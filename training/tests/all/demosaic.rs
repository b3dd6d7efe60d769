//! The training of the app `learned_demosaic`: its tensors compute what the app computes, its descent descends,
//! and the filters that it made are good.

use burn::prelude::*;
use warploom::app::{InputRequest, Settings};
use warploom::interp::buffer::Buffer;
use warploom::lang::{Pipeline, Region, Type};
use warploom_apps::learned_demosaic;
use warploom_apps::learned_demosaic::quality::{Filters, bilinear, demosaicked, mosaic_of, psnr};
use warploom_apps::natural;
use warploom_training::demosaic::network::{Demosaicker, batch};
use warploom_training::demosaic::pictures::scene;
use warploom_training::demosaic::{Recipe, train};

fn app() -> Pipeline {
    let app = learned_demosaic::app();
    app.pipeline(&Settings::defaults(&app)).expect("the pipeline is right")
}

/// Filters of the app's shapes, made by `filter` from the name and the region.
fn filters(candidates: u32, filter: impl Fn(&str, Region, &Settings) -> Buffer) -> Filters {
    let app = learned_demosaic::app();
    let mut settings = Settings::defaults(&app);
    assert!(settings.set("K", f64::from(candidates)));
    let shapes = app.shapes_at(&settings).inputs.into_iter().filter(|(name, _)| name != "mosaic");
    let made = shapes.map(|(name, region)| {
        let buffer = filter(&name, region, &settings);
        (name, buffer)
    });
    made.collect()
}

fn shipped() -> Filters {
    let app = learned_demosaic::app();
    filters(8, |name, region, settings| {
        let request = InputRequest { name, ty: Type::F32, region, seed: 1, settings };
        app.input(&request).expect("the app makes it")
    })
}

/// The largest difference between the tensors and the app, whose borders and sites all count.
fn difference(filters: &Filters, mosaics: &[Buffer]) -> f32 {
    let device = Device::flex();
    let made = Demosaicker::from_filters(filters, &device).forward(batch(mosaics, &device));
    let made = made.into_data().try_to_vec::<f32>().expect("pictures are f32");
    let inside = made.iter().filter(|sample| (0.001..0.999).contains(*sample)).count();
    assert!(inside > made.len() / 2, "the clamp at the end hides most of it");
    let app = app();
    let expected = mosaics.iter().map(|mosaic| demosaicked(&app, mosaic, filters).expect("the filters fit"));
    let expected = expected.flat_map(|picture| picture.as_slice::<f32>().expect("pictures are f32").to_vec());
    made.into_iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn tensors_compute_what_the_app_computes() {
    let mosaics: Vec<Buffer> = (0..2).map(|seed| mosaic_of(&scene(26, 18, seed))).collect();
    assert!(difference(&shipped(), &mosaics) < 1e-5);
    // Filters without any symmetry, so that no two taps, directions or sites may be exchanged.
    let seed = |name: &str| name.bytes().map(u64::from).sum();
    let any = filters(3, |name, region, _| natural::uniform(&region, -0.06, 0.1, seed(name)));
    assert!(difference(&any, &mosaics) < 1e-5);
}

#[test]
fn training_lowers_the_error_and_repeats() {
    let recipe = Recipe { candidates: 4, pictures: 2, steps: 40, batch: 2, piece: 32, ..Recipe::default() };
    let mut observed = Vec::new();
    let trained = train(&recipe, &Device::flex(), |_, loss| observed.push(loss));
    assert_eq!(observed, trained.losses);
    let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
    let (first, last) = (mean(&observed[..10]), mean(&observed[30..]));
    assert!(last < 0.8 * first, "from {first} to {last}");

    let again = train(&recipe, &Device::flex(), |_, _| ());
    assert_eq!(again.filters, trained.filters);
    let other = train(&Recipe { seed: 2, steps: 1, ..recipe }, &Device::flex(), |_, _| ());
    assert_ne!(other.filters, trained.filters);
}

/// On pictures of the app's own kind this is a test of the app.
#[test]
fn shipped_filters_beat_bilinear_interpolation_on_scenes() {
    let (app, bilinear, filters) = (app(), bilinear().unwrap(), shipped());
    for seed in 1_000_000..1_000_006 {
        let picture = scene(96, 96, seed);
        let mosaic = mosaic_of(&picture);
        let plain = psnr(&demosaicked(&bilinear, &mosaic, &vec![]).unwrap(), &picture);
        let learned = psnr(&demosaicked(&app, &mosaic, &filters).unwrap(), &picture);
        assert!(learned >= plain + 3.0, "scene {seed}: {plain:.2} dB, learned {learned:.2} dB");
    }
}
