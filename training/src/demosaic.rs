//! Trains the filters of the app `learned_demosaic` by gradient descent through the app's own
//! equations, on synthetic pictures whose full colours are known.
//!
//! [`network`] has the equations, [`pictures`] the training data, and this file the training loop.
//! The example `demosaic` writes the filters that the app ships.

pub mod network;
pub mod pictures;

use std::path::Path;

use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use warploom::interp::buffer::Buffer;
use warploom::interp::files::FileError;
use warploom::interp::npy;
use warploom_apps::learned_demosaic::quality::{Filters, mosaic_of};

use network::Demosaicker;
use pictures::Pictures;

/// The recipe for training filters. The same recipe gives the same filters on the same machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// Number of candidates for green, the app's `K`.
    pub candidates: usize,
    /// Number of pictures of each kind, from seed 0 on. Pictures of other seeds are never used for
    /// training.
    pub pictures: u64,
    /// Number of gradient descent steps.
    pub steps: usize,
    /// Batch size: number of picture crops per step.
    pub batch: usize,
    /// Width and height of a crop in pixels; even, and at least 6.
    pub piece: usize,
    /// Initial learning rate of Adam; it falls linearly to 0.
    pub rate: f64,
    /// Seed of the initial filters and of the choice of crops.
    pub seed: u64,
}

impl Default for Recipe {
    /// The recipe of the shipped filters.
    fn default() -> Recipe {
        Recipe { candidates: 8, pictures: 48, steps: 4000, batch: 8, piece: 48, rate: 0.02, seed: 1 }
    }
}

/// The result of training.
#[derive(Debug)]
pub struct Trained {
    /// The filters, keyed by the names of the app's inputs.
    pub filters: Filters,
    /// The mean squared error at each step, before its update.
    pub losses: Vec<f32>,
}

/// Trains filters on `device`. `observe` is called with the number of each step and its mean
/// squared error.
pub fn train(recipe: &Recipe, device: &Device, mut observe: impl FnMut(usize, f32)) -> Trained {
    let device = device.clone().autodiff();
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(recipe.seed);
    let mut network = Demosaicker::new(recipe.candidates, &mut draws, &device);
    // The squared gradients are tiny here, because the errors are. Adam's default epsilon would
    // stall the descent.
    let mut optimizer = AdamConfig::new().with_epsilon(1e-10).init();
    let pictures = Pictures::of_seeds(0..recipe.pictures);
    let mut losses = Vec::with_capacity(recipe.steps);
    for step in 0..recipe.steps {
        let pieces: Vec<Buffer> =
            (0..recipe.batch).map(|_| pictures.piece(recipe.piece, &mut draws)).collect();
        let mosaics: Vec<Buffer> = pieces.iter().map(mosaic_of).collect();
        let expected = network::batch(&pieces, &device);
        let error = network.forward(network::batch(&mosaics, &device)) - expected;
        let loss = (error.clone() * error).mean();
        let value = loss.clone().into_scalar::<f32>();
        observe(step, value);
        losses.push(value);
        let gradients = GradientsParams::from_grads(loss.backward(), &network);
        let left = 1.0 - step as f64 / recipe.steps as f64;
        network = optimizer.step(recipe.rate * left, network, gradients);
    }
    Trained { filters: network.filters(), losses }
}

/// Writes filters in the form that the app reads: `<input>.npy` for each, in `folder`.
pub fn write(filters: &Filters, folder: &Path) -> Result<(), FileError> {
    filters.iter().try_for_each(|(name, filter)| npy::write(folder.join(format!("{name}.npy")), filter))
}
