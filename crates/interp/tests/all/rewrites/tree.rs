//! `tree`: reductions over a constant number of values.

use warploom_lang::*;

use super::check::{near, noise, refusal, rewrite, same};

/// The sum of each column, from row 2 on.
fn sums(ty: Type, count: i32) -> Pipeline {
    let (x, input) = (vars!(x), Input::new("input", ty, 2));
    let r = rdom([(2, count)]);
    let total = func("total", x, Value::zero(ty)).over(&r, |f| f.add(x, input.at((r.x, x)))).reassociate();
    Pipeline::new("sums", [total]).unwrap()
}

#[test]
fn every_small_length() {
    for count in [2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33] {
        // The input ends where the domain does, so that no level may read further.
        let input = noise(Type::I32, &[2 + i64::from(count), 3]);
        same(&sums(Type::I32, count), &["tree total.1"], &[("input", &input)], &[3]);
        let input = noise(Type::F32, &[2 + i64::from(count), 3]);
        let scale = count as f32 * 8.0;
        near(&sums(Type::F32, count), &["tree total.1"], &[("input", &input)], &[3], scale);
    }
}

#[test]
fn the_levels_halve_the_values() {
    assert_eq!(
        rewrite(&sums(Type::U32, 5), &["tree total.1"]).to_string(),
        "\
pipeline sums
  input  input(d0, d1): u32
  total.tree1(rx, x) = input(2 + rx, x) + select(rx + 3 < 5, input(2 + min(rx + 3, 4), x), 0)
  total.tree2(rx, x) = total.tree1(rx, x) + select(rx + 2 < 3, total.tree1(min(rx + 2, 2), x), 0)
  total.tree3(rx, x) = total.tree2(rx, x) + total.tree2(rx + 1, x)
  total(x) = 0 + total.tree3(0, x)
"
    );
}

#[test]
fn partial_results_of_a_whole_image() {
    let input = Input::new("input", Type::U32, 2);
    let r = rdom([(0, input.extent(0)), (0, input.extent(1))]);
    let total = func("total", (), 7u32).over(&r, |f| f.add((), input.at((r.x, r.y))));
    let pipeline = Pipeline::new("sum", [total]).unwrap();
    for width in [1, 2, 3, 7, 8, 9] {
        let input = noise(Type::U32, &[width, 5]);
        same(&pipeline, &["factor total.1.rx inner 8", "tree total.1"], &[("input", &input)], &[]);
    }
}

#[test]
fn predicates_and_fixed_points() {
    let (x, c, input) = (vars!(x), vars!(c), Input::new("input", Type::I32, 2));
    for count in [2, 3, 7, 8, 9] {
        let r = rdom([(0, count)]);
        let r = r.clone().filter((r.x + x).ne(4));
        let f = func("f", (x, c), 5).over(&r, |f| f.mul((x, 1), input.at((r.x, x)) * r.x));
        let pipeline = Pipeline::new("fixed", [f]).unwrap();
        let input = noise(Type::I32, &[i64::from(count), 6]);
        same(&pipeline, &["tree f.1"], &[("input", &input)], &[6, 3]);
    }
}

#[test]
fn tuples_and_extremes() {
    let (x, input) = (vars!(x), Input::f32("input", 2));
    let r = rdom([(0, 7)]);
    let r = r.clone().filter(input.at((r.x, x)).lt(-4.0));
    let term = select(input.at((r.x, x)).lt(-6.0), f32::NAN, input.at((r.x, x)));
    let both = func("both", x, (f32::NAN, 1.0, 0u32)).over(&r, |f| {
        f.set(
            x,
            (min(f.get(0, x), &term), max(&term, f.get(1, x)), f.get(2, x) | (r.x.u32() * r.x.u32() + 1u32)),
        )
    });
    let pipeline = Pipeline::new("tuple", [both]).unwrap();
    let input = noise(Type::F32, &[7, 30]);
    same(&pipeline, &["tree both.1"], &[("input", &input)], &[30]);
}

#[test]
fn what_is_no_tree_is_refused() {
    let (b, input) = (vars!(b), Input::u8("input", 2));
    let r = rdom([(0, 4), (0, 4)]);
    let hist = func("hist", b, 0u32)
        .over(&r, |f| f.add(input.at((r.x, r.y)).i32(), 1u32))
        .over(&r, |f| f.add(b, input.at((r.x, r.y)).u32()));
    let r = rdom([(0, input.extent(0))]);
    let hist = hist.over(&r, |f| f.add(b, input.at((r.x, 0)).u32()));
    let r = rdom([(0, 1)]);
    let hist = hist.over(&r, |f| f.add(b, input.at((r.x, 0)).u32()));
    let pipeline = Pipeline::new("histogram", [hist]).unwrap();
    assert_eq!(
        refusal(&pipeline, "tree hist.1"),
        "`tree hist.1` cannot be applied: `hist.1` writes at indices that it computes; apply `gather hist.1` first"
    );
    for stage in 2..5 {
        assert_eq!(
            refusal(&pipeline, &format!("tree hist.{stage}")),
            format!(
                "`tree hist.{stage}` cannot be applied: `hist.{stage}` cannot be a tree: it must have one reduction variable with a constant number of values, at least 2; factor it first"
            )
        );
    }
    let (x, input) = (vars!(x), Input::f32("input", 2));
    let r = rdom([(0, 4)]);
    let sum = func("sum", x, 0.0).over(&r, |f| f.add(x, input.at((r.x, x))));
    let holes = func("holes", x, undef(Type::I32));
    let holes = holes.over(&r.clone().filter(x.lt(3)), |f| f.max(x, r.x));
    let pipeline = Pipeline::new("others", [sum, holes]).unwrap();
    assert_eq!(
        [refusal(&pipeline, "tree sum.1"), refusal(&pipeline, "tree holes.1")],
        [
            "`tree sum.1` cannot be applied: the result of `sum.1` depends on the order, because it computes `+` of f32; mark the definition with .reassociate(), or remove .in_order(), if any order will do",
            "`tree holes.1` cannot be applied: `holes` starts undefined, and the rewritten pipeline would read points without a value; give it an initial value",
        ]
    );
}
