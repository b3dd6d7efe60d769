//! `expand`: reductions as one expression.

use warploom_lang::*;

use super::check::{noise, refusal, rewrite, same};

#[test]
fn steps_keep_their_order() {
    let (x, y, input) = (vars!(x), vars!(y), Input::f32("input", 2));
    let edge = input.repeat_edge();
    let r = rdom([(-2, 5), (0, 3)]);
    let r = r.clone().filter((r.x + r.y + x).ne(1));
    let f = func("f", (x, y), (0.5, 7)).over(&r, |f| {
        let at = (x, y);
        let sum = f.get(0, at) * 0.9 + edge.at((x + r.x, y - r.y)) * f.get(1, at).f32();
        f.set(at, (sum, f.get(1, at) * 3 + r.x))
    });
    let f = f.update(|f| f.set((x, y), (f.get(0, (x, y)) + 1.0, f.get(1, (x, y)))));
    let pipeline = Pipeline::new("steps", [f]).unwrap();
    for (width, height) in [(1, 1), (9, 4)] {
        same(&pipeline, &["expand f.1"], &[("input", &noise(Type::F32, &[width, height]))], &[width, height]);
    }
}

#[test]
fn constants_fold_through_pure_funcs() {
    let (x, t, d, input) = (vars!(x), vars!(t), vars!(d), Input::new("input", Type::I32, 1));
    let r = rdom([(0, 3)]);
    let odd = func("odd", d, d * 2 + 1);
    let shifted = func("shifted", (x, t), select(t.eq(3), 100, input.at(x + clamp(odd.at(t), 0, 5))));
    let out = func("out", x, 0).over(&r, |f| f.set(x, max(f.at(x), shifted.at((x + 1, r.x + 1)))));
    let pipeline = Pipeline::new("fold", [out]).unwrap();
    same(&pipeline, &["expand out.1"], &[("input", &noise(Type::I32, &[20]))], &[8]);
    assert_eq!(
        rewrite(&pipeline, &["expand out.1"]).to_string(),
        "\
pipeline fold
  input  input(d0): i32
  out(x) = max(max(max(0, input(x + 1 + 3)), input(x + 1 + 5)), 100)
"
    );
}

#[test]
fn what_is_no_expression_is_refused() {
    let (x, input) = (vars!(x), Input::f32("input", 1));
    let (r, long, open) = (rdom([(0, 4)]), rdom([(0, 129)]), rdom([(0, input.extent(0))]));
    let reason = |f: Func, line: &str| {
        let message = refusal(&Pipeline::new("p", [f]).unwrap(), line);
        message.rsplit_once("cannot be one expression: ").map(|(_, why)| why.to_string()).unwrap_or(message)
    };
    let start = || func("f", x, input.at(x));
    let undefined = func("f", x, undef(Type::F32)).over(&r, |f| f.set(x, r.x.f32()));
    assert_eq!(
        [
            reason(start().over(&long, |f| f.add(x, 1.0)), "expand f.1"),
            reason(start().over(&open, |f| f.add(x, 1.0)), "expand f.1"),
            reason(start().over(&r, |f| f.add(r.x, 1.0)), "expand f.1"),
            reason(start().update(|f| f.add(x, 1.0)).over(&r, |f| f.add(x, 1.0)), "expand f.2"),
            reason(undefined, "expand f.1"),
        ],
        [
            "its domain must be constant, with at most 128 values",
            "its domain must be constant, with at most 128 values",
            "it must write at the point of its pure variables",
            "it must be the first update; cut the Func before it",
            "`expand f.1` cannot be applied: `f` starts undefined, and the rewritten pipeline would read points without a value; give it an initial value",
        ]
    );
}
