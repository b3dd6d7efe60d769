//! The product of two square matrices.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `size` is the number of rows and columns.
pub fn app() -> App {
    App::new("cuda_mat_mul", build)
        .about("product of two square matrices")
        .sizes([count("size", 1024)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(1e-5)
}

fn build(_: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let a = Input::f32("A", 2);
    let b = Input::f32("B", 2);

    let r = rdom!(r: (0, a.extent(1)));
    let prod = func("prod", (x, y), 0.0).over(&r, |f| f.add((x, y), a.at((x, r.x)) * b.at((r.x, y))));
    let out = func("out", (x, y), prod.at((x, y)));

    Pipeline::new("cuda_mat_mul", [out])
}

fn shapes(settings: &Settings) -> Shapes {
    let square = Region::of_extents(&[settings.int("size"); 2]);
    Shapes::new([("A", square.clone()), ("B", square.clone())], [("out", square)])
}

fn input(request: &InputRequest<'_>) -> Buffer {
    // The two factors differ for every seed.
    let seed = if request.name == "A" { request.seed } else { !request.seed };
    natural::uniform(&request.region, -1.0, 1.0, seed)
}

/// A product and a sum per term.
fn operations(settings: &Settings) -> f64 {
    2.0 * settings.number("size").powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 2, "{pipeline}");
    }
}
