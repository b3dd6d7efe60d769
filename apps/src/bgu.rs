//! Bilateral-guided upsampling: transfers an operator from a small picture, for which its result is
//! known, to a large one. Fits an affine colour transform to every cell of a bilateral grid.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `W` x `H` is the size of the large picture, `w` x `h` that of the small one.
///
/// It states no tolerance: the channels of a picture are similar, so the linear systems are nearly singular.
pub fn app() -> App {
    App::new("bgu", build)
        .about("bilateral-guided upsampling: local affine fits in a bilateral grid")
        .sizes([count("W", 1536), count("H", 2560), count("w", 192), count("h", 320)])
        .params([setting("r_sigma", 0.125), setting("s_sigma", 16.0)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
}

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y, z, c) = vars!(x, y, z, c);
    let splat_loc = Input::f32("splat_loc", 3);
    let values = Input::f32("values", 3);
    let slice_loc = Input::f32("slice_loc", 3);
    let r_sigma = Param::f32("r_sigma").range(1.0 / 256.0, 16.0f32);
    let s_sigma = Param::i32("s_sigma").range(1, 1024);
    let inv = 1.0 / &r_sigma;

    let v = values.repeat_edge().named("v");
    let p = splat_loc.repeat_edge().named("p");
    let gray_splat = func("gray_splat", (x, y), gray(|c| p.at((x, y, c))));
    let gray_slice = func("gray_slice", (x, y), gray(|c| slice_loc.at((x, y, c))));

    let histogram = splat(&p, &v, &gray_splat, &s_sigma, &inv);
    let blurz = func("blurz", (x, y, z, c), blurred(z, |z| histogram.at((x, y, z, c))));
    let blury = func("blury", (x, y, z, c), blurred(y, |y| blurz.at((x, y, z, c))));
    let blurx = func("blurx", (x, y, z, c), blurred(x, |x| blury.at((x, y, z, c))));
    let solve = fit(&blurx);
    let line = func("line", (x, y, z, c), solve.at((x, y, z, c + 10)));

    // Slice the grid at every pixel of the large picture.
    let ratio = |d: usize| ceil(slice_loc.extent(d).f32() / splat_loc.extent(d).f32());
    let cell = (&s_sigma * max(ratio(0), ratio(1)).i32()).f32();
    let my = func("my", (x, y, z, c), between(y.f32() / &cell, |y| line.at((x, y, z, c))));
    let mx = func("mx", (x, y, z, c), between(x.f32() / &cell, |x| my.at((x, y, z, c))));
    let zv = clamp(gray_slice.at((x, y)), 0.0, 1.0) * inv.i32().f32();
    let slice_loc_z = func("slice_loc_z", (x, y), (zv.i32(), &zv - zv.i32().f32()));
    let (zi, zf) = (slice_loc_z.get(0, (x, y)), slice_loc_z.get(1, (x, y)));
    let mz = func("mz", (x, y, c), lerp(mx.at((x, y, &zi, c)), mx.at((x, y, &zi + 1, c)), zf));

    // Apply the affine colour transform of each pixel.
    let m = |i: i32| mz.at((x, y, 4 * c + i));
    let [r, g, b] = [0, 1, 2].map(|channel| slice_loc.at((x, y, channel)));
    let affine = m(0) * r + m(1) * g + m(2) * b + m(3);
    let interpolated = func("interpolated", (x, y, c), affine);
    let output = func("output", (x, y, c), clamp(interpolated.at((x, y, c)), 0.0, 1.0));

    Pipeline::new("bgu", [output])
}

fn gray(channel: impl Fn(i32) -> Expr) -> Expr {
    0.25 * channel(0) + 0.5 * channel(1) + 0.25 * channel(2)
}

/// Sums over the pixels of each cell. With h = (r, g, b, 1): the upper half of the sum of h hᵀ (10
/// channels), and the sum of h times each channel of the result (3 times 4). The pixels may be added in any order.
fn splat(p: &Func, v: &Func, gray: &Func, s_sigma: &Param, inv: &Expr) -> Func {
    let (x, y, z, c) = vars!(x, y, z, c);
    let cell = rdom!(rx: (0, s_sigma), ry: (0, s_sigma));
    let [rx, ry] = cell.vars();
    let sx = x * s_sigma + rx - s_sigma / 2;
    let sy = y * s_sigma + ry - s_sigma / 2;
    let zi = round(clamp(gray.at((&sx, &sy)), 0.0, 1.0) * inv).i32();

    let [r, g, b] = &[0, 1, 2].map(|c| p.at((&sx, &sy, c)));
    let one = Expr::from(1.0);
    let mut terms = vec![r * r, r * g, r * b, r.clone(), g * g, g * b, g.clone(), b * b, b.clone(), one];
    for v in [0, 1, 2].map(|c| v.at((&sx, &sy, c))) {
        terms.extend([&v * r, &v * g, &v * b, v]);
    }
    func("histogram", (x, y, z, c), 0.0).over(&cell, |f| f.add((x, y, zi, c), mux(c, terms))).reassociate()
}

