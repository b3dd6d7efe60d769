//! Boundary conditions at indices that data decides, as in optical flow: they are written out where they are read, and
//! kernels give the reference's bits under any schedule.

use warploom::fuzz::{Case, Verdict};
use warploom::plan::Problem;
use warploom::prelude::*;

const CONDITIONS: [&str; 5] =
    ["repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant_exterior"];

/// A picture beyond its edge.
fn beyond(input: &Input, condition: &str) -> Func {
    match condition {
        "repeat_edge" => input.repeat_edge(),
        "repeat_image" => input.repeat_image(),
        "mirror_image" => input.mirror_image(),
        "mirror_interior" => input.mirror_interior(),
        _ => input.constant_exterior(7.0),
    }
}

/// A picture that a flow moves: `edge(x + u, y + v)`, where the flow is whatever its type can hold.
fn moved(condition: &str, flow: Type) -> Pipeline {
    let (x, y) = vars!(x, y);
    let image = Input::f32("image", 2);
    let (u, v) = (Input::new("u", flow, 2), Input::new("v", flow, 2));
    let edge = beyond(&image, condition).named("edge");
    let points = |part: &Input, y: Expr| match flow {
        Type::F32 => (part.at((x.expr(), y)) * 60.0 - 30.0).i32(),
        _ => part.at((x.expr(), y)).i32(),
    };
    // The middle of two readings, so that the flow is a Func of its own.
    let middle = |part: &Input| (points(part, y.expr()) + points(part, y + 1)) / 2;
    let step = func("step", (x, y), vec![middle(&u), middle(&v)]);
    let moved = func("moved", (x, y), edge.at((x + step.get(0, (x, y)), y - step.get(1, (x, y)))));
    // The edge is read near its point too.
    let out = func("out", (x, y), moved.at((x, y)) - edge.at((x - 1, y + 1)));
    Pipeline::new("moved", [out]).unwrap_or_else(|error| panic!("{condition} {flow}: {error}"))
}

fn request(pipeline: &Pipeline, extents: [i64; 2]) -> Realisation {
    let [width, height] = extents;
    let flow = Region::of_extents(&[width, height + 1]);
    Realisation::new(pipeline)
        .input("image", Region::of_extents(&[11, 7]))
        .input("u", flow.clone())
        .input("v", flow)
        .output("out", Region::of_extents(&extents))
}

#[test]
fn what_is_read_lies_in_the_picture() {
    for condition in CONDITIONS {
        for flow in [Type::I32, Type::F32, Type::U16, Type::I16] {
            let pipeline = moved(condition, flow);
            let regions = infer(&pipeline, &request(&pipeline, [13, 5])).expect("all indices have bounds");
            let image = pipeline.input_named("image").expect("it is read");
            let (whole, read) = (Region::of_extents(&[11, 7]), &regions.inputs[image]);
            assert!(whole.covers(read), "{condition} {flow}: {read}");
            // Offsets that are not negative reach one way only.
            assert!(flow == Type::U16 || *read == whole, "{condition} {flow}: {read}");
            let edge = pipeline.func_named("edge").expect("it is read near its point");
            assert_eq!(regions.funcs[edge].region.to_string(), "[-1, 12) x [1, 6)", "{condition} {flow}");
        }
    }
}

#[test]
fn files_hold_them_as_they_are() {
    for condition in CONDITIONS {
        let pipeline = moved(condition, Type::F32);
        let read = Pipeline::from_json(&pipeline.to_json()).expect("it was written by us");
        assert_eq!(read.structural_hash(), pipeline.structural_hash());
        assert_eq!(read.to_string(), pipeline.to_string());
    }
}

#[test]
fn kernels_give_the_references_bits() {
    let device = Device::preset("h200").expect("it is a preset");
    for (number, condition) in CONDITIONS.into_iter().enumerate() {
        let pipeline = moved(condition, [Type::I32, Type::F32, Type::I16][number % 3]);
        for extents in [[13, 5], [1, 9]] {
            let request = request(&pipeline, extents);
            let problem = Problem::new(&pipeline, &request, &device).expect("all indices have bounds");
            let random = (0..4).map(|seed| problem.random_schedule(seed));
            for schedule in [problem.default_schedule()].into_iter().chain(random) {
                let case = Case { pipeline: pipeline.clone(), request: request.clone(), schedule, seed: 5 };
                let verdict = case.check(&device).unwrap_or_else(|failure| panic!("{condition}: {failure}"));
                assert!(matches!(verdict, Verdict::Passed), "{condition}: {verdict:?}");
            }
        }
    }
}

