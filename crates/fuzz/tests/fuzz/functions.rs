//! Every function of the language: the evaluator's bits in the simulator.

use warploom_fuzz::{Case, Verdict};
use warploom_lang::*;
use warploom_plan::Problem;

use crate::support::device;

/// All functions of floats, in a sum of their bits, and all functions of integers.
fn pipeline() -> Pipeline {
    let (x, y) = vars!(x, y);
    let (image, whole) = (Input::f32("image", 2), Input::new("whole", Type::I16, 2));
    let functions = [
        abs, sqrt, exp, log, sin, cos, tanh, floor, ceil, round, fast_exp, atan, asin, acos, tan, rsqrt, erf,
        log1p, expm1, exp2, log2,
    ];
    let sample = |dx: i32| image.at((x + dx, y)) * 3.0;
    let bits = |value: Expr| select(is_nan(&value), 7, value.reinterpret(Type::I32));
    let single = functions.map(|function| bits(function(sample(0))));
    let pairs = [atan2, pow].map(|function: fn(Expr, Expr) -> Expr| bits(function(sample(0), sample(1))));
    let all = single.into_iter().chain(pairs).reduce(|sum, value| sum * 31 + value).unwrap();
    let floats = func("floats", (x, y), all);
    let sample = whole.at((x, y));
    let narrow = popcount(&sample) * 64 + leading_zeros(&sample);
    let wide = floats.at((x, y)) ^ (floats.at((x + 1, y)) >> 9);
    let counts = func("counts", (x, y), popcount(&wide) + leading_zeros(wide.u32()).i32() + narrow.i32());
    Pipeline::new("functions", [floats, counts]).unwrap()
}

#[test]
fn every_function_has_the_evaluator_s_bits_in_the_simulator() {
    let pipeline = pipeline();
    let at = |width: i64| Region::of_extents(&[width, 9]);
    let request = Realisation::new(&pipeline)
        .input("image", at(40))
        .input("whole", at(40))
        .output("floats", at(38))
        .output("counts", at(37));
    let problem = Problem::new(&pipeline, &request, &device()).unwrap();
    let drawn = (0..12).map(|seed| problem.random_schedule(seed));
    for schedule in drawn.chain([problem.default_schedule()]) {
        let case = Case { pipeline: pipeline.clone(), request: request.clone(), schedule, seed: 3 };
        assert_eq!(case.check(problem.device()).unwrap(), Verdict::Passed);
    }
}
