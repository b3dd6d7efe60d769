//! Fills the transparent parts of a picture from their surroundings with a pyramid of
//! alpha-weighted averages (push-pull).

use warploom::app::*;
use warploom::prelude::*;

use crate::natural;

/// The app. `levels` is the number of pyramid levels.
pub fn app() -> App {
    App::new("interpolate", build)
        .about("filling of transparent parts by push-pull")
        .sizes([count("W", 1536), count("H", 2560)])
        .structure([count("levels", 10)])
        .shapes(shapes)
        .inputs(input)
        .operations(operations)
        .tolerance(5e-6)
}

fn build(settings: &Settings) -> Result<Pipeline, PipelineError> {
    let levels = settings.int("levels").max(1) as usize;
    let (x, y, c) = vars!(x, y, c);
    let input = Input::f32("input", 3);

    // Premultiplied colours and alpha, then successively smaller averages of them.
    let cl = input.repeat_edge().named("cl");
    let alpha = cl.at((x, y, 3));
    let mut d = vec![func("D0", (x, y, c), select(c.lt(3), cl.at((x, y, c)) * &alpha, &alpha))];
    for l in 1..levels {
        let mut prev = d[l - 1].clone();
        if l == 4 {
            // Keeps the required regions of the coarser levels from growing ever further beyond the
            // picture.
            let [right, bottom] = [0, 1].map(|d| input.extent(d) / 8);
            let inside = prev.at((clamp(x, 0, right), clamp(y, 0, bottom), c));
            prev = func("D3.clamped", (x, y, c), inside);
        }
        let downx = func(format!("downx{l}"), (x, y, c), average3(|d| prev.at((2 * x + d, y, c))));
        d.push(func(format!("D{l}"), (x, y, c), average3(|d| downx.at((x, 2 * y + d, c)))));
    }

    // From coarse to fine: a level with alpha below 1 is completed from the coarser one.
    let coarsest = levels - 1;
    let mut i = func(format!("I{coarsest}"), (x, y, c), d[coarsest].at((x, y, c)));
    for l in (0..coarsest).rev() {
        let ux = (i.at((x / 2, y, c)) + i.at(((x + 1) / 2, y, c))) / 2.0;
        let ux = func(format!("ux{l}"), (x, y, c), ux);
        let u = (ux.at((x, y / 2, c)) + ux.at((x, (y + 1) / 2, c))) / 2.0;
        let u = func(format!("u{l}"), (x, y, c), u);
        let filled = d[l].at((x, y, c)) + (1.0 - d[l].at((x, y, 3))) * u.at((x, y, c));
        i = func(format!("I{l}"), (x, y, c), filled);
    }

    let output = func("output", (x, y, c), i.at((x, y, c)) / i.at((x, y, 3)));
    Pipeline::new("interpolate", [output])
}

/// An average with three binomial taps.
fn average3(at: impl Fn(i32) -> Expr) -> Expr {
    (at(-1) + 2.0 * at(0) + at(1)) * 0.25
}

fn shapes(settings: &Settings) -> Shapes {
    let (width, height) = (settings.int("W"), settings.int("H"));
    Shapes::new(
        [("input", Region::of_extents(&[width, height, 4]))],
        [("output", Region::of_extents(&[width, height, 3]))],
    )
}

/// A picture that is about half transparent, with soft borders.
fn input(request: &InputRequest<'_>) -> Buffer {
    let mut picture = natural::image(Type::F32, &request.region, request.seed);
    let colours = picture.len() / 4 * 3;
    for alpha in picture.as_mut_slice::<f32>().into_iter().flatten().skip(colours) {
        *alpha = (4.0 * *alpha - 2.0).clamp(0.0, 1.0);
    }
    picture
}

/// Operations per pixel: colours times alpha (3) and the quotients (3). Per sample, 4 samples per
/// pixel of each scale: 12 from the finer scale (2 in x and 1 in y, of 4 each), 3 from the coarser
/// one (half a sample in x and one in y, of 2 each) and 2 to add them. In addition 1 per pixel for
/// the missing alpha.
fn operations(settings: &Settings) -> f64 {
    let pixels = settings.number("W") * settings.number("H");
    let coarsest = settings.int("levels") as i32 - 1;
    let scale = |l: i32| pixels / 4f64.powi(l);
    let down: f64 = (1..=coarsest).map(|l| scale(l) * 4.0 * 12.0).sum();
    let up: f64 = (0..coarsest).map(|l| scale(l) * (4.0 * 5.0 + 1.0)).sum();
    pixels * 6.0 + down + up
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_stages() {
        let pipeline = build(&Settings::defaults(&app())).unwrap();
        assert_eq!(pipeline.funcs().len(), 50, "{pipeline}");
    }
}
