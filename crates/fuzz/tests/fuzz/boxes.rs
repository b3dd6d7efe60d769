//! Boxes of Funcs in a block that reach beyond what the block needs: the evaluator's bits in the simulator, and no access
//! outside of arrays.

use warploom_fuzz::Verdict;
use warploom_lang::*;

use crate::atomics::case;
use crate::support::device;

/// The last part of the reduction is cut off, so the box of all that `g(x - r)` reads starts before `g` does. `f` has such a
/// box too, and is also read directly, at a point before, between or after both starts.
#[test]
fn boxes_that_start_before_their_func_give_the_reference() {
    let x = vars!(x);
    let r = rdom!(r: (0, 10));
    for offset in [0, 8, 9, 10, 11, 12] {
        let image = Input::new("image", Type::I32, 1);
        let f = func("f", x, image.at(x + 12) * 3);
        let g = func("g", x, f.at(x) + 1);
        let terms = g.at(x) + g.at(x - r.x) + f.at(x - offset);
        let out = func("out", x, 0).over(&r, |it| it.add(x, terms));
        let loops = [
            "f flat shared\n    over out.1.r 3\n      g flat shared",
            "over out.1.r 3\n      f flat shared\n      g flat shared",
        ];
        for (block, inner) in [1, 3, 16].into_iter().flat_map(|block| loops.map(|inner| (block, inner))) {
            let lines = format!(
                "  kernel out.0 flat\n  kernel out.1 block x {block}\n    {inner}\n      out.1 threads x 4\n"
            );
            let case = case(vec![out.clone()], &[("image", &[53]), ("out", &[41])], &lines);
            assert_eq!(case.check(&device()).expect("it runs"), Verdict::Passed, "x - {offset}:\n{lines}");
        }
    }
}
