//! Input data: pictures with statistics similar to photographs, and uniform noise for filters and
//! matrices. Every sample is a fixed function of the seed, the same on every machine.

use warploom::interp::buffer::Element;
use warploom::prelude::*;

/// A picture over `region`: smooth structure at every scale, edges and slight grain.
///
/// The first two dimensions are x and y. Every index of the other dimensions is a separate plane,
/// and planes are similar to each other, like colour channels. `f32` samples are in 0.04..0.98;
/// `u8` and `u16` samples use their full range.
///
/// # Panics
/// For other types, and for a region too large for memory.
pub fn image(ty: Type, region: &Region, seed: u64) -> Buffer {
    let samples = picture(region, Noise(seed));
    match ty {
        Type::F32 => filled(region, samples.map(|v| 0.04 + 0.94 * v).collect::<Vec<f32>>()),
        Type::U8 => filled(region, samples.map(|v| (v * 255.0 + 0.5) as u8).collect()),
        Type::U16 => filled(region, samples.map(|v| (v * 65535.0 + 0.5) as u16).collect()),
        other => panic!("pictures hold f32, u8 or u16, not {other}"),
    }
}

/// Independent `f32` samples over `region`, uniform between `low` and `high`.
///
/// # Panics
/// For a region too large for memory.
pub fn uniform(region: &Region, low: f32, high: f32, seed: u64) -> Buffer {
    let noise = Noise(seed);
    let count = region.points().unwrap_or(u64::MAX);
    filled(region, (0..count).map(|i| mix(low, high, noise.unit(i))).collect())
}

/// Independent `i32` samples over `region`, uniform in `0..end`.
///
/// # Panics
/// For a region too large for memory.
pub fn indices(region: &Region, end: i64, seed: u64) -> Buffer {
    let noise = Noise(seed);
    let count = region.points().unwrap_or(u64::MAX);
    let end = u64::try_from(end).unwrap_or(1).max(1);
    filled(region, (0..count).map(|i| (noise.bits(i) % end) as i32).collect())
}

fn filled<T: Element>(region: &Region, samples: Vec<T>) -> Buffer {
    match Buffer::from_vec(region.clone(), samples) {
        Ok(buffer) => buffer,
        Err(error) => panic!("{error}"),
    }
}

/// A hash-based generator: a random number in 0..1 per index.
#[derive(Clone, Copy)]
struct Noise(u64);

impl Noise {
    fn bits(self, index: u64) -> u64 {
        let mut z = self.0.wrapping_add(1).wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(self, index: u64) -> f32 {
        (self.bits(index) >> 40) as f32 / (1u64 << 24) as f32
    }

    /// An independent generator for each `index`.
    fn fork(self, index: u64) -> Noise {
        Noise(self.bits(!index))
    }
}

fn mix(a: f32, b: f32, weight: f32) -> f32 {
    a + (b - a) * weight
}

/// The samples of all planes, in 0..1.
fn picture(region: &Region, noise: Noise) -> impl Iterator<Item = f32> {
    let extent = |d: usize| region.0.get(d).map_or(1, |range| range.extent as usize);
    let planes: usize = (2..region.dimensions().max(2)).map(extent).product();
    let (width, height) = (extent(0), extent(1));
    let larger = width.max(height);

    let mut light = Plane::new(width, height);
    light.add_octaves(4, larger / 2, 0.75, noise.fork(0));
    let shapes: Vec<Shape> = (0..60).map(|i| Shape::new(width, height, noise.fork(1).fork(i))).collect();

    (0..planes as u64).flat_map(move |number| {
        let own = noise.fork(2).fork(number);
        let mut plane = light.clone();
        plane.add_octaves(larger / 16, larger / 4, 0.25, own);
        for value in &mut plane.values {
            *value = (3.0 * *value - 1.0).clamp(0.0, 1.0);
        }
        for (i, shape) in shapes.iter().enumerate() {
            plane.paint(shape, mix(shape.level, own.fork(1).unit(i as u64), 0.2));
        }
        let grain = own.fork(2);
        plane.values.into_iter().zip(0..).map(move |(value, i)| mix(value, grain.unit(i), 0.02))
    })
}

#[derive(Clone)]
struct Plane {
    width: usize,
    values: Vec<f32>,
}

impl Plane {
    fn new(width: usize, height: usize) -> Plane {
        Plane { width, values: vec![0.0; width * height] }
    }

    /// Adds value noise at cell sizes from `smallest` to `largest`, each twice the last. The weight
    /// drops by a factor of 0.65 from one size to the next smaller one. The sum is in `0..total`.
    fn add_octaves(&mut self, smallest: usize, largest: usize, total: f32, noise: Noise) {
        let cells = std::iter::successors(Some(smallest.max(1)), |cell| Some(2 * cell));
        let cells: Vec<usize> = cells.take_while(|cell| *cell <= largest.max(smallest).max(1)).collect();
        let weights = std::iter::successors(Some(1.0), |weight| Some(0.65 * weight));
        let weights: Vec<f32> = weights.take(cells.len()).collect();
        let sum: f32 = weights.iter().sum();
        for (&cell, weight) in cells.iter().rev().zip(&weights) {
            self.add_noise(cell, total * weight / sum, noise.fork(cell as u64));
        }
    }

