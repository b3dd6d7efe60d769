//! The filters of the app `learned_demosaic`: learned by gradient descent through the app's own equations, on
//! made pictures whose full colours are known.
//!
//! [`network`] has the equations, [`pictures`] what is learned from, this file the descent. The example
//! `demosaic` writes the filters that the app ships.

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

/// How filters are learned. The same recipe gives the same filters on the same machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// Candidates for green, the K of the app.
    pub candidates: usize,
    /// Pictures of each kind, from seed 0 on; pictures of other seeds are never seen.
    pub pictures: u64,
    /// Steps of gradient descent.
    pub steps: usize,
    /// Pieces of pictures that a step looks at.
    pub batch: usize,
    /// Width and height of a piece; even, and at least 6.
    pub piece: usize,
    /// The largest change of a coefficient in a step, at the start; it falls to nothing at the end.
    pub rate: f64,
    /// Seed of the first filters and of the choice of pieces.
    pub seed: u64,
}

impl Default for Recipe {
    /// What the shipped filters were learned with.
    fn default() -> Recipe {
        Recipe { candidates: 8, pictures: 48, steps: 4000, batch: 8, piece: 48, rate: 0.02, seed: 1 }
    }
}

/// What came out of a training.
#[derive(Debug)]
pub struct Trained {
    /// The filters, by the names of the app's inputs.
    pub filters: Filters,
    /// The mean squared error of every step, before its change.
    pub losses: Vec<f32>,
}

/// Learns filters on `device`; `observe` is told the number of each step and its mean squared error.
pub fn train(recipe: &Recipe, device: &Device, mut observe: impl FnMut(usize, f32)) -> Trained {
    let device = device.clone().autodiff();
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(recipe.seed);
    let mut network = Demosaicker::new(recipe.candidates, &mut draws, &device);
    // The squares of gradients are tiny here, as the errors are: the usual epsilon would stop the descent.
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

/// Writes filters as the app reads them: `<input>.npy` for each in `folder`.
pub fn write(filters: &Filters, folder: &Path) -> Result<(), FileError> {
    filters.iter().try_for_each(|(name, filter)| npy::write(folder.join(format!("{name}.npy")), filter))
}
