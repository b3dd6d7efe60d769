//! A pipeline with confusing names.

use warploom_lang::*;

/// Keywords, dots and digits, several stages.
pub fn outputs() -> Vec<Func> {
    let (x, y, serial) = vars!(x, y, serial);
    let (a, over) = (Input::f32("A", 2), Input::f32("over.in", 2));
    let kernel = func("kernel", (x, y), a.at((x, y)) + over.at((y, x)));
    let over = func("over", (x, serial), kernel.at((x, serial)) * 2.0);
    let r = rdom!(r: (0, 16), all: (0, 4));
    let prod = func("prod", (x, y), 0.0)
        .over(&r, |f| f.add((x, y), over.at((x, r.x)) * over.at((r.y, y))))
        .over(&r, |f| f.set((x, r.x), f.at((x, r.x)) + 1.0));
    let wide = func("gPyramid1.dy", (x, y), sum(&r, prod.at((x + r.x, y + r.y))));
    vec![func("output", (x, y), wide.at((x, y)) + prod.at((y, x)))]
}