/// Warps of a picture or of a Func with two values, made from a number: lines and quotients of coordinates, in the
/// index itself or in Funcs, and noise, with Params that have no range.
fn warped(number: u64) -> Pipeline {
    let (x, y) = vars!(x, y);
    let [a, b, c] = ["a", "b", "c"].map(Param::f32);
    let (image, by) = (Input::f32("image", 2), Input::f32("by", 2));
    let line = |x: Expr, y: Expr| x.f32() * &a + y.f32() * &b + &c;
    let over = |x: Expr, y: Expr| line(x.clone(), y) / (x.f32() * &c + 1.0);
    let here = || (x.expr(), y.expr());
    let inner = func("inner", (x, y), (line(x.expr(), y.expr()), x * 5 - y));
    let outer = func("outer", (x, y), inner.get(0, (x + 1, y)) * 2.0 + by.at(here()));
    let indices = [
        line(x.expr(), y.expr()).i32(),
        over(x.expr(), y.expr()).i32(),
        func("over", (x, y), over(x.expr(), y.expr())).at(here()).i32(),
        inner.get(0, here()).i32(),
        inner.get(1, (y, x)),
        outer.at(here()).i32(),
        (by.at(here()) * &a).i32() + x,
        ((by.at(here()).f16() * 4).i64() * 1_000_003_i64 + y.i64()).saturating_cast(Type::I32),
        random_u32(number as u32, [x, y]).i32(),
    ];
    let pick = |shift: u64| indices[(number >> shift) as usize % indices.len()].clone();
    let condition = CONDITIONS[number as usize % CONDITIONS.len()];
    let at = (pick(1) + x, pick(4) - y);
    let value = match number % 3 {
        0 => beyond(&image, condition).at(at),
        1 => image.constant_exterior_in(limits([(0, image.extent(0)), (0, image.extent(1))]), &a).at(at),
        _ => {
            let pair = func("pair", (x, y), (image.at(here()) + 1.0, x * y));
            let limits = limits([(0, image.extent(0)), (0, image.extent(1))]);
            let edge = match condition {
                "repeat_edge" => pair.repeat_edge_in(limits),
                "repeat_image" => pair.repeat_image_in(limits),
                "mirror_image" => pair.mirror_image_in(limits),
                "mirror_interior" => pair.mirror_interior_in(limits),
                _ => pair.constant_exterior_in(limits, (0.5, -1)),
            };
            edge.get(0, at.clone()) * edge.get(1, at).f32() - edge.get(0, (x - 1, y + 1))
        }
    };
    Pipeline::new("warped", [func("out", (x, y), value)]).unwrap_or_else(|error| panic!("{number}: {error}"))
}

#[test]
fn any_index_gives_the_references_bits() {
    let device = Device::preset("h200").expect("it is a preset");
    let values = [[1.0, -0.5, 0.25], [-1e9, 3.0, -0.125], [0.0, f32::INFINITY, -1.0]];
    for number in 0..45 {
        let pipeline = warped(number * 37);
        let mut request = Realisation::new(&pipeline).output("out", Region::of_extents(&[13, 6]));
        for input in pipeline.inputs().values() {
            let extents = if input.name == "image" { [11, 7] } else { [13, 6] };
            request = request.input(&input.name, Region::of_extents(&extents));
        }
        for (name, value) in ["a", "b", "c"].into_iter().zip(values[number as usize % values.len()]) {
            if pipeline.param_named(name).is_some() {
                request = request.param(name, value);
            }
        }
        let problem = Problem::new(&pipeline, &request, &device);
        let problem = problem.unwrap_or_else(|error| panic!("{number}: {error}\n{pipeline}"));
        let random = (0..2).map(|seed| problem.random_schedule(seed));
        for schedule in [problem.default_schedule()].into_iter().chain(random) {
            let case = Case { pipeline: pipeline.clone(), request: request.clone(), schedule, seed: number };
            let verdict =
                case.check(&device).unwrap_or_else(|failure| panic!("{number}: {failure}\n{pipeline}"));
            assert!(matches!(verdict, Verdict::Passed), "{number}: {verdict:?}");
        }
    }
}

/// A condition over a condition, and one that is nowhere read near its point.
#[test]
fn conditions_of_conditions() {
    let x = vars!(x);
    let (image, at) = (Input::f32("image", 1), Input::new("at", Type::I32, 1));
    let inner = image.mirror_image().named("inner");
    let outer = inner.repeat_image_in(limits([(-3, 20)])).named("outer");
    let pipeline = Pipeline::new("p", [func("out", x, outer.at(at.at(x)))]).expect("all indices have bounds");
    let names: Vec<&str> = pipeline.funcs().values().map(|func| func.name.as_str()).collect();
    assert_eq!(names, ["inner", "out"]);
    let request = Realisation::new(&pipeline)
        .input("image", Region::of_extents(&[6]))
        .input("at", Region::of_extents(&[9]))
        .output("out", Region::of_extents(&[9]));
    let regions = infer(&pipeline, &request).expect("all indices have bounds");
    let inner = pipeline.func_named("inner").expect("it is kept");
    assert_eq!(regions.funcs[inner].region.to_string(), "[-3, 17)");
}
