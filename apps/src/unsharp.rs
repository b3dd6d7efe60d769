//! Sharpening with an unsharp mask: the detail that a Gaussian blur removes from the brightness is
//! added to it.

use std::f32::consts::PI;

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `sigma` is the standard deviation of the blur in pixels.
pub fn app() -> App {
    App::new("unsharp", build)
        .about("sharpening by an unsharp mask")
        .sizes([count("W", 1536), count("H", 2560)])
        .structure([setting("sigma", 1.5)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(5e-6)
}

fn build(settings: &Settings) -> Result<Pipeline, PipelineError> {
    let sigma = settings.number("sigma") as f32;
    let (x, y, c, i) = vars!(x, y, c, i);
    let input = Input::f32("input", 3);

    let gauss = exp((-(i * i)).f32() / (2.0 * sigma * sigma)) / ((2.0 * PI).sqrt() * sigma);
    let kernel = func("kernel", i, gauss);

    let edge = input.repeat_edge().named("in");
    let [r, g, b] = [0, 1, 2].map(|c| edge.at((x, y, c)));
    let gray = func("gray", (x, y), 0.299 * r + 0.587 * g + 0.114 * b);

    let blur_y = func("blur_y", (x, y), blur(&kernel, |d| gray.at((x, y + d))));
    let blur_x = func("blur_x", (x, y), blur(&kernel, |d| blur_y.at((x + d, y))));

    let sharpen = func("sharpen", (x, y), 2.0 * gray.at((x, y)) - blur_x.at((x, y)));
    let ratio = func("ratio", (x, y), sharpen.at((x, y)) / gray.at((x, y)));
    let output = func("output", (x, y, c), ratio.at((x, y)) * input.at((x, y, c)));

    Pipeline::new("unsharp", [output])
}

/// The weighted sum of a value and its three neighbours on either side.
fn blur(kernel: &Func, at: impl Fn(i32) -> Expr) -> Expr {
    let both = |d: i32| kernel.at(d) * (at(-d) + at(d));
    kernel.at(0) * at(0) + both(1) + both(2) + both(3)
}

fn shapes(settings: &Settings) -> Shapes {
    let image = Region::of_extents(&[settings.int("W"), settings.int("H"), 3]);
    Shapes::new([("input", image.clone())], [("output", image)])
}

fn input(request: &InputRequest<'_>) -> Buffer {
    natural::image(Type::F32, &request.region, request.seed)
}

/// Operations per pixel: the gray value (5), two blurs of 4 products and 6 sums, `sharpen` (2),
/// `ratio` (1) and the product of 3 channels.
fn operations(settings: &Settings) -> f64 {
    settings.number("W") * settings.number("H") * (5.0 + 2.0 * 10.0 + 2.0 + 1.0 + 3.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 8, "{pipeline}");
    }
}
