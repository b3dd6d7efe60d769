//! Learned demosaicking. At every pixel of a Bayer mosaic, learned scores blend learned
//! interpolators of green. Learned filters then interpolate the differences of red and blue from
//! green.
//!
//! The filters in `data/learned_demosaic` were trained by `warploom-training` on the same
//! equations, with 8 candidates for green. For a smaller K the app uses the first K of them. For a
//! larger K it repeats them, so a multiple of 8 computes the same picture. Only 8 and its multiples
//! reach the trained quality.

use warploom::app::*;
use warploom::interp::npy;
use warploom::prelude::*;

use crate::natural;
use quality::mosaic_of;

pub mod quality;

/// The app. `K` is the number of candidates for green.
pub fn app() -> App {
    App::new("learned_demosaic", build)
        .about("Bayer mosaic to colours with learned filters")
        .sizes([count("W", 1536), count("H", 2560), count("K", 8)])
        .shapes(shapes)
        .inputs(input)
        .own_inputs(["sel", "green_f", "h_f", "v_f", "q_f"])
        .operations(operations)
        .tolerance(5e-6)
}

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y, k, c) = vars!(x, y, k, c);
    let mosaic = Input::f32("mosaic", 2);
    let sel = Input::f32("sel", 3);
    let green_f = Input::f32("green_f", 3);
    let h_f = Input::f32("h_f", 1);
    let v_f = Input::f32("v_f", 1);
    let q_f = Input::f32("q_f", 2);

    let m = mosaic.mirror_interior().named("m");

    // Green: all candidates, weighted by the softmax of their scores.
    let r = rdom!(i: (0, 5), j: (0, 5));
    let [i, j] = r.vars();
    let filtered = |name: &str, filter: &Input| {
        func(name, (x, y, k), 0.0)
            .over(&r, |f| f.add((x, y, k), filter.at((i, j, k)) * m.at((x + i - 2, y + j - 2))))
    };
    let score = filtered("score", &sel);
    let cand = filtered("cand", &green_f);
    let weight = func("weight", (x, y, k), exp(score.at((x, y, k))));
    let r = rdom!(k: (0, sel.extent(2)));
    let norm = func("norm", (x, y), sum(&r, weight.at((x, y, r.x))));
    let weighted = sum(&r, weight.at((x, y, r.x)) * cand.at((x, y, r.x)));
    let g_i = func("g_i", (x, y), weighted / norm.at((x, y)));
    let at_green = ((x + y) % 2).eq(0);
    let green = func("green", (x, y), select(at_green, m.at((x, y)), g_i.at((x, y))));

    // The differences of red and blue from green, known at their own sites: every second pixel in
    // each direction.
    let chroma = func("chroma", (x, y), m.at((x, y)) - green.at((x, y)));
    let r = rdom!(i: (0, 4));
    let h = func("h", (x, y), sum(&r, h_f.at(r.x) * chroma.at((x + 2 * r.x - 3, y))));
    let v = func("v", (x, y), sum(&r, v_f.at(r.x) * chroma.at((x, y + 2 * r.x - 3))));
    let r = rdom!(i: (0, 4), j: (0, 4));
    let [i, j] = r.vars();
    let tap = q_f.at((i, j)) * chroma.at((x + 2 * i - 3, y + 2 * j - 3));
    let q = func("q", (x, y), sum(&r, tap));

    // Sites in order: green in a red row, red, blue, green in a blue row.
    let tinted = |name: &str, sites: [&Func; 4]| {
        let difference = mux(x % 2 + y % 2 * 2, sites.map(|site| site.at((x, y))));
        func(name, (x, y), green.at((x, y)) + difference)
    };
    let red = tinted("red", [&h, &chroma, &q, &v]);
    let blue = tinted("blue", [&v, &q, &chroma, &h]);
    let color = mux(c, [red, green, blue].map(|channel| channel.at((x, y))));
    let output = func("output", (x, y, c), clamp(color, 0.0, 1.0));

    Pipeline::new("learned_demosaic", [output])
}

fn shapes(settings: &Settings) -> Shapes {
    let [w, h, k] = ["W", "H", "K"].map(|name| settings.int(name));
    Shapes::new(
        [
            ("mosaic", Region::of_extents(&[w, h])),
            ("sel", Region::of_extents(&[5, 5, k])),
            ("green_f", Region::of_extents(&[5, 5, k])),
            ("h_f", Region::of_extents(&[4])),
            ("v_f", Region::of_extents(&[4])),
            ("q_f", Region::of_extents(&[4, 4])),
        ],
        [("output", Region::of_extents(&[w, h, 3]))],
    )
}

/// Returns a learned filter, or the mosaic of a picture.
fn input(request: &InputRequest<'_>) -> Buffer {
    if request.name != "mosaic" {
        return repeated(&learned(request.name), &request.region);
    }
    let mut region = request.region.clone();
    region.0.push(Range::new(0, 3));
    mosaic_of(&natural::image(Type::F32, &region, request.seed))
}

fn learned(name: &str) -> Buffer {
    let file: &[u8] = match name {
        "sel" => include_bytes!("../data/learned_demosaic/sel.npy"),
        "green_f" => include_bytes!("../data/learned_demosaic/green_f.npy"),
        "h_f" => include_bytes!("../data/learned_demosaic/h_f.npy"),
        "v_f" => include_bytes!("../data/learned_demosaic/v_f.npy"),
        "q_f" => include_bytes!("../data/learned_demosaic/q_f.npy"),
        _ => panic!("the app has no input `{name}`"),
    };
    npy::read_from(file, name).expect("the app's own files are right")
}

/// A filter over `region`, repeated periodically.
fn repeated(filter: &Buffer, region: &Region) -> Buffer {
    let samples: &[f32] = filter.as_slice().expect("filters hold f32 samples");
    let sample = |at: &[i64]| {
        let within = at.iter().zip(filter.region().extents()).map(|(&i, extent)| i.rem_euclid(extent));
        let offset = filter.offset(&within.collect::<Vec<_>>());
        samples[offset.expect("the remainder lies within")]
    };
    Buffer::from_fn(region.clone(), sample).expect("filters are small")
}

/// Operations per pixel: for each candidate, a product and a sum for each of 2 x 25 taps, its
/// exponential (counted as one) and its part of both sums (3); the division, the difference, 8 + 8
/// + 32 to interpolate it, 2 sums and 3 clamps of two.
fn operations(settings: &Settings) -> f64 {
    let [w, h, k] = ["W", "H", "K"].map(|name| settings.number(name));
    w * h * (k * (100.0 + 1.0 + 3.0) + 2.0 + 48.0 + 2.0 + 6.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 19, "{pipeline}");
    }
}