fn blurred(x: Var, at: impl Fn(Expr) -> Expr) -> Expr {
    const T3: f32 = 1.0 / 64.0;
    const T2: f32 = 1.0 / 27.0;
    const T1: f32 = 1.0 / 8.0;
    at(x - 3) * T3
        + at(x - 2) * T2
        + at(x - 1) * T1
        + at(x.expr())
        + at(x + 1) * T1
        + at(x + 2) * T2
        + at(x + 3) * T3
}

/// Solves A X = B in every cell. A is symmetric, 4x4, with its upper half in channels 0 to 9.
/// Column k of B is in the four channels from 10 + 4k, and is replaced by column k of X.
///
/// A is factored into L D Lᵀ in place: the diagonal becomes 1/D, the rest L. One channel holds both
/// (i, j) and (j, i), so column j is scaled to that of L only after the later columns have used the
/// unscaled values.
fn fit(system: &Func) -> Func {
    let (x, y, z, c) = vars!(x, y, z, c);
    let point = |channel: i32| (x, y, z, channel);
    let a = |i: usize, j: usize| point([[0, 1, 2, 3], [1, 4, 5, 6], [2, 5, 7, 8], [3, 6, 8, 9]][i][j]);
    let b = |i: usize, k: usize| point((10 + 4 * k + i) as i32);

    let mut solve = func("solve", (x, y, z, c), system.at((x, y, z, c)));
    // Regularisation: a cell with few pixels tends to the identity.
    for i in 0..4 {
        solve = solve.update(|f| f.add(a(i, i), 0.1));
    }
    for i in 0..3 {
        solve = solve.update(|f| f.add(b(i, i), 0.1));
    }

    for j in 0..4 {
        solve = solve.update(|f| f.set(a(j, j), 1.0 / f.at(a(j, j))));
        for i in j + 1..4 {
            for k in i..4 {
                let update = |f: &Itself| f.at(a(k, j)) * f.at(a(j, j)) * f.at(a(j, i));
                solve = solve.update(|f| f.set(a(i, k), f.at(a(i, k)) - update(f)));
            }
        }
        for i in j + 1..4 {
            solve = solve.update(|f| f.mul(a(i, j), f.at(a(j, j))));
        }
    }

    for k in 0..3 {
        for j in 0..4 {
            for i in 0..j {
                solve = solve.update(|f| f.set(b(j, k), f.at(b(j, k)) - f.at(a(j, i)) * f.at(b(i, k))));
            }
        }
        for j in 0..4 {
            solve = solve.update(|f| f.mul(b(j, k), f.at(a(j, j))));
        }
        for j in (0..4).rev() {
            for i in j + 1..4 {
                solve = solve.update(|f| f.set(b(j, k), f.at(b(j, k)) - f.at(a(i, j)) * f.at(b(i, k))));
            }
        }
    }
    solve
}

/// Interpolates linearly between the two integers around `position`.
fn between(position: Expr, at: impl Fn(Expr) -> Expr) -> Expr {
    let below = floor(&position);
    let index = below.i32();
    lerp(at(index.clone()), at(index + 1), position - below)
}

fn shapes(settings: &Settings) -> Shapes {
    let [width, height, low_width, low_height] = ["W", "H", "w", "h"].map(|name| settings.int(name));
    let large = Region::of_extents(&[width, height, 3]);
    let small = Region::of_extents(&[low_width, low_height, 3]);
    Shapes::new(
        [("splat_loc", small.clone()), ("values", small), ("slice_loc", large.clone())],
        [("output", large)],
    )
}

/// A picture. For `values`, the operator is a contrast curve.
fn input(request: &InputRequest<'_>) -> Buffer {
    let mut picture = natural::image(Type::F32, &request.region, request.seed);
    if request.name == "values" {
        for v in picture.as_mut_slice::<f32>().unwrap_or_default() {
            *v = *v * *v * (3.0 - 2.0 * *v);
        }
    }
    picture
}

/// Operations per small pixel: 9 to find its cell, 15 products and 22 sums. Per cell: three blurs
/// of 22 channels at 12 each, and 131 to solve. Per large pixel: 9 to find its place, 12 channels
/// interpolated at 3 each along x in two layers and along z, 24 to apply the transform.
/// Interpolation along y is shared by the pixels of a row.
fn operations(settings: &Settings) -> f64 {
    let [width, height, w, h] = ["W", "H", "w", "h"].map(|name| settings.number(name));
    let s = settings.number("s_sigma");
    let [columns, rows] = [w, h].map(|extent| (extent / s).ceil() + 1.0);
    let layers = (1.0 / settings.number("r_sigma")).floor() + 2.0;
    let splat = w * h * (9.0 + 15.0 + 22.0);
    let grid = columns * rows * layers * (3.0 * 22.0 * 12.0 + 131.0);
    let slice = width * height * (9.0 + 12.0 * 3.0 * 3.0 + 24.0) + columns * height * layers * 12.0 * 3.0;
    splat + grid + slice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 16, "{pipeline}");
    }
}
