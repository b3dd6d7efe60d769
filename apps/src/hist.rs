//! Histogram equalisation: spreads the brightness evenly over its range and keeps the colour
//! differences.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `W` x `H` is the size of the picture, which has 3 channels of 8 bits.
pub fn app() -> App {
    App::new("hist", build)
        .about("histogram equalisation of the brightness")
        .sizes([count("W", 1536), count("H", 2560)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(1e-6)
}

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y, c, b) = vars!(x, y, c, b);
    let input = Input::u8("input", 3);
    let (width, height) = (input.extent(0), input.extent(1));

    let [red, green, blue] = [0, 1, 2].map(|c| input.at((x, y, c)).f32());
    let luma = func("Y", (x, y), 0.299 * &red + 0.587 * green + 0.114 * &blue);
    let cr = func("Cr", (x, y), (red - luma.at((x, y))) * 0.713 + 128.0);
    let cb = func("Cb", (x, y), (blue - luma.at((x, y))) * 0.564 + 128.0);

    // Brightness histograms per row and of the whole picture.
    let rx = rdom!(rx: (0, &width));
    let hist_rows = func("hist_rows", (b, y), 0)
        .over(&rx, |f| f.add((clamp(luma.at((rx.x, y)), 0.0, 255.0).i32(), y), 1));
    let ry = rdom!(ry: (0, &height));
    let hist = func("hist", b, 0).over(&ry, |f| f.add(b, hist_rows.at((b, ry.x))));

    // The cumulative histogram: the number of pixels that are at most as bright.
    let rb = rdom!(rb: (1, 255));
    let cdf = func("cdf", b, hist.at(0)).over(&rb, |f| f.set(rb.x, f.at(rb.x - 1) + hist.at(rb.x)));

    let cdf_bin = func("cdf_bin", (x, y), clamp(luma.at((x, y)), 0.0, 255.0).u8());
    let rank = cdf.at(cdf_bin.at((x, y)).i32()).f32();
    let eq = func("eq", (x, y), clamp(rank * (255.0 / (width * height).f32()), 0.0, 255.0));

    let (eq, cr, cb) = (eq.at((x, y)), cr.at((x, y)) - 128.0, cb.at((x, y)) - 128.0);
    let red = &eq + &cr * 1.4;
    let green = &eq - 0.343 * &cb - 0.711 * cr;
    let blue = eq + 1.765 * cb;
    let output = func("output", (x, y, c), mux(c, [red, green, blue].map(|v| clamp(v, 0.0, 255.0).u8())));

    Pipeline::new("hist", [output])
}

fn shapes(settings: &Settings) -> Shapes {
    let image = Region::of_extents(&[settings.int("W"), settings.int("H"), 3]);
    Shapes::new([("input", image.clone())], [("output", image)])
}

fn input(request: &InputRequest<'_>) -> Buffer {
    natural::image(Type::U8, &request.region, request.seed)
}

/// Operations per pixel: brightness and colour differences (5 + 3 + 3), its bin (2) and count (1),
/// the equalised value (3) and the output (5 + 8 + 5). In addition, the sum of the row histograms,
/// and the prefix sum.
fn operations(settings: &Settings) -> f64 {
    let (width, height) = (settings.number("W"), settings.number("H"));
    width * height * (11.0 + 3.0 + 3.0 + 18.0) + 256.0 * height + 255.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 9, "{pipeline}");
    }
}
