//! A camera pipeline from the raw sensor image to the finished picture: hot pixel suppression,
//! demosaicking, colour correction, tone curve and sharpening.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `W` x `H` is the size of the output; the raw input is 32 pixels wider and 24 higher.
pub fn app() -> App {
    App::new("camera_pipe", build)
        .about("raw Bayer mosaic to a finished picture")
        .sizes([count("W", 2560), count("H", 1920)])
        .params([
            setting("color_temp", 3700.0),
            setting("gamma", 2.0),
            setting("contrast", 50.0),
            setting("sharpen_strength", 1.0),
            setting("blackLevel", 25.0),
            setting("whiteLevel", 1023.0),
        ])
        .shapes(shapes)
        .inputs(input)
        .own_inputs(["matrix_3200", "matrix_7000"])
        .operations(operations)
        .tolerance(1e-6)
}

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y, c) = vars!(x, y, c);
    let input = Input::u16("input", 2);

    // The stencils read beyond the output, so the output starts inside the raw image.
    let shifted = func("shifted", (x, y), input.at((x + 16, y + 12)));
    let denoised = suppress_hot_pixels(&shifted);
    let demosaiced = demosaic(&denoised);
    let corrected = correct_colors(&demosaiced);
    let curved = apply_curve(&corrected);
    let sharpened = sharpen(&curved);
    let processed = func("processed", (x, y, c), sharpened.at((x, y, c)));

    Pipeline::new("camera_pipe", [processed])
}

/// Limits each pixel to the maximum of its four neighbours of the same colour.
fn suppress_hot_pixels(raw: &Func) -> Func {
    let (x, y) = vars!(x, y);
    let beside = max(raw.at((x - 2, y)), raw.at((x + 2, y)));
    let around = max(max(beside, raw.at((x, y - 2))), raw.at((x, y + 2)));
    func("denoised", (x, y), min(raw.at((x, y)), around))
}

/// Interpolates all three colours at every pixel of the mosaic.
///
/// A plane `a_b` holds colour `a` at the sites of `b`: red, blue, `gr` for green in a red row, or
/// `gb` for green in a blue row. It has one point per 2x2 cell of the mosaic.
fn demosaic(raw: &Func) -> Func {
    let (x, y, c) = vars!(x, y, c);
    let sites = [
        raw.at((2 * x, 2 * y)),
        raw.at((2 * x + 1, 2 * y)),
        raw.at((2 * x, 2 * y + 1)),
        raw.at((2 * x + 1, 2 * y + 1)),
    ];
    let deinterleaved = func("deinterleaved", (x, y, c), mux(c, sites));
    let plane = |name: &str, site: i32| func(name, (x, y), deinterleaved.at((x, y, site)));
    let g_gr = plane("g_gr", 0);
    let r_r = plane("r_r", 1);
    let b_b = plane("b_b", 2);
    let g_gb = plane("g_gb", 3);

    // Green at red and blue sites, along the direction of smaller change.
    let across = better(between(&g_gr, (x + 1, y), (x, y)), between(&g_gb, (x, y - 1), (x, y)));
    let g_r = func("g_r", (x, y), across);
    let across = better(between(&g_gb, (x - 1, y), (x, y)), between(&g_gr, (x, y + 1), (x, y)));
    let g_b = func("g_b", (x, y), across);

    // Red and blue at green sites, from the neighbours that have the colour.
    let r_gr = func("r_gr", (x, y), tinted(&g_gr, &g_r, &r_r, (x, y), (x - 1, y)).value);
    let b_gr = func("b_gr", (x, y), tinted(&g_gr, &g_b, &b_b, (x, y), (x, y - 1)).value);
    let r_gb = func("r_gb", (x, y), tinted(&g_gb, &g_r, &r_r, (x, y), (x, y + 1)).value);
    let b_gb = func("b_gb", (x, y), tinted(&g_gb, &g_b, &b_b, (x, y), (x + 1, y)).value);

    // Red at blue sites and blue at red sites, along the diagonal of smaller change.
    let diagonal = tinted(&g_b, &g_r, &r_r, (x, y), (x - 1, y + 1));
    let r_b = func("r_b", (x, y), better(diagonal, tinted(&g_b, &g_r, &r_r, (x - 1, y), (x, y + 1))));
    let diagonal = tinted(&g_r, &g_b, &b_b, (x, y), (x + 1, y - 1));
    let b_r = func("b_r", (x, y), better(diagonal, tinted(&g_r, &g_b, &b_b, (x + 1, y), (x, y - 1))));

    let r = interleave("r", [&r_gr, &r_r, &r_b, &r_gb]);
    let g = interleave("g", [&g_gr, &g_r, &g_b, &g_gb]);
    let b = interleave("b", [&b_gr, &b_r, &b_b, &b_gb]);
    let color = |f: Func| f.at((x, y)).reinterpret(Type::I16);
    func("demosaiced", (x, y, c), mux(c, [r, g, b].map(color)))
}

