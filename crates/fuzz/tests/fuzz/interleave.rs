//! Points of a thread that interleave with those of others: the evaluator's bits in the simulator, at sizes that tiles divide
//! and at others.

use warploom_fuzz::{Case, Verdict};
use warploom_lang::*;

use crate::atomics::case;
use crate::support::*;

/// A product of matrices with 13 terms.
fn product([width, height]: [i64; 2], lines: &str) -> Case {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::f32("A", 2), Input::f32("B", 2));
    let r = rdom!(r: (0, 13));
    let prod = func("prod", (x, y), 0.0).over(&r, |f| f.add((x, y), a.at((x, r.x)) * b.at((r.x, y))));
    let out = func("out", (x, y), prod.at((x, y)) * 2.0);
    case(vec![out], &[("A", &[width, 13]), ("B", &[13, height]), ("out", &[width, height])], lines)
}

/// Groups along both dimensions, with copies of what a block reads.
const TILED: &str = "
  kernel out block x 32, y 12
    prod.0 threads x 4, y 3 serial x 4, y 2 unroll private interleave
    over prod.1.r 4
      A.stage flat shared
      B.stage flat shared
      prod.1 threads x 4, y 3 serial r all, x 4, y 2 unroll private interleave
    out threads x 4, y 3 serial x 4, y 2 unroll interleave
";

/// Groups that a block cuts off, a dimension without points of its own, and rounds of copies.
const CUT: &str = "
  kernel out block x 30, y 5
    prod.0 threads x 4 serial x 3 unroll private interleave
    over prod.1.r 5
      A.stage threads d0 8 serial d0 2 unroll shared interleave
      prod.1 threads x 4 serial x 3, r 2 unroll private interleave
    out threads x 4 serial x 3 unroll
";

/// A sum that is updated in global memory.
const STORED: &str = "
  kernel prod.0 block x 16, y 4
    prod.0 threads x 4 serial x 2 unroll interleave
  kernel prod.1 block x 16, y 4
    prod.1 threads x 4 serial x 2, r all unroll interleave
  kernel out flat
";

#[test]
fn interleaved_points_give_the_reference() {
    for lines in [TILED, CUT, STORED] {
        for extents in [[64, 24], [45, 39], [33, 13], [31, 11], [5, 3], [1, 1]] {
            let verdict = product(extents, lines).check(&device());
            assert_eq!(verdict.expect("it runs"), Verdict::Passed, "{extents:?} {lines}");
        }
    }
}
