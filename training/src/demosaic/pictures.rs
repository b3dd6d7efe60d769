//! Training pictures: those that the apps run on, and scenes of coloured, shaded and textured
//! patches.

use std::f32::consts::TAU;
use std::ops::Range;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use warploom::interp::buffer::Buffer;
use warploom::lang::{self, Region, Type};
use warploom_apps::natural;

/// Width and height of the pictures that crops are taken from.
const SIZE: i64 = 128;
/// Number of patches in a scene.
const PATCHES: usize = 24;
/// Samples along each side of a pixel when rendering a scene.
const POINTS: i64 = 3;

/// Training pictures of both kinds.
pub struct Pictures(Vec<Buffer>);

impl Pictures {
    /// One picture like those of the apps and one scene per seed.
    pub fn of_seeds(seeds: Range<u64>) -> Pictures {
        let size = Region::of_extents(&[SIZE, SIZE, 3]);
        let both = |seed| [natural::image(Type::F32, &size, seed), scene(SIZE, SIZE, seed)];
        Pictures(seeds.flat_map(both).collect())
    }

    /// A random square crop of one of the pictures, over `0..size` in x and y. It starts at a green
    /// site of a red row.
    pub fn piece(&self, size: usize, draws: &mut Xoshiro256PlusPlus) -> Buffer {
        let size = size as i64;
        let picture = &self.0[draws.random_range(0..self.0.len() as u64) as usize];
        let mut start = || 2 * draws.random_range(0..=(SIZE - size) / 2);
        let (x, y) = (start(), start());
        let range = lang::Range::new;
        let piece = picture.cropped(&Region(vec![range(x, size), range(y, size), range(0, 3)]));
        let moved = piece.and_then(|piece| piece.translated(&[0, 0, 0]));
        moved.expect("pieces are smaller than pictures")
    }
}

/// A picture (x, y, channel) of overlapping patches with individual colours, shading and texture.
/// Each pixel averages the area it covers.
///
/// ```
/// let scene = warploom_training::demosaic::pictures::scene(32, 16, 7);
/// assert_eq!(scene.region().extents(), [32, 16, 3]);
/// ```
pub fn scene(width: i64, height: i64, seed: u64) -> Buffer {
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
    let larger = width.max(height) as f32;
    let ground = Surface::draw(&mut draws);
    let patches: Vec<Patch> =
        (0..PATCHES).map(|_| Patch::draw(width as f32, height as f32, larger, &mut draws)).collect();
    let color = |x: f32, y: f32| {
        let top = patches.iter().rev().find(|patch| patch.covers(x, y));
        top.map_or(&ground, |patch| &patch.surface).color(x, y, larger)
    };
    let mut samples = vec![0.0; (width * height * 3) as usize];
    let plane = (width * height) as usize;
    for at in 0..plane {
        let (x, y) = (at as i64 % width, at as i64 / width);
        for point in 0..POINTS * POINTS {
            let within = |i: i64| (i as f32 + 0.5) / POINTS as f32;
            let color = color(x as f32 + within(point % POINTS), y as f32 + within(point / POINTS));
            for (channel, value) in color.into_iter().enumerate() {
                samples[channel * plane + at] += value.clamp(0.0, 1.0) / (POINTS * POINTS) as f32;
            }
        }
    }
    Buffer::from_vec(Region::of_extents(&[width, height, 3]), samples).expect("there is a sample a point")
}

/// A rotated ellipse or rectangle.
struct Patch {
    centre: [f32; 2],
    radii: [f32; 2],
    /// Cosine and sine of its angle.
    turn: [f32; 2],
    round: bool,
    surface: Surface,
}

impl Patch {
    fn draw(width: f32, height: f32, larger: f32, draws: &mut Xoshiro256PlusPlus) -> Patch {
        let angle = draws.random_range(0.0..TAU);
        Patch {
            centre: [draws.random_range(0.0..width), draws.random_range(0.0..height)],
            radii: [(); 2].map(|()| larger * draws.random_range(0.02..0.3)),
            turn: [angle.cos(), angle.sin()],
            round: draws.random_bool(0.5),
            surface: Surface::draw(draws),
        }
    }

    fn covers(&self, x: f32, y: f32) -> bool {
        let [dx, dy] = [x - self.centre[0], y - self.centre[1]];
        let along = (dx * self.turn[0] + dy * self.turn[1]) / self.radii[0];
        let across = (dy * self.turn[0] - dx * self.turn[1]) / self.radii[1];
        if self.round { along * along + across * across < 1.0 } else { along.abs().max(across.abs()) < 1.0 }
    }
}

/// A colour with a linear brightness gradient and waves.
struct Surface {
    color: [f32; 3],
    slope: [f32; 2],
    waves: Vec<Wave>,
}

impl Surface {
    /// Colours are pale, as in photographs: channels correlate by about 0.9.
    fn draw(draws: &mut Xoshiro256PlusPlus) -> Surface {
        let level: f32 = draws.random_range(0.05..0.95);
        let waves = draws.random_range(0..4);
        Surface {
            color: [(); 3].map(|()| 0.75 * level + 0.25 * draws.random_range(0.0..1.0)),
            slope: [(); 2].map(|()| draws.random_range(-0.3..0.3)),
            waves: (0..waves).map(|_| Wave::draw(draws)).collect(),
        }
    }

    fn color(&self, x: f32, y: f32, larger: f32) -> [f32; 3] {
        let shade = (self.slope[0] * x + self.slope[1] * y) / larger;
        let mut color = self.color.map(|level| level + shade);
        for wave in &self.waves {
            let height = (wave.frequency[0] * x + wave.frequency[1] * y + wave.phase).sin();
            for (level, strength) in color.iter_mut().zip(wave.strength) {
                *level += strength * height;
            }
        }
        color
    }
}

/// A regular texture.
struct Wave {
    frequency: [f32; 2],
    phase: f32,
    /// Amplitude per channel, similar in all of them.
    strength: [f32; 3],
}

impl Wave {
    /// Wavelengths are 3 to 24 pixels; a mosaic cannot distinguish shorter ones from colour.
    fn draw(draws: &mut Xoshiro256PlusPlus) -> Wave {
        let length = 3.0 * 8.0f32.powf(draws.random_range(0.0..1.0));
        let angle = draws.random_range(0.0..TAU);
        let strength = draws.random_range(0.01..0.1);
        Wave {
            frequency: [angle.cos(), angle.sin()].map(|part| TAU / length * part),
            phase: draws.random_range(0.0..TAU),
            strength: [(); 3].map(|()| strength * draws.random_range(0.7..1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_repeat_and_differ() {
        assert_eq!(scene(24, 20, 3), scene(24, 20, 3));
        assert_ne!(scene(24, 20, 3), scene(24, 20, 4));
        let scene = scene(24, 20, 3);
        assert!(scene.as_slice::<f32>().unwrap().iter().all(|sample| (0.0..=1.0).contains(sample)));
    }

    /// The first sample of every crop must be at a green site of a red row, like that of the
    /// picture.
    #[test]
    fn pieces_begin_at_even_places() {
        let region = Region::of_extents(&[SIZE, SIZE, 3]);
        let parities = Buffer::from_fn(region, |at| (at[0] % 2 + 2 * (at[1] % 2)) as f32).unwrap();
        let pictures = Pictures(vec![parities]);
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(5);
        for _ in 0..20 {
            let piece = pictures.piece(16, &mut draws);
            assert_eq!(piece.region(), &Region::of_extents(&[16, 16, 3]));
            assert_eq!(piece.as_slice::<f32>().unwrap()[..3], [0.0, 1.0, 0.0]);
        }
    }
}
