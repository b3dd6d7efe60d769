//! The program over pipelines of its own: reductions, scans and histograms.
//!
//! ```sh
//! cargo run --release -p warploom-cli --example reductions -- compile total
//! cargo run --release -p warploom-cli --example reductions -- sim softmax_norm --size W=256,H=16 --schedule search
//! ```

use std::process::ExitCode;

use warploom::app::*;
use warploom::prelude::*;
use warploom_apps::natural;

/// An app over a picture.
fn picture(name: &str, build: fn() -> Result<Pipeline, PipelineError>) -> App {
    App::new(name, move |_| build())
        .sizes([count("W", 3840), count("H", 2160)])
        .inputs(|request| natural::image(request.ty, &request.region, request.seed))
}

fn apps() -> [App; 7] {
    [
        picture("total", total).about("the sum of a picture").operations(pixels).tolerance(1e-5),
        picture("total_in_order", total_in_order)
            .about("the sum of a picture, row by row")
            .operations(pixels)
            .tolerance(1e-5),
        picture("tone_map", tone_map)
            .about("tone mapping by the logarithmic average of the brightness")
            .shapes(|settings| Shapes::new([("input", planes(settings))], [("output", planes(settings))]))
            .operations(|settings| 3.0 * pixels(settings))
            .tolerance(1e-4),
        picture("softmax_norm", softmax_norm)
            .about("softmax of every row, then layer normalisation of it")
            .sizes([count("W", 1024), count("H", 8192)])
            .operations(|settings| 8.0 * pixels(settings))
            .tolerance(1e-3),
        picture("layer_norm", layer_norm)
            .about("layer normalisation of every row")
            .sizes([count("W", 1024), count("H", 8192)])
            .operations(|settings| 6.0 * pixels(settings))
            .tolerance(1e-3),
        picture("summed_area", summed_area)
            .about("the summed-area table of a picture of whole numbers")
            .inputs(|request| noise(&request.region, request.seed))
            .operations(|settings| 2.0 * pixels(settings)),
        picture("local_equalisation", local_equalisation)
            .about("histogram equalisation by tiles, with clipped histograms and interpolated tables")
            .operations(|settings| 10.0 * pixels(settings))
            .tolerance(1e-4),
    ]
}

fn total() -> Result<Pipeline, PipelineError> {
    let input = Input::f32("input", 2);
    let r = rdom([(0, input.extent(0)), (0, input.extent(1))]);
    let output = func("output", (), sum(&r, input.at((r.x, r.y))));
    Pipeline::new("total", [output])
}

fn total_in_order() -> Result<Pipeline, PipelineError> {
    let input = Input::f32("input", 2);
    let r = rdom([(0, input.extent(0)), (0, input.extent(1))]);
    Pipeline::new("total_in_order", [func("output", (), sum(&r, input.at((r.x, r.y))).in_order())])
}

fn tone_map() -> Result<Pipeline, PipelineError> {
    let (x, y, c) = vars!(x, y, c);
    let input = Input::f32("input", 3);
    let r = rdom([(0, input.extent(0)), (0, input.extent(1))]);
    let at = |c: i32| input.at((x, y, c));
    let luma = func("luma", (x, y), 0.2126 * at(0) + 0.7152 * at(1) + 0.0722 * at(2));
    let log_sum = func("log_sum", (), sum(&r, log(luma.at((r.x, r.y)) + 1e-4)));
    let count = (input.extent(0) * input.extent(1)).f32();
    let key = func("key", (), 0.18 / exp(log_sum.at(()) / count));
    let scaled = luma.at((x, y)) * key.at(());
    let ratio = key.at(()) / (1.0 + scaled);
    Pipeline::new("tone_map", [func("output", (x, y, c), input.at((x, y, c)) * ratio)])
}

fn softmax_norm() -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let width = input.extent(0).f32();
    let r = rdom([(0, input.extent(0))]);
    let highest = func("highest", y, maximum(&r, input.at((r.x, y))));
    let e = func("e", (x, y), exp(input.at((x, y)) - highest.at(y)));
    let soft = func("soft", (x, y), e.at((x, y)) / sum(&r, e.at((r.x, y))));
    let mean = func("mean", y, sum(&r, soft.at((r.x, y))) / &width);
    let centred = soft.at((r.x, y)) - mean.at(y);
    let variance = func("variance", y, sum(&r, &centred * &centred) / width);
    let output = (soft.at((x, y)) - mean.at(y)) / sqrt(variance.at(y) + 1e-12);
    Pipeline::new("softmax_norm", [func("output", (x, y), output)])
}

