//! The maximum over a disc around every pixel, computed from maxima over column segments of a power
//! of two rows.

use std::f32::consts::LN_2;

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `radius` is the radius of the disc in pixels.
pub fn app() -> App {
    App::new("max_filter", build)
        .about("maximum over a disc")
        .sizes([count("W", 1536), count("H", 2560)])
        .structure([count("radius", 26)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(1e-6)
}

fn build(settings: &Settings) -> Result<Pipeline, PipelineError> {
    let radius = settings.int("radius").max(0) as i32;
    let slices = slices(settings);
    let (x, y, c, t, dx) = vars!(x, y, c, t, dx);
    let input = Input::f32("input", 3);
    let edge = input.repeat_edge().named("in");

    // Slice t holds the maximum over 2^t rows from y downwards.
    let rows = |t: Expr| clamp(1 << t, 0, 1 << (slices - 1));
    let r = rdom!(ry: (-radius, input.extent(1) + radius), t: (1, slices - 1));
    let [ry, rt] = r.vars();
    let vert_log = func("vert_log", (x, y, c, t), edge.at((x, y, c))).over(&r, |f| {
        let upper = f.at((x, ry, c, rt - 1));
        let lower = f.at((x, ry + rows(rt - 1), c, rt - 1));
        f.set((x, ry, c, rt), max(upper, lower))
    });

    // The maximum over t rows up and down: two overlapping segments of the largest power of two
    // that fits.
    let slice = floor(log((2 * t + 1).f32()) / LN_2).i32();
    let slice_for_radius = func("slice_for_radius", t, slice);
    let slice = clamp(slice_for_radius.at(t), 0, slices - 1);
    let top = vert_log.at((x, y - t, c, &slice));
    let bottom = vert_log.at((x, y + t + 1 - rows(slice.clone()), c, &slice));
    let vert = func("vert", (x, y, c, t), max(top, bottom));

    // The vertical reach of the disc at a distance of dx from its centre.
    let dy = rdom!(dy: (0, radius + 1));
    let inside = (dx * dx + dy.x * dy.x).f32().lt((radius as f32 + 0.25).powi(2));
    let filter_height = func("filter_height", dx, sum(&dy, select(inside, 1, 0)));

    let dx = rdom!(dx: (-radius, 2 * radius + 1));
    let height = clamp(filter_height.at(dx.x), 0, radius + 1);
    let output = func("output", (x, y, c), maximum(&dx, vert.at((x + dx.x, y, c, height))));

    Pipeline::new("max_filter", [output])
}

/// One more than the exponent of the largest power of two that fits into the disc's height in rows.
fn slices(settings: &Settings) -> i32 {
    (2 * settings.int("radius").max(0) + 3).ilog2() as i32 + 1
}

fn shapes(settings: &Settings) -> Shapes {
    let image = Region::of_extents(&[settings.int("W"), settings.int("H"), 3]);
    Shapes::new([("input", image.clone())], [("output", image)])
}

fn input(request: &InputRequest<'_>) -> Buffer {
    natural::image(Type::F32, &request.region, request.seed)
}

/// Operations per sample: one maximum per slice, one per distinct height of the disc's columns, and
/// one per column.
fn operations(settings: &Settings) -> f64 {
    let radius = settings.int("radius");
    let reach = (radius as f64 + 0.25).powi(2);
    let height = |dx: i64| (0..=radius).filter(|dy| ((dx * dx + dy * dy) as f64) < reach).count();
    let mut heights: Vec<usize> = (0..=radius).map(height).collect();
    heights.dedup();
    let samples = settings.number("W") * settings.number("H") * 3.0;
    samples * (f64::from(slices(settings) - 1) + heights.len() as f64 + (2 * radius + 1) as f64)
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
