//! Synthetic depth of field: estimates the depth of every pixel from two views, then gathers around
//! each pixel like a lens that is focused at a given depth.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `slices` is the number of depth hypotheses, `focus_depth` the slice in focus and
/// `aperture_samples` the number of samples per pixel.
pub fn app() -> App {
    App::new("lens_blur", build)
        .about("depth from two views, and the blur of a lens from the depth")
        .sizes([count("W", 192), count("H", 320)])
        .params([
            setting("slices", 32.0),
            setting("focus_depth", 13.0),
            setting("blur_radius_scale", 0.5),
            setting("aperture_samples", 32.0),
        ])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(5e-6)
}

/// Levels of the pyramid that smooths the matching costs.
const LEVELS: usize = 8;

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y, z, c) = vars!(x, y, z, c);
    let left_im = Input::u8("left_im", 3);
    let right_im = Input::u8("right_im", 3);
    let slices = Param::i32("slices").range(1, 64);
    let focus_depth = Param::i32("focus_depth").range(1, 32);
    let blur_radius_scale = Param::f32("blur_radius_scale").range(0.0, 1.0);
    let aperture_samples = Param::i32("aperture_samples").range(1, 64);
    let farthest = max(&slices - &focus_depth, &focus_depth);
    let max_radius = (farthest.f32() * &blur_radius_scale).i32();

    let left = left_im.repeat_edge().named("L");
    let right = right_im.repeat_edge().named("R");
    let depth = find_depth(&left, &right, &slices, [left_im.extent(0), left_im.extent(1)]);

    // The blur radius of each pixel, and the largest radius of any pixel whose blur may reach it.
    let radius = abs(depth.at((x, y)) - &focus_depth).f32() * &blur_radius_scale;
    let bokeh_radius = func("bokeh_radius", (x, y), radius);
    let squared = square(bokeh_radius.at((x, y)));
    let bokeh_radius_squared = func("bokeh_radius_squared", (x, y), squared);
    let r = rdom!(r: (-&max_radius, 2 * &max_radius + 1));
    let wy = func("wy", (x, y), maximum(&r, bokeh_radius.at((x, y + r.x))));
    let worst = func("worst", (x, y), maximum(&r, wy.at((x + r.x, y))));

    // Random positions around each pixel, and whether light from there reaches the pixel.
    let la = func("la", (x, y, c), select(c.lt(3), left.at((x, y, c)).f32(), 255.0));
    let offset = |seed| {
        let reach = (random_f32(seed, [x, y, z]) - 0.5) * 2.0 * worst.at((x, y));
        clamp(reach.i32(), -&max_radius, &max_radius)
    };
    let sample_locations =
        func("sample_locations", (x, y, z), (offset(3_392_003_200), offset(3_457_526_737)));
    let [u, v] = [0, 1].map(|i| sample_locations.get(i, (x, y, z)));
    let r2 = (&u * &u + &v * &v).f32();
    let there = (x + u, y + v);
    let within = r2.lt(bokeh_radius_squared.at((x, y))) | depth.at(there.clone()).lt(depth.at((x, y)));
    let reaches = within & r2.lt(bokeh_radius_squared.at(there));
    let sample_weight = func("sample_weight", (x, y, z), select(reaches, 1.0, 0.0));

    // The sum of the samples, with the sum of the weights as a fourth channel.
    let r = rdom!(z: (0, &aperture_samples));
    let [u, v] = [0, 1].map(|i| sample_locations.get(i, (x, y, r.x)));
    let output = func("output", (x, y, c), la.at((x, y, c)))
        .over(&r, |f| f.add((x, y, c), sample_weight.at((x, y, r.x)) * la.at((x + u, y + v, c))));
    let mean = func("final", (x, y, c), output.at((x, y, c)) / output.at((x, y, 3)));

    Pipeline::new("lens_blur", [mean])
}