    /// Adds smoothly interpolated random values on a lattice with square cells.
    fn add_noise(&mut self, cell: usize, amplitude: f32, noise: Noise) {
        let nodes = self.width / cell + 2;
        let smooth = |i: usize| {
            let t = (i as f32 + 0.5) / cell as f32;
            t * t * (3.0 - 2.0 * t)
        };
        let smooth: Vec<f32> = (0..cell).map(smooth).collect();
        let node = |i: usize, j: usize| amplitude * noise.unit((j * nodes + i) as u64);
        for (y, row) in self.values.chunks_mut(self.width.max(1)).enumerate() {
            let j = y / cell;
            let line: Vec<f32> =
                (0..nodes).map(|i| mix(node(i, j), node(i, j + 1), smooth[y % cell])).collect();
            for (run, ends) in row.chunks_mut(cell).zip(line.windows(2)) {
                for (value, &weight) in run.iter_mut().zip(&smooth) {
                    *value += mix(ends[0], ends[1], weight);
                }
            }
        }
    }

    fn paint(&mut self, shape: &Shape, level: f32) {
        for (y, row) in self.values.chunks_mut(self.width.max(1)).enumerate() {
            let dy = y as f32 - shape.centre.1;
            if dy.abs() > shape.radii.1 {
                continue;
            }
            let from = (shape.centre.0 - shape.radii.0).max(0.0) as usize;
            let to = (shape.centre.0 + shape.radii.0) as usize + 1;
            for (x, value) in row.iter_mut().enumerate().take(to).skip(from) {
                if shape.covers(x as f32 - shape.centre.0, dy) {
                    *value = mix(*value, level, shape.opacity);
                }
            }
        }
    }
}

/// A rectangle or a disc.
struct Shape {
    centre: (f32, f32),
    radii: (f32, f32),
    disc: bool,
    level: f32,
    opacity: f32,
}

impl Shape {
    /// A random shape in a picture, more often small than large.
    fn new(width: usize, height: usize, noise: Noise) -> Shape {
        let larger = width.max(height) as f32;
        let radius = |i| larger * mix(0.01, 0.15, noise.unit(i) * noise.unit(i));
        let disc = noise.unit(0) < 0.5;
        Shape {
            centre: (width as f32 * noise.unit(1), height as f32 * noise.unit(2)),
            radii: if disc { (radius(3), radius(3)) } else { (radius(3), radius(4)) },
            disc,
            level: (1.3 * noise.unit(5) - 0.15).clamp(0.0, 1.0),
            opacity: mix(0.3, 0.9, noise.unit(6)),
        }
    }

    /// Whether the point at this offset from the centre is inside.
    fn covers(&self, dx: f32, dy: f32) -> bool {
        if self.disc {
            dx * dx + dy * dy < self.radii.0 * self.radii.0
        } else {
            dx.abs() < self.radii.0 && dy.abs() < self.radii.1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(buffer: &Buffer) -> &[f32] {
        buffer.as_slice().unwrap()
    }

    #[test]
    fn pictures_use_their_range_and_repeat() {
        let region = Region::of_extents(&[160, 120, 3]);
        let picture = image(Type::F32, &region, 7);
        let values = samples(&picture);
        let (low, high) = values.iter().fold((1.0f32, 0.0f32), |(low, high), &v| (low.min(v), high.max(v)));
        assert!((0.04..0.15).contains(&low) && (0.85..0.981).contains(&high), "{low}..{high}");
        assert_eq!(picture, image(Type::F32, &region, 7));
        assert_ne!(picture, image(Type::F32, &region, 8));

        let bytes = image(Type::U8, &region, 7);
        let bytes: &[u8] = bytes.as_slice().unwrap();
        assert!(
            values.iter().zip(bytes).all(|(v, &b)| ((v - 0.04) / 0.94 * 255.0 - f32::from(b)).abs() < 0.51)
        );
    }

    #[test]
    fn channels_are_similar_but_not_the_same() {
        let picture = image(Type::F32, &Region::of_extents(&[100, 80, 2]), 1);
        let (a, b) = samples(&picture).split_at(8000);
        let mean = |s: &[f32]| s.iter().sum::<f32>() / s.len() as f32;
        let (mean_a, mean_b) = (mean(a), mean(b));
        let covariance = |s: &[f32], mean_s: f32, t: &[f32], mean_t: f32| {
            s.iter().zip(t).map(|(v, w)| (v - mean_s) * (w - mean_t)).sum::<f32>()
        };
        let (aa, bb) = (covariance(a, mean_a, a, mean_a), covariance(b, mean_b, b, mean_b));
        let correlation = covariance(a, mean_a, b, mean_b) / (aa * bb).sqrt();
        assert!((0.6..0.99).contains(&correlation), "{correlation}");
    }

    #[test]
    fn contents_are_pinned() {
        let picture = image(Type::F32, &Region::of_extents(&[33, 17, 2]), 5);
        let numbers = uniform(&Region::of_extents(&[10, 3]), -1.0, 1.0, 5);
        let sum = |buffer: &Buffer| samples(buffer).iter().map(|v| u64::from(v.to_bits())).sum::<u64>();
        assert_eq!((sum(&picture), sum(&numbers)), (1_184_256_088_501, 63_794_147_260));
    }

    #[test]
    fn odd_regions_work() {
        for extents in [&[][..], &[5], &[0, 4], &[1, 1, 1], &[3, 2, 2, 2]] {
            let region = Region::of_extents(extents);
            assert_eq!(image(Type::U16, &region, 0).region(), &region);
            assert_eq!(uniform(&region, -1.0, 1.0, 0).region(), &region);
        }
    }
}
