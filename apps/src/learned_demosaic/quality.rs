//! Measures the quality of demosaicking: converts pictures to mosaics, demosaicks them, and
//! compares the results.

use warploom::prelude::*;

/// Filters, keyed by the names of the app's inputs.
pub type Filters = Vec<(String, Buffer)>;

/// The mosaic of a picture (x, y, channel) under the app's Bayer pattern: one channel per pixel.
///
/// # Panics
/// If the picture does not have `f32` samples and 3 channels.
pub fn mosaic_of(picture: &Buffer) -> Buffer {
    let region = Region(picture.region().0[..2].to_vec());
    let sample = |at: &[i64]| {
        let channel = match (at[0].rem_euclid(2), at[1].rem_euclid(2)) {
            (1, 0) => 0,
            (0, 1) => 2,
            _ => 1,
        };
        let sample: Option<f32> = picture.get(&[at[0], at[1], channel]).and_then(Value::get);
        sample.expect("a picture has f32 samples of 3 channels")
    };
    Buffer::from_fn(region, sample).expect("a mosaic is smaller than its picture")
}

/// Bilinear interpolation of each channel separately, from the input `mosaic` to the output
/// `output`: the baseline for learned filters.
pub fn bilinear() -> Result<Pipeline, PipelineError> {
    let (x, y, c) = vars!(x, y, c);
    let m = Input::f32("mosaic", 2).mirror_interior().named("m");
    let own = func("own", (x, y), m.at((x, y)));
    let h = func("h", (x, y), (m.at((x - 1, y)) + m.at((x + 1, y))) / 2.0);
    let v = func("v", (x, y), (m.at((x, y - 1)) + m.at((x, y + 1))) / 2.0);
    let cross = func("cross", (x, y), (h.at((x, y)) + v.at((x, y))) / 2.0);
    let corners = func("corners", (x, y), (h.at((x, y - 1)) + h.at((x, y + 1))) / 2.0);

    // Sites in order: green in a red row, red, blue, green in a blue row.
    let channel = |sites: [&Func; 4]| mux(x % 2 + y % 2 * 2, sites.map(|site| site.at((x, y))));
    let red = channel([&h, &own, &corners, &v]);
    let green = channel([&own, &cross, &cross, &own]);
    let blue = channel([&v, &corners, &own, &h]);
    let output = func("output", (x, y, c), mux(c, [red, green, blue]));
    Pipeline::new("bilinear_demosaic", [output])
}

/// Demosaicks a mosaic with the reference evaluator.
pub fn demosaicked(pipeline: &Pipeline, mosaic: &Buffer, filters: &Filters) -> Result<Buffer, EvalError> {
    let mut region = mosaic.region().clone();
    region.0.push(Range::new(0, 3));
    let mut evaluation = Evaluation::new(pipeline).input("mosaic", mosaic).output("output", region);
    for (name, filter) in filters {
        evaluation = evaluation.input(name, filter);
    }
    Ok(evaluation.run()?.remove(0))
}

/// The peak signal-to-noise ratio of two pictures with samples from 0 to 1, in decibels, including
/// borders.
///
/// # Panics
/// If the pictures differ in size or do not have `f32` samples.
pub fn psnr(got: &Buffer, expected: &Buffer) -> f64 {
    assert_eq!(got.region(), expected.region());
    let [got, expected] = [got, expected].map(|b| b.as_slice::<f32>().expect("pictures hold f32 samples"));
    let squares = got.iter().zip(expected).map(|(a, b)| f64::from(a - b).powi(2));
    -10.0 * (squares.sum::<f64>() / got.len() as f64).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(color: impl Fn(i64, i64, i64) -> f32) -> Buffer {
        Buffer::from_fn(Region::of_extents(&[12, 8, 3]), |at| color(at[0], at[1], at[2])).unwrap()
    }

    #[test]
    fn mosaics_have_the_pattern_of_the_app() {
        let mosaic = mosaic_of(&picture(|_, _, c| c as f32));
        let sites = [[0, 0], [1, 0], [0, 1], [1, 1]];
        let channels = sites.map(|at| mosaic.get(&at).unwrap());
        assert_eq!(channels, [1.0f32, 0.0, 2.0, 1.0].map(Value::from));
    }

    /// Compared away from the borders, where mirroring breaks the slope.
    #[test]
    fn bilinear_interpolation_restores_slopes() {
        let slope = picture(|x, y, c| 0.1 * c as f32 + 0.02 * x as f32 + 0.03 * y as f32);
        let restored = demosaicked(&bilinear().unwrap(), &mosaic_of(&slope), &vec![]).unwrap();
        let inner = Region(vec![Range::new(1, 10), Range::new(1, 6), Range::new(0, 3)]);
        let [restored, slope] = [restored, slope].map(|b| b.cropped(&inner).unwrap());
        assert!(psnr(&restored, &slope) > 120.0);
    }

    #[test]
    fn the_ratio_is_in_decibels() {
        let [a, b] = [0.5, 0.6].map(|level| picture(move |_, _, _| level));
        assert!((psnr(&a, &b) - 20.0).abs() < 1e-4);
        assert_eq!(psnr(&a, &a), f64::INFINITY);
    }
}