/// An estimate from two neighbours: their mean, and their distance.
struct Guess {
    value: Expr,
    spread: Expr,
}

fn between(f: &Func, a: impl Indices, b: impl Indices) -> Guess {
    let (a, b) = (f.at(a), f.at(b));
    Guess { value: average(&a, &b), spread: absd(a, b) }
}

/// Estimates a colour at a site whose green is in `here`: the mean colour of two neighbours,
/// corrected by the difference between the green here and their mean green.
fn tinted(
    here: &Func,
    green: &Func,
    color: &Func,
    a: impl Indices + Clone,
    b: impl Indices + Clone,
) -> Guess {
    let (x, y) = vars!(x, y);
    let green = between(green, a.clone(), b.clone());
    let color = between(color, a, b);
    Guess { value: here.at((x, y)) - green.value + color.value, spread: color.spread }
}

fn better(a: Guess, b: Guess) -> Expr {
    select(a.spread.lt(b.spread), a.value, b.value)
}

/// Interleaves the planes of the four sites of a cell into a full-size plane.
fn interleave(name: &str, [gr, r, b, gb]: [&Func; 4]) -> Func {
    let (x, y) = vars!(x, y);
    let rows = |suffix: &str, even: &Func, odd: &Func| {
        let site = select((x % 2).eq(0), even.at((x / 2, y)), odd.at((x / 2, y)));
        func(format!("{name}_{suffix}"), (x, y), site)
    };
    let (even, odd) = (rows("even", gr, r), rows("odd", b, gb));
    func(name, (x, y), select((y % 2).eq(0), even.at((x, y / 2)), odd.at((x, y / 2))))
}

/// Converts sensor colours to screen colours, with a matrix interpolated between two calibrated
/// ones.
fn correct_colors(raw: &Func) -> Func {
    let (x, y, c, i, j) = vars!(x, y, c, i, j);
    let matrix_3200 = Input::f32("matrix_3200", 2);
    let matrix_7000 = Input::f32("matrix_7000", 2);
    let color_temp = Param::f32("color_temp");

    let alpha = (1.0 / &color_temp - 1.0 / 3200.0) / (1.0 / 7000.0 - 1.0 / 3200.0);
    let blend = matrix_3200.at((i, j)) * &alpha + matrix_7000.at((i, j)) * (1.0 - &alpha);
    let matrix = func("matrix", (i, j), (blend * 256.0).i16());

    let m = |column: i32| matrix.at((column, c)).i32();
    let [r, g, b] = [0, 1, 2].map(|channel| raw.at((x, y, channel)).i32());
    func("corrected", (x, y, c), ((m(3) + m(0) * r + m(1) * g + m(2) * b) / 256).i16())
}

