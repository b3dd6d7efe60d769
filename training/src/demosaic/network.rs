//! The equations of the app `learned_demosaic` as tensor operations, with its filters as trainable
//! weights.

use burn::module::Param;
use burn::prelude::*;
use burn::tensor::TensorData;
use burn::tensor::module::conv2d;
use burn::tensor::ops::{ConvOptions, PadMode};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use warploom::interp::buffer::Buffer;
use warploom::lang::Region;
use warploom_apps::learned_demosaic::quality::Filters;

/// Padding of the mosaic: 3 pixels for the colour differences, 2 more for the green in them.
const MIRRORED: usize = 5;
/// Padding of the colour differences.
const REACH: usize = 3;

/// The app's filters as convolution weights: (filter, 1, y, x).
#[derive(Module, Debug)]
pub struct Demosaicker {
    sel: Param<Tensor<4>>,
    green_f: Param<Tensor<4>>,
    h_f: Param<Tensor<4>>,
    v_f: Param<Tensor<4>>,
    q_f: Param<Tensor<4>>,
}

impl Demosaicker {
    /// Initial filters: the mean of the nearest samples, with a little noise so that the candidates
    /// for green diverge.
    pub fn new(candidates: usize, draws: &mut Xoshiro256PlusPlus, device: &Device) -> Demosaicker {
        let mut noisy = |filter: &[f32], noise: f32| -> Vec<f32> {
            let many = filter.repeat(candidates);
            many.into_iter().map(|value| value + draws.random_range(-noise..noise)).collect()
        };
        let means = |nearest: [usize; 4]| move |tap| if nearest.contains(&tap) { 0.25 } else { 0.0 };
        let cross: [f32; 25] = std::array::from_fn(means([7, 11, 13, 17]));
        let corners: [f32; 16] = std::array::from_fn(means([5, 6, 9, 10]));
        let pair = [0.0, 0.5, 0.5, 0.0];
        let many = |filter: Vec<f32>| filter_of(&[5, 5, candidates as i64], filter);
        let filters = [
            ("sel", many(noisy(&[0.0; 25], 0.5))),
            ("green_f", many(noisy(&cross, 0.05))),
            ("h_f", filter_of(&[4], pair.into())),
            ("v_f", filter_of(&[4], pair.into())),
            ("q_f", filter_of(&[4, 4], corners.into())),
        ];
        let filters = filters.map(|(name, filter)| (name.to_owned(), filter));
        Demosaicker::from_filters(&filters.into(), device)
    }

    /// Continues from given filters.
    ///
    /// # Panics
    /// If a filter is missing or has a different size than the app's.
    pub fn from_filters(filters: &Filters, device: &Device) -> Demosaicker {
        let find = |name: &str| &filters.iter().find(|(known, _)| *known == name).expect("all are given").1;
        let candidates = find("sel").region().extents()[2] as usize;
        let param = |name: &str, shape: [usize; 4]| {
            let samples = find(name).as_slice::<f32>().expect("filters are f32").to_vec();
            Param::from_tensor(Tensor::from_data(TensorData::new(samples, shape), device))
        };
        Demosaicker {
            sel: param("sel", [candidates, 1, 5, 5]),
            green_f: param("green_f", [candidates, 1, 5, 5]),
            h_f: param("h_f", [1, 1, 1, 4]),
            v_f: param("v_f", [1, 1, 4, 1]),
            q_f: param("q_f", [1, 1, 4, 4]),
        }
    }

    /// The current filters, keyed by the names of the app's inputs.
    pub fn filters(&self) -> Filters {
        let candidates = self.sel.dims()[0] as i64;
        let filter = |name: &str, weights: &Param<Tensor<4>>, extents: &[i64]| {
            let samples = weights.val().into_data().try_to_vec::<f32>().expect("weights are f32");
            (name.to_owned(), filter_of(extents, samples))
        };
        vec![
            filter("sel", &self.sel, &[5, 5, candidates]),
            filter("green_f", &self.green_f, &[5, 5, candidates]),
            filter("h_f", &self.h_f, &[4]),
            filter("v_f", &self.v_f, &[4]),
            filter("q_f", &self.q_f, &[4, 4]),
        ]
    }

