//! Edge-preserving smoothing: splats the picture into a coarse grid over position and brightness,
//! blurs the grid, and samples it at every pixel.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. A grid cell is `s_sigma` pixels wide and high, and `r_sigma` deep in brightness.
pub fn app() -> App {
    App::new("bilateral_grid", build)
        .about("edge-preserving smoothing with a bilateral grid")
        .sizes([count("W", 1536), count("H", 2560)])
        .structure([count("s_sigma", 8)])
        .params([setting("r_sigma", 0.1)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(5e-6)
}

fn build(settings: &Settings) -> Result<Pipeline, PipelineError> {
    let s_sigma = settings.int("s_sigma") as i32;
    let (x, y, z, c) = vars!(x, y, z, c);
    let input = Input::f32("input", 2);
    let r_sigma = Param::f32("r_sigma").range(1.0 / 256.0, 16.0f32);
    let bins = 1.0 / &r_sigma;

    let cl = input.repeat_edge().named("cl");

    // The sum and the number of pixels per cell.
    let r = rdom!(rx: (0, s_sigma), ry: (0, s_sigma));
    let (px, py) = (x * s_sigma + r.x - s_sigma / 2, y * s_sigma + r.y - s_sigma / 2);
    let v = clamp(cl.at((px, py)), 0.0, 1.0);
    let zi = (&v * &bins + 0.5).i32();
    let histogram =
        func("histogram", (x, y, z, c), 0.0).over(&r, |f| f.add((x, y, zi, c), mux(c, [v, 1.0.into()])));

    let blurz = func("blurz", (x, y, z, c), blur(|d| histogram.at((x, y, z + d, c))));
    let blurx = func("blurx", (x, y, z, c), blur(|d| blurz.at((x + d, y, z, c))));
    let blury = func("blury", (x, y, z, c), blur(|d| blurx.at((x, y + d, z, c))));

    // Trilinear interpolation in the grid.
    let zv = clamp(input.at((x, y)), 0.0, 1.0) * bins;
    let zi = zv.i32();
    let zf = zv - zi.f32();
    let [xf, yf] = [x, y].map(|v| (v % s_sigma).f32() / s_sigma as f32);
    let grid = |dx: i32, dy: i32, dz: i32| blury.at((x / s_sigma + dx, y / s_sigma + dy, &zi + dz, c));
    let along_x = |dy: i32, dz: i32| lerp(grid(0, dy, dz), grid(1, dy, dz), &xf);
    let along_y = |dz: i32| lerp(along_x(0, dz), along_x(1, dz), &yf);
    let interpolated = func("interpolated", (x, y, c), lerp(along_y(0), along_y(1), zf));

    let mean = interpolated.at((x, y, 0)) / interpolated.at((x, y, 1));
    Pipeline::new("bilateral_grid", [func("bilateral_grid", (x, y), mean)])
}

/// A blur with five binomial taps, not normalised.
fn blur(at: impl Fn(i32) -> Expr) -> Expr {
    at(-2) + at(-1) * 4.0 + at(0) * 6.0 + at(1) * 4.0 + at(2)
}

fn shapes(settings: &Settings) -> Shapes {
    let image = Region::of_extents(&[settings.int("W"), settings.int("H")]);
    Shapes::new([("input", image.clone())], [("bilateral_grid", image)])
}

fn input(request: &InputRequest<'_>) -> Buffer {
    natural::image(Type::F32, &request.region, request.seed)
}

/// Operations per pixel: its bin (4) and 2 sums; its place in z (4), 7 interpolations of 3
/// operations for 2 channels, and the quotient. Per value, 2 values per cell: 3 blurs of 3 products
/// and 4 sums.
fn operations(settings: &Settings) -> f64 {
    let pixels = settings.number("W") * settings.number("H");
    let cells = pixels / settings.number("s_sigma").powi(2) / settings.number("r_sigma");
    pixels * (6.0 + 4.0 + 42.0 + 1.0) + cells * 2.0 * 21.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 7, "{pipeline}");
    }
}