/// Applies gamma and contrast, and reduces ten bits to eight.
fn apply_curve(color: &Func) -> Func {
    let (x, y, c, n) = vars!(x, y, c, n);
    let gamma = Param::f32("gamma");
    let contrast = Param::f32("contrast");
    let black = Param::i32("blackLevel");
    let white = Param::i32("whiteLevel");

    let inv = 1.0 / (&white - &black).f32();
    let g = pow(clamp((n - &black).f32() * inv, 0.0, 1.0), 1.0 / &gamma);
    // The contrast curve: two parabolas that meet in the middle.
    let b = 2.0 - pow(2.0, &contrast / 100.0);
    let a = 2.0 - 2.0 * &b;
    let parabola = |t: &Expr| &a * t * t + &b * t;
    let z = select(g.gt(0.5), 1.0 - parabola(&(1.0 - &g)), parabola(&g));
    let value = clamp(z * 255.0 + 0.5, 0.0, 255.0).u8();
    let curve = func("curve", n, select(n.le(&black), 0, select(n.gt(&white), 255, value)));

    let index = clamp(color.at((x, y, c)).i32(), 0, 1023);
    func("curved", (x, y, c), curve.at(index))
}

fn sharpen(color: &Func) -> Func {
    let (x, y, c) = vars!(x, y, c);
    let sharpen_strength = Param::f32("sharpen_strength");
    let strength = func("sharpen_strength_x32", (), clamp(&sharpen_strength * 32.0, 0.0, 255.0).u8());

    let vertical = average(color.at((x, y - 1, c)), color.at((x, y + 1, c)));
    let unsharp_y = func("unsharp_y", (x, y, c), average(vertical, color.at((x, y, c))));
    let horizontal = average(unsharp_y.at((x - 1, y, c)), unsharp_y.at((x + 1, y, c)));
    let unsharp = func("unsharp", (x, y, c), average(horizontal, unsharp_y.at((x, y, c))));

    let mask = func("mask", (x, y, c), color.at((x, y, c)).i16() - unsharp.at((x, y, c)).i16());
    let detail = mask.at((x, y, c)) * strength.at(()).i16() / 32;
    func("sharpened", (x, y, c), (color.at((x, y, c)).i16() + detail).saturating_cast(Type::U8))
}

fn shapes(settings: &Settings) -> Shapes {
    let (w, h) = (settings.int("W"), settings.int("H"));
    Shapes::new(
        [
            ("input", Region::of_extents(&[w + 32, h + 24])),
            ("matrix_3200", Region::of_extents(&[4, 3])),
            ("matrix_7000", Region::of_extents(&[4, 3])),
        ],
        [("processed", Region::of_extents(&[w, h, 3]))],
    )
}

/// Calibration of the sensor at 3200 K: one row each for red, green and blue.
const MATRIX_3200: [[f32; 4]; 3] = [
    [1.6697, -0.2693, -0.4004, -42.4346],
    [-0.3576, 1.0615, 1.5949, -37.1158],
    [-0.2175, -1.8751, 6.9640, -26.6970],
];

/// Calibration of the sensor at 7000 K.
const MATRIX_7000: [[f32; 4]; 3] = [
    [2.2997, -0.4478, 0.1706, -39.0923],
    [-0.3826, 1.5906, -0.2080, -25.4311],
    [-0.0888, -0.7344, 2.2832, -20.0826],
];

fn input(request: &InputRequest<'_>) -> Buffer {
    let matrix = match request.name {
        "matrix_3200" => MATRIX_3200,
        "matrix_7000" => MATRIX_7000,
        _ => return raw_image(request),
    };
    Buffer::from_vec(request.region.clone(), matrix.concat())
        .unwrap_or_else(|_| natural::uniform(&request.region, -1.0, 1.0, request.seed))
}

/// A picture with ten bits per sample.
fn raw_image(request: &InputRequest<'_>) -> Buffer {
    let mut raw = natural::image(Type::U16, &request.region, request.seed);
    for sample in raw.as_mut_slice::<u16>().unwrap_or_default() {
        *sample >>= 6;
    }
    raw
}

/// Operations per pixel: 4 to suppress hot pixels, 13 to demosaic (a 2x2 cell takes 6 for each of
/// two greens, 4 for each colour at a green site and 12 for each colour on a diagonal), 21 to
/// correct colours, 6 to clamp the curve's index and 30 to sharpen. The mean or distance of two
/// values counts as one.
fn operations(settings: &Settings) -> f64 {
    settings.number("W") * settings.number("H") * (4.0 + 13.0 + 21.0 + 6.0 + 30.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 35, "{pipeline}");
    }
}
