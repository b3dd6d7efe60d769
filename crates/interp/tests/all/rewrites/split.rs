//! `split`: always legal, and never a change.

use warploom_lang::*;

use super::check::{noise, refusal, same};

/// A running product of sums, so that the order of everything shows.
fn recurrence(width: i64) -> Pipeline {
    let (x, input) = (vars!(x), Input::f32("input", 2));
    let r = rdom([(0, width as i32), (1, 3)]);
    let out = func("out", x, 1.0).over(&r, |f| f.set(x, f.at(x) * 0.7 + input.at((r.x, r.y + x))));
    Pipeline::new("recurrence", [out]).unwrap()
}

#[test]
fn lengths_around_the_factor() {
    for width in [0, 1, 7, 8, 9, 16, 23] {
        let input = noise(Type::F32, &[width.max(1), 8]);
        let pipeline = recurrence(width);
        for lines in [&["split out.1.rx by 8"][..], &["split out.1.ry by 2", "split out.1.ryo by 2"]] {
            same(&pipeline, lines, &[("input", &input)], &[4]);
        }
    }
}

#[test]
fn extents_of_inputs() {
    let (x, input) = (vars!(x), Input::f32("input", 2));
    let r = rdom([(0, input.extent(0))]);
    let out = func("out", x, 0.0).over(&r, |f| f.add(x, input.at((r.x, x))));
    let pipeline = Pipeline::new("rows", [out]).unwrap();
    for width in [1, 7, 8, 9] {
        let input = noise(Type::F32, &[width, 3]);
        same(&pipeline, &["split out.1.rx by 8"], &[("input", &input)], &[3]);
    }
}

#[test]
fn missing_names_are_refused() {
    let pipeline = recurrence(9);
    let refusals = [
        refusal(&pipeline, "split nothing.1.rx by 8"),
        refusal(&pipeline, "split out.2.rx by 8"),
        refusal(&pipeline, "split out.0.rx by 8"),
        refusal(&pipeline, "split out.1.rz by 8"),
    ];
    assert_eq!(
        refusals,
        [
            "`split nothing.1.rx by 8` cannot be applied: there is no Func `nothing`",
            "`split out.2.rx by 8` cannot be applied: `out` has no update 2; its updates are numbered from 1 to 1",
            "`split out.0.rx by 8` cannot be applied: `out` has no update 0; its updates are numbered from 1 to 1",
            "`split out.1.rz by 8` cannot be applied: `out.1` has no reduction variable `rz`; it has rx, ry",
        ]
    );
    let wrong: Result<rewrite::Rewrite, _> = "split out.1.rx in 8".parse();
    let message = wrong.unwrap_err().to_string();
    assert_eq!(message, "`split out.1.rx in 8` is not a rewrite; write split FUNC.STAGE.VAR by NUMBER");
}
