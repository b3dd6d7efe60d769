//! Harris corner detection: the corner response from the structure tensor of the brightness.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `W` x `H` is the size of the input; the output is 3 pixels smaller on each side.
pub fn app() -> App {
    App::new("harris", build)
        .about("Harris corner detection")
        .sizes([count("W", 1536), count("H", 2560)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(5e-6)
}

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 3);

    let [r, g, b] = [0, 1, 2].map(|c| input.at((x, y, c)));
    let gray = func("gray", (x, y), 0.299 * r + 0.587 * g + 0.114 * b);

    // Derivatives with Sobel filters.
    let (t1, t2) = (1.0 / 12.0, 2.0 / 12.0);
    let g = |dx: i32, dy: i32| gray.at((x + dx, y + dy));
    let iy = g(-1, -1) * -t1 + g(-1, 1) * t1 + g(0, -1) * -t2 + g(0, 1) * t2 + g(1, -1) * -t1 + g(1, 1) * t1;
    let ix = g(-1, -1) * -t1 + g(1, -1) * t1 + g(-1, 0) * -t2 + g(1, 0) * t2 + g(-1, 1) * -t1 + g(1, 1) * t1;
    let iy = func("Iy", (x, y), iy);
    let ix = func("Ix", (x, y), ix);

    // The structure tensor, summed over 3x3 pixels.
    let product = |name: &str, a: &Func, b: &Func| func(name, (x, y), a.at((x, y)) * b.at((x, y)));
    let sxx = box_sum("Sxx", &product("Ixx", &ix, &ix)).at((x, y));
    let syy = box_sum("Syy", &product("Iyy", &iy, &iy)).at((x, y));
    let sxy = box_sum("Sxy", &product("Ixy", &ix, &iy)).at((x, y));

    let det = func("det", (x, y), &sxx * &syy - &sxy * &sxy).at((x, y));
    let trace = func("trace", (x, y), sxx + syy).at((x, y));
    let output = func("output", (x, y), det - 0.04 * &trace * &trace);

    Pipeline::new("harris", [output])
}

fn box_sum(name: &str, f: &Func) -> Func {
    let (x, y) = vars!(x, y);
    let f = |dx: i32, dy: i32| f.at((x + dx, y + dy));
    let left = f(-1, -1) + f(-1, 0) + f(-1, 1);
    let middle = left + f(0, -1) + f(0, 0) + f(0, 1);
    func(name, (x, y), middle + f(1, -1) + f(1, 0) + f(1, 1))
}

fn shapes(settings: &Settings) -> Shapes {
    let (width, height) = (settings.int("W"), settings.int("H"));
    let inner = Region(vec![Range::new(3, width - 6), Range::new(3, height - 6)]);
    Shapes::new([("input", Region::of_extents(&[width, height, 3]))], [("output", inner)])
}

fn input(request: &InputRequest<'_>) -> Buffer {
    natural::image(Type::F32, &request.region, request.seed)
}

/// Operations per pixel: the gray value (5), two derivatives of 6 products and 5 sums, 3 products,
/// 3 sums of 9 terms, `det` (3), `trace` (1) and the response (3).
fn operations(settings: &Settings) -> f64 {
    let pixels = (settings.number("W") - 6.0) * (settings.number("H") - 6.0);
    pixels * (5.0 + 2.0 * 11.0 + 3.0 + 3.0 * 8.0 + 3.0 + 1.0 + 3.0)
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
