//! `cut`: always exact.

use warploom_lang::*;

use super::check::{noise, refusal, rewrite, same};

/// Two-way averages along the columns of an image. Every row is written before the way up.
pub fn two_way(marked: bool) -> Pipeline {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let alpha = Param::f32("alpha").range(0.0, 1.0);
    let height = input.extent(1);
    let mix = |before: Expr, here: Expr| (1.0 - &alpha) * before + &alpha * here;
    let mark = |f: Func| if marked { f.reassociate() } else { f };
    let r = rdom!(ry: (1, &height - 1));
    let (down, up) = (r.x, &height - 1 - r.x);
    let blur = func("blur", (x, y), undef(Type::F32)).update(|f| f.set((x, 0), input.at((x, 0))));
    let blur = mark(blur.over(&r, |f| f.set((x, down), mix(f.at((x, down - 1)), input.at((x, down))))));
    let blur = mark(blur.over(&r, |f| f.set((x, &up), mix(f.at((x, &up + 1)), f.at((x, &up))))));
    let out = func("out", (x, y), blur.at((x, y)) * 2.0);
    Pipeline::new("two_way", [out]).unwrap()
}

#[test]
fn two_way_scans_keep_their_bits() {
    let pipeline = two_way(false);
    for height in [1, 2, 9] {
        let input = noise(Type::F32, &[3, height]);
        for lines in [&["cut blur at 3"][..], &["cut blur at 4"], &["cut blur at 3", "cut blur.cut at 3"]] {
            same(&pipeline, lines, &[("input", &input)], &[3, height]);
        }
    }
}

#[test]
fn the_copy_has_the_stages_before() {
    let x = vars!(x);
    let r = rdom([(1, 4)]);
    let f = func("f", x, (x, 1)).update(|f| f.set(x, (f.get(1, x), f.get(0, x))));
    let f = f.over(&r, |f| f.set(r.x, (f.get(0, r.x - 1) * 3, f.get(1, r.x) - f.get(1, r.x - 1))));
    let pipeline = Pipeline::new("pairs", [f]).unwrap();
    let lines = ["cut f at 2"];
    assert_eq!(
        rewrite(&pipeline, &lines).to_string(),
        "\
pipeline pairs
  f.cut(x) = (x, 1)
  f.cut(x) = (f.cut(x)[1], f.cut(x)[0])
  f(x) = (f.cut(x)[0], f.cut(x)[1])
  f(rx) = (f(rx - 1)[0] * 3, f(rx)[1] - f(rx - 1)[1])  over rx in (1, 4)
"
    );
    for lines in [["cut f at 1"], ["cut f at 2"], ["cut f at 3"]] {
        same(&pipeline, &lines, &[], &[6]);
    }
}

#[test]
fn places_that_do_not_exist_and_undefined_points_are_refused() {
    let pipeline = two_way(false);
    let refusals = ["cut blur at 0", "cut blur at 5", "cut blur at 2", "cut blur at 1", "cut nothing at 1"]
        .map(|line| refusal(&pipeline, line));
    assert_eq!(
        refusals,
        [
            "`cut blur at 0` cannot be applied: `blur` cannot be cut at 0; choose a number from 1 to 4, its number of stages",
            "`cut blur at 5` cannot be applied: `blur` cannot be cut at 5; choose a number from 1 to 4, its number of stages",
            "`cut blur at 2` cannot be applied: `blur` starts undefined, and the rewritten pipeline would read points without a value; give it an initial value",
            "`cut blur at 1` cannot be applied: `blur` starts undefined, and the rewritten pipeline would read points without a value; give it an initial value",
            "`cut nothing at 1` cannot be applied: there is no Func `nothing`",
        ]
    );
}

/// The warnings about a pipeline like [`two_way`] for an image of this height.
pub fn warnings_of(pipeline: &Pipeline, height: i64) -> Vec<Warning> {
    let image = Region::of_extents(&[3, height]);
    let request = Realisation::new(pipeline).input("input", image.clone()).output("out", image);
    let regions = infer(pipeline, &request.param("alpha", 0.5f32)).unwrap();
    warnings(pipeline, &regions)
}

#[test]
fn no_undefined_point_is_read() {
    let pipeline = rewrite(&two_way(false), &["cut blur at 3"]);
    for height in [1, 2, 9] {
        assert_eq!(warnings_of(&pipeline, height), []);
    }
}
