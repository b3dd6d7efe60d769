//! Local Laplacian filtering: enhances detail at every scale of a pyramid. The brightness is
//! remapped around a set of levels. At each pixel and scale, the result is interpolated between the
//! two nearest levels.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `levels` is the number of brightness levels, `pyramid_levels` the number of scales.
pub fn app() -> App {
    App::new("local_laplacian", build)
        .about("local Laplacian filter for detail and tone")
        .sizes([count("W", 1536), count("H", 2560)])
        .structure([count("pyramid_levels", 8)])
        .params([setting("levels", 8.0), setting("alpha", 1.0 / 7.0), setting("beta", 1.0)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(1e-6)
}

fn build(settings: &Settings) -> Result<Pipeline, PipelineError> {
    let top = settings.int("pyramid_levels").max(1) as usize - 1;
    let (x, y, c, k, n) = vars!(x, y, c, k, n);
    let input = Input::u16("input", 3);
    let levels = Param::i32("levels").range(2, 256);
    let (alpha, beta) = (Param::f32("alpha"), Param::f32("beta"));
    let steps = &levels - 1;

    // The offset added to a brightness that is n/256 steps above a level.
    let fx = n.f32() / 256.0;
    let remap = func("remap", n, &alpha * &fx * exp(-&fx * &fx / 2.0));

    let cl = input.repeat_edge().named("cl");
    let floating = func("floating", (x, y, c), cl.at((x, y, c)).f32() / 65535.0);
    let [r, g, b] = [0, 1, 2].map(|c| floating.at((x, y, c)));
    let gray = func("gray", (x, y), 0.299 * r + 0.587 * g + 0.114 * b);
    let luma = gray.at((x, y));

    // The picture remapped around each level k, and its pyramids.
    let level = k.f32() * (1.0 / steps.f32());
    let idx = clamp((&luma * steps.f32() * 256.0).i32(), 0, &steps * 256);
    let remapped = &beta * (&luma - &level) + &level + remap.at(idx - 256 * k);
    let g_pyramid = gaussian_pyramid("gPyramid", [x, y, k], remapped, top);
    let l_pyramid = laplacian_pyramid("lPyramid", [x, y, k], &g_pyramid);

    // The Laplacian pyramid of the result: at each scale, interpolated between the two levels
    // around the brightness.
    let in_g = gaussian_pyramid("inG", [x, y], luma.clone(), top);
    let out_l = |j: usize| {
        let level = in_g[j].at((x, y)) * steps.f32();
        let li = clamp(level.i32(), 0, &levels - 2);
        let lf = level - li.f32();
        let blend = (1.0 - &lf) * l_pyramid[j].at((x, y, &li)) + &lf * l_pyramid[j].at((x, y, &li + 1));
        func(format!("outL{j}"), (x, y), blend).at((x, y))
    };
    let mut out_g = func(format!("outG{top}"), (x, y), out_l(top));
    for j in (0..top).rev() {
        let name = format!("outG{j}");
        let up = upsample(&name, [x, y], &out_g);
        out_g = func(name, (x, y), up.at((x, y)) + out_l(j));
    }

    // Scale the colours with the brightness.
    let value = input.at((x, y, c)).f32() * (out_g.at((x, y)) + 0.01) / (luma + 0.01);
    let color = func("color", (x, y, c), value);
    let output = func("output", (x, y, c), clamp(color.at((x, y, c)), 0.0, 65535.0).u16());

    Pipeline::new("local_laplacian", [output])
}

/// `base` and `top` successively smaller versions of it.
fn gaussian_pyramid<const N: usize>(name: &str, args: [Var; N], base: Expr, top: usize) -> Vec<Func> {
    let mut pyramid = vec![func(format!("{name}0"), args, base)];
    for j in 1..=top {
        let name = format!("{name}{j}");
        let down = downsample(&name, args, &pyramid[j - 1]);
        pyramid.push(func(name, args, down.at(args)));
    }
    pyramid
}

/// The detail of each level: the difference between a Gaussian level and the upsampled next one.
fn laplacian_pyramid<const N: usize>(name: &str, args: [Var; N], gaussian: &[Func]) -> Vec<Func> {
    let level = |(j, finer): (usize, &Func)| {
        let name = format!("{name}{j}");
        let detail = match gaussian.get(j + 1) {
            Some(coarser) => finer.at(args) - upsample(&name, args, coarser).at(args),
            None => finer.at(args),
        };
        func(name, args, detail)
    };
    gaussian.iter().enumerate().map(level).collect()
}

/// Halves the size in y, then in x.
fn downsample<const N: usize>(name: &str, args: [Var; N], f: &Func) -> Func {
    let (x, y) = (args[0], args[1]);
    let taps = |at: &dyn Fn(i32) -> Expr| (at(-1) + 3.0 * (at(0) + at(1)) + at(2)) / 8.0;
    let dy = func(format!("{name}.dy"), args, taps(&|d| f.at(moved(args, x, 2 * y + d))));
    func(format!("{name}.dx"), args, taps(&|d| dy.at(moved(args, 2 * x + d, y))))
}

/// Doubles the size in x, then in y.
fn upsample<const N: usize>(name: &str, args: [Var; N], f: &Func) -> Func {
    let (x, y) = (args[0], args[1]);
    let weight = |v: Var| ((v % 2) * 2 + 1).f32() / 4.0;
    let right = f.at(moved(args, (x + 1) / 2, y));
    let left = f.at(moved(args, (x - 1) / 2, y));
    let ux = func(format!("{name}.ux"), args, lerp(right, left, weight(x)));
    let below = ux.at(moved(args, x, (y + 1) / 2));
    let above = ux.at(moved(args, x, (y - 1) / 2));
    func(format!("{name}.uy"), args, lerp(below, above, weight(y)))
}

/// The point `args` with x and y replaced.
fn moved<const N: usize>(args: [Var; N], x: impl Into<Expr>, y: impl Into<Expr>) -> [Expr; N] {
    let mut point = args.map(Expr::from);
    point[0] = x.into();
    point[1] = y.into();
    point
}

fn shapes(settings: &Settings) -> Shapes {
    let image = Region::of_extents(&[settings.int("W"), settings.int("H"), 3]);
    Shapes::new([("input", image.clone())], [("output", image)])
}

fn input(request: &InputRequest<'_>) -> Buffer {
    natural::image(Type::U16, &request.region, request.seed)
}

/// Operation count. The pyramid of the remapped pictures has all levels, but only two of them are
/// used per pixel.
///
/// A sample costs 15 operations when computed from a finer scale (2 in y and 1 in x, of 5 each) and
/// 4.5 from a coarser one (half a sample in x and one in y, of 3 each).
fn operations(settings: &Settings) -> f64 {
    let levels = settings.number("levels");
    let pixels = settings.number("W") * settings.number("H");
    // Gray value (8), bin (4), remapped levels (6 each), colours (5 each).
    let finest = pixels * (8.0 + 4.0 + 6.0 * levels + 15.0);
    let scale = |j: i32| pixels / 4f64.powi(j);
    let top = settings.int("pyramid_levels") as i32 - 1;
    let smaller: f64 = (1..=top).map(|j| scale(j) * 15.0 * (levels + 1.0)).sum();
    // Two details, their blend (8) and the sum.
    let result: f64 = (0..=top).map(|j| scale(j) * (2.0 * 5.5 + 8.0 + 5.5)).sum();
    finest + smaller + result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 102, "{pipeline}");
    }
}
