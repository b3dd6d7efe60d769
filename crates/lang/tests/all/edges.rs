//! Cores: the part of each Func beyond which its values repeat.

use warploom_lang::*;

/// The region and the core of a Func.
fn core_at(
    outputs: impl IntoIterator<Item = Func>,
    sizes: &[(&str, Region)],
    func: &str,
) -> (String, String) {
    let pipeline = Pipeline::new("p", outputs).unwrap();
    let mut request = Realisation::new(&pipeline);
    for (name, region) in sizes {
        request = match pipeline.input_named(name) {
            Some(_) => request.input(name, region.clone()),
            None => request.output(name, region.clone()),
        };
    }
    let regions = infer(&pipeline, &request).unwrap();
    let func = pipeline.func_named(func).unwrap();
    (regions.funcs[func].region.to_string(), cores(&pipeline, &regions)[func].to_string())
}

fn line(min: i64, extent: i64) -> Region {
    Region(vec![Range::new(min, extent)])
}

/// The core of `f` where -100..120 are required of it, with an input `in` of 20 points from -5 on.
fn core(make: impl Fn(Input, Var) -> Expr) -> String {
    let x = vars!(x);
    let f = func("f", x, make(Input::f32("in", 1), x));
    let out = func("out", x, f.at(x - 100) + f.at(x + 100));
    let (region, core) = core_at([out], &[("in", line(-5, 20)), ("out", line(0, 20))], "f");
    assert_eq!(region, "[-100, 120)");
    core
}

#[test]
fn stencils_of_clamped_data_end_where_their_last_tap_leaves_the_picture() {
    assert_eq!(core(|input, x| input.repeat_edge().at(x)), "[-5, 15)");
    assert_eq!(core(|input, x| input.repeat_edge().at(x - 3) + input.repeat_edge().at(x + 1)), "[-6, 18)");
    // Read backwards.
    assert_eq!(core(|input, x| input.repeat_edge().at(4 - x)), "[-10, 10)");
}

#[test]
fn sampling_scales_the_core() {
    assert_eq!(core(|input, x| input.repeat_edge().at(2 * x + 1)), "[-3, 8)");
    // The last two points read the last one of the picture; the first that does is enough.
    assert_eq!(core(|input, x| input.repeat_edge().at(x / 2)), "[-9, 29)");
    assert_eq!(core(|input, x| input.repeat_edge().at((x + 1) / 2)), "[-10, 28)");
}

#[test]
fn a_constant_exterior_takes_one_point_on_each_side() {
    assert_eq!(core(|input, x| input.constant_exterior(7.0).at(x)), "[-6, 16)");
    assert_eq!(core(|input, x| input.constant_exterior(7.0).at(x - 1)), "[-5, 17)");
}

#[test]
fn periodic_data_and_coordinates_never_repeat() {
    for make in [
        |input: Input, x: Var| input.repeat_image().at(x),
        |input: Input, x: Var| input.mirror_image().at(x),
        |input: Input, x: Var| input.repeat_edge().at(x) + x.f32(),
        |input: Input, x: Var| select((x % 2).eq(0), input.repeat_edge().at(x), 0.0),
        |input: Input, x: Var| input.repeat_edge().at(x) * random_f32(1, [x.expr()]),
    ] {
        assert_eq!(core(make), "[-100, 120)");
    }
}

#[test]
fn coordinates_that_a_condition_hides_do_not_count() {
    assert_eq!(core(|input, x| select(x.lt(2), 1.0, 2.0) + input.repeat_edge().at(x)), "[-5, 15)");
    assert_eq!(core(|input, x| select(x.lt(2) | x.gt(30), 1.0, input.at(0))), "[1, 32)");
    // The side that is not chosen does not matter.
    assert_eq!(core(|input, x| select(x.ge(0) & x.lt(30), x.f32(), input.at(0))), "[-1, 31)");
    // One side only.
    assert_eq!(core(|input, x| select(x.lt(40), x.f32(), input.repeat_edge().at(x))), "[-100, 41)");
}

