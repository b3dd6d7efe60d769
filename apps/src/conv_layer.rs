//! A convolutional layer: 3x3 filters over all input channels, a bias, and a ReLU.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `N` is the batch size, `CI` and `CO` are the numbers of input and output channels, and
/// `W` x `H` is the size of the output.
pub fn app() -> App {
    App::new("conv_layer", build)
        .about("3x3 convolution over many channels, with bias and rectifier")
        .sizes([count("N", 5), count("CI", 128), count("CO", 128), count("W", 100), count("H", 80)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(5e-6)
}

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (c, x, y, n) = vars!(c, x, y, n);
    let input = Input::f32("input", 4);
    let filter = Input::f32("filter", 4);
    let bias = Input::f32("bias", 1);

    let r = rdom!(ci: (0, input.extent(0)), rx: (0, 3), ry: (0, 3));
    let [ci, rx, ry] = r.vars();
    let conv = func("conv", (c, x, y, n), bias.at(c))
        .over(&r, |f| f.add((c, x, y, n), filter.at((c, rx, ry, ci)) * input.at((ci, x + rx, y + ry, n))));
    let relu = func("relu", (c, x, y, n), max(0.0, conv.at((c, x, y, n))));

    Pipeline::new("conv_layer", [relu])
}

fn shapes(settings: &Settings) -> Shapes {
    let [n, ci, co, w, h] = ["N", "CI", "CO", "W", "H"].map(|name| settings.int(name));
    Shapes::new(
        [
            ("input", Region::of_extents(&[ci, w + 2, h + 2, n])),
            ("filter", Region::of_extents(&[co, 3, 3, ci])),
            ("bias", Region::of_extents(&[co])),
        ],
        [("relu", Region::of_extents(&[co, w, h, n]))],
    )
}

fn input(request: &InputRequest<'_>) -> Buffer {
    let reach = if request.name == "filter" { 0.1 } else { 1.0 };
    natural::uniform(&request.region, -reach, reach, request.seed)
}

/// A product and a sum per filter tap, and the ReLU.
fn operations(settings: &Settings) -> f64 {
    let [n, ci, co, w, h] = ["N", "CI", "CO", "W", "H"].map(|name| settings.number(name));
    n * co * w * h * (2.0 * 9.0 * ci + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 2, "{pipeline}");
    }
}
