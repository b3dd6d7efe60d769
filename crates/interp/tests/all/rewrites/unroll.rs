//! `unroll`: slices as Funcs of their own.

use warploom_lang::*;

use super::check::{noise, refusal, rewrite, same};

/// A recurrence along the second dimension, which starts at slice 2.
fn recurrence(count: i32) -> Pipeline {
    let (x, t, input) = (vars!(x), vars!(t), Input::f32("input", 2));
    let r = rdom!(t: (1, count));
    let f = func("f", (x, t), input.at((x, t))).over(&r, |f| {
        let (before, first, own) = (f.at((x, r.x)), f.at((x, 0)), f.at((x, r.x + 1)));
        f.set((x, r.x + 1), before * 0.5 + first * 0.25 + own * r.x.f32())
    });
    Pipeline::new("recurrence", [f]).unwrap()
}

#[test]
fn slices_keep_the_bits() {
    for count in [0, 1, 2, 3, 7, 8, 9] {
        let input = noise(Type::F32, &[5, 12]);
        same(&recurrence(count), &["unroll f.1.t"], &[("input", &input)], &[5, 12]);
    }
}

#[test]
fn slices_read_earlier_slices() {
    assert_eq!(
        rewrite(&recurrence(2), &["unroll f.1.t"]).to_string(),
        "\
pipeline recurrence
  input  input(d0, d1): f32
  f.start(x, t) = input(x, t)
  f.at2(x) = f.start(x, 1) * 0.5 + f.start(x, 0) * 0.25 + f.start(x, 2) * 1.0
  f.at3(x) = f.at2(x) * 0.5 + f.start(x, 0) * 0.25 + f.start(x, 3) * 2.0
  f(x, t) = select(t == 3, f.at3(x), select(t == 2, f.at2(x), f.start(x, t)))
"
    );
}

/// The maxima over 1, 2, 4, ... rows, and updates before and after.
#[test]
fn slices_that_are_updates_themselves() {
    let (x, y, t, input) = (vars!(x), vars!(y), vars!(t), Input::f32("input", 2));
    let edge = input.repeat_edge();
    let r = rdom!(ry: (-2, input.extent(1) + 2), t: (1, 3));
    let [ry, rt] = r.vars();
    let s = rdom([(0, 4)]);
    let slices = func("slices", (x, y, t), edge.at((x, y)))
        .update(|f| f.set((x, y, 1), f.at((x, y, 0)) * 2.0))
        .over(&r, |f| {
            let lower = f.at((x, ry + (1 << (rt - 1)), rt - 1));
            f.set((x, ry, rt), max(f.at((x, ry, rt - 1)), lower) + f.at((x, ry - 1, rt)) * 0.125)
        })
        .over(&s, |f| f.add((x, y, s.x), 1.0));
    let out = func("out", (x, y, t), slices.at((x, y - 1, t)));
    let pipeline = Pipeline::new("slices", [out]).unwrap();
    for height in [1, 2, 9] {
        let input = noise(Type::F32, &[3, height]);
        same(&pipeline, &["unroll slices.2.t"], &[("input", &input)], &[3, height, 5]);
    }
    assert_eq!(
        refusal(&pipeline, "unroll slices.2.ry"),
        "`unroll slices.2.ry` cannot be applied: `slices.2` cannot be unrolled into Funcs: the variable must be the last one of its domain, which is the slowest"
    );
}

#[test]
fn predicates_and_tuples() {
    let (x, t, input) = (vars!(x), vars!(t), Input::new("input", Type::I32, 1));
    let r = rdom([(0, 6)]);
    let r = r.clone().filter((input.at(x) & r.x).ne(0));
    let f = func("f", (t, x), (x.i32(), 1u8))
        .over(&r, |f| f.set((5 - r.x, x), (f.get(0, (6 - r.x, x)) + r.x, f.get(1, (5 - r.x, x)) + 3u8)));
    let pipeline = Pipeline::new("tuple", [f]).unwrap();
    let input = noise(Type::I32, &[20]);
    same(&pipeline, &["unroll f.1.rx"], &[("input", &input)], &[8, 20]);
}

#[test]
fn what_has_no_slices_is_refused() {
    let (x, t, input) = (vars!(x), vars!(t), Input::f32("input", 2));
    let start = || func("f", (x, t), input.at((x, t)));
    let reason = |func: Func, var: &str| {
        let pipeline = Pipeline::new("p", [func]).unwrap();
        let message = refusal(&pipeline, &format!("unroll f.1.{var}"));
        message
            .rsplit_once("cannot be unrolled into Funcs: ")
            .map(|(_, why)| why.to_string())
            .unwrap_or(message)
    };
    let (long, open, r) = (rdom([(0, 65)]), rdom([(0, input.extent(1))]), rdom([(0, 4)]));
    let undefined = func("f", (x, t), undef(Type::F32)).over(&r, |f| f.set((x, r.x), 1.0));
    assert_eq!(
        [
            reason(start().over(&long, |f| f.set((x, long.x), 1.0)), "rx"),
            reason(start().over(&open, |f| f.set((x, open.x), 1.0)), "rx"),
            reason(start().over(&r, |f| f.add((x, t), 1.0)), "rx"),
            reason(start().over(&r, |f| f.set((x, r.x - 1), 1.0)), "rx"),
            reason(start().over(&r, |f| f.set((x, r.x / 2), 1.0)), "rx"),
            reason(start().over(&r, |f| f.set((x, r.x), f.at((x, input.at((0, 0)).i32())))), "rx"),
            reason(undefined, "rx"),
        ],
        [
            "the variable must have a constant start and at most 64 values",
            "the variable must have a constant start and at most 64 values",
            "it must write at an index like r + 1 along one dimension",
            "it must write each slice once, at an index that is not negative",
            "it must write each slice once, at an index that is not negative",
            "it must read itself at indices like r - 1 along that dimension",
            "`unroll f.1.rx` cannot be applied: `f` starts undefined, and the rewritten pipeline would read points without a value; give it an initial value",
        ]
    );
}