fn layer_norm() -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let width = input.extent(0).f32();
    let r = rdom([(0, input.extent(0))]);
    let mean = func("mean", y, sum(&r, input.at((r.x, y))) / &width);
    let centred = input.at((r.x, y)) - mean.at(y);
    let variance = func("variance", y, sum(&r, &centred * &centred) / width);
    let output = (input.at((x, y)) - mean.at(y)) / sqrt(variance.at(y) + 1e-5);
    Pipeline::new("layer_norm", [func("output", (x, y), output)])
}

fn summed_area() -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let input = Input::new("input", Type::U32, 2);
    let rx = rdom!(rx: (1, input.extent(0) - 1));
    let rows = func("rows", (x, y), undef(Type::U32))
        .update(|f| f.set((0, y), input.at((0, y))))
        .over(&rx, |f| f.set((rx.x, y), f.at((rx.x - 1, y)) + input.at((rx.x, y))));
    let ry = rdom!(ry: (1, input.extent(1) - 1));
    let table = func("table", (x, y), undef(Type::U32))
        .update(|f| f.set((x, 0), rows.at((x, 0))))
        .over(&ry, |f| f.set((x, ry.x), f.at((x, ry.x - 1)) + rows.at((x, ry.x))));
    Pipeline::new("summed_area", [func("output", (x, y), table.at((x, y)))])
}

/// Tiles along each side of the picture.
const TILES: i32 = 8;

fn local_equalisation() -> Result<Pipeline, PipelineError> {
    let (x, y, b, i, j) = vars!(x, y, b, i, j);
    let input = Input::u8("input", 2);
    let (wide, high) = (input.extent(0) / TILES, input.extent(1) / TILES);
    let r = rdom!(rx: (0, &wide), ry: (0, &high));
    let pixel = input.at((i * &wide + r.x, j * &high + r.y));
    let hist = func("hist", (b, i, j), 0).over(&r, |f| f.add((pixel.i32(), i, j), 1));
    let limit = func("limit", (), &wide * &high / 64);
    let rb = rdom!(rb: (0, 256));
    let over = func("over", (i, j), sum(&rb, max(hist.at((rb.x, i, j)) - limit.at(()), 0)));
    let clipped = func("clipped", (b, i, j), min(hist.at((b, i, j)), limit.at(())) + over.at((i, j)) / 256);
    let rc = rdom!(rc: (1, 255));
    let cdf = func("cdf", (b, i, j), clipped.at((0, i, j)))
        .over(&rc, |f| f.set((rc.x, i, j), f.at((rc.x - 1, i, j)) + clipped.at((rc.x, i, j))));
    let table = func("table", (b, i, j), cdf.at((b, i, j)).f32() * (255.0 / (&wide * &high).f32()));

    // The four tiles whose centres are nearest.
    let place = |at: Var, size: &Expr| (at.f32() + 0.5) / size.f32() - 0.5;
    let (px, py) = (place(x, &wide), place(y, &high));
    let tile = |place: &Expr, step: i32| clamp(floor(place).i32() + step, 0, TILES - 1);
    let bin = input.at((x, y)).i32();
    let value = |dx: i32, dy: i32| table.at((&bin, tile(&px, dx), tile(&py, dy)));
    let (fx, fy) = (&px - floor(&px), &py - floor(&py));
    let upper = lerp(value(0, 0), value(1, 0), &fx);
    let lower = lerp(value(0, 1), value(1, 1), &fx);
    let output = clamp(lerp(upper, lower, fy) + 0.5, 0.0, 255.0).u8();
    Pipeline::new("local_equalisation", [func("output", (x, y), output)])
}

fn planes(settings: &Settings) -> Region {
    Region::of_extents(&[settings.int("W"), settings.int("H"), 3])
}

fn noise(region: &Region, seed: u64) -> Buffer {
    let samples = natural::uniform(region, 0.0, 256.0, seed);
    let value = |at: &[i64]| samples.get(at).map_or(0, |value| value.as_f64() as u32);
    Buffer::from_fn(region.clone(), value).unwrap_or_else(|error| panic!("{error}"))
}

fn pixels(settings: &Settings) -> f64 {
    settings.number("W") * settings.number("H")
}

fn main() -> ExitCode {
    warploom_cli::main_with(&apps())
}