    /// Demosaicks mosaics (mosaic, 1, y, x) to pictures (picture, channel, y, x).
    pub fn forward(&self, mosaics: Tensor<4>) -> Tensor<4> {
        let [_, _, height, width] = mosaics.dims();
        let device = mosaics.device();
        let m = mosaics.pad([(MIRRORED, MIRRORED); 2], PadMode::Reflect);

        let weight = filtered(&m, &self.sel, [1, 1]).exp();
        let candidates = filtered(&m, &self.green_f, [1, 1]);
        let interpolated = (weight.clone() * candidates).sum_dim(1) / weight.sum_dim(1);
        let m = inner(m, [MIRRORED - REACH; 2]);
        // The padding shifts x and y by 3 each, so the parity of x + y stays the same.
        let at_green = sites(|x, y| (x + y) % 2 == 0, width + 2 * REACH, height + 2 * REACH, &device);
        let green = interpolated.mask_where(at_green, m.clone());

        let chroma = m - green.clone();
        let h = filtered(&inner(chroma.clone(), [REACH, 0]), &self.h_f, [1, 2]);
        let v = filtered(&inner(chroma.clone(), [0, REACH]), &self.v_f, [2, 1]);
        let q = filtered(&chroma, &self.q_f, [2, 2]);

        let [green, chroma] = [green, chroma].map(|tensor| inner(tensor, [REACH; 2]));
        let red_rows = sites(|_, y| y % 2 == 0, width, height, &device);
        let blue_columns = sites(|x, _| x % 2 == 0, width, height, &device);
        // Selects by site: red row and blue column, red row only, blue column only, neither.
        let by_site = |green_red: Tensor<4>, red: Tensor<4>, blue: Tensor<4>, green_blue: Tensor<4>| {
            let red_row = red.mask_where(blue_columns.clone(), green_red);
            let blue_row = green_blue.mask_where(blue_columns.clone(), blue);
            green.clone() + blue_row.mask_where(red_rows.clone(), red_row)
        };
        let red = by_site(h.clone(), chroma.clone(), q.clone(), v.clone());
        let blue = by_site(v, q, chroma, h);
        Tensor::cat(vec![red, green, blue], 1).clamp(0.0, 1.0)
    }
}

fn filter_of(extents: &[i64], samples: Vec<f32>) -> Buffer {
    Buffer::from_vec(Region::of_extents(extents), samples).expect("filters have a sample a point")
}

/// A convolution with taps `spacing` (y, x) apart, without padding.
fn filtered(image: &Tensor<4>, filter: &Param<Tensor<4>>, spacing: [usize; 2]) -> Tensor<4> {
    conv2d(image.clone(), filter.val(), None, ConvOptions::new([1, 1], [0, 0], spacing, 1))
}

/// Crops `border` (y, x) pixels on each side.
fn inner(image: Tensor<4>, border: [usize; 2]) -> Tensor<4> {
    let [count, channels, height, width] = image.dims();
    image.slice([0..count, 0..channels, border[0]..height - border[0], border[1]..width - border[1]])
}

/// A mask of the sites where `chosen` holds.
fn sites(
    chosen: impl Fn(usize, usize) -> bool,
    width: usize,
    height: usize,
    device: &Device,
) -> Tensor<4, Bool> {
    let flags: Vec<bool> = (0..height * width).map(|i| chosen(i % width, i / width)).collect();
    Tensor::from_data(TensorData::new(flags, [1, 1, height, width]), device)
}

/// Stacks pictures or mosaics of one size as (image, channel, y, x).
///
/// # Panics
/// If there are no images, or if they are not `f32` of one size.
pub fn batch(images: &[Buffer], device: &Device) -> Tensor<4> {
    let extents = images[0].region().extents();
    let channels = extents.get(2).map_or(1, |channels| *channels as usize);
    let samples: Vec<f32> =
        images.iter().flat_map(|image| image.as_slice::<f32>().expect("images are f32")).copied().collect();
    let shape = [images.len(), channels, extents[1] as usize, extents[0] as usize];
    Tensor::from_data(TensorData::new(samples, shape), device)
}