#[test]
fn a_func_that_does_not_depend_on_a_dimension_has_one_point() {
    assert_eq!(core(|input, _| input.at(3)), "[-100, -99)");
}

#[test]
fn each_dimension_has_its_own_core() {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("in", 2).repeat_edge();
    let turned = func("turned", (x, y), edge.at((2 * y, x)) + y.f32());
    let out = func("out", (x, y), turned.at((x - 50, y + 50)) + turned.at((x + 50, y)));
    let sizes = [("in", Region::of_extents(&[6, 9])), ("out", Region::of_extents(&[4, 4]))];
    let (region, core) = core_at([out], &sizes, "turned");
    assert_eq!((region.as_str(), core.as_str()), ("[-50, 54) x [0, 54)", "[0, 9) x [0, 54)"));
}

#[test]
fn updates_repeat_where_they_are_pure() {
    let (x, y) = vars!(x, y);
    let (edge, r) = (Input::f32("in", 2).repeat_edge(), rdom!(r: (0, 3)));
    // Along x each point sums its own neighbours, along y the sums follow one another.
    let sums = func("sums", (x, y), 0.0)
        .over(&r, |f| f.set((x, y), f.at((x, y)) + edge.at((x + r.x, y))))
        .over(&r, |f| f.set((x, r.x + 1), f.at((x, r.x)) + f.at((x, r.x + 1))));
    let out = func("out", (x, y), sums.at((x - 50, y - 50)) + sums.at((x + 50, y + 50)));
    let sizes = [("in", Region::of_extents(&[6, 9])), ("out", Region::of_extents(&[4, 4]))];
    let (region, core) = core_at([out], &sizes, "sums");
    assert_eq!((region.as_str(), core.as_str()), ("[-50, 54) x [-50, 54)", "[-2, 6) x [-50, 54)"));
}

#[test]
fn an_update_of_one_point_ends_the_repetition() {
    let x = vars!(x);
    let edge = Input::f32("in", 1).repeat_edge();
    let f = func("f", x, edge.at(x)).update(|f| f.set(70, 1.0));
    let out = func("out", x, f.at(x - 100) + f.at(x + 100));
    let (region, core) = core_at([out], &[("in", line(-5, 20)), ("out", line(0, 20))], "f");
    assert_eq!(region, core);
}

#[test]
fn a_chain_of_stencils_grows_by_its_taps_only() {
    let x = vars!(x);
    let mut last = func("s0", x, Input::f32("in", 1).repeat_edge().at(x));
    for level in 1..=20 {
        last = func(format!("s{level}"), x, last.at(x - 1) + last.at(x) + last.at(x + 2));
    }
    let out = func("out", x, last.at(x - 100) + last.at(x + 100));
    let sizes = [("in", Region::of_extents(&[30])), ("out", Region::of_extents(&[30]))];
    let (region, core) = core_at([out], &sizes, "s20");
    assert_eq!((region.as_str(), core.as_str()), ("[-100, 130)", "[-40, 50)"));
}

#[test]
fn points_count_where_a_stage_is_not_needed_but_another_writes() {
    let (x, y, z) = vars!(x, y, z);
    let edge = Input::u8("in", 1).repeat_edge();
    let f = func("f", (x, y, z), 0)
        .update(|f| f.set((clamp(edge.at(y).i32(), -1, 0), y, z), 1))
        .update(|f| f.set((x, y, z), f.at((x, y, z)) + select(x.eq(0), edge.at(z).i32(), 0)));
    let out = func("out", (x, y, z), f.at((x - 9, y, z - 50)) + f.at((x - 9, y, z + 50)));
    let sizes = [("in", line(0, 9)), ("out", Region::of_extents(&[9, 4, 4]))];
    let (region, core) = core_at([out], &sizes, "f");
    assert_eq!(region, "[-9, 1) x [0, 4) x [-50, 54)");
    assert!(core.ends_with(" x [0, 9)"), "{core}");
}
