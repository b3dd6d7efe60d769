//! A recursive blur: an exponential average down and up every column, then along every row in both
//! directions. The averages may be computed in any order, so that a schedule can divide columns and rows
//! into chunks.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `alpha` is the weight of the current sample in the average.
pub fn app() -> App {
    App::new("iir_blur", build)
        .about("recursive blur of columns and rows")
        .sizes([count("W", 1536), count("H", 2560)])
        .params([setting("alpha", 0.5)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(2e-6)
}

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y, c) = vars!(x, y, c);
    let input = Input::f32("input", 3);
    let alpha = Param::f32("alpha").range(0.0, 1.0f32);

    let blur = blur_columns("blur", |y| input.at((x, y, c)), &input.extent(1), &alpha);
    let transpose = func("transpose", (x, y, c), blur.at((y, x, c)));
    let blur = blur_columns("blur2", |y| transpose.at((x, y, c)), &input.extent(0), &alpha);
    let output = func("output", (x, y, c), blur.at((y, x, c)));

    Pipeline::new("iir_blur", [output])
}

/// Averages from the top row down, then from the bottom row up. `row` returns row y of the function
/// to blur.
fn blur_columns(name: &str, row: impl Fn(Expr) -> Expr, height: &Expr, alpha: &Param) -> Func {
    let (x, y, c) = vars!(x, y, c);
    let mix = |before: Expr, here: Expr| (1.0 - alpha) * before + alpha * here;
    let r = rdom!(ry: (1, height - 1));
    let (down, up) = (r.x, height - 1 - r.x);
    func(name, (x, y, c), undef(Type::F32))
        .update(|f| f.set((x, 0, c), row(0.into())))
        .over(&r, |f| f.set((x, down, c), mix(f.at((x, down - 1, c)), row(down.into()))))
        .reassociate()
        .over(&r, |f| f.set((x, &up, c), mix(f.at((x, &up + 1, c)), f.at((x, &up, c)))))
        .reassociate()
}

fn shapes(settings: &Settings) -> Shapes {
    let image = Region::of_extents(&[settings.int("W"), settings.int("H"), 3]);
    Shapes::new([("input", image.clone())], [("output", image)])
}

fn input(request: &InputRequest<'_>) -> Buffer {
    natural::image(Type::F32, &request.region, request.seed)
}

/// Operations per sample: four averages (down, up, right, left) of two products and a sum.
fn operations(settings: &Settings) -> f64 {
    settings.number("W") * settings.number("H") * 3.0 * 12.0
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
