//! A chain of 5x5 stencils over 16-bit integers. Only locality can make it faster.

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `stencils` is the length of the chain.
pub fn app() -> App {
    App::new("stencil_chain", build)
        .about("a long chain of 5x5 stencils")
        .sizes([count("W", 1536), count("H", 2560)])
        .structure([count("stencils", 32)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(1e-6)
}

fn build(settings: &Settings) -> Result<Pipeline, PipelineError> {
    let (x, y) = vars!(x, y);
    let input = Input::u16("input", 2);

    let mut s = input.repeat_edge().named("s0");
    for n in 1..=settings.int("stencils") {
        let taps = (-2..=2).flat_map(|i| (-2..=2).map(move |j| (i, j)));
        let term = |(i, j): (i32, i32)| (i + 3) * (j + 3) * s.at((x + i, y + j));
        let sum = taps.map(term).fold(Expr::from(0u16), |sum, term| sum + term);
        s = func(format!("s{n}"), (x, y), sum);
    }

    Pipeline::new("stencil_chain", [func("output", (x, y), s.at((x, y)))])
}

fn shapes(settings: &Settings) -> Shapes {
    let image = Region::of_extents(&[settings.int("W"), settings.int("H")]);
    Shapes::new([("input", image.clone())], [("output", image)])
}

fn input(request: &InputRequest<'_>) -> Buffer {
    natural::image(Type::U16, &request.region, request.seed)
}

/// Operations per pixel and stencil: 25 products and 24 sums.
fn operations(settings: &Settings) -> f64 {
    settings.number("W") * settings.number("H") * settings.number("stencils") * 49.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 34, "{pipeline}");
    }
}
