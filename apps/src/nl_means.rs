//! Denoising with non-local means: every pixel becomes an average of the pixels around it, weighted
//! by the similarity of the patches around them.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `patch_size` and `search_area` are the widths of the patch and of the search window in
/// pixels.
pub fn app() -> App {
    App::new("nl_means", build)
        .about("denoising by non-local means")
        .sizes([count("W", 1536), count("H", 2560)])
        .params([setting("patch_size", 7.0), setting("search_area", 7.0), setting("sigma", 0.12)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(5e-6)
}

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y, c, dx, dy) = vars!(x, y, c, dx, dy);
    let input = Input::f32("input", 3);
    let patch_size = Param::i32("patch_size").range(1, 256);
    let search_area = Param::i32("search_area").range(1, 256);
    let sigma = Param::f32("sigma");
    let falloff = -1.0 / (&sigma * &sigma * patch_size.f32() * patch_size.f32());

    let cl = input.repeat_edge().named("cl");

    // The difference between the patch around (x, y) and the one around (x + dx, y + dy).
    let dc = func("dc", (x, y, dx, dy, c), square(cl.at((x, y, c)) - cl.at((x + dx, y + dy, c))));
    let r = rdom!(c: (0, 3));
    let d = func("d", (x, y, dx, dy), sum(&r, dc.at((x, y, dx, dy, r.x))));
    let r = rdom!(r: (-(&patch_size / 2), &patch_size));
    let blur_d_y = func("blur_d_y", (x, y, dx, dy), sum(&r, d.at((x, y + r.x, dx, dy))));
    let blur_d = func("blur_d", (x, y, dx, dy), sum(&r, blur_d_y.at((x + r.x, y, dx, dy))));
    let w = func("w", (x, y, dx, dy), fast_exp(blur_d.at((x, y, dx, dy)) * falloff));

    // The weighted sum of the surrounding pixels, with the sum of the weights as a fourth channel.
    let cl_a = func("cl_a", (x, y, c), select(c.lt(3), cl.at((x, y, c)), 1.0));
    let corner = -(&search_area / 2);
    let r = rdom!(sx: (&corner, &search_area), sy: (&corner, &search_area));
    let [sx, sy] = r.vars();
    let sum4 = func("sum4", (x, y, c), 0.0)
        .over(&r, |f| f.add((x, y, c), w.at((x, y, sx, sy)) * cl_a.at((x + sx, y + sy, c))));

    let mean = sum4.at((x, y, c)) / sum4.at((x, y, 3));
    let non_local_means = func("non_local_means", (x, y, c), clamp(mean, 0.0, 1.0));

    Pipeline::new("nl_means", [non_local_means])
}

fn square(value: Expr) -> Expr {
    &value * &value
}

fn shapes(settings: &Settings) -> Shapes {
    let image = Region::of_extents(&[settings.int("W"), settings.int("H"), 3]);
    Shapes::new([("input", image.clone())], [("non_local_means", image)])
}

fn input(request: &InputRequest<'_>) -> Buffer {
    natural::image(Type::F32, &request.region, request.seed)
}

/// Operations per pixel and offset: the distance (3 differences, 3 squares, 3 sums), the box sums,
/// the weight (an exponential counts as one), and 4 weighted sums. Per pixel: the division and the
/// clamp of 3 channels.
fn operations(settings: &Settings) -> f64 {
    let offsets = settings.number("search_area").powi(2);
    let each = 9.0 + 2.0 * settings.number("patch_size") + 2.0 + 8.0;
    settings.number("W") * settings.number("H") * (offsets * each + 9.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 12, "{pipeline}");
    }
}
