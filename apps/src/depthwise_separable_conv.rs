//! A depthwise separable convolutional layer: one small filter per channel, then a 1x1 convolution
//! over the channels, with bias and ReLU.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `N` is the batch size, `CI` and `CO` are the numbers of input and output channels, `CM`
/// is the channel multiplier, `W` x `H` the size of the image and `FW` x `FH` that of the filter.
pub fn app() -> App {
    App::new("depthwise_separable_conv", build)
        .about("a filter for each channel, then a 1x1 convolution, bias and rectifier")
        .sizes([
            count("N", 4),
            count("CI", 32),
            count("CO", 16),
            count("CM", 1),
            count("W", 112),
            count("H", 112),
            count("FW", 3),
            count("FH", 3),
        ])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(5e-6)
}

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (d, x, y, b) = vars!(d, x, y, b);
    let input = Input::f32("input", 4);
    let depthwise_filter = Input::f32("depthwise_filter", 4);
    let pointwise_filter = Input::f32("pointwise_filter", 2);
    let bias = Input::f32("bias", 1);
    let [cm, fw, fh] = [0, 2, 3].map(|dimension| depthwise_filter.extent(dimension));

    let in0 = input.constant_exterior_in(input.limits([1, 2]), 0.0).named("in0");

    let r = rdom!(rd: (0, &cm), rx: (0, &fw), ry: (0, &fh));
    let [rd, rx, ry] = r.vars();
    let pixel = in0.at((d / cm, x + rx - fw / 2, y + ry - fh / 2, b));
    let dw = func("dw", (d, x, y, b), 0.0)
        .over(&r, |f| f.add((d, x, y, b), depthwise_filter.at((rd, d, rx, ry)) * pixel));

    let r = rdom!(rc: (0, pointwise_filter.extent(1)));
    let pw = func("pw", (d, x, y, b), bias.at(d))
        .over(&r, |f| f.add((d, x, y, b), pointwise_filter.at((d, r.x)) * dw.at((r.x, x, y, b))));

    let output = func("output", (d, x, y, b), max(pw.at((d, x, y, b)), 0.0));

    Pipeline::new("depthwise_separable_conv", [output])
}

fn shapes(settings: &Settings) -> Shapes {
    let [n, ci, co, cm, w, h, fw, fh] =
        ["N", "CI", "CO", "CM", "W", "H", "FW", "FH"].map(|name| settings.int(name));
    Shapes::new(
        [
            ("input", Region::of_extents(&[ci, w, h, n])),
            // Every output channel of the depthwise stage has its own entry along the second
            // dimension.
            ("depthwise_filter", Region::of_extents(&[cm, ci * cm, fw, fh])),
            ("pointwise_filter", Region::of_extents(&[co, ci * cm])),
            ("bias", Region::of_extents(&[co])),
        ],
        [("output", Region::of_extents(&[co, w, h, n]))],
    )
}

fn input(request: &InputRequest<'_>) -> Buffer {
    let reach = if request.name.ends_with("filter") { 0.3 } else { 1.0 };
    natural::uniform(&request.region, -reach, reach, request.seed)
}

/// A product and a sum per tap of both filters, and the ReLU.
fn operations(settings: &Settings) -> f64 {
    let [n, ci, co, cm, w, h, fw, fh] =
        ["N", "CI", "CO", "CM", "W", "H", "FW", "FH"].map(|name| settings.number(name));
    let depthwise = 2.0 * ci * cm * (cm * fw * fh);
    let pointwise = co * (2.0 * ci * cm + 1.0);
    n * w * h * (depthwise + pointwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 4, "{pipeline}");
    }
}