/// The slice with the best match between the two views, after smoothing costs where confidence is
/// low.
fn find_depth(left: &Func, right: &Func, slices: &Param, extents: [Expr; 2]) -> Func {
    let (x, y, z, c) = vars!(x, y, z, c);
    let distance = |shift: Expr| absd(left.at((x, y, c)), right.at((shift, y, c)));
    let diff = func("diff", (x, y, z, c), min(distance(x + 2 * z), distance(x + 2 * z + 1)));
    let [r, g, b] = [0, 1, 2].map(|channel| square(diff.at((x, y, z, channel)).f32()));
    let cost = func("cost", (x, y, z), r + g + b);

    let r = rdom!(z: (0, slices));
    let n = slices.f32();
    let mean_square = sum(&r, square(cost.at((x, y, r.x)))) / &n;
    let mean = sum(&r, cost.at((x, y, r.x)) / n);
    let cost_confidence = func("cost_confidence", (x, y), mean_square - square(mean));

    let confidence = cost_confidence.at((x, y));
    let weighted = [cost.at((x, y, z)) * &confidence, confidence];
    let pull = push_pull(func("push_0", (x, y, z, c), mux(c, weighted)), extents);
    let filtered = pull.at((x, y, z, 0)) / pull.at((x, y, z, 1));
    let filtered_cost = func("filtered_cost", (x, y, z), filtered);

    func("depth", (x, y), &argmin(&r, filtered_cost.at((x, y, r.x))).at[0])
}

/// Blends every level of a pyramid over `finest` with the coarser levels.
fn push_pull(finest: Func, [width, height]: [Expr; 2]) -> Func {
    let (x, y, z, c) = vars!(x, y, z, c);
    let point = (x, y, z, c);

    let mut push = vec![finest];
    for i in 1..LEVELS {
        let finer = &push[i - 1];
        let downx = func(format!("downx_{i}"), point, halved(x, |x| finer.at((x, y, z, c))));
        let downy = func(format!("downy_{i}"), point, halved(y, |y| downx.at((x, y, z, c))));
        let level = func(format!("push_{i}"), point, downy.at(point));
        let mut inside = limits([(0, &width >> i as i32), (0, &height >> i as i32)]);
        inside.resize(4, None);
        push.push(level.repeat_edge_in(inside));
    }

    let mut pull = func(format!("pull_{}", LEVELS - 1), point, push[LEVELS - 1].at(point));
    for i in (0..LEVELS - 1).rev() {
        let upx = func(format!("upx_{i}"), point, doubled(x, |x| pull.at((x, y, z, c))));
        let upy = func(format!("upy_{i}"), point, doubled(y, |y| upx.at((x, y, z, c))));
        pull = func(format!("pull_{i}"), point, lerp(upy.at(point), push[i].at(point), 0.5));
    }
    pull
}

/// A point of the next coarser level, from four points along `x`.
fn halved(x: Var, at: impl Fn(Expr) -> Expr) -> Expr {
    (at(2 * x - 1) + 3.0 * (at(2 * x) + at(2 * x + 1)) + at(2 * x + 2)) / 8.0
}

/// A point of the next finer level, from two points along `x`.
fn doubled(x: Var, at: impl Fn(Expr) -> Expr) -> Expr {
    0.25 * at(x / 2 - 1 + 2 * (x % 2)) + 0.75 * at(x / 2)
}

fn square(value: Expr) -> Expr {
    &value * &value
}

fn shapes(settings: &Settings) -> Shapes {
    let image = Region::of_extents(&[settings.int("W"), settings.int("H"), 3]);
    Shapes::new([("left_im", image.clone()), ("right_im", image.clone())], [("final", image)])
}

/// The same picture for both views. In the right view, rows are shifted to the right by a disparity
/// that grows with y.
fn input(request: &InputRequest<'_>) -> Buffer {
    let mut view = natural::image(Type::U8, &request.region, request.seed);
    if request.name == "right_im" {
        let [width, height] = [0, 1].map(|d| request.region[d].extent.max(1) as usize);
        let slices = request.settings.int("slices") as usize;
        let rows = view.as_mut_slice::<u8>().unwrap_or_default().chunks_mut(width);
        for (i, row) in rows.enumerate() {
            let disparity = 2 * (slices * (i % height) / height);
            row.rotate_right(disparity % width);
        }
    }
    view
}

/// Operations per pixel and slice: 18 for cost and confidence, 1 to weight it, 30 for two channels
/// of the pyramid (down: 15 per point of each coarser level, up: 7.5 per point of each finer one),
/// 2 to find the minimum. Per pixel: the radii and their maxima over rows and columns. Per sample:
/// 25 for each of two random offsets, 10 for its weight, 8 to add it up. In addition, the division.
fn operations(settings: &Settings) -> f64 {
    let number = |name| settings.number(name);
    let [slices, focus] = ["slices", "focus_depth"].map(number);
    let window = 2.0 * ((slices - focus).max(focus) * number("blur_radius_scale")).floor() + 1.0;
    let depth = slices * (18.0 + 1.0 + 30.0 + 2.0);
    let samples = number("aperture_samples") * (50.0 + 10.0 + 8.0);
    number("W") * number("H") * (depth + 4.0 + 2.0 * window + samples + 3.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 72, "{pipeline}");
    }
}
