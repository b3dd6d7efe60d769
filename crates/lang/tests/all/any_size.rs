//! Boxes as formulas of the sizes cover the boxes at each size.

use warploom_lang::dynamic::{DynamicRequest, SizeRange, infer_dynamic};
use warploom_lang::{
    Input, Operand, Pipeline, Range, Realisation, Region, Var, ceil, floor, func, infer, max, vars,
};

/// Reads a small picture at the places of the points of a large one, in cells of whole points.
fn upsampled() -> Pipeline {
    let (x, y) = vars!(x, y);
    let (large, small) = (Input::f32("large", 2), Input::f32("small", 2));
    let ratio = |d: usize| ceil(large.extent(d).f32() / small.extent(d).f32());
    let cell = (3 * max(ratio(0), ratio(1)).i32()).f32();
    let coarse = func("coarse", (x, y), small.repeat_edge().at((3 * x, 3 * y)));
    let place = |at: Var| floor(at.f32() / &cell).i32();
    let output = func("output", (x, y), coarse.at((place(x), place(y))) + large.at((x, y)));
    Pipeline::new("upsampled", [output]).unwrap()
}

#[test]
fn places_in_a_picture_of_another_size_have_formulas() {
    let pipeline = upsampled();
    let at = |sizes: &[i64]| {
        let (large, small) = (Region::of_extents(&sizes[..2]), Region::of_extents(&sizes[2..]));
        Realisation::new(&pipeline)
            .input("large", large.clone())
            .input("small", small)
            .output("output", large)
    };
    let range = |name: &str| SizeRange { name: name.into(), min: 1, max: 500 };
    let ranges = ["W", "H", "w", "h"].map(range).to_vec();
    let request = DynamicRequest::fit(&pipeline, ranges, &[200, 200, 50, 50], at).unwrap();
    let (dynamic, _) = infer_dynamic(&pipeline, &request).unwrap();
    let coarse = pipeline.func_named("coarse").unwrap();
    for sizes in [[200, 200, 50, 50], [1, 1, 1, 1], [500, 3, 499, 2], [333, 77, 10, 12], [7, 500, 500, 9]] {
        let values = dynamic.request.formulas.evaluation(&sizes);
        let found = Region(dynamic.funcs[coarse].region.iter().map(|range| range.at(&values)).collect());
        let expected = &infer(&pipeline, &at(&sizes)).unwrap().funcs[coarse].region;
        // Bounds at fixed sizes are those of intervals of floating-point numbers, which may be one point wider.
        let close = |(found, expected): (&Range, &Range)| {
            found.min == 0 && expected.min <= 0 && (0..=1).contains(&(expected.extent - found.extent))
        };
        assert!(found.0.iter().zip(&expected.0).all(close), "{found} for {expected} at {sizes:?}");
    }
}

#[test]
fn amounts_of_shifts_count_modulo_the_width() {
    let x = vars!(x);
    let (picture, table) = (Input::u16("picture", 1), Input::f32("table", 1));
    let output = func("output", x, table.at((picture.at(x) >> 17_u16).i32()));
    let pipeline = Pipeline::new("shifted", [output]).unwrap();
    let at = |sizes: &[i64]| {
        let line = Region::of_extents(sizes);
        let whole = Region::of_extents(&[1 << 16]);
        Realisation::new(&pipeline)
            .input("picture", line.clone())
            .input("table", whole)
            .output("output", line)
    };
    let range = SizeRange { name: "W".into(), min: 1, max: 500 };
    let request = DynamicRequest::fit(&pipeline, vec![range], &[200], at).unwrap();
    let (dynamic, _) = infer_dynamic(&pipeline, &request).unwrap();
    let table = pipeline.input_named("table").unwrap();
    let values = dynamic.request.formulas.evaluation(&[200]);
    assert_eq!(dynamic.read[table][0].at(&values), Range::new(0, 1 << 15));
}
