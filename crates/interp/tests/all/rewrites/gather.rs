//! `gather`: scatters that keep their order.

use warploom_lang::*;

use super::check::{noise, refusal, rewrite, same};

#[test]
fn histograms_of_floats_keep_their_order() {
    let (x, b, c) = vars!(x, b, c);
    let (bins, weights) = (Input::u8("bins", 2), Input::f32("weights", 2));
    let r = rdom([(0, bins.extent(0)), (0, bins.extent(1))]);
    let r = r.clone().filter(r.x.ne(2));
    let (bin, weight) = ((bins.at((r.x, r.y)) & 7).i32(), weights.at((r.x, r.y)));
    let grid = func("grid", (x, b, c), (0.5, 0u32)).over(&r, |f| {
        let at = (Expr::from(x), bin.clone(), Expr::from(1));
        f.set(at.clone(), (f.get(0, at.clone()) * 0.9 + &weight * x.f32(), f.get(1, at) + bin.u32()))
    });
    let pipeline = Pipeline::new("grid", [grid]).unwrap();
    for (width, height) in [(1, 1), (2, 3), (9, 7)] {
        let (bins, weights) = (noise(Type::U8, &[width, height]), noise(Type::F32, &[width, height]));
        let inputs = [("bins", &bins), ("weights", &weights)];
        for lines in [&["gather grid.1"][..], &["split grid.1.ry by 4", "gather grid.1"]] {
            same(&pipeline, lines, &inputs, &[3, 8, 2]);
        }
    }
}

#[test]
fn gathered_sums_are_reductions() {
    let (x, y) = vars!(x, y);
    let input = Input::u8("input", 1);
    for width in [0, 1, 7, 8, 9] {
        let r = rdom([(0, width)]);
        let pairs = func("pairs", (x, y), 3u32).over(&r, |f| f.add((input.at(r.x).i32() & 3, r.x % 3), 1u32));
        let pipeline = Pipeline::new("pairs", [pairs]).unwrap();
        let input = noise(Type::U8, &[i64::from(width.max(1))]);
        for lines in
            [&["gather pairs.1"][..], &["gather pairs.1", "factor pairs.1.rx inner 4", "tree pairs.1"]]
        {
            same(&pipeline, lines, &[("input", &input)], &[4, 3]);
        }
    }
}

#[test]
fn the_predicate_selects_the_point() {
    let (x, input) = (vars!(x), Input::u8("input", 1));
    let r = rdom([(0, 9)]);
    let hist = func("hist", x, 0u32).over(&r, |f| f.add(input.at(r.x).i32(), 1u32));
    let pipeline = Pipeline::new("histogram", [hist]).unwrap();
    assert_eq!(
        rewrite(&pipeline, &["gather hist.1"]).to_string(),
        "\
pipeline histogram
  input  input(d0): u8
  hist(x) = 0
  hist(x) = hist(x) + 1  over rx in (0, 9) where i32(input(rx)) == x
"
    );
    assert_eq!(
        refusal(&rewrite(&pipeline, &["gather hist.1"]), "gather hist.1"),
        "`gather hist.1` cannot be applied: `hist.1` does not scatter: all its indices are pure variables or constants"
    );
}

/// Where the index is a variable, each point knows the value that writes it.
#[test]
fn variables_as_indices_are_solved() {
    let (x, y, input) = (vars!(x), vars!(y), Input::f32("input", 2));
    let r = rdom!(rx: (1, input.extent(1) - 1), ry: (0, 3));
    let r = r.clone().filter((r.x + r.y).ne(4));
    let f = func("f", (x, y), (y.f32(), 1)).over(&r, |f| {
        let at = (x, r.x);
        f.set(at, (f.get(0, at) * 0.5 + input.at((x, r.x - 1)), f.get(1, at) + r.y))
    });
    let out = func("out", (x, y), f.get(0, (x, y + 1)) + f.get(1, (x, y - 2)).f32());
    let pipeline = Pipeline::new("solved", [out]).unwrap();
    for height in [2, 3, 9] {
        same(&pipeline, &["gather f.1"], &[("input", &noise(Type::F32, &[4, height]))], &[4, height]);
    }
    let gathered = rewrite(&pipeline, &["gather f.1"]);
    let update = &gathered.funcs()[gathered.func_named("f").unwrap()].stages[1];
    assert_eq!(update.domain.len(), 1, "the rows are no loop: {gathered}");
}

#[test]
fn updates_that_write_each_point_once_become_pure() {
    let (x, y, input) = (vars!(x), vars!(y), Input::f32("input", 2));
    let r = rdom!(rx: (1, 4), ry: (0, input.extent(1)));
    let f = func("f", (x, y), x.f32())
        .over(&r, |f| f.set((r.x, r.y), f.at((r.x, r.y)) + input.at((r.x - 1, r.y))));
    let out = func("out", (x, y), f.at((x, y - 2)));
    let pipeline = Pipeline::new("pure", [out]).unwrap();
    for height in [1, 5] {
        same(&pipeline, &["gather f.1"], &[("input", &noise(Type::F32, &[4, height]))], &[7, height + 3]);
    }
    let gathered = rewrite(&pipeline, &["gather f.1"]);
    assert_eq!(gathered.funcs()[gathered.func_named("f").unwrap()].stages.len(), 1, "{gathered}");
}

/// A point that is never written must not be read either.
#[test]
fn undefined_starts_keep_their_domain() {
    let (x, input) = (vars!(x), Input::f32("input", 1));
    let r = rdom([(1, 8)]);
    let f = func("f", x, undef(Type::F32)).over(&r, |f| f.set(r.x, input.at(r.x - 1) * 2.0));
    let pipeline = Pipeline::new("undefined", [func("out", x, f.at(x + 1))]).unwrap();
    same(&pipeline, &["gather f.1"], &[("input", &noise(Type::F32, &[8]))], &[8]);
    let gathered = rewrite(&pipeline, &["gather f.1"]).to_string();
    assert!(gathered.contains("over rx in (1, 8) where rx == x"), "{gathered}");
}

/// The same without any domain.
#[test]
fn points_of_undefined_starts_stay_updates() {
    let (x, input) = (vars!(x), Input::f32("input", 1));
    let last = || input.extent(0) - 1;
    let f = func("f", x, undef(Type::F32)).update(|f| f.set(last(), input.at(last()) * 2.0));
    let pipeline = Pipeline::new("point", [func("out", x, f.at(last()) + x.f32())]).unwrap();
    same(&pipeline, &["gather f.1"], &[("input", &noise(Type::F32, &[8]))], &[8]);
    let gathered = rewrite(&pipeline, &["gather f.1"]).to_string();
    assert!(gathered.contains("where input.extent(0) - 1 == x"), "{gathered}");
}

#[test]
fn scans_are_refused() {
    let (x, input) = (vars!(x), Input::f32("input", 1));
    let r = rdom([(1, 9)]);
    let scan = func("scan", x, input.at(x)).over(&r, |f| f.set(r.x, f.at(r.x - 1) + f.at(r.x)));
    let pipeline = Pipeline::new("scan", [scan]).unwrap();
    assert_eq!(
        refusal(&pipeline, "gather scan.1"),
        "`gather scan.1` cannot be applied: `scan.1` reads its Func at other points than it writes, so they cannot be computed one by one"
    );
}
