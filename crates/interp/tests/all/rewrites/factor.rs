//! `factor`: partial results of sums, products, minima, histograms.

use warploom_lang::*;

use super::check::{near, noise, refusal, same};

fn sum_of(ty: Type, marked: bool) -> Pipeline {
    let input = Input::new("input", ty, 2);
    let r = rdom([(0, input.extent(0)), (0, input.extent(1))]);
    let zero = Value::zero(ty);
    let total = func("total", (), zero).over(&r, |f| f.add((), input.at((r.x, r.y))));
    Pipeline::new("sum", [if marked { total.reassociate() } else { total }]).unwrap()
}

#[test]
fn sums_of_integers_keep_their_bits() {
    for ty in [Type::U8, Type::I16, Type::U32, Type::I32] {
        let pipeline = sum_of(ty, false);
        for width in [1, 7, 8, 9, 40] {
            let input = noise(ty, &[width, 5]);
            let inputs = [("input", &input)];
            same(&pipeline, &["factor total.1.rx inner 8"], &inputs, &[]);
            same(&pipeline, &["factor total.1.rx outer 8"], &inputs, &[]);
            same(&pipeline, &["factor total.1.ry outer 2", "factor total.part.1.rx inner 8"], &inputs, &[]);
            same(&pipeline, &["split total.1.rx by 4", "factor total.1.rxo inner 2"], &inputs, &[]);
        }
    }
}

#[test]
fn sums_of_floats_need_the_mark() {
    let input = noise(Type::F32, &[37, 5]);
    let lines = ["factor total.1.ry outer 2", "factor total.part.1.rx inner 8"];
    near(&sum_of(Type::F32, true), &lines, &[("input", &input)], &[], 37.0 * 5.0 * 8.0);
    assert_eq!(
        refusal(&sum_of(Type::F32, false), lines[0]),
        "`factor total.1.ry outer 2` cannot be applied: the result of `total.1` depends on the order, because it computes `+` of f32; mark the definition with .reassociate(), or remove .in_order(), if any order will do"
    );
}

#[test]
fn minima_and_maxima_of_floats_are_exact() {
    let (x, input) = (vars!(x), Input::f32("input", 2));
    let r = rdom([(0, 23)]);
    let low = func("low", x, 3.0).over(&r, |f| f.min(x, input.at((r.x, x))));
    let high = func("high", x, f32::NEG_INFINITY).over(&r, |f| f.max(x, input.at((r.x, x))));
    let out = func("out", x, low.at(x) - high.at(x));
    let pipeline = Pipeline::new("spread", [out]).unwrap();
    let input = noise(Type::F32, &[23, 6]);
    same(&pipeline, &["factor low.1.rx inner 4", "factor high.1.rx outer 5"], &[("input", &input)], &[6]);
}

#[test]
fn bits_and_products() {
    let (x, input) = (vars!(x), Input::new("input", Type::I32, 2));
    let r = rdom([(0, 11)]);
    let at = || input.at((r.x, x));
    let all = func("all", x, -1).over(&r, |f| f.set(x, f.at(x) & at()));
    let any = func("any", x, 0).over(&r, |f| f.set(x, f.at(x) | at()));
    let odd = func("odd", x, 0).over(&r, |f| f.set(x, at() ^ f.at(x)));
    let times = func("times", x, 3).over(&r, |f| f.mul(x, at()));
    let out = func("out", x, (all.at(x), any.at(x), odd.at(x), times.at(x)));
    let pipeline = Pipeline::new("bits", [out]).unwrap();
    let input = noise(Type::I32, &[11, 6]);
    for name in ["all", "any", "odd", "times"] {
        same(&pipeline, &[&format!("factor {name}.1.rx inner 4")], &[("input", &input)], &[6]);
    }
}

#[test]
fn histograms_and_filters() {
    let (b, input) = (vars!(b), Input::u8("input", 2));
    let r = rdom([(0, 13), (0, 7)]);
    let r = r.clone().filter(r.x.ne(r.y));
    let bin = (input.at((r.x, r.y)) & 15).i32();
    let hist = func("hist", b, 1u32).over(&r, |f| f.add(bin, 1u32));
    let pipeline = Pipeline::new("histogram", [hist]).unwrap();
    let input = noise(Type::U8, &[13, 7]);
    for lines in
        [&["factor hist.1.ry outer 3"][..], &["factor hist.1.rx inner 4", "factor hist.part.1.ry outer 2"]]
    {
        same(&pipeline, lines, &[("input", &input)], &[16]);
    }
}

#[test]
fn updates_at_fixed_points() {
    let (x, c, input) = (vars!(x), vars!(c), Input::new("input", Type::I32, 2));
    let r = rdom([(0, 9)]);
    let f = func("f", (x, c), 5).over(&r, |f| f.add((x, 1), input.at((r.x, x))));
    let pipeline = Pipeline::new("fixed", [f]).unwrap();
    let input = noise(Type::I32, &[9, 4]);
    same(&pipeline, &["factor f.1.rx outer 4"], &[("input", &input)], &[4, 3]);
}

#[test]
fn tuples_and_inline_sums() {
    let (x, input) = (vars!(x), Input::f32("input", 2));
    let r = rdom([(0, 50)]);
    let both = func("both", x, (0.0, f32::INFINITY))
        .over(&r, |f| {
            let term = input.at((r.x, x));
            f.set(x, (f.get(0, x) + &term, min(f.get(1, x), &term)))
        })
        .reassociate();
    let out = func("out", x, both.get(0, x) * both.get(1, x) + sum(&r, input.at((r.x, x))));
    let pipeline = Pipeline::new("tuple", [out]).unwrap();
    let input = noise(Type::F32, &[50, 4]);
    let lines = ["factor both.1.rx inner 8", "factor out.sum0.1.rx outer 7"];
    near(&pipeline, &lines, &[("input", &input)], &[4], 50.0 * 64.0);
}

#[test]
fn what_is_not_a_reduction_is_refused() {
    let (x, input) = (vars!(x), Input::f32("input", 1));
    let r = rdom([(1, 9)]);
    let scan = func("scan", x, input.at(x)).over(&r, |f| f.set(r.x, f.at(r.x - 1) + f.at(r.x)));
    let pipeline = Pipeline::new("scan", [scan]).unwrap();
    assert_eq!(
        refusal(&pipeline, "factor scan.1.rx outer 2"),
        "`factor scan.1.rx outer 2` cannot be applied: `scan.1` is not a reduction: it must be f(..) = f(..) op term, with one of + * & | ^ min max for op, and f nowhere else"
    );
}

#[test]
fn extremes_of_nothing_and_of_nan() {
    let (x, input) = (vars!(x), Input::f32("input", 2));
    let r = rdom([(0, input.extent(0))]);
    let term = select(input.at((r.x, x)).lt(0.0), f32::NAN, input.at((r.x, x)));
    let r = r.clone().filter(input.at((r.x, x)).lt(1.0));
    let low = func("low", x, f32::NAN).over(&r, |f| f.min(x, &term));
    let high = func("high", x, f32::NAN).over(&r, |f| f.max(x, &term));
    let pipeline = Pipeline::new("extremes", [func("out", x, (low.at(x), high.at(x)))]).unwrap();
    for width in [1, 3] {
        let input = noise(Type::F32, &[width, 20]);
        let lines = ["factor low.1.rx inner 2", "factor high.1.rx outer 2"];
        same(&pipeline, &lines, &[("input", &input)], &[20]);
    }
}
